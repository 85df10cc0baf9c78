"""No text in a file is a formula, wherever a spreadsheet splits it, and any text is read back."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.slices import Slices

from medamad.domain.errors import BadRequest
from medamad.transfer.formats.csv import (
    CsvWriter,
    escape_formulas,
    is_csv,
    read_csv,
    unescape_formulas,
)
from medamad.transfer.registry import detect_source
from medamad.transfer.tables import TABLES

SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20"
TEXTS = st.text(st.sampled_from(SIGNS + ";,\t\r\n'\" x1"), max_size=12)


def written(name: str, value: str) -> bytes:
    writer = CsvWriter(TABLES["events"])
    rows = writer.rows([["0123456789abcdef"], [2], [1], [0], [name], [value]])
    return writer.begin() + rows + writer.end()


@given(TEXTS, TEXTS, st.sampled_from(",;\t"))
def test_no_cell_is_a_formula_with_any_separator(name: str, value: str, separator: str) -> None:
    text = io.StringIO(written(name, value).decode(), newline="")
    for row in csv.reader(text, delimiter=separator):
        assert [cell for cell in row if cell.startswith(tuple(SIGNS))] == []


@given(TEXTS, TEXTS)
def test_texts_are_read_back_exactly(name: str, value: str) -> None:
    (row,) = read_csv(io.BytesIO(written(name, value)))
    assert (row.name, row.value) == (name, value)


@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\r\n", "\n", ""])
@pytest.mark.parametrize(
    ("names", "is_ours"),
    [
        ("time,path", True),
        ("path,time", True),
        ('"time","path"', True),
        ('"path","time"', True),
        ("times,path", False),
        ('"path,time"', False),
        ("a\rb\0,time", False),
        ("", False),
    ],
)
def test_a_header_is_recognised_in_any_notation(
    begin: str, names: str, end: str, *, is_ours: bool
) -> None:
    head = f"{begin}{names}{end}".encode()
    assert is_csv(head) is is_ours
    assert (detect_source(head) == "csv") is is_ours


@given(st.text())
def test_any_text_is_read_back(text: str) -> None:
    assert unescape_formulas(escape_formulas(text)) == text


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("/a;b", "/a;b"),
        ("=1", "'=1"),
        ("\uff1d1", "'\uff1d1"),
        ("/;=1", "/;'=1"),
        ("/\t+1;-1", "/\t'+1;'-1"),
        ('/;"=1', "/;'\"=1"),
        ("/;'=1", "/;''=1"),
        ("''", "'''"),
        ("a=b-c@d", "a=b-c@d"),
        ("", ""),
    ],
)
def test_text_is_escaped_where_a_cell_may_begin(text: str, cell: str) -> None:
    assert escape_formulas(text) == cell
    assert unescape_formulas(cell) == text


def test_rows_are_written_in_blocks() -> None:
    """No other thread runs while Python's csv module writes them."""
    writer = CsvWriter(TABLES["events"])
    count = 2_000
    numbers = Slices(range(count))
    same = [["a"] * count, [1] * count, [None] * count, [0] * count, ["b, c"] * count]
    lines = writer.rows([same[0], numbers, *same[2:], ["d"] * count]).split(b"\r\n")
    assert lines == [
        *(b'a,%d,,1970-01-01T00:00:00.000Z,"b, c",d' % number for number in range(count)),
        b"",
    ]
    assert sum(numbers.sizes) == count
    assert max(numbers.sizes) < 300


@pytest.mark.parametrize("line", [1, 2, 3, 2_000])
def test_a_line_that_is_not_utf_8_is_reported_by_number(line: int) -> None:
    lines = [b"time,path,text", *([b'2026-01-01T00:00:00Z,"/\xc3\xa9",x'] * 2_000)]
    lines[line - 1] += b"\xe9,"
    with pytest.raises(BadRequest, match=f"^line {line}: not valid UTF-8: a byte 0xe9$"):
        list(read_csv(io.BytesIO(b"\n".join(lines))))
