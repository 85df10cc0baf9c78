"""Export: a website's views, events or statistics as rows of tables.

Each is a generator that does a little work with every step, in whatever thread that runs. Only one
part of the website is in memory at a time, and no transaction is open between two steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from operator import attrgetter
from typing import Any, Final, Protocol, TypeVar

import msgspec
import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import (
    VIEW_DIMENSIONS,
    Dimension,
    ViewFlag,
    ViewNumber,
    split_property,
)
from medamad.domain.errors import BadRequest, RetryLater
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.domain.instants import day_as_text
from medamad.lookup.referrers import Sources
from medamad.query.embedded.reader import EmbeddedReader
from medamad.query.embedded.scan import damaged_days
from medamad.query.period import ALWAYS, Period
from medamad.query.reader import Reader
from medamad.query.reports import ROW_REPORTS, Report, SummaryOptions, summary
from medamad.query.request import Cancellation, DayGap, Filter, Gap, Gaps, Query, Result
from medamad.storage.errors import DamagedSegment
from medamad.storage.import_batches import Origins
from medamad.storage.segments.parts import (
    NO_TIME,
    EventColumns,
    ViewColumns,
)
from medamad.storage.segments.snapshot import Snapshot
from medamad.transfer.registry import FORMATS
from medamad.transfer.tables import (
    DISPLAY_NAMES,
    EVENTS_TABLE,
    STATISTICS_TABLE,
    TABLES,
    VIEWS_TABLE,
    ColumnValues,
    Table,
    number_cells,
)

T = TypeVar("T")

STEP_ROWS: Final = 4_096
"""The most rows of a piece. No other thread can run while a library encodes them."""


class DamageFound(RetryLater):
    """A segment turned out to be damaged while it was exported; another export leaves it out."""

    status = 503


@frozen
class RowPiece:
    """Some rows, perhaps none, and the progress of the export by then."""

    rows: ColumnValues
    done: int
    """How many views, events or reports have been read."""
    total: int
    gaps: Mapping[str, Gaps] = field(factory=dict)
    """The gaps of the report that ends with this piece, by its name."""


class Source(Protocol):
    """What is exported: the hits of a website in a period.

    Days are those of `zone`. With `has_visits`, statistics of views and events have the figures of
    visits.
    """

    @property
    def period(self) -> Period:
        """The period."""

    @property
    def zone(self) -> tzinfo:
        """The zone of days."""

    @property
    def has_visits(self) -> bool:
        """Whether statistics have the figures of visits."""

    def row_gaps(self, table: Table) -> Gaps:
        """Return the days of which views or events are not in the file."""

    def views(self) -> Iterator[RowPiece]:
        """Return the views."""

    def events(self) -> Iterator[RowPiece]:
        """Return the properties of the events."""

    def report(self, report: Report, query: Query) -> Result[list[Any]]:
        """Return what a report finds."""


@frozen(kw_only=True)
class ExportSource(Source):
    """What is exported: the hits of a website in a period, at one moment.

    Days are those of `zone`. There may be no rollups for the days of other zones. With
    `has_visits`, statistics of views and events have the figures of visits.
    """

    snapshot: Snapshot
    origins: Origins
    sources: Sources
    period: Period
    zone: tzinfo = UTC
    has_visits: bool = True
    cancellation: Cancellation = field(factory=Cancellation)
    rules: Sequence[Query] = ()
    """What rules leave out of statistics."""

    def row_gaps(self, table: Table) -> Gaps:
        """Return the days of which only a rollup is left, or damaged data is left out."""
        gaps: set[DayGap] = set()
        for segment in self.snapshot.rollup_segments:
            header = segment.header
            bounds_ms = header.time_bounds if table is VIEWS_TABLE else header.event_time_bounds
            is_in = bounds_ms != NO_TIME and not self.period.is_outside(*bounds_ms)
            if header.day is not None and is_in:
                gaps.add((Gap.FIGURES, header.day.number))
        return Gaps(gaps) | damaged_days(self.snapshot, evolve(self.period, zone=self.zone))

    def views(self) -> Iterator[RowPiece]:
        """Return the views, in about the order in which they were stored."""
        return views(self)

    def events(self) -> Iterator[RowPiece]:
        """Return the properties of the events, by the time of each event."""
        return events(self)

    def report(self, report: Report, query: Query) -> Result[list[Any]]:
        """Return what a report finds. Raises DamageFound."""
        return _read(
            self.snapshot,
            lambda snapshot: report(
                EmbeddedReader(snapshot, self.sources, self.cancellation, self.rules), query
            ),
        )


def views(source: ExportSource) -> Iterator[RowPiece]:
    """Return the views of a period, in about the order in which they were stored."""
    snapshot = source.snapshot
    done, total = 0, sum(map(len, snapshot.leaves()))
    for part in snapshot.leaves():
        if len(part) and not source.period.is_outside(*part.time_bounds):
            columns = _read(snapshot, partial(_columns, source.period, part))
            for begin in range(0, len(columns["sequence"]), STEP_ROWS):
                stretch = slice(begin, begin + STEP_ROWS)
                some = {name: column[stretch] for name, column in columns.items()}
                yield RowPiece(_view_rows(some, source), done + begin, total)
        done += len(part)
        yield RowPiece([()] * len(VIEWS_TABLE.columns), done, total)


def _read(snapshot: Snapshot, read: Callable[[Snapshot], T]) -> T:
    """Call `read` once and return its result.

    Raises DamageFound, as what was written cannot be changed.
    """
    try:
        return snapshot.read_once(read)
    except DamagedSegment as error:
        message = "damaged data was found; another export leaves it out and says so"
        raise DamageFound(message, retry_after=1) from error


def _columns(period: Period, part: ViewColumns, _snapshot: Snapshot) -> dict[str, NDArray[Any]]:
    """Return copies of a part's columns, in place of arrays that are borrowed."""
    time_ms = part.time_ms
    chosen: Any = slice(None)
    if not period.contains(*part.time_bounds):
        chosen = period.slice_of(time_ms) if part.ascends else period.mask(time_ms)
    columns: dict[str, NDArray[Any]] = {
        "sequence": part.sequence,
        "time_ms": time_ms,
        "flags": part.flags,
        "duration_ms": part.duration_ms,
        **{number.attribute: part.numbers(number) for number in ViewNumber},
        **{dimension.attribute: part.codes(dimension) for dimension in VIEW_DIMENSIONS},
    }
    return {name: column[chosen].copy() for name, column in columns.items()}


