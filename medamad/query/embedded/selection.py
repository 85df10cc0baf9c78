"""What a query selects: its filters on views, on properties and on visits."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from typing import Any, Final, TypeVar

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query.embedded.goals import GoalSearch
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import FIRST_OF_VISIT, RowMask
from medamad.query.embedded.scan import Selection, loose_events
from medamad.query.embedded.view_filter import (
    Candidates,
    Exclusions,
    PropertyFilter,
    ViewFilter,
)
from medamad.query.embedded.visit_groups import FoundVisits, of_whole_visits
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
)
from medamad.query.period import ALWAYS, Period
from medamad.query.request import PROPERTY_FIELDS, Cancellation, Query
from medamad.storage.segments.format import HOSTING
from medamad.storage.segments.parts import NO_NUMBERS, Numbers, ViewColumns
from medamad.storage.segments.snapshot import Snapshot

T = TypeVar("T")


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
    columns = _tests_of(query, _NUMBERS_OF_VIEWS)
    filter_ = ViewFilter(codes, properties, visits, filter_key(query, sources), columns, excluded)
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


def loose_views(snapshot: Snapshot, properties: Mask, cancellation: Cancellation) -> Numbers:
    """Return the views that loose events with matching properties refer to, ascending."""
    views = [
        events.view.compress(properties.take(events.property)).astype(np.int64, copy=False)
        for events in loose_events(snapshot, cancellation)
        if len(events)
    ]
    loose: Numbers = np.concatenate([NO_NUMBERS, *views])
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
    goals = GoalSearch.of(query.goals, snapshot.texts, cancellation, snapshot)
    # All visits that are found by the only goal have reached it.
    is_found_by_goal = len(query.goals) == 1 and not entries and not exits
    tests = _tests_of(query, _NUMBERS_OF_VISITS)
    tests += [partial(_end_on, pages) for pages in exits.values()]

    def find_views(among: Selection) -> Iterator[Candidates]:
        filter_ = ViewFilter(entries or exits)
        here = evolve(among, filter=filter_)
        if not entries and exits:
            return here.all_candidates()
        if not entries and query.goals:
            return goals.reaching_first(here.parts())
        return (
            Candidates(each.part, each.window, partial(_begins, each.part, filter_))
            for each in here.all_candidates()
        )

    def passing(visits: PartVisits) -> PartVisits:
        if tests:
            visits = visits.take(np.logical_and.reduce([test(visits) for test in tests]))
        return visits if is_found_by_goal else goals.reaching_all(visits)

    key = filter_key(query, sources, VISIT_FIELDS)
    everything = Selection(snapshot, query.period, ViewFilter({}), cancellation)
    return _found_visits(everything, find_views, passing, key)


def whole_visits(selection: Selection) -> FoundVisits:
    """Return the visits that have a view which matches the filters, in the period or outside.

    They include all of those that have views or events in the period.
    """
    if isinstance(visits := selection.filter.only_visits, FoundVisits):
        return visits

    def find_views(among: Selection) -> Iterator[Candidates]:
        return evolve(among, filter=selection.filter).all_candidates()

    return _found_visits(selection, find_views)


def _found_visits(
    selection: Selection,
    find_views: Callable[[Selection], Iterable[Candidates]],
    passing: Callable[[PartVisits], PartVisits] = lambda visits: visits,
    key: Hashable = None,
) -> FoundVisits:
    """Return the visits of some views that pass some tests, cached by a key.

    They include all of those that have views or events in the period of a selection.
    """
    snapshot, period, cancellation = selection.snapshot, selection.period, selection.cancellation

    def find(among: Snapshot, candidates: Candidates, others: Numbers) -> RowMask:
        return passing(visits_with(among, candidates, others)).chosen

    def groups() -> Iterator[PartVisits]:
        bounds = _bounds_of_visits(snapshot, period, cancellation)
        everything = evolve(selection, period=ALWAYS, filter=ViewFilter({}), visits=bounds)
        for among, others in of_whole_visits(everything):
            for candidates in find_views(among):
                find_here = partial(find, among.snapshot, candidates, others)
                visits = cached_visits(among.snapshot, candidates.part, others, key, find_here)
                if not visits.chosen.is_empty:
                    yield visits

    return FoundVisits(snapshot, cancellation, groups)


def _begins(part: ViewColumns, filter_: ViewFilter) -> RowMask:
    """Return which views of a part match codes and begin a visit."""
    columns = [*map(part.codes, filter_.codes), part.visits().offsets]
    return LOOPS.match(columns, [*map(filter_.table, filter_.codes), FIRST_OF_VISIT])


def _have_bounced(visits: PartVisits) -> NDArray[np.uint8]:
    """Return 1 for each visit with one view and no event after its load, else 0."""
    bounced: Mask = (visits.of(visits.columns.views) == 1) & ~visits.of(visits.columns.has_event)
    return bounced.view(np.uint8)


def _end_on(pages: Mask, visits: PartVisits) -> Mask:
    """Return which visits ended on a page that matches."""
    last_views = visits.begins + visits.of(visits.columns.spans)
    matches: Mask = pages[visits.part.codes(Dimension.PATH)[last_views]]
    return matches


_NUMBERS_OF_VIEWS: Final[Mapping[str, Callable[[ViewColumns], NDArray[Any]]]] = {
    DURATION_FIELD: lambda part: part.duration_ms,
    HOSTING_FIELD: lambda part: (part.flags & HOSTING > 0).view(np.uint8),
}
"""What filters compare with bounds, of each view of a part."""
_NUMBERS_OF_VISITS: Final[Mapping[str, Callable[[PartVisits], NDArray[Any]]]] = {
    VISIT_VIEWS_FIELD: lambda visits: visits.of(visits.columns.views),
    VISIT_DURATION_FIELD: lambda visits: visits.of(visits.columns.duration_ms),
    BOUNCE_FIELD: _have_bounced,
}
"""What filters compare with bounds, of each visit."""


def _tests_of(
    query: Query, numbers: Mapping[str, Callable[[T], NDArray[Any]]]
) -> list[Callable[[T], Mask]]:
    """Return what tests for the filters of a query on some numbers, one for each field."""

    def test(field: str, bounds: Bounds, tested: T) -> Mask:
        return bounds.mask(numbers[field](tested))

    bounds = ((field, Bounds.of(query, field)) for field in numbers)
    return [partial(test, field, each) for field, each in bounds if each is not None]


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
        for part in snapshot.leaves()
        if part.first_visit
        and (
            part.sequence_bounds[1] >= first_view
            or not period.is_outside(*part.time_bounds)
            or not period.is_outside(*part.event_time_bounds)
        )
    ]
    first = min((part.first_visit for part in parts), default=1)
    return first, max((part.sequence_bounds[1] for part in parts), default=0)
