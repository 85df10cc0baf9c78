"""Export: a website's views, events or statistics as rows of tables.

Each is a generator that does a little with every step, in whatever thread that is taken: no more
than a part of a website is in memory, and nothing is open between two steps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, split_property
from medamad.domain.errors import BadRequest
from medamad.lookup.referrers import Sources
from medamad.query import rows
from medamad.query.filters import Condition
from medamad.query.period import ALWAYS, Period
from medamad.query.reports import dimensions, pages, properties, summary, time
from medamad.query.request import Question, Wanted
from medamad.storage.import_batches import Origins
from medamad.storage.segments.format import PAGE_VISITOR, VISITOR
from medamad.storage.segments.parts import (
    NO_TIME,
    Events,
    ViewColumns,
)
from medamad.storage.segments.pinned import PinnedSnapshot
from medamad.storage.segments.snapshot import Missed, Missing, Snapshot
from medamad.transfer.day_rows import date_of
from medamad.transfer.formats.registry import FORMATS
from medamad.transfer.tables import EVENTS, STATISTICS, TABLES, VIEWS, Rows, Table

STEP_ROWS: Final = 4_096
"""How many rows a piece has at most: no other thread runs while a library writes them."""


@frozen
class Piece:
    """Some rows, perhaps none, and how far the export has come by then."""

    rows: Rows
    done: int
    """How many views, or events, or reports, were gone through."""
    total: int


@frozen(kw_only=True)
class Exported:
    """A website at one moment, and what of it is wanted, for as long as it is.

    Days are those of `zone`: of others there may be no sums. What an answer turns out to be
    without is noted in `missed`, and of each report, or of views or events, in `missed_of`.
    """

    held: PinnedSnapshot
    origins: Origins
    sources: Sources
    period: Period
    zone: tzinfo = UTC
    wanted: Wanted = field(factory=Wanted)
    missed: Missed = field(factory=Missed)
    missed_of: dict[str, Missed] = field(factory=dict)

    def note(self, what: str, missed: Missed) -> None:
        """Note what a part of an answer is without."""
        self.missed.join(missed)
        self.missed_of[what] = missed

    def note_summed(self, table: Table) -> None:
        """Note the days of which there may have been views, or events, and are sums alone."""
        missed = Missed()
        for head in self.held.summed:
            bounds_ms = head.time_bounds if table is VIEWS else head.event_time_bounds
            is_in = bounds_ms != NO_TIME and not self.period.is_outside(*bounds_ms)
            if head.day is not None and is_in:
                missed.note_day(Missing.FIGURES, head.day.number)
        self.note(table.name, missed)


def views(exported: Exported) -> Iterator[Piece]:
    """Return the views of a period, in the order in which they were stored as far as that is kept."""
    parts = exported.held.parts()
    done, total = 0, sum(part.views for part in parts)
    for part in parts:
        bounds_ms = part.time_bounds
        if part.views and not exported.period.is_outside(*bounds_ms):
            columns = part.read(partial(_columns, exported.period))
            found = 0 if columns is None else len(columns["sequence"])
            for begin in range(0, found, STEP_ROWS):
                stretch = slice(begin, begin + STEP_ROWS)
                some = {name: column[stretch] for name, column in (columns or {}).items()}
                yield Piece(_view_rows(some, exported), done + begin, total)
        done += part.views
        yield Piece([()] * len(VIEWS.columns), done, total)


def _columns(period: Period, part: ViewColumns) -> dict[str, NDArray[Any]]:
    """Copy the columns of a part, so that nothing of them is borrowed."""
    time_ms = part.time_ms
    chosen: Any = slice(None)
    if not period.contains(*part.time_bounds):
        chosen = period.stretch(time_ms) if part.ascends else period.mask(time_ms)
    columns: dict[str, NDArray[Any]] = {
        "sequence": part.sequence,
        "time_ms": time_ms,
        "flags": part.flags,
        "duration_ms": part.duration_ms,
        "number_today": part.number_today,
        "width_px": part.width_px,
        **{dimension.attribute: part.codes(dimension) for dimension in VIEW_DIMENSIONS},
    }
    return {name: column[chosen].copy() for name, column in columns.items()}


def _view_rows(some: Mapping[str, NDArray[Any]], exported: Exported) -> Rows:
    stores, numbers = exported.origins.of(some["sequence"])
    flags = some["flags"]
    texts = exported.held.texts
    values: dict[str, Sequence[Any]] = {
        "store": stores,
        "view": numbers,
        "time": some["time_ms"].tolist(),
        "first_today": ((flags & VISITOR) != 0).tolist(),
        "first_of_page": ((flags & PAGE_VISITOR) != 0).tolist(),
    }
    for name in ("number_today", "width_px", "duration_ms"):
        values[name] = [number or None for number in some[name].tolist()]
    for dimension in VIEW_DIMENSIONS:
        values[dimension.attribute] = _named(some[dimension.attribute], texts(dimension))
    for name, of, name_of in (
        ("source", "referrer", rows.source),
        ("country_name", "country", rows.country),
        ("language", "locale", rows.language),
    ):
        names = {text: name_of(text, exported.sources) for text in set(values[of])}
        values[name] = [names[text] for text in values[of]]
    return [values[column.name] for column in VIEWS.columns]


def _named(codes: NDArray[Any], texts: Sequence[str]) -> list[str]:
    return [texts[code] for code in codes.tolist()]


def events(exported: Exported) -> Iterator[Piece]:
    """Return the properties of the events of a period, by the time of each event."""
    parts = exported.held.parts()
    total = sum(part.events for part in parts) + sum(map(len, exported.held.events))
    done = 0
    for part in parts:
        found = part.read(_events_of) if part.events else None
        if found is not None:
            yield from _event_pieces(found, exported, done, total)
        done += part.events
        yield Piece([()] * len(EVENTS.columns), done, total)
    for loose in exported.held.events:
        yield from _event_pieces(_copied(loose, loose.view), exported, done, total)
        done += len(loose)
    yield Piece([()] * len(EVENTS.columns), done, total)


def _events_of(part: ViewColumns) -> NDArray[np.uint64]:
    """Copy the events of a part: rows of number, time, sequence number of the view, property."""
    own, loose = part.own, part.loose
    of_own = part.sequence[own.view.astype(np.intp)] if len(own) else own.view
    found = np.concatenate([_copied(own, of_own), _copied(loose, loose.view)], axis=1)
    return found[:, np.argsort(found[0], kind="stable")]


def _copied(events: Events, view: NDArray[Any]) -> NDArray[np.uint64]:
    columns = (events.event, events.time_ms, view, events.property)
    return np.stack([column.astype(np.uint64) for column in columns])


def _event_pieces(
    found: NDArray[np.uint64], exported: Exported, done: int, total: int
) -> Iterator[Piece]:
    found = found[:, exported.period.mask(found[1].astype(np.int64))]
    for begin in range(0, found.shape[1], STEP_ROWS):
        event, time_ms, view, codes = found[:, begin : begin + STEP_ROWS]
        stores, numbers = exported.origins.of(event)
        _, viewed = exported.origins.of(view)
        texts = _named(codes, exported.held.texts(Dimension.PROPERTY))
        pairs = [split_property(text) for text in texts]
        yield Piece(
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


Report: TypeAlias = Callable[[Snapshot, Question, Sources], list[Any]]

_ALL_ROWS: Final = 1 << 40
_ANY_NAME: Final = Condition("prop_name", "contains", ("",))

_DATE_LENGTH: Final = len("2026-01-31")
_FIGURES_OF_A_DAY: Final = ("visitors", "pageviews", "bounce_percentage", "duration")

_COLUMNS: Final = MappingProxyType(
    {
        "referrers": dimensions.SOURCES_OF_REFERRERS,
        "referrer_urls": dimensions.REFERRERS,
        **dimensions.BY_REPORT,
        "languages": dimensions.LANGUAGES,
        "locales": dimensions.LOCALES,
    }
)


def statistics(
    exported: Exported, conditions: tuple[Condition, ...], now_ms: int
) -> Iterator[Piece]:
    """Return the rows of one report after the other; a series is of the days of the zone."""
    period = evolve(exported.period, zone=exported.zone)
    question = Question(period, conditions, limit=_ALL_ROWS, with_blanks=True)
    reports = _reports(now_ms)
    for number, (name, report) in enumerate(reports.items()):
        found, missed = exported.held.ask(partial(_put, report, question, exported))
        exported.note(name, missed)
        for some in taken(found):
            yield Piece(_rows(name, some), number, len(reports))
        yield Piece([()] * len(STATISTICS.columns), number + 1, len(reports))


def taken(found: list[Any]) -> Iterator[list[Any]]:
    """Take the rows out of a list, in their order and some at a time; in the end it is empty.

    To let go of a hundred thousand at once would hold all threads up.
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


