"""What a query selects: its filters on views, on properties and on visits."""

from collections.abc import Iterable, Iterator

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.lookup.referrers import Sources
from medamad.query.filters import (
    ENTRY_FIELDS,
    EXIT_FIELDS,
    VISIT_FIELDS,
    Mask,
    code_masks,
    property_mask,
)
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation, Query
from medamad.query.scan import (
    PropertyFilter,
    SelectedViews,
    Selection,
    ViewFilter,
    leaves,
    loose_events,
)
from medamad.query.visits import Visits, visit_numbers
from medamad.storage.segments.parts import MergedSegment, Part
from medamad.storage.segments.snapshot import Snapshot


def select(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Selection:
    """Return the views that match a query's filters and are in its period."""
    codes = code_masks(snapshot.texts, query, sources, cancellation)
    properties = None
    if query.has_property_filter:
        mask = property_mask(snapshot.texts, query, cancellation)
        properties = PropertyFilter(mask, _loose_views(snapshot, mask, cancellation))
    visits = matching_visits(snapshot, query, sources, cancellation)
    return Selection(snapshot, query.period, ViewFilter(codes, properties, visits), cancellation)


def _loose_views(
    snapshot: Snapshot, properties: Mask, cancellation: Cancellation
) -> NDArray[np.uint64]:
    """Return the views that loose events with matching properties refer to, ascending."""
    views = [
        events.view[properties.take(events.property)].astype(np.uint64)
        for events in loose_events(snapshot, cancellation)
        if len(events)
    ]
    loose = np.unique(np.concatenate(views)) if views else np.zeros(0, np.uint64)
    return loose[loose > 0]


@frozen(eq=False)
class VisitRange:
    """The visits that can have views in a period: those with numbers from `first` to `last`."""

    snapshot: Snapshot
    cancellation: Cancellation
    first: int
    last: int

    @classmethod
    def of(cls, snapshot: Snapshot, period: Period, cancellation: Cancellation) -> "VisitRange":
        """Return the range for a period."""
        parts = [
            part
            for part in leaves(snapshot.parts)
            if part.first_visit and not period.is_outside(*part.time_bounds)
        ]
        first = min((part.first_visit for part in parts), default=1)
        last = max((part.sequence_bounds[1] for part in parts), default=0)
        return cls(snapshot, cancellation, first, last)

    def includes(self, part: Part) -> bool:
        """Return whether a part may have views of the visits."""
        return 0 < part.first_visit <= self.last and part.sequence_bounds[1] >= self.first

    def views(self, filter_: ViewFilter) -> Iterator[SelectedViews]:
        """Return the views that match a filter, part by part, and perhaps those of other visits."""
        return self._views(self.snapshot.parts, filter_)

    def _views(self, parts: Iterable[Part], filter_: ViewFilter) -> Iterator[SelectedViews]:
        for part in parts:
            self.cancellation.check()
            remaining = filter_.remaining(part) if self.includes(part) else None
            if remaining is None:
                continue
            if isinstance(part, MergedSegment):
                yield from self._views(part.members, remaining)
            elif (selected := remaining.select(part, ALWAYS)) is not None:
                yield selected

    def visits(self, numbers: Iterable[NDArray[np.uint64]]) -> Visits:
        """Return the visits with some numbers, those of the range at least, without 0."""
        found = np.unique(np.concatenate([np.zeros(0, np.uint64), *numbers]))
        return Visits(self.snapshot, self.cancellation, found[found > 0])


def matching_visits(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Visits | None:
    """Return the visits that match a query's filters on visits, or None if there are none.

    They include all of those that have views in the period.
    """
    if not query.filters_on(VISIT_FIELDS):
        return None
    entries, exits = (
        code_masks(snapshot.texts, query, sources, cancellation, fields)
        for fields in (ENTRY_FIELDS, EXIT_FIELDS)
    )
    visit_range = VisitRange.of(snapshot, query.period, cancellation)
    found = None
    if entries:
        found = visit_range.visits(map(_begun, visit_range.views(ViewFilter(entries))))
    if exits:
        (mask,) = exits.values()
        if found is None:
            seen = visit_range.views(ViewFilter(exits))
            found = visit_range.visits(views.of(visit_numbers(views.part)) for views in seen)
        found = found.take(mask.take(found.codes_of_last_views(Dimension.PATH)))
    return found


def _begun(views: SelectedViews) -> NDArray[np.uint64]:
    """Return the numbers of the visits that views begin."""
    begins = views.of(views.part.numbers(ViewNumber.VISIT_OFFSET)) == 1
    numbers: NDArray[np.uint64] = views.of(views.part.sequence)[begins]
    return numbers
