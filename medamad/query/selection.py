"""What a query selects: its filters on views, on properties and on visits."""

import numpy as np
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.lookup.referrers import Sources
from medamad.query.filters import (
    ENTRY_FIELDS,
    EXIT_FIELDS,
    GOAL_FIELD,
    VISIT_FIELDS,
    Mask,
    code_masks,
    property_mask,
)
from medamad.query.goals import find_reached, have_reached
from medamad.query.request import Cancellation, Query
from medamad.query.scan import (
    PropertyFilter,
    SelectedViews,
    Selection,
    ViewFilter,
    loose_events,
)
from medamad.query.visit_search import VisitSearch
from medamad.query.visits import Visits, visit_numbers, visits_begun
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


def matching_visits(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Visits | None:
    """Return the visits that match a query's filters on visits, or None if there are none.

    They include all of those that have views or events in the period.
    """
    if not query.filters_on((*VISIT_FIELDS, GOAL_FIELD)):
        return None
    entries, exits = (
        code_masks(snapshot.texts, query, sources, cancellation, fields)
        for fields in (ENTRY_FIELDS, EXIT_FIELDS)
    )
    search = VisitSearch.during(snapshot, query.period, cancellation)
    found: Visits | None = None
    if entries:
        views = search.views(ViewFilter(entries))
        found = visits_begun(snapshot, cancellation, ((each.part, _begun(each)) for each in views))
    if exits:
        (mask,) = exits.values()
        if found is None:
            seen = search.views(ViewFilter(exits))
            found = search.visits(views.of(visit_numbers(views.part)) for views in seen)
        found = found.take(mask.take(found.codes_of_last_views(Dimension.PATH)))
    goals = query.goals
    if found is None:
        first = find_reached(search, goals[:1])
        found = search.visits(visit_numbers(reached.part, reached.rows) for _, reached in first)
        goals = goals[1:]
    return found.take(np.logical_and.reduce(have_reached(found, goals))) if goals else found


def _begun(views: SelectedViews) -> NDArray[np.intp]:
    """Return the rows of those views that begin a visit."""
    begins = np.flatnonzero(views.of(views.part.numbers(ViewNumber.VISIT_OFFSET)) == 1)
    return views.rows_of(begins)
