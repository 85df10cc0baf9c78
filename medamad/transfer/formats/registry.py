"""The formats and sources of files, by name, and guessing them from a file's head."""

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import BinaryIO, Final, Protocol, TypeAlias
from zipfile import BadZipFile, ZipFile

from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.transfer.day_rows import DayReader
from medamad.transfer.formats.csv import CsvWriter, is_csv, read_csv
from medamad.transfer.formats.ndjson import NdjsonWriter, is_ndjson, read_ndjson
from medamad.transfer.formats.parquet import ParquetWriter, is_installed, read_parquet
from medamad.transfer.rows import Reader, Refused, Row
from medamad.transfer.sources.access_log import read_access_log
from medamad.transfer.sources.goatcounter import is_goatcounter, read_goatcounter
from medamad.transfer.sources.goatcounter_days import is_goatcounter_days, read_goatcounter_days
from medamad.transfer.sources.log_lines import is_log
from medamad.transfer.sources.medama import is_medama, read_medama
from medamad.transfer.sources.plausible import is_plausible, read_plausible
from medamad.transfer.sources.umami import is_umami, read_umami
from medamad.transfer.tables import Rows, Table
from medamad.transfer.visitors import Into, Visits


@frozen
class DaySource:
    """What can be imported day by day. `is_it` tells it by the head of a file.

    `total` is the table of what a day has in all.
    """

    reader: DayReader
    is_it: Callable[[bytes], bool]
    total: str


DAY_SOURCES: Final[Mapping[str, DaySource]] = MappingProxyType(
    {
        "plausible": DaySource(read_plausible, is_plausible, "imported_visitors"),
        "goatcounter-json": DaySource(read_goatcounter_days, is_goatcounter_days, "hit_stats"),
    }
)


class Writer(Protocol):
    """Writes one file of one table, piece by piece; not every piece gives bytes at once."""

    def begin(self) -> bytes:
        """Return how the file begins."""

    def rows(self, rows: Rows) -> bytes:
        """Return some rows."""

    def end(self) -> bytes:
        """Return how the file ends."""


@frozen
class Format:
    """A format. `writer` raises BadRequest where what it needs is not installed."""

    content_type: bytes
    writer: Callable[[Table], Writer]
    is_installed: Callable[[], bool] = lambda: True


FORMATS: Final[Mapping[str, Format]] = MappingProxyType(
    {
        "csv": Format(b"text/csv; charset=utf-8; header=present", CsvWriter),
        "ndjson": Format(b"application/x-ndjson", NdjsonWriter),
        "parquet": Format(b"application/vnd.apache.parquet", ParquetWriter, is_installed),
    }
)


def written_here() -> list[str]:
    """Name the formats that can be written with what is installed."""
    return [name for name, each in FORMATS.items() if each.is_installed()]


ForeignReader: TypeAlias = Callable[[BinaryIO, Into, Visits], Iterator[Row | Refused]]


@frozen
class Source:
    """What can be imported. `is_it` tells it by how a file begins."""

    reader: ForeignReader
    is_it: Callable[[bytes], bool]
    grows: bool = False
    """Whether more may be written to a file while it is imported."""


_LINES_TRIED: Final = 20


def _is_access_log(head: bytes) -> bool:
    """Return whether a file that begins so is a log; one begun just now has nothing in it."""
    lines = head.removeprefix(BOM_UTF8).splitlines()[:_LINES_TRIED]
    return not head or any(map(is_log, lines))


def _begins_as_log(head: bytes) -> bool:
    """Return whether the first line is one of a log, and not some text in what is no text."""
    first, _, _ = head.removeprefix(BOM_UTF8).partition(b"\n")
    return b"\0" not in first and is_log(first.strip())


def _own(reader: Reader) -> ForeignReader:
    """Return a reader of files that tell all by themselves."""
    return lambda file, into, _visits: reader(file, into.latest_ms)


SOURCES: Final[Mapping[str, Source]] = MappingProxyType(
    {
        "umami": Source(read_umami, is_umami),
        "goatcounter": Source(read_goatcounter, is_goatcounter),
        "medama": Source(read_medama, is_medama),
        "access-log": Source(
            read_access_log,
            _is_access_log,
            grows=True,
        ),
        "parquet": Source(_own(read_parquet), lambda head: head.startswith(b"PAR1")),
        "ndjson": Source(_own(read_ndjson), is_ndjson),
        "csv": Source(_own(read_csv), is_csv),
    }
)
"""By name, in the order in which they are tried, after those of days."""

SOURCE_NAMES: Final = (*SOURCES, *DAY_SOURCES)

_HEAD_BYTES: Final = 65_536
_MOST_OF_A_LINE: Final = 1 << 23
"""Whoever sends a megabyte of bytes that are no text makes six of JSON, of which none is one."""
_ZIP: Final = b"PK\x03\x04"


def head_of(file: BinaryIO) -> bytes:
    """Return how a file begins, to the end of a line that is not longer than any of a log.

    Of a zip it is its mark, and the names of what it holds, line by line.
    """
    head = file.read(_HEAD_BYTES)
    if not head.startswith(_ZIP):
        return head + file.readline(_MOST_OF_A_LINE)
    try:
        with ZipFile(file) as archive:
            return b"\n".join((_ZIP, *(name.encode() for name in archive.namelist())))
    except BadZipFile as error:
        raise BadRequest(f"not a sound zip: {error}") from None


def guessed(head: bytes) -> str | None:
    """Return which source a file is, by its head; None for none that is known.

    What begins with a line of a log is one, whatever else that looks like: strangers write it.
    How other files begin does not come from strangers, but their further lines do.

    Raises BadRequest for text in UTF-16. A database may begin as that does.
    """
    if _begins_as_log(head):
        return "access-log"
    sources: Mapping[str, Source | DaySource] = {**DAY_SOURCES, **SOURCES}
    found = next((name for name, source in sources.items() if source.is_it(head)), None)
    if found is None and head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        raise BadRequest("expected text in UTF-8, it is in UTF-16")
    return found
