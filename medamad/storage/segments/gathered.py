"""Views of visits that several parts have something of, gathered to one part."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate, islice, pairwise
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.storage.segments.counters import Counters
from medamad.storage.segments.parts import (
    NO_EVENTS,
    NO_NUMBERS,
    NO_TIME,
    Codes,
    Elsewhere,
    EventColumns,
    EventCounts,
    Numbers,
    ViewColumns,
    VisitColumns,
    are_late,
    joined_numbers,
    outer_bounds,
)
from medamad.storage.segments.visit_columns import CachedArrays, cache_nothing, visits_of
from medamad.storage.segments.visit_counters import counters_of_visits, without_some
from medamad.storage.segments.visit_numbers import (
    begun_in,
    may_have_visits,
    rows_of_visits,
    sequences_of,
    visit_numbers,
    visits_of_views,
)


class Unit(Protocol):
    """Parts whose views and events are gathered together: a `Snapshot`, or members to be merged."""

    def leaves(self, visits: tuple[int, int] | None = None, /) -> Iterable[ViewColumns]:
        """Return the parts, none of them merged, that may have visits with numbers in bounds."""

    def loose_events(self, first_view: int = 0, /) -> Iterable[EventColumns]:
        """Return the events that are not stored with their view, but for those of earlier ones."""


Column: TypeAlias = Callable[[ViewColumns, NDArray[np.intp]], NDArray[Any]]
"""Returns what some rows of a part have, shape (..., n)."""

_NO_ROWS: Final = np.zeros(0, np.int64)


@define(eq=False)
class _SomeViews(ABC):
    """Views of several parts as one part, with their events."""

    import_batch: int = field(default=0, init=False)
    _visits: VisitColumns | None = field(default=None, init=False)
    _own: EventColumns | None = field(default=None, init=False)

    @abstractmethod
    def column(self, what: Hashable, column: Column) -> NDArray[Any]:
        """Return a column of the views in the order of their numbers, which has a name."""

    @abstractmethod
    def events(self) -> NDArray[np.int64]:
        """Return the rows of events in order: view, unit, number, property, place, shape (5, m).

        A view is a place in this part, a unit that which has the event, and a place that in
        `event_times`.
        """

    @abstractmethod
    def event_times(self) -> NDArray[np.int64]:
        """Return the times of events, which are slow to read."""

    @abstractmethod
    def late_events(self) -> NDArray[np.int64]:
        """Return the view and the unit of each event that is later than its view, shape (2, m)."""

    @property
    @abstractmethod
    def first_visit(self) -> int:
        """At most the least number of their visits."""

    @property
    def ascends(self) -> bool:
        return bool(np.all(self.time_ms[1:] >= self.time_ms[:-1]))

    @property
    def time_bounds(self) -> tuple[int, int]:
        time_ms = self.time_ms
        return (int(time_ms.min()), int(time_ms.max())) if len(time_ms) else NO_TIME

    @property
    def event_time_bounds(self) -> tuple[int, int]:
        time_ms = self.own.time_ms
        return (int(time_ms.min()), int(time_ms.max())) if len(time_ms) else NO_TIME

    @property
    def sequence_bounds(self) -> tuple[int, int]:
        sequence = self.sequence
        return (int(sequence[0]), int(sequence[-1])) if len(sequence) else (0, 0)

    @property
    def time_ms(self) -> NDArray[np.int64]:
        return self.column("time", lambda part, rows: part.time_ms[rows])

    @property
    def sequence(self) -> NDArray[np.uint64]:
        return self.column("sequence", sequences_of).astype(np.uint64)

    @property
    def flags(self) -> NDArray[np.uint8]:
        return self.column("flags", lambda part, rows: part.flags[rows])

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        return self.column("duration", lambda part, rows: part.duration_ms[rows])

    @property
    def own(self) -> EventColumns:
        if self._own is None:
            view, _, number, code, place = self.events()
            self._own = _GatheredEvents(
                number.astype(np.uint64),
                view.astype(np.uint64),
                code.astype(np.uint32),
                lambda: self.event_times()[place],
            )
        return self._own

    @property
    def loose(self) -> EventColumns:
        return NO_EVENTS

    def views_with_late_events(
        self, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.integer[Any]]:
        late: NDArray[np.int64] = self.late_events()[0]
        return late if among is None else late[among[late]]

    def slots(self) -> Counters | None:
        return None

    def counters(self, _dimension: Dimension) -> Counters | None:
        return None

    def event_counts(self) -> EventCounts | None:
        return None

    def visits(self) -> VisitColumns:
        if self._visits is None:
            self._visits = visits_of(self)
        return self._visits

    def codes(self, dimension: Dimension) -> Codes:
        return self.column(dimension, lambda part, rows: part.codes(dimension)[rows])

    def numbers(self, number: ViewNumber) -> NDArray[np.unsignedinteger[Any]]:
        if number is ViewNumber.VISIT_OFFSET:
            return self.column(number, _visit_offset).astype(np.uint32)
        return self.column(number, lambda part, rows: part.numbers(number)[rows])

    def __len__(self) -> int:
        return len(self.sequence)


@frozen(eq=False)
class _GatheredEvents:
    """The events of gathered views."""

    event: NDArray[np.uint64]
    view: NDArray[np.uint64]
    property: NDArray[np.uint32]
    _times: Callable[[], NDArray[np.int64]]

    @cached_property
    def time_ms(self) -> NDArray[np.int64]:
        return self._times()

    def __len__(self) -> int:
        return len(self.event)


def _visit_offset(part: ViewColumns, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    visits = visit_numbers(part, rows)
    return np.where(visits > 0, sequences_of(part, rows) + 1 - visits, 0)


@define(eq=False)
class GatheredViews(_SomeViews):
    """The views of some visits, with all events that units have of them."""

    visit_numbers: Numbers
    """Those of the visits, ascending."""
    units: Sequence[Unit]
    found: NDArray[np.intp]
    """How many leaves each unit has with views of visits between these, how many rows of theirs
    each of these leaves has, and all of the rows."""
    cached: CachedArrays
    _columns: dict[Hashable, NDArray[Any]] = field(factory=dict, init=False)

    @property
    def first_visit(self) -> int:
        return outer_bounds(self.visit_numbers)[0]

    def visits(self) -> VisitColumns:
        if self._visits is None:
            self._visits = visits_of(self, lambda what, make: self._cached(("visits", what), make))
        return self._visits

    def column(self, what: Hashable, column: Column) -> NDArray[Any]:
        return self._cached(what, lambda: self._gather(column)[self._order()])

    def events(self) -> NDArray[np.int64]:
        return self._cached("events", self._gather_events)

    def late_events(self) -> NDArray[np.int64]:
        return self._cached("late", self._gather_late_events)

    def units_of_views(self) -> NDArray[np.intp]:
        """Return the unit that has each view, shape (n,)."""

        def compute() -> NDArray[np.intp]:
            sizes = [sum(map(len, rows)) for rows in self._rows]
            return np.repeat(np.arange(len(sizes)), sizes)[self._order()]

        return self._cached("units", compute)

    @cached_property
    def within_units(self) -> "ViewsWithinUnits":
        """The views of each visit that are in the unit in which it begins."""
        units, offsets = self.units_of_views(), self.visits().offsets
        rows = np.flatnonzero(offsets)
        first_rows = rows + 1 - offsets[rows].astype(np.intp)
        return ViewsWithinUnits(self, rows[units[first_rows] == units[rows]])

    def rows_of(self, numbers: Numbers) -> NDArray[np.intp]:
        """Return the rows of the views of some visits by number, ascending, which are cached."""
        which = blake2b(numbers.tobytes(), digest_size=16).digest()
        return self._cached((rows_of_visits, which), lambda: rows_of_visits(self, numbers))

    def _cached(self, what: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        if what not in self._columns:
            self._columns[what] = self.cached(what, compute)
        return self._columns[what]

    @cached_property
    def _rows(self) -> list[list[NDArray[np.intp]]]:
        """The rows in each of the leaves of each unit."""
        leaves, rows = self.found[: len(self.units)].tolist(), self.found[len(self.units) :]
        sizes, of_leaves = rows[: sum(leaves)].tolist(), rows[sum(leaves) :]
        # `np.split` takes ten times as long.
        pieces = (of_leaves[begin:end] for begin, end in pairwise(accumulate(sizes, initial=0)))
        return [list(islice(pieces, count)) for count in leaves]

    def _order(self) -> NDArray[np.intp]:
        return self._cached("order", lambda: np.argsort(self._gather(sequences_of), kind="stable"))

    def _gather(self, column: Column) -> NDArray[Any]:
        pieces = [column(part, rows) for _, part, rows in self._parts()]
        return np.concatenate(pieces) if pieces else _NO_ROWS

    def _parts(self) -> Iterator[tuple[int, ViewColumns, NDArray[np.intp]]]:
        """Return the number of the unit, the part and its rows, where there are any."""
        for number, (unit, of_unit) in enumerate(zip(self.units, self._rows, strict=True)):
            if any(map(len, of_unit)):
                for part, rows in zip(
                    unit.leaves(outer_bounds(self.visit_numbers)), of_unit, strict=True
                ):
                    if len(rows):
                        yield number, part, rows

    def event_times(self) -> NDArray[np.int64]:
        def gather() -> NDArray[np.int64]:
            found = (events.time_ms[chosen] for _, events, chosen, _ in self._events_of_units())
            return np.concatenate([_NO_ROWS, *found])

        return self._cached("event_times", gather)

    def _gather_events(self) -> NDArray[np.int64]:
        pieces = [np.zeros((4, 0), np.int64)]
        for unit, events, chosen, views in self._events_of_units():
            columns = (events.event[chosen], events.property[chosen])
            of_unit = np.full(len(views), unit)
            pieces.append(np.stack([views, of_unit, *(each.astype(np.int64) for each in columns)]))
        found = np.concatenate(pieces, axis=1)
        order = np.argsort(found[2], kind="stable")
        return np.concatenate([found[:, order], order[np.newaxis]])

    def _events_of_units(
        self,
    ) -> Iterator[tuple[int, EventColumns, NDArray[np.intp], NDArray[np.intp]]]:
        """Return units, events of theirs, the rows of those that are of the views, and these."""
        for unit, part, rows in self._parts():
            own = part.own
            if len(own):
                chosen = np.flatnonzero(_marked(part, rows)[own.view])
                yield unit, own, chosen, self._places(part, own.view[chosen].astype(np.intp))
        yield from self._loose_events(self.sequence)

    def _gather_late_events(self) -> NDArray[np.int64]:
        sequence = self.sequence
        pieces = [np.zeros((2, 0), np.int64)]
        for unit, part, rows in self._parts():
            late = part.views_with_late_events(_marked(part, rows)).astype(np.intp)
            pieces.append(np.stack([self._places(part, late), np.full(len(late), unit)]))
        for unit, events, chosen, views in self._loose_events(sequence):
            # Times are slow to read, and only those of early numbers matter.
            near = np.flatnonzero(events.event[chosen] == sequence[views] + np.uint64(1))
            is_late = np.ones(len(views), np.bool_)
            if len(near):
                early, of_views = chosen[near], views[near]
                numbers, times = sequence[of_views], self.time_ms[of_views]
                is_late[near] = are_late(events.event[early], events.time_ms[early], numbers, times)
            late = views[is_late]
            pieces.append(np.stack([late, np.full(len(late), unit)]))
        return np.concatenate(pieces, axis=1)

    def _places(self, part: ViewColumns, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places of some rows of a part among the views."""
        return np.searchsorted(self.sequence, sequences_of(part, rows).astype(np.uint64))

    def _loose_events(
        self, sequence: NDArray[np.uint64]
    ) -> Iterator[tuple[int, EventColumns, NDArray[np.intp], NDArray[np.intp]]]:
        """Return units, their loose events, the rows of those that are of the views, and these."""
        for number, unit in enumerate(self.units if len(sequence) else ()):
            for events in unit.loose_events(self.first_visit):
                # There may be many of other views.
                near = np.flatnonzero((events.view >= sequence[0]) & (events.view <= sequence[-1]))
                views = np.searchsorted(sequence, events.view[near].astype(np.uint64))
                are_here = sequence[views] == events.view[near]
                if are_here.any():
                    yield number, events, near[are_here], views[are_here]


