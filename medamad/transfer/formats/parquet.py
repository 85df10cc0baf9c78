"""Tables as Parquet, written with pyarrow, which only the extra `parquet` installs."""

import io
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, BinaryIO, Final

from attrs import define, field

from medamad.domain.errors import BadRequest
from medamad.transfer.rows import MAX_MS, HitRow, RejectedRow
from medamad.transfer.tables import ColumnKind, ColumnValues, ExportColumn, Table, row_parser

GROUP_ROWS: Final = 65_536
"""The size of a row group, which is buffered in memory."""

_READ_ROWS: Final = 4_096
MISSING: Final = "format: Parquet needs the extra `parquet` (see Install in the documentation)"


def pyarrow() -> Any:
    """Return the library. Raises BadRequest if it is not installed."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 - large and optional
    except ImportError:
        raise BadRequest(MISSING) from None
    return pyarrow


def is_installed() -> bool:
    """Return whether the library is installed, without importing it."""
    return find_spec("pyarrow") is not None


class _OutputBuffer(io.RawIOBase):
    """A file that only keeps what was written since the last `take`."""

    def __init__(self) -> None:
        super().__init__()
        self._data: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._data.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return what was written, and empty the buffer."""
        data, self._data = b"".join(self._data), []
        return data


@define(eq=False)
class ParquetWriter:
    """Writes one file, some rows at a time."""

    table: Table
    _library: Any = field(factory=pyarrow)
    _buffer: _OutputBuffer = field(factory=_OutputBuffer)
    _writer: Any = field(init=False)
    _schema: Any = field(init=False)
    _batches: list[Any] = field(factory=list)
    _rows: int = 0

    def __attrs_post_init__(self) -> None:
        self._schema = schema(self._library, self.table)
        self._writer = self._library.parquet.ParquetWriter(
            self._buffer, self._schema, compression="zstd"
        )

    def begin(self) -> bytes:
        """Return the start of the file."""
        return self._buffer.take()

    def rows(self, columns: ColumnValues) -> bytes:
        """Add some rows; return a row group once it is full, or nothing yet."""
        batch = self._library.record_batch(
            [
                self._library.array(values, type_of(self._library, column))
                for column, values in zip(self.table.columns, columns, strict=True)
            ],
            schema=self._schema,
        )
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= GROUP_ROWS:
            self._write_group()
        return self._buffer.take()

    def end(self) -> bytes:
        """Return the last rows and the end of the file."""
        if self._rows:
            self._write_group()
        self._writer.close()
        return self._buffer.take()

    def _write_group(self) -> None:
        group = self._library.Table.from_batches(self._batches, self._schema)
        self._writer.write_table(group, row_group_size=group.num_rows)
        self._batches, self._rows = [], 0


def schema(library: Any, table: Table) -> Any:
    """Return the schema of a table."""
    return library.schema([(column.name, type_of(library, column)) for column in table.columns])


def type_of(library: Any, column: ExportColumn) -> Any:
    """Return the type of a column."""
    match column.kind:
        case ColumnKind.TEXT:
            return library.string()
        case ColumnKind.INTEGER:
            return library.uint64()
        case ColumnKind.FRACTION:
            return library.float64()
        case ColumnKind.BOOLEAN:
            return library.bool_()
    return library.timestamp("ms", "UTC")


def read_parquet(file: BinaryIO, latest_ms: int = MAX_MS) -> Iterator[HitRow | RejectedRow]:
    """Yield the rows of a file of ours. Raises BadRequest if it is not one."""
    library = pyarrow()
    try:
        parquet_file = library.parquet.ParquetFile(file)
        parse = row_parser(parquet_file.schema_arrow.names, latest_ms)
        number = 0
        for batch in parquet_file.iter_batches(_READ_ROWS):
            for record in batch.to_pylist():
                number += 1
                yield parse(number, record)
    except (library.ArrowException, OSError, ValueError) as error:
        raise BadRequest(f"not a valid Parquet file: {error}") from None
