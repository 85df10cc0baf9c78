"""What a query selects: its filters on views, on properties and on visits."""

from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from hashlib import blake2b

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query.embedded.goals import GoalSearch
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import FIRST_OF_VISIT, RowMask
from medamad.query.embedded.scan import Selection, leaves, loose_events
from medamad.query.embedded.view_filter import (
    Candidates,
    ColumnFilter,
    Exclusions,
    PropertyFilter,
    ViewFilter,
)
from medamad.query.embedded.visit_groups import FindViews, FoundVisits, of_whole_visits
from medamad.query.embedded.visits import PartVisits, cached_visits, visits_with
from medamad.query.filters import (
    BOUNCE_FIELD,
    DURATION_FIELD,
    ENTRY_FIELDS,
    EXIT_FIELDS,
    HOSTING_FIELD,
    VIEW_FIELDS,
    VISIT_DURATION_FIELD,
    VISIT_FIELDS,
    VISIT_VIEWS_FIELD,
    Bounds,
    Mask,
    code_masks,
    property_mask,
    wanted_truths,
)
from medamad.query.period import ALWAYS, Period
from medamad.query.request import PROPERTY_FIELDS, Cancellation, Query
from medamad.storage.segments.parts import Numbers, ViewColumns
from medamad.storage.segments.snapshot import Snapshot


def select(
    snapshot: Snapshot,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    excluded: Exclusions | None = None,
) -> Selection:
    """Return the views that match a query's filters and are in its period.

    Without those that are excluded.
    """
    codes = code_masks(snapshot.texts, query, sources, cancellation)
    properties = None
    if query.has_property_filter:
        mask = property_mask(snapshot.texts, query, cancellation)
        properties = PropertyFilter(mask, loose_views(snapshot, mask, cancellation))
    visits = matching_visits(snapshot, query, sources, cancellation)
    key, columns = filter_key(query, sources), column_filter(query)
    filter_ = ViewFilter(codes, properties, visits, key, columns, excluded)
    selection = Selection(snapshot, query.period, filter_, cancellation)
    return selection if excluded is None else evolve(selection, gathered=excluded.gathered)


def filter_key(
    query: Query, sources: Sources, fields: Iterable[str] = (*VIEW_FIELDS, *PROPERTY_FIELDS)
) -> Hashable:
    """Return what is equal for equal filters, as `ViewFilter.key`.

    It is a digest, since the texts of filters may be long.
    """
    filters = query.filters_on(fields)
    return blake2b(repr(filters).encode(), digest_size=16).digest(), sources


def column_filter(query: Query) -> ColumnFilter | None:
    """Return the filter of a query on durations and networks of views, or None if there is none."""
    bounds, hosting = Bounds.of(query, DURATION_FIELD), wanted_truths(query, HOSTING_FIELD)
    return None if bounds is None and not hosting else ColumnFilter(bounds, hosting)


def loose_views(
    snapshot: Snapshot, properties: Mask, cancellation: Cancellation
) -> NDArray[np.uint64]:
    """Return the views that loose events with matching properties refer to, ascending."""
    views = [
        events.view.compress(properties.take(events.property)).astype(np.uint64, copy=False)
        for events in loose_events(snapshot, cancellation)
        if len(events)
    ]
    loose = np.concatenate([np.zeros(0, np.uint64), *views])
    loose.sort()
    return loose[np.searchsorted(loose, 1) :]


