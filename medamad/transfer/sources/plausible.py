"""Plausible's export: tables of daily figures as CSV, in a zip archive or as single files.

It follows Plausible's documentation ("Import stats using CSV files"). In an archive, a table is
identified by the name of its file; a single file by its columns, in any order and with any name.
The time on pages is, as here, the time that a page was visible; older exports lack it. Regions and
cities are ignored, since there is nothing like them here.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from functools import lru_cache
from types import MappingProxyType
from typing import IO, BinaryIO, Final
from zipfile import is_zipfile

from attrs import evolve, frozen

from medamad.domain.dimensions import (
    MAX_PROPERTY_NAME,
    MAX_PROPERTY_VALUE,
    PROPERTY_SEPARATOR,
    Dimension,
    property_text,
)
from medamad.domain.errors import BadRequest
from medamad.storage.import_content import Counted
from medamad.transfer.formats.csv import cells_by_column, read_cells
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.input_files import open_zip
from medamad.transfer.rows import MAX_FIGURE, DayRow, DayTable, RejectedRow, parse_day
from medamad.transfer.sources.normalize import (
    country_code,
    normalize_browser,
    normalize_device,
    normalize_system,
)

_CACHED: Final = 65_536
_MAX_DIGITS: Final = 20
_NULL: Final = r"\N"
"""How ClickHouse, which writes the tables, writes a missing figure."""
_TIME: Final = "total_time_on_page"
_VISIT_DURATION: Final = "visit_duration"
_SECONDS: Final = re.compile(r"(?:\d{1,19}(?:\.\d*)?)?", re.ASCII)
"""Other programs that save a table may leave an empty cell, or a fraction."""
_DIRECT: Final = frozenset({"", "Direct / None", "(not set)"})
_Record = Mapping[str, str]
_TOTAL_COLUMNS: Final = frozenset(
    {"date", "visitors", "pageviews", "bounces", "visits", "visit_duration"}
)
_UTM: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")


@frozen
class _Table:
    """A table of the export, and how to read it."""

    table: DayTable
    identified_by: frozenset[str]
    """Columns that no other table has."""
    required: tuple[str, ...]
    figures: Mapping[str, str]
    """The column for each figure of a DayRow."""
    visits: Mapping[str, str]
    """Those that are needed to know the visits that `table` counts; older exports lack some."""
    texts: Callable[["_Normalizer", _Record], tuple[str, ...]]
    """Returns the texts that a row counts by."""


@frozen(eq=False)
class _Normalizer:
    """Brings the cells of an export into our form."""

    path: Callable[[str], str]
    referrer: Callable[[str], str]
    utm: Callable[[str], str]
    link: Callable[[str], str]
    event: Callable[[str], str]
    """Returns the path that an event reports, as it was sent but for what is never stored."""

    @classmethod
    def of(cls, target: ImportTarget) -> "_Normalizer":
        @lru_cache(_CACHED)
        def path(text: str) -> str:
            url_path, _, _ = text.partition("?")
            page = target.page("", url_path if url_path.startswith("/") else f"/{url_path}")
            return "/" if page is None else page.path

        @lru_cache(_CACHED)
        def referrer(text: str) -> str:
            return target.referrer(f"https://{text}", "") or ""

        redaction = target.own.redaction
        return cls(path, referrer, target.own.utm, redaction.text, redaction.path_as_sent)


def _source(normalizer: _Normalizer, record: _Record) -> tuple[str, ...]:
    utm = tuple(normalizer.utm(record.get(name, "").strip()) for name in _UTM)
    source = normalizer.utm(record.get("source", "").strip())
    referrer = record.get("referrer", "").strip()
    if referrer not in _DIRECT:
        return (normalizer.referrer(referrer), *utm)
    # For a campaign, Plausible's source is the UTM source.
    return (source if source not in _DIRECT and source != utm[0] else "", *utm)


def _event(normalizer: _Normalizer, record: _Record) -> tuple[str, ...]:
    link, path = record.get("link_url"), record.get("path")
    return _property(
        record["name"], normalizer.link(link) if link else normalizer.event(path or "")
    )


def _custom(normalizer: _Normalizer, record: _Record) -> tuple[str, ...]:
    """Return a custom property, of which Plausible itself reports `url` and `path`."""
    name, value = record["property"], record["value"]
    change = {"url": normalizer.link, "path": normalizer.event}.get(name, str)
    return _property(name, change(value))


def _property(name: str, value: str) -> tuple[str, ...]:
    name = name.replace(PROPERTY_SEPARATOR, "").strip()[:MAX_PROPERTY_NAME]
    return (property_text(name, value.strip()[:MAX_PROPERTY_VALUE]),)


_VISIT_FIGURES: Final = {
    "views": "pageviews",
    "visitors": "visitors",
    "visits": "visits",
    "bounces": "bounces",
}
_VISITS: Final = {
    "visits": "visits",
    "bounces": "bounces",
    "visit_views": "pageviews",
    "visit_s": _VISIT_DURATION,
}
_CAMPAIGN: Final = (
    Dimension.UTM_SOURCE,
    Dimension.UTM_MEDIUM,
    Dimension.UTM_CAMPAIGN,
    Dimension.UTM_TERM,
    Dimension.UTM_CONTENT,
)
_REQUIRED_FIGURES: Final = ("visitors", "pageviews")
_TABLES: Final = (
    _Table(
        DayTable("imported_entry_pages", (Dimension.PATH,), visits=Counted.VISITS),
        frozenset({"entry_page"}),
        ("entry_page", "visitors"),
        {"visitors": "visitors", "visits": "entrances", "bounces": "bounces"},
        {**_VISITS, "visits": "entrances"},
        lambda normalizer, record: (normalizer.path(record["entry_page"]),),
    ),
    _Table(
        DayTable("imported_exit_pages", (Dimension.PATH,), visits=Counted.EXITS),
        frozenset({"exit_page"}),
        ("exit_page",),
        {},
        {"exits": "exits"},
        lambda normalizer, record: (normalizer.path(record["exit_page"]),),
    ),
    _Table(
        DayTable("imported_pages", (Dimension.PATH,), visits=Counted.PAGES),
        frozenset({"page"}),
        ("page", *_REQUIRED_FIGURES),
        {"views": "pageviews", "page_visitors": "visitors", "time_s": _TIME},
        {"page_visits": "visits"},
        lambda normalizer, record: (normalizer.path(record["page"]),),
    ),
    _Table(
        DayTable(
            "imported_browsers",
            (Dimension.BROWSER, Dimension.BROWSER_VERSION),
            visits=Counted.VISITS,
        ),
        frozenset({"browser"}),
        ("browser", *_REQUIRED_FIGURES),
        _VISIT_FIGURES,
        _VISITS,
        lambda _, record: normalize_browser(record["browser"], record.get("browser_version", "")),
    ),
    _Table(
        DayTable(
            "imported_operating_systems",
            (Dimension.OS, Dimension.OS_VERSION),
            visits=Counted.VISITS,
        ),
        frozenset({"operating_system"}),
        ("operating_system", *_REQUIRED_FIGURES),
        _VISIT_FIGURES,
        _VISITS,
        lambda _, record: normalize_system(
            record["operating_system"], record.get("operating_system_version", "")
        ),
    ),
    _Table(
        DayTable("imported_devices", (Dimension.DEVICE,), visits=Counted.VISITS),
        frozenset({"device"}),
        ("device", *_REQUIRED_FIGURES),
        _VISIT_FIGURES,
        _VISITS,
        lambda _, record: (normalize_device(record["device"]),),
    ),
    _Table(
        DayTable("imported_locations", (Dimension.COUNTRY,), visits=Counted.VISITS),
        frozenset({"country"}),
        ("country", *_REQUIRED_FIGURES),
        _VISIT_FIGURES,
        _VISITS,
        lambda _, record: (country_code(record["country"]),),
    ),
    _Table(
        DayTable("imported_sources", (Dimension.REFERRER, *_CAMPAIGN), visits=Counted.VISITS),
        frozenset({"source", "referrer", "utm_source"}),
        _REQUIRED_FIGURES,
        _VISIT_FIGURES,
        _VISITS,
        _source,
    ),
    _Table(
        DayTable("imported_custom_props", (Dimension.PROPERTY,)),
        frozenset({"property"}),
        ("property", "value", "events"),
        {"views": "events"},
        {},
        _custom,
    ),
    _Table(
        DayTable("imported_custom_events", (Dimension.PROPERTY,)),
        frozenset({"events"}),
        ("name", "events"),
        {"views": "events"},
        {},
        _event,
    ),
)
_TOTAL: Final = _Table(
    DayTable("imported_visitors", is_total=True, visits=Counted.VISITS),
    _TOTAL_COLUMNS,
    _REQUIRED_FIGURES,
    _VISIT_FIGURES,
    _VISITS,
    lambda *_: (),
)
_BY_NAME: Final = MappingProxyType({table.table.name: table for table in (*_TABLES, _TOTAL)})
_FILE_NAME: Final = re.compile(r"(imported_[a-z_]*[a-z])(?:_\d+)*\.csv\Z")
"""A file name in an archive: the table, and the days of the export."""
_ENGAGEMENT: Final = "engagement"
"""The event with which Plausible's tracker reports time and scrolling: about one for each view."""
_OWN: Final = "report"
"""A column of our own exported statistics."""


