"""Tables as comma-separated values (RFC 4180, UTF-8) that a spreadsheet takes for no formula.

A text that begins like a formula, or with an apostrophe or a quotation mark, gets an apostrophe in
front. So does what follows a semicolon, a tab or a line end in it: where a spreadsheet splits at
these, as it does in many languages, a cell begins there, and quotation marks around the whole do
not help. So nothing that strangers have sent is calculated where the file is opened, and to read it
back exactly is to take one apostrophe off in each of these places that has one.
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
from medamad.transfer.rows import MAX_MS, Refused, Row
from medamad.transfer.tables import IS_TEXT, Kind, Rows, Table, row_maker, written

MARK: Final = "'"
_BEGIN: Final = r"(?:\A|(?<=[;\t\r\n]))"
_MARKED: Final = re.compile(_BEGIN + r"""(?=['"=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])""")
"""The last four are the signs as wide as letters of Chinese, which some spreadsheets take too."""
_MARK: Final = re.compile(_BEGIN + MARK)
_ESCAPED: Final = re.compile("[\udc80-\udcff]")
"""A byte that is none of a character, by `surrogateescape`."""
_RECENT: Final = 1_024
_WRITTEN_AT_ONCE: Final = 256
"""How many rows are written in one go: meanwhile no other thread can run."""
_LINE_END: Final = "\r\n"
_MOST_OF_A_CELL: Final = 1 << 20
_BOOLEANS: Final = {True: "true", False: "false", None: ""}


@frozen(eq=False)
class CsvWriter:
    """Writes one file, piece by piece."""

    table: Table

    def begin(self) -> bytes:
        """Return how the file begins."""
        return (",".join(self.table.names) + _LINE_END).encode()

    def rows(self, rows: Rows) -> bytes:
        """Return some rows."""
        columns = [
            _cells(column.kind, values)
            for column, values in zip(self.table.columns, rows, strict=True)
        ]
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator=_LINE_END)
        for begin in range(0, len(columns[0]), _WRITTEN_AT_ONCE):
            some = (column[begin : begin + _WRITTEN_AT_ONCE] for column in columns)
            writer.writerows(zip(*some, strict=True))
        return file.getvalue().encode()

    def end(self) -> bytes:
        """Return how the file ends."""
        return b""


def _cells(kind: Kind, values: Sequence[object]) -> Sequence[object]:
    match kind:
        case Kind.TEXT:
            return [marked(value) for value in values]
        case Kind.TIMESTAMP:
            return written(values)  # type: ignore[arg-type] # they are numbers
        case Kind.BOOLEAN:
            return [_BOOLEANS[value] for value in values]  # type: ignore[index] # they are booleans
    return values


@lru_cache(_RECENT)
def marked(text: str | None) -> str:
    """Return a text as a cell that is no formula, nor are its parts."""
    return "" if text is None else _MARKED.sub(MARK, text)


def unmarked(cell: str) -> str:
    """Return the text of a cell."""
    return _MARK.sub("", cell)


def is_csv(head: bytes) -> bool:
    """Return whether a file of ours begins so: with names of columns, of which one is `time`."""
    line, _, _ = head.partition(b"\n")
    try:
        names = next(csv.reader([line.decode("utf-8-sig", "replace").rstrip("\r")]), [])
    except csv.Error:
        return False
    return "time" in names


def read_csv(file: BinaryIO, latest_ms: int = MAX_MS) -> Iterator[Row | Refused]:
    """Read a file of ours. Raises BadRequest where it is none."""
    with closing(read_cells(file)) as lines:
        _, names = next(lines, (1, []))
        make = row_maker(names, latest_ms)
        for found in by_column(names, lines):
            if isinstance(found, Refused):
                yield found
            else:
                line, record = found
                yield make(line, {name: _cell(name, cell) for name, cell in record.items()})


def read_records(
    file: IO[bytes], needed: Iterable[str]
) -> Iterator[tuple[int, dict[str, str]] | Refused]:
    """Read a file of another program: line and cells by their column.

    Raises BadRequest where it is none, naming the column that is missing.
    """
    with closing(read_cells(file)) as lines:
        _, names = next(lines, (1, []))
        for name in needed:
            if name not in names:
                raise BadRequest(f"{name}: there is no such column")
        yield from by_column(names, lines)


def by_column(
    names: Sequence[str], lines: Iterable[tuple[int, Sequence[str]]]
) -> Iterator[tuple[int, dict[str, str]] | Refused]:
    """Return line and cells by their column."""
    for line, cells in lines:
        if len(cells) != len(names):
            yield Refused(line, names[0], f"expected {len(names)} cells, got {len(cells)}")
        else:
            yield line, dict(zip(names, cells, strict=True))


def read_cells(file: IO[bytes]) -> Generator[tuple[int, list[str]], None, None]:
    """Return the cells of each row, with the line on which it begins. Raises BadRequest."""
    csv.field_size_limit(_MOST_OF_A_CELL)
    lines = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    reader = csv.reader(_sound(lines), strict=True)
    line = 0
    try:
        for cells in reader:
            begun, line = line + 1, reader.line_num
            if cells:
                yield begun, cells
    except csv.Error as error:
        raise BadRequest(f"line {line + 1}: not comma-separated values: {error}") from None
    finally:
        lines.detach()


def _sound(lines: Iterable[str]) -> Iterator[str]:
    """Return lines as they are. Raises BadRequest naming the one that is not UTF-8.

    They are decoded many at a time, so that the decoder cannot tell.
    """
    for number, line in enumerate(lines, 1):
        if not line.isascii() and (found := _ESCAPED.search(line)):
            byte = ord(found[0]) & 0xFF
            raise BadRequest(f"line {number}: not valid UTF-8: a byte {byte:#04x}")
        yield line


def _cell(name: str, cell: str) -> str | None:
    if name in IS_TEXT:
        return unmarked(cell)
    return cell or None
