"""Finding visits by what their views and events have."""

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import ViewNumber
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import ONES, PartViews
from medamad.query.embedded.part_visits import AnyVisits
from medamad.query.embedded.scan import leaves, loose_events
from medamad.query.embedded.view_filter import SelectedViews, ViewFilter
from medamad.query.embedded.visits import Numbers, find_ascending
from medamad.query.filters import Mask
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation
from medamad.storage.segments.parts import (
    Codes,
    EventColumns,
    EventRows,
    MergedSegment,
    Part,
    ViewColumns,
)
from medamad.storage.segments.snapshot import Snapshot


@frozen(eq=False)
class FoundEvents:
    """Rows of events with a property; what they have is read when it is asked for, shape (n,).

    `views` has the row of the event's view in a part, `rows` that of the event among `events`.
    """

    part: ViewColumns
    views: NDArray[np.intp]
    events: EventColumns
    rows: NDArray[np.intp]

    @classmethod
    def of(cls, part: ViewColumns, rows: NDArray[np.intp]) -> Self:
        """Return rows of a part's own events."""
        return cls(part, part.own.view[rows].astype(np.intp), part.own, rows)

    @property
    def numbers(self) -> Numbers:
        """The numbers of the events."""
        return self.events.event[self.rows].astype(np.int64)

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """The times of the events. They are slow to read."""
        return self.events.time_ms[self.rows]

    @property
    def properties(self) -> Codes:
        """The codes of the properties."""
        return self.events.property[self.rows]


@frozen(eq=False)
class VisitSearch:
    """Looks for visits with numbers from `first` to `last`, and may find others besides."""

    snapshot: Snapshot
    cancellation: Cancellation
    first: int
    last: int

    @classmethod
    def during(cls, snapshot: Snapshot, period: Period, cancellation: Cancellation) -> Self:
        """Return the search for the visits that have views or events in a period."""
        views = [
            int(events.view[is_in].min())
            for events in loose_events(snapshot, cancellation)
            if (is_in := (events.view > 0) & period.mask(events.time_ms)).any()
        ]
        first_view = min(views, default=1 << 62)
        parts = [
            part
            for part in leaves(snapshot.parts)
            if part.first_visit
            and (
                part.sequence_bounds[1] >= first_view
                or not period.is_outside(*part.time_bounds)
                or not period.is_outside(*part.event_time_bounds)
            )
        ]
        first = min((part.first_visit for part in parts), default=1)
        last = max((part.sequence_bounds[1] for part in parts), default=0)
        return cls(snapshot, cancellation, first, last)

    @classmethod
    def among(cls, visits: AnyVisits) -> Self:
        """Return the search for some visits."""
        first, last = visits.number_bounds
        return cls(visits.snapshot, visits.cancellation, first, last)

    def views(self, filter_: ViewFilter) -> Iterator[SelectedViews]:
        """Return the views that match a filter, part by part."""
        for part, remaining in self._parts(self.snapshot.parts, filter_):
            if (selected := remaining.select(part, ALWAYS, self.snapshot)) is not None:
                yield selected

    def begins(self, filter_: ViewFilter) -> Iterator[tuple[ViewColumns, NDArray[np.intp]]]:
        """Return the rows of the views that match codes and begin a visit, part by part."""
        for part, remaining in self._parts(self.snapshot.parts, filter_):
            matching = [*map(part.codes, remaining.codes), part.numbers(ViewNumber.VISIT_OFFSET)]
            tables = [*map(remaining.table, remaining.codes), ONES]
            rows = LOOPS.select(PartViews(0, len(part), matching), tables)
            if len(rows):
                yield part, rows

    def parts(self) -> Iterator[ViewColumns]:
        """Return the parts that may have views of the visits."""
        for part in self.snapshot.leaves((self.first, self.last)):
            self.cancellation.check()
            yield part

    def events(self, properties: Mask) -> Iterator[FoundEvents]:
        """Return the rows of events that have any of some properties, by the part of their view."""
        for part in self._parts_with(self.snapshot.parts, properties):
            own = part.own
            rows = np.flatnonzero(properties.take(own.property))
            if len(rows):
                yield FoundEvents.of(part, rows)
        yield from self._loose_events(properties)

    def _includes(self, part: Part) -> bool:
        """Return whether a part may have views of the visits."""
        self.cancellation.check()
        return 0 < part.first_visit <= self.last and part.sequence_bounds[1] >= self.first

    def _parts(
        self, parts: Iterable[Part], filter_: ViewFilter
    ) -> Iterator[tuple[ViewColumns, ViewFilter]]:
        """Return the parts that may have matching views, and what must still be compared."""
        for part in parts:
            remaining = filter_.remaining(part) if self._includes(part) else None
            if remaining is None:
                continue
            if isinstance(part, MergedSegment):
                yield from self._parts(part.members, remaining)
            else:
                yield part, remaining

    def _parts_with(self, parts: Iterable[Part], properties: Mask) -> Iterator[ViewColumns]:
        """Return the parts that may have events with any of some properties."""
        for part in parts:
            if not self._includes(part):
                continue
            counts = part.event_counts()
            if counts is not None and not properties.take(counts.codes).any():
                continue
            if isinstance(part, MergedSegment):
                yield from self._parts_with(part.members, properties)
            else:
                yield part

    def _loose_events(self, properties: Mask) -> Iterator[FoundEvents]:
        """Return the rows of events that are not stored with their view."""
        pieces, parts = [], [*self.parts()]
        last_view = max((part.sequence_bounds[1] for part in parts), default=0)
        for events in loose_events(self.snapshot, self.cancellation, self.first):
            # There may be many of later views.
            near = np.flatnonzero((events.view >= self.first) & (events.view <= last_view))
            rows = near[properties.take(events.property[near])]
            if len(rows):
                columns = (events.event, events.time_ms, events.view, events.property)
                pieces.append([column[rows] for column in columns])
        if not pieces:
            return
        loose = EventRows(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
        order = np.argsort(loose.view, kind="stable")
        views = loose.view[order].astype(np.int64)
        for part in parts:
            found, rows = find_ascending(part, views)
            if len(rows):
                yield FoundEvents(part, rows, loose, order[found])
