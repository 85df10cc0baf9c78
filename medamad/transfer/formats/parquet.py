"""Tables as Parquet, by pyarrow, which is installed by the extra `parquet` alone."""

import io
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, BinaryIO, Final

from attrs import define, field

from medamad.domain.errors import BadRequest
from medamad.transfer.rows import MAX_MS, Refused, Row
from medamad.transfer.tables import Column, Kind, Rows, Table, row_maker

GROUP_ROWS: Final = 65_536
"""How many rows make a row group: so many are kept in memory."""

_READ_ROWS: Final = 4_096
MISSING: Final = (
    "format: Parquet needs the extra `parquet` (Install, in the documentation, says how)"
)


def pyarrow() -> Any:
    """Return the library. Raises BadRequest where it is not installed."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 - it is large, and not everybody has it
    except ImportError:
        raise BadRequest(MISSING) from None
    return pyarrow


def is_installed() -> bool:
    """Return whether the library is there, without reading it in."""
    return find_spec("pyarrow") is not None


class _Sink(io.RawIOBase):
    """A file that only keeps what has been written since it was asked last."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        """Tell that it may be written to."""
        return True

    def write(self, data: Any) -> int:
        """Keep a piece."""
        self._pieces.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return what was written, and keep it no longer."""
        found, self._pieces = b"".join(self._pieces), []
        return found


@define(eq=False)
class ParquetWriter:
    """Writes one file, piece by piece."""

    table: Table
    _library: Any = field(factory=pyarrow)
    _sink: _Sink = field(factory=_Sink)
    _writer: Any = field(init=False)
    _schema: Any = field(init=False)
    _kept: list[Any] = field(factory=list)
    _rows: int = 0

    def __attrs_post_init__(self) -> None:
        self._schema = schema(self._library, self.table)
        self._writer = self._library.parquet.ParquetWriter(
            self._sink, self._schema, compression="zstd"
        )

    def begin(self) -> bytes:
        """Return how the file begins."""
        return self._sink.take()

    def rows(self, rows: Rows) -> bytes:
        """Return some rows, or nothing yet."""
        batch = self._library.record_batch(
            [
                self._library.array(values, type_of(self._library, column))
                for column, values in zip(self.table.columns, rows, strict=True)
            ],
            schema=self._schema,
        )
        self._kept.append(batch)
        self._rows += batch.num_rows
        if self._rows >= GROUP_ROWS:
            self._write_group()
        return self._sink.take()

    def end(self) -> bytes:
        """Return how the file ends."""
        if self._rows:
            self._write_group()
        self._writer.close()
        return self._sink.take()

    def _write_group(self) -> None:
        whole = self._library.Table.from_batches(self._kept, self._schema)
        self._writer.write_table(whole, row_group_size=whole.num_rows)
        self._kept, self._rows = [], 0


def schema(library: Any, table: Table) -> Any:
    """Return the types of a table's columns."""
    return library.schema([(column.name, type_of(library, column)) for column in table.columns])


def type_of(library: Any, column: Column) -> Any:
    """Return the type of a column."""
    match column.kind:
        case Kind.TEXT:
            return library.string()
        case Kind.INTEGER:
            return library.uint64()
        case Kind.FRACTION:
            return library.float64()
        case Kind.BOOLEAN:
            return library.bool_()
    return library.timestamp("ms", "UTC")


def read_parquet(file: BinaryIO, latest_ms: int = MAX_MS) -> Iterator[Row | Refused]:
    """Read a file of ours. Raises BadRequest where it is none."""
    library = pyarrow()
    try:
        opened = library.parquet.ParquetFile(file)
        make = row_maker(opened.schema_arrow.names, latest_ms)
        number = 0
        for batch in opened.iter_batches(_READ_ROWS):
            for record in batch.to_pylist():
                number += 1
                yield make(number, record)
    except (library.ArrowException, OSError, ValueError) as error:
        raise BadRequest(f"not a sound file of Parquet: {error}") from None