def is_plausible(head: bytes) -> bool:
    """Return whether this is the head of an export, or of one of its tables."""
    lines = head.splitlines() or [b""]
    if lines[0].startswith(b"PK"):
        return any(_is_member(name.decode(errors="replace")) for name in lines[1:])
    columns = lines[0].decode("utf-8-sig", "replace").replace('"', "").split(",")
    return "date" in columns and _identify(columns) is not None


def read_plausible(file: BinaryIO, target: ImportTarget) -> Iterator[DayRow | RejectedRow]:
    """Yield the rows of an export, or of one of its tables. Raises BadRequest if it is not one."""
    normalizer = _Normalizer.of(target)
    if not is_zipfile(file):
        file.seek(0)
        yield from _read_table(file, "", normalizer)
        return
    with open_zip(file) as archive:
        names = sorted(filter(_is_member, archive.namelist()))
        if not names:
            raise BadRequest("imported_visitors: the zip archive has no such table")
        for name in names:
            try:
                with archive.open(name) as member:
                    yield from _read_table(member, name, normalizer)
            except BadRequest as error:
                raise BadRequest(f"{name}: {error}") from None


def _is_member(name: str) -> bool:
    base = name.rpartition("/")[2]
    return base.startswith("imported_") and base.endswith(".csv")


