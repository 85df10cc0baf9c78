"""Tables as comma-separated values (RFC 4180, UTF-8) that spreadsheets do not read as formulas.

Visitors control much of the text in an export, and a spreadsheet must not evaluate it. A text that
starts like a formula, or with an apostrophe or a quotation mark, therefore gets an apostrophe in
front. So does each part of it after a semicolon, a tab or a line end: in many languages,
spreadsheets start a new cell there, even within quotation marks. Reading a text back means removing
one apostrophe in each of these places.
"""

import csv
import io
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from typing import IO, BinaryIO, Final

from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.transfer.rows import MAX_MS, HitRow, RejectedRow
from medamad.transfer.tables import (
    TEXT_COLUMNS,
    ColumnKind,
    ColumnValues,
    Table,
    format_times,
    row_parser,
)

ESCAPE: Final = "'"
_CELL_START: Final = r"(?:\A|(?<=[;\t\r\n]))"
_FORMULA: Final = re.compile(_CELL_START + r"""(?=['"=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])""")
"""The four code points are full-width signs, which some spreadsheets accept as well."""
_ESCAPED: Final = re.compile(_CELL_START + ESCAPE)
_INVALID_BYTE: Final = re.compile("[\udc80-\udcff]")
"""A byte that is not UTF-8, as decoded with `surrogateescape`."""
_CACHED: Final = 1_024
_BLOCK_ROWS: Final = 256
"""How many rows are written without letting other threads run."""
_LINE_END: Final = "\r\n"
_MAX_CELL: Final = 1 << 20
_MAX_LINE: Final = 1 << 22
_BOOLEANS: Final = {True: "true", False: "false", None: ""}


@frozen(eq=False)
class CsvWriter:
    """Writes one file, some rows at a time."""

    table: Table

    def begin(self) -> bytes:
        """Return the header line."""
        return (",".join(self.table.names) + _LINE_END).encode()

    def rows(self, columns: ColumnValues) -> bytes:
        """Return the lines of some rows."""
        cells = [
            _cells(column.kind, values)
            for column, values in zip(self.table.columns, columns, strict=True)
        ]
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator=_LINE_END)
        for begin in range(0, len(cells[0]), _BLOCK_ROWS):
            block = (column[begin : begin + _BLOCK_ROWS] for column in cells)
            writer.writerows(zip(*block, strict=True))
        return file.getvalue().encode()

    def end(self) -> bytes:
        """Return nothing: the file has no end marker."""
        return b""


def _cells(kind: ColumnKind, values: Sequence[object]) -> Sequence[object]:
    match kind:
        case ColumnKind.TEXT:
            return [escape_formulas(value) for value in values]
        case ColumnKind.TIMESTAMP:
            return format_times(values)  # type: ignore[arg-type] # they are numbers
        case ColumnKind.BOOLEAN:
            return [_BOOLEANS[value] for value in values]  # type: ignore[index] # they are booleans
    return values


@lru_cache(_CACHED)
def escape_formulas(text: str | None) -> str:
    """Return a text as a cell that contains no formula."""
    return "" if text is None else _FORMULA.sub(ESCAPE, text)


def unescape_formulas(cell: str) -> str:
    """Return the text of a cell."""
    return _ESCAPED.sub("", cell)


def is_csv(head: bytes) -> bool:
    """Return whether this is the head of a file of ours: column names, including `time`."""
    line, _, _ = head.partition(b"\n")
    try:
        names = next(csv.reader([line.decode("utf-8-sig", "replace").rstrip("\r")]), [])
    except csv.Error:
        return False
    return "time" in names


def read_csv(file: BinaryIO, latest_ms: int = MAX_MS) -> Iterator[HitRow | RejectedRow]:
    """Yield the rows of a file of ours. Raises BadRequest if it is not one."""
    with closing(read_cells(file)) as lines:
        _, names = next(lines, (1, []))
        parse = row_parser(names, latest_ms)
        for result in cells_by_column(names, lines):
            if isinstance(result, RejectedRow):
                yield result
            else:
                line, record = result
                yield parse(line, {name: _value(name, cell) for name, cell in record.items()})


def read_records(
    file: IO[bytes], needed: Iterable[str]
) -> Iterator[tuple[int, dict[str, str]] | RejectedRow]:
    """Yield the line number and cells, by column, of each row of another program's file.

    Raises BadRequest for a file without the columns in `needed`, naming the one that is missing.
    """
    with closing(read_cells(file)) as lines:
        _, names = next(lines, (1, []))
        for name in needed:
            if name not in names:
                raise BadRequest(f"{name}: the file has no such column")
        yield from cells_by_column(names, lines)


def cells_by_column(
    names: Sequence[str], lines: Iterable[tuple[int, Sequence[str]]]
) -> Iterator[tuple[int, dict[str, str]] | RejectedRow]:
    """Yield the line number and cells, by column, of each row."""
    for line, cells in lines:
        if len(cells) != len(names):
            yield RejectedRow(line, names[0], f"expected {len(names)} cells, got {len(cells)}")
        else:
            yield line, dict(zip(names, cells, strict=True))


def read_cells(file: IO[bytes]) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the line on which each row starts, and its cells. Raises BadRequest if not CSV."""
    csv.field_size_limit(_MAX_CELL)
    lines = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    reader = csv.reader(_lines_of(lines), strict=True)
    line = 0
    try:
        for cells in reader:
            first_line, line = line + 1, reader.line_num
            if cells:
                yield first_line, cells
    except csv.Error as error:
        raise BadRequest(f"line {line + 1}: not comma-separated values: {error}") from None
    finally:
        lines.detach()


def _lines_of(file: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a file.

    Raises BadRequest with the number of a line that is too long or not UTF-8. The decoder reads
    many lines ahead, so its own error could not name the line.
    """
    for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE), ""), 1):
        if len(line) == _MAX_LINE:
            raise BadRequest(f"line {number}: expected fewer than {_MAX_LINE} characters")
        if not line.isascii() and (match := _INVALID_BYTE.search(line)):
            byte = ord(match[0]) & 0xFF
            raise BadRequest(f"line {number}: not valid UTF-8: a byte {byte:#04x}")
        yield line


def _value(name: str, cell: str) -> str | None:
    if name in TEXT_COLUMNS:
        return unescape_formulas(cell)
    return cell or None
