"""Plausible's export: tables of days as CSV, in a zip or as single files.

It goes by Plausible's documentation ("Import stats using CSV files"). In a zip a table is told by
the name of its file; a single file by its columns, whatever they are in order and it is called. The
time on pages is that in which a page was in sight, as here; older exports are without. Of exit
pages, regions, cities, visits and their duration nothing is taken: there is no such figure here.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from types import MappingProxyType
from typing import IO, BinaryIO, Final
from zipfile import is_zipfile

from attrs import frozen

from medamad.domain.dimensions import PROPERTY_SEPARATOR, Dimension, property_text
from medamad.domain.errors import BadRequest
from medamad.ingest.page import MAX_UTM
from medamad.ingest.payload import MAX_NAME, MAX_VALUE
from medamad.transfer.day_rows import MOST, DayRow, DayTable, day_of
from medamad.transfer.formats.csv import by_column, read_cells
from medamad.transfer.input_files import opened_zip
from medamad.transfer.rows import Refused
from medamad.transfer.sources.common import browser_named, country_of, device_named, system_named
from medamad.transfer.visitors import Into

_KNOWN: Final = 65_536
_DIGITS: Final = 20
_NULL: Final = r"\N"
"""What ClickHouse, which writes the tables, puts where there is no figure."""
_TIME: Final = "total_time_on_page"
_SECONDS: Final = re.compile(r"(?:\d{1,19}(?:\.\d*)?)?", re.ASCII)
"""What may stand there when another program has saved a table: an empty cell, or a fraction."""
_DIRECT: Final = frozenset({"", "Direct / None", "(not set)"})
_Record = Mapping[str, str]
_TOTAL: Final = frozenset({"date", "visitors", "pageviews", "bounces", "visits", "visit_duration"})
_UTM: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")


@frozen
class _Table:
    """A table, told by a column that no other has; `texts` reads what its rows count by."""

    table: DayTable
    told_by: frozenset[str]
    needed: tuple[str, ...]
    figures: Mapping[str, str]
    """The columns that figures of a DayRow are in."""
    texts: Callable[["_Reading", _Record], tuple[str, ...]]


@frozen(eq=False)
class _Reading:
    """What the cells of an export into a website are here."""

    path: Callable[[str], str]
    referrer: Callable[[str], str]

    @classmethod
    def of(cls, into: Into) -> "_Reading":
        @lru_cache(_KNOWN)
        def path(text: str) -> str:
            target, _, _ = text.partition("?")
            page = into.page("", target if target.startswith("/") else f"/{target}")
            return "/" if page is None else page.path

        @lru_cache(_KNOWN)
        def referrer(text: str) -> str:
            return into.referrer(f"https://{text}", "") or ""

        return cls(path, referrer)


def _source(reading: _Reading, record: _Record) -> tuple[str, ...]:
    utm = tuple(record.get(name, "").strip()[:MAX_UTM] for name in _UTM)
    source, referrer = record.get("source", "").strip(), record.get("referrer", "").strip()
    if referrer not in _DIRECT:
        return (reading.referrer(referrer), *utm)
    # Of a campaign, Plausible's source is that of its parameters.
    return (source[:MAX_UTM] if source not in _DIRECT and source != utm[0] else "", *utm)


def _event(_: _Reading, record: _Record) -> tuple[str, ...]:
    return _property(record["name"], record.get("link_url") or record.get("path") or "")


def _property(name: str, value: str) -> tuple[str, ...]:
    name = name.replace(PROPERTY_SEPARATOR, "").strip()[:MAX_NAME]
    return (property_text(name, value.strip()[:MAX_VALUE]),)


_OF_VISITS: Final = {
    "views": "pageviews",
    "visitors": "visitors",
    "visits": "visits",
    "bounces": "bounces",
}
_CAMPAIGN: Final = (
    Dimension.UTM_SOURCE,
    Dimension.UTM_MEDIUM,
    Dimension.UTM_CAMPAIGN,
    Dimension.UTM_TERM,
    Dimension.UTM_CONTENT,
)
_BY_VISITS: Final = ("visitors", "pageviews")
_TABLES: Final = (
    _Table(
        DayTable("imported_entry_pages", (Dimension.PATH,)),
        frozenset({"entry_page"}),
        ("entry_page", "visitors"),
        {"visitors": "visitors", "visits": "entrances", "bounces": "bounces"},
        lambda reading, record: (reading.path(record["entry_page"]),),
    ),
    _Table(
        DayTable("imported_pages", (Dimension.PATH,)),
        frozenset({"page"}),
        ("page", *_BY_VISITS),
        {"views": "pageviews", "page_visitors": "visitors", "time_s": _TIME},
        lambda reading, record: (reading.path(record["page"]),),
    ),
    _Table(
        DayTable("imported_browsers", (Dimension.BROWSER, Dimension.BROWSER_VERSION)),
        frozenset({"browser"}),
        ("browser", *_BY_VISITS),
        _OF_VISITS,
        lambda _, record: browser_named(record["browser"], record.get("browser_version", "")),
    ),
    _Table(
        DayTable("imported_operating_systems", (Dimension.OS, Dimension.OS_VERSION)),
        frozenset({"operating_system"}),
        ("operating_system", *_BY_VISITS),
        _OF_VISITS,
        lambda _, record: system_named(
            record["operating_system"], record.get("operating_system_version", "")
        ),
    ),
    _Table(
        DayTable("imported_devices", (Dimension.DEVICE,)),
        frozenset({"device"}),
        ("device", *_BY_VISITS),
        _OF_VISITS,
        lambda _, record: (device_named(record["device"]),),
    ),
    _Table(
        DayTable("imported_locations", (Dimension.COUNTRY,)),
        frozenset({"country"}),
        ("country", *_BY_VISITS),
        _OF_VISITS,
        lambda _, record: (country_of(record["country"]),),
    ),
    _Table(
        DayTable("imported_sources", (Dimension.REFERRER, *_CAMPAIGN)),
        frozenset({"source", "referrer", "utm_source"}),
        _BY_VISITS,
        _OF_VISITS,
        _source,
    ),
    _Table(
        DayTable("imported_custom_props", (Dimension.PROPERTY,)),
        frozenset({"property"}),
        ("property", "value", "events"),
        {"views": "events"},
        lambda _, record: _property(record["property"], record["value"]),
    ),
    _Table(
        DayTable("imported_custom_events", (Dimension.PROPERTY,)),
        frozenset({"events"}),
        ("name", "events"),
        {"views": "events"},
        _event,
    ),
)
_IN_ALL: Final = _Table(
    DayTable("imported_visitors", is_total=True), _TOTAL, _BY_VISITS, _OF_VISITS, lambda *_: ()
)
_BY_NAME: Final = MappingProxyType({each.table.name: each for each in (*_TABLES, _IN_ALL)})
_WITHOUT: Final = "exit_page"
"""A column of the table of which nothing is taken."""
_NAME: Final = re.compile(r"(imported_[a-z_]*[a-z])(?:_\d+)*\.csv\Z")
"""What a file of a table is called, in a zip: the table, and the days of the export."""
_ENGAGEMENT: Final = "engagement"
"""The event by which its tracker tells of time and scrolling: about one for each view."""
_OURS: Final = "report"
"""A column of our own statistics."""


def is_plausible(head: bytes) -> bool:
    """Return whether a file that begins so is such an export, or a table of one."""
    lines = head.splitlines() or [b""]
    if lines[0].startswith(b"PK"):
        return any(_is_member(name.decode(errors="replace")) for name in lines[1:])
    columns = lines[0].decode("utf-8-sig", "replace").replace('"', "").split(",")
    return "date" in columns and (_WITHOUT in columns or _table_of(columns) is not None)


def read_plausible(file: BinaryIO, into: Into) -> Iterator[DayRow | Refused]:
    """Read an export, or a table of one. Raises BadRequest where it is none."""
    reading = _Reading.of(into)
    if not is_zipfile(file):
        file.seek(0)
        yield from _rows(file, "", reading)
        return
    with opened_zip(file) as archive:
        names = sorted(filter(_is_member, archive.namelist()))
        if not names:
            raise BadRequest("imported_visitors: there is no such table in the zip")
        for name in names:
            try:
                with archive.open(name) as member:
                    yield from _rows(member, name, reading)
            except BadRequest as error:
                raise BadRequest(f"{name}: {error}") from None


def _is_member(name: str) -> bool:
    base = name.rpartition("/")[2]
    return base.startswith("imported_") and base.endswith(".csv")


def _table_of(columns: Collection[str], place: str = "") -> _Table | None:
    """Return which table has such columns, None for none of which anything is taken.

    `place` is the name of its file in a zip.
    """
    if _WITHOUT in columns or _OURS in columns:
        return None
    if columns and (named := _NAME.match(place.rpartition("/")[2])):
        return _BY_NAME.get(named[1])
    for table in _TABLES:
        if not table.told_by.isdisjoint(columns):
            return table
    # A table by something that is not known here has figures of visitors too.
    return _IN_ALL if "visitors" in columns and _TOTAL.issuperset(columns) else None


def _rows(file: IO[bytes], place: str, reading: _Reading) -> Iterator[DayRow | Refused]:
    """Read a table."""
    with closing(read_cells(file)) as lines:
        _, names = next(lines, (1, []))
        table = _table_of(names, place)
        if table is None:
            if _WITHOUT not in names:
                reason = f"no table of Plausible's: {', '.join(names)}"
                yield Refused(0, place or "columns", reason)
            return
        for name in ("date", *table.needed):
            if name not in names:
                raise BadRequest(f"{name}: there is no such column")
        figures = _figures(table, names)
        before = f"{place}: " if place else ""
        for found in by_column(names, lines):
            if isinstance(found, Refused):
                yield Refused(found.line, f"{before}{found.field}", found.reason)
                continue
            line, record = found
            if record.get("name") == _ENGAGEMENT:
                continue
            try:
                day = _day(record)
                values = {name: _whole(record, column) for name, column in figures.items()}
            except _Unreadable as error:
                yield Refused(line, f"{before}{error.column}", str(error))
                continue
            texts = table.texts(reading, record)
            yield DayRow(table.table, day, texts, line=line, place=place, **values)


def _figures(table: _Table, names: Collection[str]) -> dict[str, str]:
    """Return the columns that are there; without bounces, also visits do not matter."""
    found = {attribute: name for attribute, name in table.figures.items() if name in names}
    if "bounces" not in found:
        found.pop("visits", None)
    elif "visits" not in found:
        found["visits"] = "visitors"
    return found


class _Unreadable(Exception):
    """A cell cannot be read."""

    def __init__(self, column: str, expected: str) -> None:
        super().__init__(f"expected {expected}")
        self.column = column


def _day(record: _Record) -> int:
    try:
        return day_of(record["date"])
    except ValueError:
        raise _Unreadable("date", "a date such as 2026-01-31") from None


def _whole(record: _Record, column: str) -> int:
    cell = record[column]
    if column == _TIME and _SECONDS.fullmatch(cell):
        cell = str(round(float(cell or 0)))
    if cell == _NULL:
        return 0
    if cell.isascii() and cell.isdigit() and len(cell) < _DIGITS and (value := int(cell)) <= MOST:
        return value
    raise _Unreadable(column, f"a whole number from 0 to {MOST}")