def _identify(columns: Collection[str], member: str = "") -> _Table | None:
    """Return the table with these columns, or None if it is unknown.

    `member` is the name of its file in an archive.
    """
    if _OWN in columns:
        return None
    if columns and (name := _FILE_NAME.match(member.rpartition("/")[2])):
        return _BY_NAME.get(name[1])
    for table in _TABLES:
        if not table.identified_by.isdisjoint(columns):
            return table
    # An unknown table may have figures of visitors too, and further columns.
    return _TOTAL if "visitors" in columns and _TOTAL_COLUMNS.issuperset(columns) else None


def _read_table(
    file: IO[bytes], member: str, normalizer: _Normalizer
) -> Iterator[DayRow | RejectedRow]:
    """Yield the rows of a table."""
    with closing(read_cells(file)) as lines:
        _, names = next(lines, (1, []))
        table = _identify(names, member)
        if table is None:
            reason = f"not one of Plausible's tables: {', '.join(names)}"
            yield RejectedRow(0, member or "columns", reason)
            return
        for name in ("date", *table.required):
            if name not in names:
                raise BadRequest(f"{name}: the file has no such column")
        figures, of_table = _figure_columns(table, names), table.table
        if names and set(table.visits.values()).issubset(names):
            figures |= table.visits
        else:
            of_table = evolve(of_table, visits=None)
        prefix = f"{member}: " if member else ""
        for result in cells_by_column(names, lines):
            if isinstance(result, RejectedRow):
                yield RejectedRow(result.line, f"{prefix}{result.field}", result.reason)
                continue
            line, record = result
            if record.get("name") == _ENGAGEMENT:
                continue
            try:
                day = _parse_date(record)
                values = {name: _parse_figure(record, column) for name, column in figures.items()}
            except _InvalidCell as error:
                yield RejectedRow(line, f"{prefix}{error.column}", str(error))
                continue
            texts = table.texts(normalizer, record)
            yield DayRow(of_table, day, texts, line=line, member=member, **values)


def _figure_columns(table: _Table, names: Collection[str]) -> dict[str, str]:
    """Return the column of each figure in the file. Visits are only needed along with bounces."""
    columns = {attribute: name for attribute, name in table.figures.items() if name in names}
    if "bounces" not in columns:
        columns.pop("visits", None)
    elif "visits" not in columns:
        columns["visits"] = "visitors"
    return columns


class _InvalidCell(Exception):
    """A cell cannot be read."""

    def __init__(self, column: str, expected: str) -> None:
        super().__init__(f"expected {expected}")
        self.column = column


def _parse_date(record: _Record) -> int:
    try:
        return parse_day(record["date"])
    except ValueError:
        raise _InvalidCell("date", "a date such as 2026-01-31") from None


def _parse_figure(record: _Record, column: str) -> int:
    cell = record[column]
    if column in (_TIME, _VISIT_DURATION) and _SECONDS.fullmatch(cell):
        cell = str(round(float(cell or 0)))
    if cell == _NULL:
        return 0
    is_number = cell.isascii() and cell.isdigit() and len(cell) < _MAX_DIGITS
    if is_number and (value := int(cell)) <= MAX_FIGURE:
        return value
    raise _InvalidCell(column, f"a whole number from 0 to {MAX_FIGURE}")
