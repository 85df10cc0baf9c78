"""A file is told by how it begins, also where a program has put a mark of its encoding first."""

from pathlib import Path

import pytest

from medamad.model.errors import BadRequest
from medamad.moves.formats import guessed
from medamad.moves.rows import ViewRow
from medamad.moves.survey import Given

VIEW = '{"time":"2026-01-01T00:00:00Z","path":"/a"}\n'


def test_ndjson_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "views.ndjson"
    path.write_text(VIEW * 2, "utf-8-sig")
    given = Given.of(path, None)
    assert given.source == "ndjson"
    assert [row.path for row in given.rows() if isinstance(row, ViewRow)] == ["/a", "/a"]


@pytest.mark.parametrize("text", [VIEW, "time,path\n", "date,visitors,pageviews\n"])
@pytest.mark.parametrize("order", ["le", "be"])
def test_what_is_in_utf_16_is_said(tmp_path: Path, text: str, order: str) -> None:
    path = tmp_path / "saved.txt"
    path.write_bytes(f"\ufeff{text}".encode(f"utf-16-{order}"))
    with pytest.raises(BadRequest, match=r"saved\.txt: expected text in UTF-8, it is in UTF-16"):
        Given.of(path, None)


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_a_database_may_begin_as_utf_16_does(mark: bytes) -> None:
    """Its first bytes are a checksum."""
    assert guessed(mark + bytes(6) + b"DUCK") == "medama"