@define(eq=False)
class SomeGatheredViews(_SomeViews):
    """Some of gathered views, at places that ascend, with their events."""

    source: GatheredViews
    index: NDArray[np.intp]

    @property
    def first_visit(self) -> int:
        return self.source.first_visit

    def column(self, what: Hashable, column: Column) -> NDArray[Any]:
        return self.source.column(what, column)[self.index]

    def events(self) -> NDArray[np.int64]:
        return self._here(self.source.events())

    def event_times(self) -> NDArray[np.int64]:
        return self.source.event_times()

    def late_events(self) -> NDArray[np.int64]:
        return self._here(self.source.late_events())

    def _here(self, events: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the events of these views, with the places of these."""
        places = np.full(len(self.source), -1)
        places[self.index] = np.arange(len(self.index))
        found = events[:, places[events[0]] >= 0]
        found[0] = places[found[0]]
        return found


@define(eq=False)
class ViewsWithinUnits(SomeGatheredViews):
    """Some of gathered views, at places that ascend, with the events that the same unit has."""

    def _here(self, events: NDArray[np.int64]) -> NDArray[np.int64]:
        view, unit = events[:2]
        return super()._here(events[:, self.source.units_of_views()[view] == unit])


def _marked(part: ViewColumns, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    mask = np.zeros(len(part), np.bool_)
    mask[rows] = True
    return mask


def gather(
    units: Sequence[Unit], numbers: Numbers, cached: CachedArrays = cache_nothing
) -> GatheredViews:
    """Return the views that units have of visits of some numbers, ascending, as a part."""
    bounds = outer_bounds(numbers)

    def find_rows() -> NDArray[np.intp]:
        of_units = [
            [rows_of_visits(part, numbers) for part in unit.leaves(bounds)] for unit in units
        ]
        leaves = [rows for of_unit in of_units for rows in of_unit]
        sizes = [*map(len, of_units), *map(len, leaves)]
        return np.concatenate([np.array(sizes, np.intp), *leaves])

    return GatheredViews(numbers, units, cached("rows", find_rows), cached)


@frozen(eq=False)
class Members:
    """Opened segments that become members of a merged one, as a unit."""

    segments: Sequence[ViewColumns]

    def leaves(self, visits: tuple[int, int] | None = None) -> Iterator[ViewColumns]:
        """Return the segments."""
        return (part for part in self.segments if may_have_visits(part, visits))

    def loose_events(self, _first_view: int = 0) -> Iterator[EventColumns]:
        """Return the events of the segments that are not stored with their view."""
        return (part.loose for part in self.segments if len(part.loose))


@frozen(eq=False)
class MergedVisits:
    """The counters of the visits that begin in merged members, and what these have of others."""

    counters: Mapping[int, Counters]
    elsewhere: Elsewhere


def merge_visits_of_members(
    units: Sequence[Members],
    elsewhere: Sequence[Elsewhere],
    counters: Mapping[int, Sequence[Counters]],
) -> MergedVisits:
    """Add up what members know of the visits that begin in them.

    Visits that several of them have something of are counted again, with all of it.
    """
    leaves = Members([leaf for unit in units for leaf in unit.leaves()])
    others = Elsewhere.of(elsewhere)
    visits = joined_numbers([others.visits, visits_of_views(leaves.leaves(), others.views)])
    here = begun_in(leaves.leaves(), visits)
    together = gather(units, here)
    found = {
        kind: without_some(
            [*of_members, counters_of_visits(together, kind)],
            counters_of_visits(together.within_units, kind),
        )
        for kind, of_members in counters.items()
    }
    views = [
        others.views[np.isin(others.views, part.sequence.astype(np.int64), assume_unique=True)]
        for part in leaves.leaves()
    ]
    are_elsewhere = ~np.isin(others.views, np.concatenate([NO_NUMBERS, *views]), assume_unique=True)
    elsewhere_visits = others.visits[~np.isin(others.visits, here, assume_unique=True)]
    return MergedVisits(found, Elsewhere(elsewhere_visits, others.views[are_elsewhere]))
