"""The formats of files, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from attrs import frozen

from medamad.moves.csv_files import CsvWriter, read_csv
from medamad.moves.ndjson_files import NdjsonWriter, read_ndjson
from medamad.moves.parquet_files import ParquetWriter, read_parquet
from medamad.moves.rows import Reader
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


@frozen
class Source:
    """What can be imported. `is_it` tells it by how a file begins."""

    reader: Reader
    is_it: Callable[[bytes], bool]


SOURCES: Final[Mapping[str, Source]] = MappingProxyType(
    {
        "parquet": Source(read_parquet, lambda head: head.startswith(b"PAR1")),
        "ndjson": Source(read_ndjson, lambda head: head.lstrip().startswith(b"{")),
        "csv": Source(read_csv, lambda head: b"time" in head.partition(b"\n")[0].split(b",")),
    }
)
"""By name, in the order in which they are tried."""

HEAD_BYTES: Final = 4_096


def guessed(head: bytes) -> str | None:
    """Tell which source a file is, by its first HEAD_BYTES; None for none that is known."""
    return next((name for name, source in SOURCES.items() if source.is_it(head)), None)
