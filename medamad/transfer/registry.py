"""Every export format and import source by name, and detecting the source of a file."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO, Final, Protocol, TypeAlias
from zipfile import BadZipFile, ZipFile

from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.transfer.formats.csv import CsvWriter, is_csv, read_csv
from medamad.transfer.formats.ndjson import NdjsonWriter, is_ndjson, read_ndjson
from medamad.transfer.formats.parquet import ParquetWriter, is_installed, read_parquet
from medamad.transfer.import_context import ImportTarget, ReadContext
from medamad.transfer.rows import DayRow, HitRow, RejectedRow
from medamad.transfer.sources.access_log import read_access_log
from medamad.transfer.sources.goatcounter import (
    is_goatcounter,
    is_goatcounter_days,
    read_goatcounter,
    read_goatcounter_days,
)
from medamad.transfer.sources.log_lines import is_log_line
from medamad.transfer.sources.medama import is_medama, read_medama
from medamad.transfer.sources.plausible import is_plausible, read_plausible
from medamad.transfer.sources.umami import is_umami, read_umami
from medamad.transfer.tables import ColumnValues, Table


class TableWriter(Protocol):
    """Writes one file of one table, some rows at a time; it may buffer what it writes."""

    def begin(self) -> bytes:
        """Return the start of the file."""

    def rows(self, columns: ColumnValues) -> bytes:
        """Return the bytes of some rows, or of none yet."""

    def end(self) -> bytes:
        """Return the end of the file."""


@frozen
class Format:
    """An export format. `writer` raises BadRequest if a library that it needs is missing."""

    content_type: bytes
    writer: Callable[[Table], TableWriter]
    is_installed: Callable[[], bool] = lambda: True


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "csv": Format(b"text/csv; charset=utf-8; header=present", CsvWriter),
        "ndjson": Format(b"application/x-ndjson", NdjsonWriter),
        "parquet": Format(b"application/vnd.apache.parquet", ParquetWriter, is_installed),
    }
)


def installed_formats() -> list[str]:
    """Return the names of the formats that this installation can write."""
    return [name for name, format_ in FORMATS.items() if format_.is_installed()]


RowReader: TypeAlias = Callable[
    [BinaryIO, ImportTarget, ReadContext], Iterator[HitRow | RejectedRow]
]
DayReader: TypeAlias = Callable[[BinaryIO, ImportTarget], Iterator[DayRow | RejectedRow]]


@frozen
class RowSource:
    """A source of single views and events. `matches` takes the head of a file."""

    reader: RowReader
    matches: Callable[[bytes], bool]
    grows: bool = False
    """Whether a file may be appended to while it is imported."""


@frozen
class DaySource:
    """A source of daily figures. `matches` takes the head of a file."""

    reader: DayReader
    matches: Callable[[bytes], bool]
    total: str
    """The table that has the totals of each day."""


_LINES_TRIED: Final = 20


def _is_access_log(head: bytes) -> bool:
    """Return whether this is the head of an access log; a new log is still empty."""
    lines = head.removeprefix(BOM_UTF8).splitlines()[:_LINES_TRIED]
    return not head or any(map(is_log_line, lines))


def _starts_with_log_line(head: bytes) -> bool:
    """Return whether the first line is a log line, rather than text within a binary file."""
    first, _, _ = head.removeprefix(BOM_UTF8).partition(b"\n")
    return b"\0" not in first and is_log_line(first.strip())


def _complete(reader: Callable[[BinaryIO, int], Iterator[HitRow | RejectedRow]]) -> RowReader:
    """Return a reader for our own files, whose rows are complete."""
    return lambda file, target, _context: reader(file, target.latest_ms)


DAY_SOURCES: Final[Mapping[str, DaySource]] = MappingProxyType(
    {
        "plausible": DaySource(read_plausible, is_plausible, "imported_visitors"),
        "goatcounter-json": DaySource(read_goatcounter_days, is_goatcounter_days, "hit_stats"),
    }
)

ROW_SOURCES: Final[Mapping[str, RowSource]] = MappingProxyType(
    {
        "umami": RowSource(read_umami, is_umami),
        "goatcounter": RowSource(read_goatcounter, is_goatcounter),
        "medama": RowSource(read_medama, is_medama),
        "access-log": RowSource(read_access_log, _is_access_log, grows=True),
        "parquet": RowSource(_complete(read_parquet), lambda head: head.startswith(b"PAR1")),
        "ndjson": RowSource(_complete(read_ndjson), is_ndjson),
        "csv": RowSource(_complete(read_csv), is_csv),
    }
)
"""In the order in which they are tried, after DAY_SOURCES."""

SOURCE_NAMES: Final = (*ROW_SOURCES, *DAY_SOURCES)

_HEAD_BYTES: Final = 65_536
_MAX_LINE_BYTES: Final = 1 << 23
"""A log escapes each byte of a binary request as up to six characters, so its lines get long."""
_ZIP: Final = b"PK\x03\x04"


def read_first_lines(file: BinaryIO) -> bytes:
    """Return the head of a file, up to the end of a line.

    For a zip archive, return its signature and the names of its members, one on each line.
    """
    head = file.read(_HEAD_BYTES)
    if not head.startswith(_ZIP):
        return head + file.readline(_MAX_LINE_BYTES)
    try:
        with ZipFile(file) as archive:
            return b"\n".join((_ZIP, *(name.encode() for name in archive.namelist())))
    except BadZipFile as error:
        raise BadRequest(f"not a valid zip archive: {error}") from None


def detect_source(head: bytes) -> str | None:
    """Return the name of the source that a file's head matches, or None.

    A file whose first line is a log line is a log, whatever else it looks like: visitors control
    the text of log lines, but not the first line of any other file.

    Raises BadRequest for text in UTF-16, unless it matches: a database may start the same way.
    """
    if _starts_with_log_line(head):
        return "access-log"
    sources: Mapping[str, RowSource | DaySource] = {**DAY_SOURCES, **ROW_SOURCES}
    name = next((name for name, source in sources.items() if source.matches(head)), None)
    if name is None and head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise BadRequest("expected text in UTF-8, not in UTF-16")
    return name
