"""Snapshots made of the oracle's dicts, and reports on them as the web makes them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from decimal import Decimal
from itertools import pairwise, zip_longest
from typing import Any, Final, Literal

import msgspec
import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray
from support.query.hits import HIT_OF_ITS_OWN
from support.query.naive_filters import TEXTS, Pairs
from support.query.oracle import Entry, pairs_of
from support.query.random_queries import GOALS
from support.query.readers import reader_of
from support.storage.contents import leaves

from medamad.domain.dimensions import (
    VIEW_DIMENSIONS,
    Dimension,
    ViewNumber,
    property_text,
    split_property,
)
from medamad.domain.zones import zone_named
from medamad.lookup.referrers import Sources
from medamad.query.change_counts import METRICS
from medamad.query.changes import PARTS, ChangesOptions, changes, parse_compared
from medamad.query.filters import parse_filters
from medamad.query.goal_reports import funnel_figures, goal_figures
from medamad.query.period import parse_period
from medamad.query.reader import Reader, SeriesOptions
from medamad.query.reports import STATISTICS, SummaryOptions, summary
from medamad.query.request import Query, Result
from medamad.query.visit_reports import pages_beside
from medamad.storage.dictionary.decode import CodeTexts, TextCache
from medamad.storage.segments.build import content_of
from medamad.storage.segments.counters import (
    BOUNCES,
    DURATION_MS,
    SLOT_MS,
    TIMED_VISITORS,
    Counters,
    count_views,
    merge,
)
from medamad.storage.segments.day_visits import BegunVisits, VisitsContent
from medamad.storage.segments.format import (
    HOSTING,
    PAGE_VISITOR,
    VISITOR,
    first_visit_of,
    timed_flags,
)
from medamad.storage.segments.parts import (
    NO_EVENTS,
    NO_TIME,
    Codes,
    Elsewhere,
    EventColumns,
    EventCounts,
    EventRows,
    MergedSegment,
    Part,
    Rollup,
    ViewColumns,
    VisitColumns,
    are_late,
    enclosing_bounds,
)
from medamad.storage.segments.rollup import RollupContent, rollup_of
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_columns import visits_of
from medamad.storage.segments.visit_numbers import may_have_visits

SOURCES = Sources({"google.com": "Google", "google.de": "Google", "t.co": "Twitter"})


@frozen(eq=False)
class MadePart:
    """A run of views as columns, with counters if it `is_counted`."""

    time_ms: NDArray[np.int64]
    sequence: NDArray[np.uint64]
    flags: NDArray[np.uint8]
    duration_ms: NDArray[np.uint32]
    visit_offset: NDArray[np.uint32]
    columns: dict[Dimension, Codes]
    own: EventColumns
    loose: EventColumns
    texts: CodeTexts
    is_counted: bool
    import_batch: int = 0

    @property
    def first_visit(self) -> int:
        return first_visit_of(self.sequence, self.visit_offset)

    @property
    def ascends(self) -> bool:
        return bool(np.all(self.time_ms[1:] >= self.time_ms[:-1]))

    @property
    def time_bounds(self) -> tuple[int, int]:
        return bounds(self.time_ms)

    @property
    def event_time_bounds(self) -> tuple[int, int]:
        return bounds(np.concatenate([self.own.time_ms, self.loose.time_ms]))

    @property
    def sequence_bounds(self) -> tuple[int, int]:
        return (int(self.sequence[0]), int(self.sequence[-1])) if len(self) else (0, 0)

    def views_with_late_events(self, among: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        own = self.own
        rows = own.view.astype(np.intp)
        late = are_late(own.event, own.time_ms, self.sequence[rows], self.time_ms[rows])
        return own.view[late if among is None else late & among[rows]]

    def visits(self) -> VisitColumns:
        return visits_of(self)

    def codes(self, dimension: Dimension) -> Codes:
        return self.columns[dimension]

    def numbers(self, number: ViewNumber) -> NDArray[Any]:
        if number is ViewNumber.VISIT_OFFSET:
            return self.visit_offset
        return np.zeros(len(self), f"u{number.bytes}")

    def counters(self, dimension: Dimension) -> Counters | None:
        if not self.is_counted:
            return None
        return count_views(self.codes(dimension), self.flags, self.duration_ms)

    def slots(self) -> Counters | None:
        if not self.is_counted or self.time_ms.min(initial=0) < 0:
            return None
        return count_views(self.time_ms // SLOT_MS, self.flags, self.duration_ms)

    def event_counts(self) -> EventCounts | None:
        rows = [
            row
            for events in (self.own, self.loose)
            for row in zip(events.event.tolist(), events.property.tolist(), strict=True)
        ]
        names = [
            (event, split_property(self.texts(Dimension.PROPERTY)[code])[0]) for event, code in rows
        ]
        if not self.is_counted or len(set(names)) < len(names):
            return None
        codes, events = np.unique([code for _, code in rows], return_counts=True)
        return EventCounts(codes.astype(np.uint32), events, len({event for event, _ in rows}))

    def __len__(self) -> int:
        return len(self.time_ms)


@frozen(eq=False)
class MadeGroup(MergedSegment):
    """Parts counted as one."""

    members: Sequence[MadePart]

    import_batch: int = 0

    @property
    def time_bounds(self) -> tuple[int, int]:
        return enclosing_bounds(member.time_bounds for member in self.members)

    @property
    def event_time_bounds(self) -> tuple[int, int]:
        return enclosing_bounds(member.event_time_bounds for member in self.members)

    @property
    def sequence_bounds(self) -> tuple[int, int]:
        return enclosing_bounds(member.sequence_bounds for member in self.members if len(member))

    @property
    def first_visit(self) -> int:
        return min((found for each in self.members if (found := each.first_visit)), default=0)

    def counters(self, dimension: Dimension) -> Counters | None:
        return merge([evolve(each, is_counted=True).counters(dimension) for each in self.members])

    def slots(self) -> Counters | None:
        slots = [evolve(each, is_counted=True).slots() for each in self.members]
        return None if None in slots else merge(slots)

    def event_counts(self) -> EventCounts | None:
        counts = [evolve(member, is_counted=True).event_counts() for member in self.members]
        if None in counts:
            return None
        sums: Counter[int] = Counter()
        for each in counts:
            sums.update(dict(zip(each.codes.tolist(), each.events.tolist(), strict=True)))
        codes = sorted(sums)
        return EventCounts(
            np.array(codes, np.uint16),
            np.array([sums[code] for code in codes], np.uint32),
            sum(each.total for each in counts),
        )

    def elsewhere(self) -> Elsewhere:
        return Elsewhere.of(map(Elsewhere.of_views, self.members))


def bounds(time_ms: NDArray[np.int64]) -> tuple[int, int]:
    return (int(time_ms.min()), int(time_ms.max())) if len(time_ms) else NO_TIME


@frozen(kw_only=True, eq=False)
class MadeSnapshot(Snapshot):
    """A snapshot of parts and rollups in memory."""

    parts: Iterable[Part] = ()
    rollups: Iterable[Rollup] = ()

    @property
    def headers(self) -> tuple[Part, ...]:
        return tuple(self.parts)

    def loose_events(self, first_view: int = 0) -> Iterator[EventColumns]:
        for events in (*(part.loose for part in leaves(self.parts)), *self.events):
            if events.view.max(initial=0) >= first_view:
                yield events

    def leaves(self, visits: tuple[int, int] | None = None) -> Iterator[ViewColumns]:
        found = [part for part in leaves(self.parts) if may_have_visits(part, visits)]
        yield from sorted(found, key=lambda part: part.sequence_bounds)


class Dictionary:
    """Texts by code, in the order in which they come: the `CodeTexts` of a snapshot."""

    def __init__(self) -> None:
        self.cache = TextCache()
        self.texts: dict[Dimension, list[str]] = {
            dimension: ["never seen"] for dimension in Dimension
        }

    def __call__(self, dimension: Dimension) -> list[str]:
        return self.texts[dimension]

    def code(self, dimension: Dimension, text: str) -> int:
        texts = self.texts[dimension]
        if text not in texts:
            texts.append(text)
        return texts.index(text)

    def of_properties(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        texts = self.texts[Dimension.PROPERTY]
        names = [split_property(texts[code])[0] for code in codes.tolist()]
        return np.array([names.index(name) for name in names], np.intp)


def cut(entries: Sequence[Any], cuts: Iterable[int]) -> list[Sequence[Any]]:
    """Return the pieces of a list that is cut at some places. None is empty."""
    bounds = [0, *sorted(place for place in cuts if place < len(entries)), len(entries)]
    return [entries[low:high] for low, high in pairwise(bounds) if high > low]


@frozen
class Cuts:
    """How a snapshot is cut into parts: where each begins, which have counters, which are merged.

    The events are cut at the same places; those of the first `in_parts` pieces are in the parts.
    """

    places: tuple[int, ...] = ()
    counted: tuple[bool, ...] = ()
    grouped: int = 0
    in_parts: int = 0


@frozen
class MadeDay:
    """A day that has a rollup: its number, its bounds, its hits, and what is known of them."""

    number: int
    span: tuple[int, int]
    views: Sequence[Entry]
    events: Sequence[Entry]
    known: str = "all"
    """Or "sums", without single durations; or "views", without anything of time."""


def snapshot_of(
    views: Sequence[Entry],
    events: Sequence[Entry],
    cuts: Cuts = Cuts(),
    days: Iterable[MadeDay] = (),
) -> Snapshot:
    """Return a snapshot. The ids of the views are ascending whole numbers from 1.

    `days` have views and events of their own, none of them twice.
    """
    names = Dictionary()
    days = [day for day in days if day.views or day.events]
    sums = [_day(day, names, _visits(day, views, events, days, names)) for day in days]
    event_pieces = [_events(piece, names) for piece in cut(list(enumerate(events, 1)), cuts.places)]
    in_parts, rest = event_pieces[: cuts.in_parts], event_pieces[cuts.in_parts :]
    view_pieces = cut(views, cuts.places)
    parts: list[MadePart | MadeGroup] = [
        _part(piece, loose, names, is_counted=is_counted)
        for piece, loose, is_counted in zip_longest(
            view_pieces, in_parts, cuts.counted[: max(len(view_pieces), len(in_parts))]
        )
    ]
    if cuts.grouped and parts:
        parts = [MadeGroup(parts[: cuts.grouped]), *parts[cuts.grouped :]]
    return MadeSnapshot(texts=names, events=rest, parts=parts, rollups=sums)


def _visits(
    day: MadeDay,
    views: Sequence[Entry],
    events: Sequence[Entry],
    days: Sequence[MadeDay],
    names: Dictionary,
) -> VisitsContent | None:
    """Return the visits that began on a day, with all of their views."""
    if not any(view.get("visit") for view in day.views):
        return None
    all_views = sorted([*views, *(view for each in days for view in each.views)], key=_id_of)
    all_events = [*events, *(event for each in days for event in each.events)]
    begun = sorted(view["id"] for view in day.views if view.get("visit") == view["id"])
    part = _part(all_views, _events(list(enumerate(all_events, 1)), names), names, is_counted=False)
    numbers = np.array(begun, np.uint64)
    found = BegunVisits(numbers, part.time_ms[np.searchsorted(part.sequence, numbers)])
    found.add(part)
    return found.content(day.span)


def _id_of(view: Entry) -> int:
    number: int = view["id"]
    return number


def _day(day: MadeDay, names: Dictionary, visits: VisitsContent | None) -> RollupContent:
    # Numbers of events only have to differ within a part.
    events = _events(list(enumerate(day.events, 1)), names)
    content = content_of([_part(day.views, events, names, is_counted=False)])
    sums = rollup_of(content, day.number, day.span, names.of_properties, visits)
    if day.known == "all":
        return sums
    if day.known == "views":
        by_dimension = {key: _timeless(each) for key, each in sums.by_dimension.items()}
        sums = evolve(sums, total=_timeless(sums.total), by_dimension=by_dimension)
    return evolve(sums, durations=None)


def _timeless(counters: Counters) -> Counters:
    sums = list(counters.sums)
    for row in (TIMED_VISITORS, BOUNCES, DURATION_MS):
        sums[row] = np.zeros_like(sums[row])
    return Counters(counters.codes, tuple(sums))


def _part(
    views: Sequence[Entry] | None,
    events: EventColumns | None,
    names: Dictionary,
    *,
    is_counted: bool | None,
) -> MadePart:
    views = views or ()

    def column(value_of: Callable[[Entry], int], dtype: type[np.generic]) -> NDArray[Any]:
        found = np.array([value_of(view) for view in views], dtype)
        found.flags.writeable = False
        return found

    def codes(dimension: Dimension) -> Codes:
        key = dimension.attribute
        is_known = key in (*TEXTS, "since")
        return column(
            lambda view: names.code(dimension, view.get(key, "") if is_known else ""),
            np.uint16,
        )

    sequence = column(lambda view: view["id"], np.uint64)
    duration_ms = column(lambda view: view["duration_ms"], np.uint32)
    flags = column(
        lambda view: (
            VISITOR * view["p"] | PAGE_VISITOR * view["q"] | HOSTING * view.get("hosting", False)
        ),
        np.uint8,
    )
    own, loose = _own_and_loose(events or NO_EVENTS, sequence.tolist())
    return MadePart(
        time_ms=column(lambda view: view["time_ms"], np.int64),
        sequence=sequence,
        flags=timed_flags(flags, duration_ms),
        duration_ms=duration_ms,
        visit_offset=column(
            lambda view: view["id"] - view["visit"] + 1 if view.get("visit") else 0, np.uint32
        ),
        columns={dimension: codes(dimension) for dimension in VIEW_DIMENSIONS},
        own=own,
        loose=loose,
        texts=names,
        is_counted=bool(is_counted),
    )


def _own_and_loose(events: EventColumns, sequence: list[int]) -> tuple[EventColumns, EventColumns]:
    is_own = np.array([view in sequence for view in events.view.tolist()], np.bool_)
    place = [sequence.index(view) for view in events.view[is_own].tolist()]
    own = EventRows(
        events.event[is_own],
        events.time_ms[is_own],
        np.array(place, np.uint16),
        events.property[is_own],
    )
    return own, EventRows(
        events.event[~is_own],
        events.time_ms[~is_own],
        events.view[~is_own],
        events.property[~is_own],
    )


def _events(events: Sequence[tuple[int, Entry]], names: Dictionary) -> EventColumns:
    rows = [
        (
            event.get("number", HIT_OF_ITS_OWN + number),
            event["time_ms"],
            event["view"] or 0,
            names.code(Dimension.PROPERTY, property_text(*pair)),
        )
        for number, event in events
        for pair in pairs_of(event)
    ]
    event, time_ms, view, prop = zip(*rows, strict=True) if rows else ((), (), (), ())
    return EventRows(
        event=np.array(event, np.uint64),
        time_ms=np.array(time_ms, np.int64),
        view=np.array(view, np.uint64),
        property=np.array(prop, np.uint32),
    )


STEPS: Final[Mapping[str, Literal[1, -1]]] = {"next": 1, "previous": -1}
ENDPOINTS = ("summary", *STEPS, *(statistic.name for statistic in STATISTICS))
WITHOUT_VISITS = tuple(
    name for name in ENDPOINTS if name not in {*STEPS, "entries", "exits", "hosting"}
)
"""The statistics that need no visits, and that rollups know."""


GOAL_ENDPOINTS = ("goals", *(f"funnels/{funnel.id}" for funnel in GOALS.funnels))


def query_from(parameters: Pairs) -> Query:
    """Return the query of some parameters, as far as it is the same for all reports."""
    given = dict(parameters)
    return Query(
        period=parse_period(given.get("start"), given.get("end")),
        filters=parse_filters(parameters, lambda: GOALS),
        is_brief=given.get("summary") == "true",
        with_views=given.get("views") == "true",
        with_visits=given.get("visits") == "true",
        with_total=given.get("total") == "true",
        conversions=GOALS.goal(given["conversions"]) if "conversions" in given else None,
        order=given.get("order", "visitors"),
        limit=int(given["limit"]) if "limit" in given else None,
        offset=int(given.get("offset", "0")),
    )


def answer(
    seen: Snapshot | Reader,
    endpoint: str,
    parameters: Pairs,
    *,
    now_ms: int = 0,
    returning_zone: tzinfo | None = None,
) -> Any:
    """Return the content of a report."""
    found = result(seen, endpoint, parameters, now_ms=now_ms, returning_zone=returning_zone).content
    return msgspec.to_builtins(found, builtin_types=(Decimal,))


def result(
    seen: Snapshot | Reader,
    endpoint: str,
    parameters: Pairs,
    *,
    now_ms: int = 0,
    returning_zone: tzinfo | None = None,
) -> Result[Any]:
    """Return the result of a report."""
    given, query = dict(parameters), query_from(parameters)
    reader = reader_of(seen, SOURCES) if isinstance(seen, Snapshot) else seen
    zone = zone_named(given["timezone"]) if "timezone" in given else None
    if endpoint == "summary":
        options = SummaryOptions(
            now_ms=now_ms,
            previous=given.get("previous") == "true",
            returning_zone=returning_zone,
            interval=given.get("interval"),
            zone=zone,
        )
        return summary(reader, query, options=options)
    if endpoint == "goals":
        goal_options = SeriesOptions(now_ms=now_ms, interval=given.get("interval"), zone=zone)
        counted = evolve(query, with_visits=True)
        return goal_figures(reader, counted, goals=GOALS.goals, options=goal_options)
    if endpoint.startswith("funnels/"):
        funnel = GOALS.funnel(endpoint.partition("/")[2])
        return funnel_figures(reader, query, funnel=funnel, definitions=GOALS)
    if endpoint in STEPS:
        return pages_beside(reader, query, path=given.get("of", "/"), step=STEPS[endpoint])
    (statistic,) = (each for each in STATISTICS if each.name == endpoint)
    variant = statistic.variant
    if variant is not None and given.get(variant.parameter) == str(variant.value).lower():
        return variant.report(reader, query)
    return statistic.report(reader, query)


def changes_between(seen: Snapshot | Reader, parameters: Pairs, *, now_ms: int) -> Result[Any]:
    """Return the result of what changed."""
    given, query = dict(parameters), query_from(parameters)
    options = ChangesOptions(
        now_ms=now_ms,
        metric=given.get("metric", METRICS[0]),
        goal=query.conversions,
        compared=parse_compared(given.get("compare_start"), given.get("compare_end")),
        limit=query.limit or PARTS,
    )
    reader = reader_of(seen, SOURCES) if isinstance(seen, Snapshot) else seen
    return changes(reader, query, options=options)