def matching_visits(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> FoundVisits | None:
    """Return the visits that match a query's filters on visits, or None if there are none.

    They include all of those that have views or events in the period.
    """
    if not query.filters_on(VISIT_FIELDS):
        return None
    entries, exits = (
        code_masks(snapshot.texts, query, sources, cancellation, fields)
        for fields in (ENTRY_FIELDS, EXIT_FIELDS)
    )
    bounds = _bounds_of_visits(snapshot, query.period, cancellation)
    exiting = next(iter(exits.values()), None)
    goals = GoalSearch.of(query.goals, snapshot.texts, cancellation, snapshot)

    def find_views(among: Selection) -> Iterator[Candidates]:
        filter_ = ViewFilter(entries or exits)
        here = evolve(among, filter=filter_, visits=bounds)
        if not entries and exits:
            return here.all_candidates()
        if not entries and query.goals:
            return goals.reaching_first(here.parts())
        return (
            Candidates(each.part, each.window, partial(_begins, each.part, filter_))
            for each in here.all_candidates()
        )

    key = filter_key(query, sources, VISIT_FIELDS)
    # All visits that are found by the only goal have reached it.
    is_found_by_goal = len(query.goals) == 1 and not entries and not exits
    tests = _VisitTests(exiting, None if is_found_by_goal else goals, _Behaviour.of(query))
    return FoundVisits(
        snapshot,
        cancellation,
        lambda: _matching_groups(snapshot, cancellation, find_views, tests, key),
    )


def whole_visits(selection: Selection) -> FoundVisits:
    """Return the visits that have a view which matches the filters, in the period or outside.

    They include all of those that have views or events in the period.
    """
    if isinstance(visits := selection.filter.only_visits, FoundVisits):
        return visits
    snapshot, cancellation = selection.snapshot, selection.cancellation
    bounds = _bounds_of_visits(snapshot, selection.period, cancellation)

    def find_views(among: Selection) -> Iterator[Candidates]:
        return evolve(among, filter=selection.filter, visits=bounds).all_candidates()

    return FoundVisits(
        snapshot,
        cancellation,
        lambda: _matching_groups(snapshot, cancellation, find_views, _VisitTests()),
    )


def _matching_groups(
    snapshot: Snapshot,
    cancellation: Cancellation,
    find_views: FindViews,
    tests: "_VisitTests",
    key: Hashable = None,
) -> Iterator[PartVisits]:
    """Return the visits of some views that pass some tests, cached by a key."""

    def find(among: Snapshot, candidates: Candidates, others: Numbers) -> RowMask:
        return tests.passing(visits_with(among, candidates, others)).chosen

    everything = Selection(snapshot, ALWAYS, ViewFilter({}), cancellation)
    for among, others in of_whole_visits(everything):
        for candidates in find_views(among):
            find_here = partial(find, among.snapshot, candidates, others)
            visits = cached_visits(among.snapshot, candidates.part, others, key, find_here)
            if not visits.chosen.is_empty:
                yield visits


def _begins(part: ViewColumns, filter_: ViewFilter) -> RowMask:
    """Return which views of a part match codes and begin a visit."""
    columns = [*map(part.codes, filter_.codes), part.visits().offsets]
    return LOOPS.match(columns, [*map(filter_.table, filter_.codes), FIRST_OF_VISIT])


@frozen(eq=False)
class _VisitTests:
    """What visits are tested for: the page that they ended on, goals, and their behaviour."""

    exiting: Mask | None = None
    goals: GoalSearch | None = None
    behaviour: "_Behaviour | None" = None

    def passing(self, visits: PartVisits) -> PartVisits:
        """Return those visits that pass."""
        found = visits
        if self.behaviour is not None:
            found = found.take(self.behaviour.mask(found))
        if self.exiting is not None:
            found = found.take(self.exiting[found.codes_of_last_views(Dimension.PATH)])
        if self.goals is not None and self.goals.goals:
            found = self.goals.reaching_all(found)
        return found


@frozen(eq=False)
class _Behaviour:
    """What visits that match consist of; None is anything."""

    bounced: bool | None
    views: Bounds | None
    duration_ms: Bounds | None

    @classmethod
    def of(cls, query: Query) -> "_Behaviour":
        """Return the filters of a query on the behaviour of visits."""
        bounces = wanted_truths(query, BOUNCE_FIELD)
        return cls(
            bounced=True in bounces if len(bounces) == 1 else None,
            # No visit is, and is not, a bounce.
            views=Bounds(1, 0) if len(bounces) > 1 else Bounds.of(query, VISIT_VIEWS_FIELD),
            duration_ms=Bounds.of(query, VISIT_DURATION_FIELD),
        )

    def mask(self, visits: PartVisits) -> Mask:
        """Return which visits match, shape (n,)."""
        columns, mask = visits.columns, np.ones(len(visits), np.bool_)
        if self.views is not None:
            mask &= self.views.mask(visits.of(columns.views))
        if self.duration_ms is not None:
            mask &= self.duration_ms.mask(visits.of(columns.duration_ms))
        if self.bounced is not None:
            have_bounced = (visits.of(columns.views) == 1) & ~visits.of(columns.has_event)
            mask &= have_bounced == self.bounced
        return mask


def _bounds_of_visits(
    snapshot: Snapshot, period: Period, cancellation: Cancellation
) -> tuple[int, int]:
    """Return bounds of the numbers of the visits that have views or events in a period."""
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
    return first, max((part.sequence_bounds[1] for part in parts), default=0)
