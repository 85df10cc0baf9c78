"""The rollup of a day: built from views and events that are deleted, merged, stored and read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from attrs import define, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.storage.dictionary.decode import NumberNames
from medamad.storage.environment.access import ReadAccess
from medamad.storage.environment.environment import Databases
from medamad.storage.segments.build import Content, EncodedSegment, Put, has_distinct_names
from medamad.storage.segments.counters import (
    DURATION_MS,
    SUMS,
    VIEWS,
    Counters,
    count_views,
    encode_counters,
    merge,
)
from medamad.storage.segments.day_visits import (
    VisitsContent,
    merge_visits,
    visit_disagreements,
)
from medamad.storage.segments.format import (
    OF_VISITS,
    Column,
    Day,
    KnownVisits,
    Segment,
    SegmentHeader,
    encode_column,
)
from medamad.storage.segments.parts import (
    NO_NUMBERS,
    NO_TIME,
    EventColumns,
    EventCounts,
    EventSums,
    Numbers,
    PathDurations,
    Rollup,
    joined_numbers,
)
from medamad.storage.segments.read import OpenedBase, StoredValues

OVERALL: Final = 0
"""The kind of the counters of all views, which have the code 0."""
NO_EVENT_SUMS: Final = EventSums(
    *(np.zeros(0, np.uint32),) * 4,
    total=0,
    has_distinct_names=True,
)
_BITS: Final = 16


@frozen(eq=False)
class RollupContent(Rollup):
    """A rollup in memory. `span` is the first and the last millisecond of the day.

    An imported rollup may lack dimensions and durations. The sums of one that was made of views
    agree with each other.
    """

    day: int
    span: tuple[int, int]
    total: Counters
    by_dimension: Mapping[Dimension, Counters]
    durations: PathDurations | None
    events: EventSums = NO_EVENT_SUMS
    sequence_bounds: tuple[int, int] = (0, 0)
    sequences: tuple[int, int] = (0, 0)
    """The least and the greatest number of a view or event."""
    import_batch: int = 0
    """The import batch that all of it belongs to, 0 for none."""
    visits: VisitsContent | None = None
    rules: tuple[int, ...] = ()
    left_out_by: tuple[int, ...] = ()
    going_on: Numbers = NO_NUMBERS

    @property
    def views(self) -> int:
        """How many views there were."""
        return int(sum(self.total.sums[VIEWS].tolist()))

    @property
    def time_bounds(self) -> tuple[int, int]:
        return self.span if self.views else NO_TIME

    @property
    def event_time_bounds(self) -> tuple[int, int]:
        return self.span if self.events.total else NO_TIME

    @property
    def has_durations(self) -> bool:
        return self.durations is not None

    def overall(self) -> Counters:
        return self.total

    def counters(self, dimension: Dimension) -> Counters | None:
        return self.by_dimension.get(dimension)

    def path_durations(self) -> PathDurations | None:
        return self.durations

    def event_sums(self) -> EventSums:
        return self.events


def rollup_of(
    content: Content,
    day: int,
    span: tuple[int, int],
    names_of: NumberNames,
    visits: VisitsContent | None,
) -> RollupContent:
    """Return the rollup of some views and events, all of one day, and of the visits they begin."""
    flags, duration_ms = content.flags, content.duration_ms
    sequence, numbers = content.sequence, [content.sequence, content.events.event]
    numbered = [column for column in numbers if len(column)]
    return RollupContent(
        day=day,
        span=span,
        total=count_views(np.zeros(len(content), np.uint8), flags, duration_ms),
        by_dimension={
            dimension: count_views(content.codes[dimension], flags, duration_ms)
            for dimension in VIEW_DIMENSIONS
        },
        durations=_path_durations(content.codes[Dimension.PATH], duration_ms),
        events=_event_sums(content.events, names_of),
        sequence_bounds=(int(sequence[0]), int(sequence[-1])) if len(sequence) else (0, 0),
        sequences=(
            min(int(column[0]) for column in numbered),
            max(int(column[-1]) for column in numbered),
        ),
        import_batch=content.import_batch,
        visits=visits,
    )


def merge_rollups(days: Sequence[RollupContent], names_of: NumberNames) -> RollupContent:
    """Return one rollup from several of the same day and batch that the same rules leave out."""
    first, *others = days
    if not others:
        return first
    known = [each.by_dimension.keys() for each in days]
    durations = [each.durations for each in days if each.durations is not None]
    with_views = [each.sequence_bounds for each in days if each.sequence_bounds[1]]
    return RollupContent(
        day=first.day,
        span=first.span,
        total=merge([each.total for each in days]),
        by_dimension={
            dimension: merge([each.by_dimension[dimension] for each in days])
            for dimension in VIEW_DIMENSIONS
            if all(dimension in dimensions for dimensions in known)
        },
        durations=_joined(durations) if len(durations) == len(days) else None,
        events=_added_events([each.events for each in days], names_of),
        sequence_bounds=_around(with_views),
        sequences=_around([each.sequences for each in days if each.sequences[1]]),
        import_batch=first.import_batch,
        visits=merge_visits([each.visits for each in days]),
        rules=first.rules,
        left_out_by=first.left_out_by,
        going_on=joined_numbers([each.going_on for each in days]),
    )


def encode_rollup(sums: RollupContent, key: bytes) -> EncodedSegment:
    """Encode a rollup. `key` is the prefix of its keys, with `rollup_key_ms` of it."""
    header = SegmentHeader(
        key_ms=rollup_key_ms(sums),
        first_sequence=sums.sequences[0],
        last_sequence=sums.sequences[1],
        views=sums.views,
        ascends=False,
        time_bounds=sums.time_bounds,
        sequence_bounds=sums.sequence_bounds,
        event_time_bounds=sums.event_time_bounds,
        own_rows=0,
        loose_rows=0,
        events=sums.events.total,
        has_lags=False,
        has_distinct_names=sums.events.has_distinct_names,
        has_counters=True,
        day=Day(
            number=sums.day,
            span=sums.span,
            dimensions=tuple(map(int, sums.by_dimension)),
            has_durations=sums.durations is not None,
            visits=None if sums.visits is None else _known(sums.visits),
            rules=sums.rules,
            left_out_by=sums.left_out_by,
            has_going_on=len(sums.going_on) > 0,
        ),
        import_batch=sums.import_batch,
    )
    return EncodedSegment(header, _puts(sums, key))


def _known(visits: VisitsContent) -> KnownVisits:
    return KnownVisits(
        dimensions=tuple(map(int, visits.by_dimension)),
        time_bounds=visits.time_bounds,
        has_pages=visits.has_pages,
        has_exits=visits.has_exits,
    )


def rollup_key_ms(sums: RollupContent) -> int:
    """Return the time in the keys of a rollup."""
    return max(0, sums.span[0])


def _puts(sums: RollupContent, key: bytes) -> Iterator[Put]:
    counters: dict[int, Counters] = {
        OVERALL: sums.total,
        **{int(dimension): found for dimension, found in sums.by_dimension.items()},
    }
    if sums.visits is not None:
        counters[OF_VISITS + OVERALL] = sums.visits.total
        for dimension, found in sums.visits.by_dimension.items():
            counters[OF_VISITS + dimension] = found
    events = sums.events
    if events.total:
        counters[Dimension.PROPERTY] = _counted(events.codes, events.events)
        counters[Dimension.PROPERTY_NAME] = _counted(events.names, events.events_of_names)
    for kind, found in counters.items():
        yield True, kind, encode_counters(key + bytes((kind,)), found)
    if len(sums.going_on):
        kind = Column.DAY_GOING_ON
        yield False, kind, encode_column(key + bytes((kind,)), sums.going_on)
    durations = sums.durations
    if durations is None:
        return
    columns: dict[int, NDArray[Any]] = {
        Column.DAY_PATHS: durations.codes,
        Column.DAY_COUNTS: durations.counts,
        Column.DAY_DURATIONS_LOW: (durations.duration_ms & np.uint32(0xFFFF)).astype(np.uint16),
        Column.DAY_DURATIONS_HIGH: durations.duration_ms >> np.uint32(_BITS),
    }
    for column, values in columns.items():
        # The upper halves are small, and many are equal.
        deflate = column == Column.DAY_DURATIONS_HIGH
        yield False, column, encode_column(key + bytes((column,)), values, deflate=deflate)


def _counted(codes: NDArray[Any], events: NDArray[Any]) -> Counters:
    nothing = np.zeros(len(codes), np.uint8)
    return Counters(codes, (events, *(nothing,) * (SUMS - 1)))


@frozen(eq=False)
class _StoredVisits:
    """The visits of a stored rollup."""

    _stored: StoredValues
    _known: KnownVisits

    @property
    def time_bounds(self) -> tuple[int, int]:
        return self._known.time_bounds

    @property
    def has_pages(self) -> bool:
        return self._known.has_pages

    @property
    def has_exits(self) -> bool:
        return self._known.has_exits

    def overall(self) -> Counters:
        return self._stored.counters(OF_VISITS + OVERALL)

    def counters(self, dimension: Dimension) -> Counters | None:
        if dimension not in self._known.dimensions:
            return None
        return self._stored.counters(OF_VISITS + dimension)

    def loaded(self) -> VisitsContent:
        """Return all of it in memory."""
        return VisitsContent(
            time_bounds=self.time_bounds,
            total=self.overall(),
            by_dimension={
                Dimension(dimension): self._stored.counters(OF_VISITS + dimension)
                for dimension in self._known.dimensions
            },
            has_pages=self.has_pages,
            has_exits=self.has_exits,
        )


@define(eq=False)
class StoredRollup(OpenedBase, Rollup):
    """A stored rollup."""

    @property
    def day(self) -> int:
        return self._day.number

    @property
    def rules(self) -> tuple[int, ...]:
        return self._day.rules

    @property
    def left_out_by(self) -> tuple[int, ...]:
        return self._day.left_out_by

    @property
    def going_on(self) -> Numbers:
        if not self._day.has_going_on:
            return NO_NUMBERS
        return self._stored.column(Column.DAY_GOING_ON, np.int64).astype(np.int64)

    @property
    def has_durations(self) -> bool:
        return self._day.has_durations

    def overall(self) -> Counters:
        return self._stored.counters(OVERALL)

    def counters(self, dimension: Dimension) -> Counters | None:
        return self._stored.counters(dimension) if dimension in self._day.dimensions else None

    @property
    def visits(self) -> _StoredVisits | None:
        known = self._day.visits
        return None if known is None else _StoredVisits(self._stored, known)

    def path_durations(self) -> PathDurations | None:
        if not self.has_durations:
            return None
        column = self._stored.column
        high = column(Column.DAY_DURATIONS_HIGH, np.uint32).astype(np.uint32)
        high <<= np.uint32(_BITS)
        high |= column(Column.DAY_DURATIONS_LOW, np.uint16).astype(np.uint32)
        return PathDurations(
            column(Column.DAY_PATHS, np.uint32),
            column(Column.DAY_COUNTS, np.uint32),
            high,
        )

    def event_sums(self) -> EventSums:
        if not self._header.events:
            return NO_EVENT_SUMS
        found = self._stored.counters(Dimension.PROPERTY)
        named = self._stored.counters(Dimension.PROPERTY_NAME)
        return EventSums(
            codes=found.codes,
            events=found.sums[VIEWS],
            names=named.codes,
            events_of_names=named.sums[VIEWS],
            total=self._header.events,
            has_distinct_names=self._header.has_distinct_names,
        )

    def event_counts(self) -> EventCounts | None:
        return super().event_counts() if self._header.has_distinct_names else None

    def loaded(self) -> RollupContent:
        """Return all of it in memory."""
        header = self._header
        return RollupContent(
            day=self._day.number,
            span=self._day.span,
            total=self.overall(),
            by_dimension={
                Dimension(dimension): self._stored.counters(dimension)
                for dimension in self._day.dimensions
            },
            durations=self.path_durations(),
            events=self.event_sums(),
            sequence_bounds=header.sequence_bounds,
            sequences=(header.first_sequence, header.last_sequence),
            import_batch=header.import_batch,
            visits=None if self.visits is None else self.visits.loaded(),
            rules=self.rules,
            left_out_by=self.left_out_by,
            going_on=self.going_on,
        )

    @property
    def _day(self) -> Day:
        day = self._header.day
        assert day is not None  # noqa: S101 - rollups have one
        return day


def open_rollup(segment: Segment, reading: ReadAccess, databases: Databases) -> StoredRollup:
    """Open a rollup."""
    return StoredRollup(StoredValues(segment, reading, databases))


def disagreements(sums: RollupContent) -> Iterator[str]:
    """Return which sums of a rollup that was made of views disagree with its total."""
    if not sums.sequences[1]:
        return
    total = _totals(sums.total)
    for dimension, counters in sums.by_dimension.items():
        if _totals(counters) != total:
            yield f"by {dimension.attribute} it has other sums than overall"
    if sums.visits is not None:
        yield from visit_disagreements(sums.visits)
    durations = sums.durations
    if durations is not None:
        duration_ms = durations.duration_ms
        if int(duration_ms.sum(dtype=np.int64)) != total[DURATION_MS]:
            yield "its durations have another total"
        if int(durations.counts.sum(dtype=np.int64)) != len(duration_ms) or not duration_ms.all():
            yield "the number of its durations is wrong"


def _totals(counters: Counters) -> list[int]:
    return [int(row.sum(dtype=np.int64)) for row in counters.sums]


def _path_durations(paths: NDArray[Any], duration_ms: NDArray[Any]) -> PathDurations:
    timed = np.flatnonzero(duration_ms)
    paths, duration_ms = paths[timed], duration_ms[timed].astype(np.uint32)
    order = np.lexsort((duration_ms, paths))
    codes, counts = np.unique(paths, return_counts=True)
    return PathDurations(codes, counts, duration_ms[order])


def _joined(durations: Sequence[PathDurations]) -> PathDurations:
    return _path_durations(
        np.concatenate([np.repeat(each.codes, each.counts) for each in durations]),
        np.concatenate([each.duration_ms for each in durations]),
    )


def _event_sums(events: EventColumns, names_of: NumberNames) -> EventSums:
    if not len(events):
        return NO_EVENT_SUMS
    codes, places = np.unique(events.property, return_inverse=True)
    numbers, number_of_event = np.unique(events.event, return_inverse=True)
    first_of_name = _first_of_name(codes, names_of)
    return EventSums(
        codes=codes,
        events=_carrying(number_of_event, places),
        names=codes[np.unique(first_of_name)],
        events_of_names=_carrying(number_of_event, first_of_name[places]),
        total=len(numbers),
        has_distinct_names=has_distinct_names(events, names_of),
    )


def _carrying(events: NDArray[np.intp], labels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Count the events by label, ascending by label."""
    pairs = np.unique(np.stack((labels, events)), axis=1)
    return np.unique(pairs[0], return_counts=True)[1]


