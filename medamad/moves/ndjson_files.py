"""Tables as lines of JSON: an object for each row, without what is not known."""

from typing import Final

import msgspec
from attrs import frozen

from medamad.moves.tables import Kind, Rows, Table
from medamad.moves.times import written

_encode_lines: Final = msgspec.json.Encoder().encode_lines


@frozen(eq=False)
class NdjsonWriter:
    """Writes one file, piece by piece."""

    table: Table

    def begin(self) -> bytes:
        """Give how the file begins."""
        return b""

    def rows(self, rows: Rows) -> bytes:
        """Give some rows."""
        columns = [
            written(values) if column.kind is Kind.TIME else values  # type: ignore[arg-type]
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
        """Give how the file ends."""
        return b""
