"""The formats of files, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from attrs import frozen

from medamad.moves.csv_files import CsvWriter
from medamad.moves.ndjson_files import NdjsonWriter
from medamad.moves.parquet_files import ParquetWriter
from medamad.moves.tables import Rows, Table


class Writer(Protocol):
    """Writes one file of one table, piece by piece; not every piece gives bytes at once."""

    def begin(self) -> bytes:
        """Give how the file begins."""

    def rows(self, rows: Rows) -> bytes:
        """Give some rows."""

    def end(self) -> bytes:
        """Give how the file ends."""


@frozen
class Format:
    """A format. `writer` raises BadRequest where what it needs is not installed."""

    content_type: bytes
    writer: Callable[[Table], Writer]


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "csv": Format(b"text/csv; charset=utf-8; header=present", CsvWriter),
        "ndjson": Format(b"application/x-ndjson", NdjsonWriter),
        "parquet": Format(b"application/vnd.apache.parquet", ParquetWriter),
    }
)
