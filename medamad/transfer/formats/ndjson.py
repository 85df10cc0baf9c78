"""Tables as lines of JSON: an object for each row, without what is not known."""

from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final

import msgspec
from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.transfer.rows import MAX_MS, Refused, Row
from medamad.transfer.tables import Kind, Rows, Table, row_maker, written

_MOST_OF_A_LINE: Final = 1 << 20
_MOST_SHAPES: Final = 1_000
_encode_lines: Final = msgspec.json.Encoder().encode_lines


@frozen(eq=False)
class NdjsonWriter:
    """Writes one file, piece by piece."""

    table: Table

    def begin(self) -> bytes:
        """Return how the file begins."""
        return b""

    def rows(self, rows: Rows) -> bytes:
        """Return some rows."""
        columns = [
            written(values) if column.kind is Kind.TIMESTAMP else values  # type: ignore[arg-type]
            for column, values in zip(self.table.columns, rows, strict=True)
        ]
        names = self.table.names
        return _encode_lines(
            [
                {name: value for name, value in zip(names, row, strict=True) if value is not None}
                for row in zip(*columns, strict=True)
            ]
        )

    def end(self) -> bytes:
        """Return how the file ends."""
        return b""


def is_ndjson(head: bytes) -> bool:
    """Return whether a file that begins so may be one of ours."""
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"{")


def read_ndjson(file: BinaryIO, latest_ms: int = MAX_MS) -> Iterator[Row | Refused]:
    """Read a file of ours; one may hold views and events, line by line."""
    makers: dict[tuple[str, ...], Callable[[int, Any], Row | Refused]] = {}
    number = 0
    while line := file.readline(_MOST_OF_A_LINE):
        number += 1
        if len(line) == _MOST_OF_A_LINE:
            raise BadRequest(f"line {number}: expected less than {_MOST_OF_A_LINE} bytes")
        if number == 1:
            line = line.removeprefix(BOM_UTF8)
        if not line.strip():
            continue
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            columns = tuple(record)
            if columns not in makers:
                if len(makers) > _MOST_SHAPES:
                    makers.clear()
                makers[columns] = row_maker(columns, latest_ms)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield Refused(number, "line", f"not a JSON object: {error}")
        except BadRequest as error:
            field, _, reason = str(error).partition(": ")
            yield Refused(number, field, reason)
        else:
            yield makers[columns](number, record)
