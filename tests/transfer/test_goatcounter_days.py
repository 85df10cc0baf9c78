import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from support.transfer.day_files import HOST, GoatCounter

from medamad.domain.errors import BadRequest
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_survey import ImportFile
from medamad.transfer.rows import DayRow, RejectedRow

HIT = {"hour": "2024-04-01T10:00:00Z", "path_id": 211, "ref_id": 1, "count": 1}
BROWSER = {"day": "2024-04-01", "path_id": 211, "browser_id": 1, "count": 1}


def read(path: Path) -> list[DayRow | RejectedRow]:
    file = ImportFile.of(path, None, ImportTarget(HOST))
    assert file.source == "goatcounter-json"
    return list(file.day_rows())


@pytest.mark.parametrize(
    ("file", "row", "field", "reason"),
    [
        (
            "hit_stats",
            HIT | {"path_id": 5},
            "hit_stats.jsonl: path_id",
            "no other file has this id",
        ),
        ("hit_stats", HIT | {"ref_id": 9}, "hit_stats.jsonl: ref_id", "no other file has this id"),
        ("hit_stats", HIT | {"hour": "soon"}, "hit_stats.jsonl: hour", "expected an hour"),
        ("hit_stats", HIT | {"hour": "1969-01-01T00:00:00Z"}, "hit_stats.jsonl: hour", "an hour"),
        ("hit_stats", HIT | {"count": -1}, "hit_stats.jsonl", r"`int` >= 0 - at `\$.count`"),
        ("hit_stats", {"hour": "2024-04-01T10:00:00Z"}, "hit_stats.jsonl", "required field"),
        ("browser_stats", BROWSER | {"day": "2024-4-1"}, "browser_stats.jsonl: day", "a date"),
        ("browser_stats", BROWSER | {"browser_id": 9}, "browser_stats.jsonl: browser_id", "no"),
        ("browser_stats", BROWSER | {"path_id": 5}, "browser_stats.jsonl: path_id", "no other"),
        (
            "paths",
            {"id": "x", "path": "/"},
            "paths.jsonl",
            r"Expected `int`, got `str` - at `\$.id`",
        ),
    ],
)
def test_a_bad_line_is_named(
    tmp_path: Path, file: str, row: dict[str, Any], field: str, reason: str
) -> None:
    export = GoatCounter(days=1, more={file: [row]})
    refused = [row for row in read(export.zip(tmp_path / "a.zip")) if isinstance(row, RejectedRow)]
    (found,) = refused
    assert (found.line, found.field) == (len(export.files[file]), field)
    assert re.search(reason, found.reason)


def test_other_files_are_rejected(tmp_path: Path) -> None:
    newer = GoatCounter(days=1).zip(tmp_path / "newer.zip", version="2.0")
    with pytest.raises(BadRequest, match=r"info\.json: expected an export of version 1, got 2\.0"):
        read(newer)
    without = tmp_path / "without.zip"
    with ZipFile(without, "w") as archive:
        archive.writestr("hit_stats.jsonl", "")
        archive.writestr("paths.jsonl", "")
    with pytest.raises(BadRequest, match=r"info\.json: the zip archive has no such file"):
        read(without)
    other = tmp_path / "other.zip"
    with ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "")
    with pytest.raises(BadRequest, match="unknown format; expected one of umami"):
        ImportFile.of(other, None)
    broken = tmp_path / "broken.zip"
    broken.write_bytes(newer.read_bytes()[:-30])
    with pytest.raises(BadRequest, match="not a valid zip archive"):
        ImportFile.of(broken, None)


def test_later_minor_versions_are_read(tmp_path: Path) -> None:
    more = {"hit_stats": [HIT | {"mood": "good"}], "moods": [{"id": 1}]}
    rows = read(GoatCounter(days=1, more=more).zip(tmp_path / "a.zip", version="1.3"))
    assert not [row for row in rows if isinstance(row, RejectedRow)]


def test_the_folder_may_have_any_name(tmp_path: Path) -> None:
    export = GoatCounter(days=1)
    found = [
        read(export.zip(tmp_path / f"{number}.zip", folder=folder))
        for number, folder in enumerate(("", "a/", "some/other/"))
    ]
    assert found[0] == found[1] == found[2]
    assert found[0]


def test_a_zip_of_several_exports_is_rejected(tmp_path: Path) -> None:
    path = GoatCounter(days=1).zip(tmp_path / "a.zip", folder="a/")
    with ZipFile(path, "a") as archive:
        for name in ("__MACOSX/a/._info.json", "__MACOSX/.DS_Store", "a/.DS_Store", "a/", "b/"):
            archive.writestr(name, "")
    assert read(path)
    with ZipFile(path, "a") as archive:
        archive.writestr("b/paths.jsonl", "")
    reason = r"a\.zip: expected one export, got a/paths\.jsonl and b/paths\.jsonl"
    with pytest.raises(BadRequest, match=reason):
        read(path)