def _first_of_name(codes: NDArray[Any], names_of: NumberNames) -> NDArray[np.intp]:
    """Return for each code the place of the first code with the same name."""
    _, first, numbers = np.unique(names_of(codes), return_index=True, return_inverse=True)
    return first[numbers]


def _added_events(days: Sequence[EventSums], names_of: NumberNames) -> EventSums:
    some = [each for each in days if each.total]
    if not some:
        return NO_EVENT_SUMS
    codes, events = _sum_by(
        np.concatenate([each.codes for each in some]), [each.events for each in some]
    )
    # A name is represented by the first of its codes on all days.
    first = codes[_first_of_name(codes, names_of)]
    names = np.concatenate([each.names for each in some])
    named, events_of_names = _sum_by(
        first[np.searchsorted(codes, names)], [each.events_of_names for each in some]
    )
    return EventSums(
        codes=codes,
        events=events,
        names=named,
        events_of_names=events_of_names,
        total=sum(each.total for each in some),
        has_distinct_names=all(each.has_distinct_names for each in some),
    )


def _sum_by(codes: NDArray[Any], events: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    unique, places = np.unique(codes, return_inverse=True)
    sums = np.zeros(len(unique), np.int64)
    np.add.at(sums, places, np.concatenate(events).astype(np.int64))
    return unique.astype(np.uint32), sums


def _around(bounds: Sequence[tuple[int, int]]) -> tuple[int, int]:
    if not bounds:
        return 0, 0
    return min(low for low, _ in bounds), max(high for _, high in bounds)