def _view_rows(some: Mapping[str, NDArray[Any]], source: ExportSource) -> ColumnValues:
    stores, numbers = source.origins.of(some["sequence"])
    flags = some["flags"]
    texts = source.snapshot.texts
    values: dict[str, Sequence[Any]] = {
        "store": stores,
        "view": numbers,
        "visit": [number or None for number in source.origins.of(_visits(some))[1]],
        "time": some["time_ms"].tolist(),
        **{flag.attribute: ((flags & np.uint8(flag)) != 0).tolist() for flag in ViewFlag},
    }
    values["duration_ms"] = [number or None for number in some["duration_ms"].tolist()]
    for number in NUMBERS_OF_HITS:
        values[number.attribute] = number_cells(number, some[number.attribute].tolist())
    for dimension in VIEW_DIMENSIONS:
        values[dimension.attribute] = _named(some[dimension.attribute], texts(dimension))
    return view_cells(values, source.sources)


def view_cells(values: dict[str, Sequence[Any]], sources: Sources) -> ColumnValues:
    """Return rows of VIEWS_TABLE, of which `values` has all columns but display names."""
    for dimension, (name, name_of) in DISPLAY_NAMES.items():
        stored = values[dimension.attribute]
        names = {text: name_of(text, sources) for text in set(stored)}
        values[name] = [names[text] for text in stored]
    return [values[column.name] for column in VIEWS_TABLE.columns]


def _visits(some: Mapping[str, NDArray[Any]]) -> NDArray[np.uint64]:
    """Return the sequence number of the first view of each view's visit; 0 if it is unknown."""
    offset = some[ViewNumber.VISIT_OFFSET.attribute].astype(np.uint64)
    return np.where(offset > 0, some["sequence"] + np.uint64(1) - offset, np.uint64(0))


def _named(codes: NDArray[Any], texts: Sequence[str]) -> list[str]:
    return [texts[code] for code in codes.tolist()]


def events(source: ExportSource) -> Iterator[RowPiece]:
    """Return the properties of the events of a period, by the time of each event."""
    snapshot = source.snapshot
    total = sum(_event_rows(part) for part in snapshot.leaves()) + sum(map(len, snapshot.events))
    done = 0
    for part in snapshot.leaves():
        rows_of_part = _event_rows(part)
        if rows_of_part:
            found = _read(snapshot, partial(_events_of, part))
            yield from _event_pieces(found, source, done, total)
        done += rows_of_part
        yield RowPiece([()] * len(EVENTS_TABLE.columns), done, total)
    for loose in snapshot.events:
        yield from _event_pieces(_copied(loose, loose.view), source, done, total)
        done += len(loose)
    yield RowPiece([()] * len(EVENTS_TABLE.columns), done, total)


