import sys
from pathlib import Path

import duckdb
import pytest
from support.transfer.foreign_files import HOST, medama_file, read, seen

from medamad.domain.errors import BadRequest
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.rows import EventRow, ViewRow


def test_databases_of_older_medama_lack_columns(tmp_path: Path) -> None:
    path = tmp_path / "analytics.db"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE views (hostname TEXT, pathname TEXT, date_created TIMESTAMPTZ);"
            "INSERT INTO views VALUES ('example.org', '/a', '2024-05-01T00:00:00Z');"
        )
    (row,) = read(path)
    assert isinstance(row, ViewRow)
    assert row == ViewRow(number=1, time_ms=1_714_521_600_000, path="/a", identity=row.identity)


@pytest.mark.parametrize("registered", [HOST, f"www.{HOST}"])
def test_a_website_has_its_name_with_www_or_without(tmp_path: Path, registered: str) -> None:
    path = tmp_path / "analytics.db"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE views (hostname TEXT, pathname TEXT, date_created TIMESTAMPTZ);"
            "INSERT INTO views VALUES ('example.org', '/a', '2024-05-01T00:00:00Z');"
            "INSERT INTO views VALUES ('www.example.org', '/b', '2024-05-02T00:00:00Z');"
        )
    found = [row for row in read(path, target=ImportTarget(registered)) if isinstance(row, ViewRow)]
    assert [row.path for row in found] == ["/a", "/b"]


def test_an_event_of_medama_may_lack_its_value(tmp_path: Path) -> None:
    path = medama_file([], tmp_path / "analytics.db")
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE loose AS SELECT * FROM events; DROP TABLE events;"
            "ALTER TABLE loose RENAME TO events;"
            "INSERT INTO events VALUES"
            " (NULL, 'a', 'example.org', 'plan', NULL, '2024-05-01T00:00:00Z'),"
            " (NULL, 'b', 'example.org', NULL, 'pro', '2024-05-01T00:00:01Z'),"
            " (NULL, 'c', 'example.org', 'none', 'at any time', NULL);"
        )
    (row,) = read(path)
    assert isinstance(row, EventRow)
    assert (row.name, row.value) == ("plan", "")


def test_other_databases_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE things (name TEXT)")
    with pytest.raises(BadRequest, match=r"other\.db: not a readable Medama database"):
        read(path)


def test_without_the_library_the_error_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = medama_file(seen(5), tmp_path / "analytics.db")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(BadRequest, match="needs the extra `duckdb`"):
        read(path)