def _put(
    report: Report, question: Question, exported: Exported, snapshot: Snapshot
) -> tuple[list[Any], Missed]:
    return report(exported.wanted.watched(snapshot), question, exported.sources), snapshot.missed


def _reports(now_ms: int) -> Mapping[str, Report]:
    def whole(snapshot: Snapshot, question: Question, sources: Sources) -> list[Any]:
        return [summary.report(snapshot, question, sources, now_ms=now_ms)["current"]]

    def days(snapshot: Snapshot, question: Question, sources: Sources) -> Any:
        found = summary.report(snapshot, question, sources, now_ms=now_ms, interval="day")
        return _without_unknown(found["interval"], snapshot.missed)

    def values(snapshot: Snapshot, question: Question, sources: Sources) -> list[Any]:
        asked = evolve(question, conditions=(*question.conditions, _ANY_NAME))
        return properties.report(snapshot, asked, sources)

    by_dimension = {
        name: partial(dimensions.report, column=column) for name, column in _COLUMNS.items()
    }
    return {
        "summary": whole,
        "days": days,
        "pages": pages.report,
        "time": time.report,
        **by_dimension,
        "properties": properties.report,
        "property_values": values,
    }


def _without_unknown(rows: Any, missed: Missed) -> list[Any]:
    """Leave empty what is not known of a day: nothing is seen of it, and there are only sums."""
    days = [*missed.days(Missing.FIGURES), *missed.days(Missing.INTERVAL)]
    unknown = set(map(date_of, days))
    return [
        msgspec.structs.replace(row, **dict.fromkeys(_FIGURES_OF_A_DAY))
        if row.date[:_DATE_LENGTH] in unknown and not row.pageviews
        else row
        for row in rows
    ]