def _event_rows(part: ViewColumns) -> int:
    return len(part.own) + len(part.loose)


def _events_of(part: ViewColumns, _snapshot: Snapshot) -> NDArray[np.uint64]:
    """Return a copy of a part's events: number, time, sequence number of the view, property."""
    own, loose = part.own, part.loose
    of_own = part.sequence[own.view.astype(np.intp)] if len(own) else own.view
    found = np.concatenate([_copied(own, of_own), _copied(loose, loose.view)], axis=1)
    return found[:, np.argsort(found[0], kind="stable")]


def _copied(events: EventColumns, view: NDArray[Any]) -> NDArray[np.uint64]:
    columns = (events.event, events.time_ms, view, events.property)
    return np.stack([column.astype(np.uint64) for column in columns])


def _event_pieces(
    found: NDArray[np.uint64], source: ExportSource, done: int, total: int
) -> Iterator[RowPiece]:
    found = found[:, source.period.mask(found[1].astype(np.int64))]
    for begin in range(0, found.shape[1], STEP_ROWS):
        event, time_ms, view, codes = found[:, begin : begin + STEP_ROWS]
        stores, numbers = source.origins.of(event)
        _, viewed = source.origins.of(view)
        texts = _named(codes, source.snapshot.texts(Dimension.PROPERTY))
        pairs = [split_property(text) for text in texts]
        yield RowPiece(
            [
                stores,
                numbers,
                [number or None for number in viewed],
                time_ms.astype(np.int64).tolist(),
                [name for name, _ in pairs],
                [value for _, value in pairs],
            ],
            done + begin,
            total,
        )


_ALL_ROWS: Final = 1 << 40

_DATE_LENGTH: Final = len("2026-01-31")
_FIGURES_OF_A_DAY: Final = ("visitors", "pageviews", "bounce_percentage", "duration")
_MEANS_OF_VISITS: Final = ("views_per_visit", "visit_bounce_percentage", "visit_duration")
_FIGURES_OF_VISITS: Final = ("visits", "visits_percentage", *_MEANS_OF_VISITS)


def statistics(source: Source, filters: tuple[Filter, ...], now_ms: int) -> Iterator[RowPiece]:
    """Return the rows of one report after the other. A series is of the days of the zone."""
    period = evolve(source.period, zone=source.zone)
    query = Query(period, filters, limit=_ALL_ROWS, with_blanks=True, with_visits=source.has_visits)
    reports = statistics_reports(now_ms)
    for number, (name, report) in enumerate(reports.items()):
        result = source.report(report, query)
        for some in take_rows(result.content):
            known = _without_unknown_visits(some, result.gaps)
            yield RowPiece(_report_rows(name, known), number, len(reports))
        yield RowPiece(
            [()] * len(STATISTICS_TABLE.columns), number + 1, len(reports), {name: result.gaps}
        )


def take_rows(found: list[Any]) -> Iterator[list[Any]]:
    """Empty a list of rows, and return them in pieces.

    Freeing a hundred thousand rows at once would stop all threads for a while.
    """
    found.reverse()
    try:
        while found:
            some = found[: -STEP_ROWS - 1 : -1]
            del found[-STEP_ROWS:]
            yield some
    finally:
        while found:
            del found[-STEP_ROWS:]


def statistics_reports(now_ms: int) -> Mapping[str, Report]:
    """Return all reports by name. A series without an end ends at `now_ms`."""

    def total(reader: Reader, query: Query) -> Result[list[Any]]:
        options = SummaryOptions(now_ms=now_ms)
        result = summary(reader, query, options=options)
        return Result([result.content["current"]], result.gaps)

    def days(reader: Reader, query: Query) -> Result[list[Any]]:
        options = SummaryOptions(now_ms=now_ms, interval="day")
        result = summary(reader, query, options=options)
        return Result(_without_unknown(result.content["interval"], result.gaps), result.gaps)

    return {"summary": total, "days": days, **ROW_REPORTS}


