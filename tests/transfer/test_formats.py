"""A file's source is detected from its beginning, also after a byte order mark."""

from pathlib import Path

import pytest
from support.transfer.log_samples import caddy, line, nginx

from medamad.domain.errors import BadRequest
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_survey import ImportFile, survey_rows
from medamad.transfer.registry import detect_source
from medamad.transfer.rows import ViewRow

VIEW = '{"time":"2026-01-01T00:00:00Z","path":"/a"}\n'


def test_ndjson_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "views.ndjson"
    path.write_text(VIEW * 2, "utf-8-sig")
    given = ImportFile.of(path, None)
    assert given.source == "ndjson"
    assert [row.path for row in given.rows() if isinstance(row, ViewRow)] == ["/a", "/a"]


@pytest.mark.parametrize("text", [VIEW, "time,path\n", "date,visitors,pageviews\n"])
@pytest.mark.parametrize("order", ["le", "be"])
def test_utf_16_is_rejected(tmp_path: Path, text: str, order: str) -> None:
    path = tmp_path / "saved.txt"
    path.write_bytes(f"\ufeff{text}".encode(f"utf-16-{order}"))
    with pytest.raises(BadRequest, match=r"saved\.txt: expected text in UTF-8, not in UTF-16"):
        ImportFile.of(path, None)


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_a_database_may_begin_as_utf_16_does(mark: bytes) -> None:
    """Its first bytes are a checksum."""
    assert detect_source(mark + bytes(6) + b"DUCK") == "medama"


@pytest.mark.parametrize(
    "sent",
    [
        "session_id event_type",
        "x,session_id,url_path,event_type,created_at,y",
        "x,date,page,visitors,pageviews,y",
        "2Path,Title,Event,FirstVisit,",
        ",time,",
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_log_is_recognised_by_its_first_line(tmp_path: Path, mark: str, sent: str) -> None:
    path = tmp_path / "access.log"
    for first in (
        line(agent=sent),
        line(agent=sent).replace("\n", "\r\n"),
        f"12345678DUCK {line(agent=sent)}",
        f"PAR1 {line(agent=sent)}",
        f"PK:80 {line(agent=sent)}",
        nginx(http_user_agent=sent),
        nginx(http_user_agent=sent).replace('"200"', "000"),
        caddy(headers={"User-Agent": [sent]}),
    ):
        path.write_text(mark + first + line())
        assert ImportFile.of(path, None).source == "access-log", first


@pytest.mark.parametrize(
    ("first", "sent"),
    [
        (nginx(http_referer="SENT", http_user_agent="session_id event_type"), r"\u0001"),
        (caddy(headers={"X": ["SENT"]}), r"\ufffd"),
        (line(referrer="SENT", agent="session_id event_type"), r"\x01"),
        (line(request="GET SENT HTTP/1.1", agent="session_id event_type"), r"\x01"),
    ],
)
@pytest.mark.parametrize("times", [12_000, 1 << 20])
def test_a_log_is_recognised_by_a_very_long_first_line(
    tmp_path: Path, first: str, sent: str, times: int
) -> None:
    """Its other lines, if any, are imported."""
    path = tmp_path / "access.log"
    for others in (0, 2):
        path.write_text(first.replace("SENT", sent * times) + line() * others)
        given = ImportFile.of(path, None, ImportTarget("example.com"))
        *_, found = survey_rows([given])
        views = found.views + found.skipped["repeated"]
        assert (given.source, views, found.rejected_rows) == ("access-log", others, 0)


def test_no_line_of_another_file_makes_it_a_log() -> None:
    row = f",,{line(agent='-')}"
    assert detect_source(f"session_id,url_path,event_type,created_at\n{row}".encode()) == "umami"
    assert detect_source(f"date,visitors,pageviews\n{row}".encode()) == "plausible"
    assert detect_source(bytes(8) + b"DUCK" + bytes(8) + line().encode()) == "medama"