def _rows(report: str, found: Sequence[Any]) -> Rows:
    """Return some rows of a report as columns. What it counts by becomes the name."""
    fields = found[0].__struct_fields__
    attributes = dict(zip(fields, fields, strict=True))
    if fields[0] not in STATISTICS.names:
        attributes["name"] = fields[0]
    columns: dict[str, Sequence[object]] = {
        name: list(map(attrgetter(attributes[name]), found))
        for name in STATISTICS.names
        if name in attributes
    }
    columns["report"] = [report] * len(found)
    unknown = [None] * len(found)
    return [columns.get(name, unknown) for name in STATISTICS.names]


WHAT: Final = tuple(TABLES)
FORMAT_NAMES: Final = tuple(FORMATS)


@frozen(kw_only=True)
class Asked:
    """An export that is asked for. Raises BadRequest for filters that its table has not."""

    what: str = VIEWS.name
    format: str = "csv"
    period: Period = ALWAYS
    conditions: tuple[Condition, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.conditions and self.what != STATISTICS.name:
            raise BadRequest(f"{self.conditions[0].field}: expected a filter with statistics alone")

    @property
    def table(self) -> Table:
        """The table that is asked for."""
        return TABLES[self.what]

    def file_name(self, hostname: str) -> str:
        """Return a name for the file."""
        return f"{hostname}-{self.what}.{self.format}"

    def pieces(self, exported: Exported, now_ms: int) -> Iterator[Piece]:
        """Return the rows, a little with every step."""
        if self.what == VIEWS.name:
            return views(exported)
        if self.what == STATISTICS.name:
            return statistics(exported, self.conditions, now_ms)
        return events(exported)

    def written(self, exported: Exported, now_ms: int) -> Iterator["Written"]:
        """Return the bytes of the file, a little with every step.

        What views and events are without is noted before the first, what statistics are, by then.
        Raises BadRequest, at the first step, where what the format needs is not installed.
        """
        if self.table is not STATISTICS:
            exported.note_summed(self.table)
        writer = FORMATS[self.format].writer(self.table)
        yield Written(writer.begin(), 0, 0)
        done = total = 0
        for piece in self.pieces(exported, now_ms):
            done, total = piece.done, piece.total
            yield Written(writer.rows(piece.rows) if len(piece.rows[0]) else b"", done, total)
        yield Written(writer.end(), done, total)


@frozen
class Written:
    """Some bytes of a file, and how far it has come."""

    data: bytes
    done: int
    total: int