def _without_unknown(rows: Any, gaps: Gaps) -> list[Any]:
    """Return the rows of days, with blanks for the days whose rollup does not have the figures."""
    unknown = _dates(gaps, Gap.FIGURES, Gap.INTERVAL)
    return [
        msgspec.structs.replace(row, **dict.fromkeys(_FIGURES_OF_A_DAY))
        if row.date[:_DATE_LENGTH] in unknown and not row.pageviews
        else row
        for row in rows
    ]


def _without_unknown_visits(rows: list[Any], gaps: Gaps) -> list[Any]:
    """Return the rows, with blanks for unknown figures of visits.

    Means are unknown if there are views but no visits. Whether there are none is unknown for days
    with a gap, and for the other rows if any day has one.
    """
    fields = rows[0].__struct_fields__
    if "visits" not in fields:
        return rows
    figures = dict.fromkeys(name for name in _FIGURES_OF_VISITS if name in fields)
    means = dict.fromkeys(name for name in _MEANS_OF_VISITS if name in fields)
    unknown = _dates(gaps, Gap.FIGURES, Gap.INTERVAL, Gap.VISITS)
    has_gaps = bool(gaps.days(Gap.VISITS))

    def blanks(row: Any) -> dict[str, None]:
        if row.visits or getattr(row, "pageviews", None) == 0:
            return {}
        is_unknown = row.date[:_DATE_LENGTH] in unknown if "date" in fields else has_gaps
        return figures if is_unknown else means

    return [msgspec.structs.replace(row, **of) if (of := blanks(row)) else row for row in rows]


def _dates(gaps: Gaps, *kinds: Gap) -> set[str]:
    return {day_as_text(day) for day in gaps.days(*kinds)}


def _report_rows(report: str, found: Sequence[Any]) -> ColumnValues:
    """Return rows of a report as columns. What it counts by becomes the name."""
    fields = found[0].__struct_fields__
    attributes = dict(zip(fields, fields, strict=True))
    if fields[0] not in STATISTICS_TABLE.names:
        attributes["name"] = fields[0]
    columns: dict[str, Sequence[object]] = {
        name: list(map(attrgetter(attributes[name]), found))
        for name in STATISTICS_TABLE.names
        if name in attributes
    }
    columns["report"] = [report] * len(found)
    unknown = [None] * len(found)
    return [columns.get(name, unknown) for name in STATISTICS_TABLE.names]


WHAT: Final = tuple(TABLES)
FORMAT_NAMES: Final = tuple(FORMATS)


@frozen(kw_only=True)
class ExportRequest:
    """The options of an export. Raises BadRequest for filters on a table that has none."""

    what: str = VIEWS_TABLE.name
    format: str = "csv"
    period: Period = ALWAYS
    filters: tuple[Filter, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.filters and self.what != STATISTICS_TABLE.name:
            raise BadRequest(f"{self.filters[0].field}: only statistics can be filtered")

    @property
    def table(self) -> Table:
        """The table to export."""
        return TABLES[self.what]

    def file_name(self, hostname: str) -> str:
        """Return a name for the file."""
        return f"{hostname}-{self.what}.{self.format}"

    def pieces(self, source: Source, now_ms: int) -> Iterator[RowPiece]:
        """Return the rows in pieces. Each step does a little work."""
        if self.what == VIEWS_TABLE.name:
            return source.views()
        if self.what == STATISTICS_TABLE.name:
            return statistics(source, self.filters, now_ms)
        return source.events()

    def encoded(self, source: Source, now_ms: int) -> Iterator["EncodedPiece"]:
        """Return the bytes of the file in pieces. Each step does a little work.

        The gaps of views and events come with the first bytes, those of each report with its last.
        Raises BadRequest, at the first step, if a package that the format needs is not installed.
        """
        gaps = {}
        if self.table is not STATISTICS_TABLE:
            gaps[self.table.name] = source.row_gaps(self.table)
        writer = FORMATS[self.format].writer(self.table)
        yield EncodedPiece(writer.begin(), 0, 0, gaps)
        done = total = 0
        for piece in self.pieces(source, now_ms):
            done, total = piece.done, piece.total
            data = writer.rows(piece.rows) if len(piece.rows[0]) else b""
            yield EncodedPiece(data, done, total, piece.gaps)
        yield EncodedPiece(writer.end(), done, total)


@frozen
class EncodedPiece:
    """Some bytes of a file, and the progress of the export by then."""

    data: bytes
    done: int
    total: int
    gaps: Mapping[str, Gaps] = field(factory=dict)
    """The gaps that are known by now, by the name of a table or report."""
