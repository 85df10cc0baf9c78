"""Tables as lines of JSON: an object for each row, without the columns that are None."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import msgspec
from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.transfer.rows import MAX_MS, HitRow, RejectedRow
from medamad.transfer.tables import ColumnKind, ColumnValues, Table, format_times, row_parser

_MAX_LINE_BYTES: Final = 1 << 20
_MAX_PARSERS: Final = 1_000
_encode_lines: Final = msgspec.json.Encoder().encode_lines


@frozen(eq=False)
class NdjsonWriter:
    """Writes one file, some rows at a time."""

    table: Table

    def begin(self) -> bytes:
        """Return nothing: the file has no header."""
        return b""

    def rows(self, columns: ColumnValues) -> bytes:
        """Return the lines of some rows."""
        cells = [
            format_times(values) if column.kind is ColumnKind.TIMESTAMP else values  # type: ignore[arg-type]
            for column, values in zip(self.table.columns, columns, strict=True)
        ]
        names = self.table.names
        return _encode_lines(
            [
                {name: value for name, value in zip(names, row, strict=True) if value is not None}
                for row in zip(*cells, strict=True)
            ]
        )

    def end(self) -> bytes:
        """Return nothing: the file has no end marker."""
        return b""


def is_ndjson(head: bytes) -> bool:
    """Return whether this may be the head of a file of ours."""
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"{")


def read_ndjson(file: BinaryIO, latest_ms: int = MAX_MS) -> Iterator[HitRow | RejectedRow]:
    """Yield the rows of a file of ours, which may have both views and events."""
    parsers: dict[tuple[str, ...], Callable[[int, Any], HitRow | RejectedRow]] = {}
    number = 0
    while line := file.readline(_MAX_LINE_BYTES):
        number += 1
        if len(line) == _MAX_LINE_BYTES:
            raise BadRequest(f"line {number}: expected fewer than {_MAX_LINE_BYTES} bytes")
        if number == 1:
            line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            columns = tuple(record)
            if columns not in parsers:
                if len(parsers) > _MAX_PARSERS:
                    parsers.clear()
                parsers[columns] = row_parser(columns, latest_ms)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield RejectedRow(number, "line", f"not a JSON object: {error}")
        except BadRequest as error:
            field, _, reason = str(error).partition(": ")
            yield RejectedRow(number, field, reason)
        else:
            yield parsers[columns](number, record)
