"""Views of visits that several parts have something of, gathered to one part."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.storage.segments.counters import Counters
from medamad.storage.segments.parts import (
    NO_EVENTS,
    NO_TIME,
    Codes,
    EventColumns,
    EventCounts,
    EventRows,
    ViewColumns,
    VisitColumns,
    are_late,
)
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_columns import visits_of


class KeptArrays(Protocol):
    """Returns an array that was computed from a snapshot, or computes it and may keep it."""

    def __call__(self, what: Hashable, compute: Callable[[], NDArray[Any]], /) -> NDArray[Any]:
        """Return the array of a name."""


def keep_nothing(_what: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Compute an array."""
    return compute()


_COLUMNS_OF_VISITS: Final[Mapping[Hashable, Callable[[ViewColumns], NDArray[Any]]]] = {
    "sequence": lambda part: part.sequence,
    "time": lambda part: part.time_ms,
    "duration": lambda part: part.duration_ms,
    ViewNumber.VISIT_OFFSET: lambda part: part.numbers(ViewNumber.VISIT_OFFSET),
    Dimension.PATH: lambda part: part.codes(Dimension.PATH),
}


@define(eq=False)
class GatheredViews:
    """Some views of a snapshot with all of their events, as a part.

    `rows` has their rows in each of the snapshot's leaves with views of visits in `bounds`.
    """

    snapshot: Snapshot
    bounds: tuple[int, int]
    rows: Sequence[NDArray[np.intp]]
    keep: KeptArrays
    import_batch: int = 0
    _columns: dict[Hashable, NDArray[Any]] = field(factory=dict)
    _of_visits: Mapping[Hashable, NDArray[Any]] = field(factory=dict)
    _visits: VisitColumns | None = None

    @property
    def first_visit(self) -> int:
        return self.bounds[0]

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
        return self._of_views("time", lambda part: part.time_ms)

    @property
    def sequence(self) -> NDArray[np.uint64]:
        return self._of_views("sequence", lambda part: part.sequence)

    @property
    def flags(self) -> NDArray[np.uint8]:
        return self._of_views("flags", lambda part: part.flags)

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._of_views("duration", lambda part: part.duration_ms)

    @property
    def own(self) -> EventColumns:
        rows = self.column("events", self._gather_events)
        view, property_ = rows[2].astype(np.uint64), rows[3].astype(np.uint32)
        return EventRows(rows[0].astype(np.uint64), rows[1], view, property_)

    @property
    def loose(self) -> EventColumns:
        return NO_EVENTS

    def views_with_late_events(self) -> NDArray[np.integer[Any]]:
        event, time_ms, view, _ = self.column("events", self._gather_events)
        late: NDArray[np.int64] = view[
            are_late(event, time_ms, self.sequence[view], self.time_ms[view])
        ]
        return late

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
        return self._of_views(dimension, lambda part: part.codes(dimension))

    def numbers(self, number: ViewNumber) -> NDArray[np.unsignedinteger[Any]]:
        return self._of_views(number, lambda part: part.numbers(number))

    def __len__(self) -> int:
        return sum(map(len, self.rows))

    def column(self, what: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return an array that is computed from the views, and kept as they are."""
        if what not in self._columns:
            self._columns[what] = self.keep(what, compute)
        return self._columns[what]

    def _of_views(
        self, what: Hashable, column_of: Callable[[ViewColumns], NDArray[Any]]
    ) -> NDArray[Any]:
        def compute() -> NDArray[Any]:
            if what in _COLUMNS_OF_VISITS:
                return self._columns_of_visits()[what]
            column: NDArray[Any] = self._gather([column_of])[0][self.column("order", self._order)]
            return column

        return self.column(what, compute)

    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self._gather([lambda part: part.sequence])[0], kind="stable")

    def _columns_of_visits(self) -> Mapping[Hashable, NDArray[Any]]:
        """Return the columns that visits are made of, for which all parts are read once."""
        if not self._of_visits:
            found = dict(
                zip(
                    _COLUMNS_OF_VISITS, self._gather(list(_COLUMNS_OF_VISITS.values())), strict=True
                )
            )
            order = np.argsort(found["sequence"], kind="stable")
            self._of_visits = {what: column[order] for what, column in found.items()}
        return self._of_visits

    def _gather(
        self, columns: Sequence[Callable[[ViewColumns], NDArray[Any]]]
    ) -> list[NDArray[Any]]:
        pieces: list[list[NDArray[Any]]] = [[] for _ in columns]
        for part, rows in zip(self.snapshot.leaves(self.bounds), self.rows, strict=True):
            if len(rows):
                for of_column, column_of in zip(pieces, columns, strict=True):
                    of_column.append(column_of(part)[rows])
        return [
            np.concatenate(of_column) if of_column else np.zeros(0, np.uint8)
            for of_column in pieces
        ]

    def _gather_events(self) -> NDArray[np.int64]:
        """Return the rows of events in order: number, time, view and property, shape (4, m)."""
        sequence = self.sequence
        pieces = [np.zeros((4, 0), np.int64)]

        def add(events: EventColumns, chosen: NDArray[np.intp], views: NDArray[np.intp]) -> None:
            columns = (events.event[chosen], events.time_ms[chosen], views, events.property[chosen])
            pieces.append(np.stack([column.astype(np.int64) for column in columns]))

        for part, rows in zip(self.snapshot.leaves(self.bounds), self.rows, strict=True):
            own = part.own
            if not len(rows) or not len(own):
                continue
            is_here = np.zeros(len(part), np.bool_)
            is_here[rows] = True
            chosen = np.flatnonzero(is_here[own.view])
            add(own, chosen, np.searchsorted(sequence, part.sequence[own.view[chosen]]))
        for events in self.snapshot.loose_events(self.bounds[0]) if len(sequence) else ():
            # There may be many of other views.
            near = np.flatnonzero((events.view >= sequence[0]) & (events.view <= sequence[-1]))
            views = np.searchsorted(sequence, events.view[near].astype(np.uint64))
            are_here = sequence[views] == events.view[near]
            add(events, near[are_here], views[are_here])
        found = np.concatenate(pieces, axis=1)
        return found[:, np.argsort(found[0], kind="stable")]
