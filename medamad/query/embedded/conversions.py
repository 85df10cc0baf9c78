"""The conversions of goals, found in the parts of a selection and in events without a view."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Self

import numpy as np
from attrs import define, evolve, field
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.buckets import Buckets
from medamad.query.embedded.goals import (
    GoalSearch,
    amounts_in,
    are_among,
    begin_events,
    revenue_mask,
)
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import CodeTable, GoalsInVisits
from medamad.query.embedded.properties import EventFilter, views_of
from medamad.query.embedded.scan import Selection, divide, loose_events
from medamad.query.embedded.selection import whole_visits
from medamad.query.embedded.visit_figures import add_counts, count_reached, no_counts
from medamad.query.embedded.visits import PartVisits
from medamad.query.filters import VIEW_CONDITIONS, Mask, goal_mask, matches_without_view
from medamad.query.period import ALWAYS, Period
from medamad.query.request import DayGap, Gap, Gaps, Query
from medamad.query.sums import AmountCounts, Conversions, ReachedGoals
from medamad.storage.segments.counters import VIEWS
from medamad.storage.segments.parts import (
    NO_EVENTS,
    EventColumns,
    ViewColumns,
    enclosing_bounds,
    joined,
)

_CODE_BITS: Final = 32


@define(eq=False)
class FoundConversions:
    """A goal, the codes that reach it and those of its revenue, and what is found of it.

    By bucket, or in all as that of one.
    """

    goal: Goal
    reaching: Mask
    revenue: CodeTable | None
    buckets: Buckets | None
    counts: NDArray[np.int64] = field(init=False)
    _amounts: list[tuple[NDArray[Any], NDArray[np.int64]]] = field(factory=list, init=False)
    """Buckets and codes of amounts, in one number, and how often each of these occurs."""

    @counts.default
    def _no_counts(self) -> NDArray[np.int64]:
        return np.zeros(1 if self.buckets is None else len(self.buckets.dates), np.int64)

    @classmethod
    def of(cls, goal: Goal, selection: Selection, buckets: Buckets | None) -> Self:
        """Return a goal of which nothing is found yet."""
        texts, cancellation, revenue = selection.snapshot.texts, selection.cancellation, None
        if goal.revenue is not None:
            revenue = CodeTable(revenue_mask(goal, texts, cancellation))
        return cls(goal, goal_mask(texts, goal, cancellation), revenue, buckets)

    def add(self, columns: ViewColumns | EventColumns, rows: NDArray[np.integer[Any]]) -> None:
        """Add conversions by their rows in columns."""
        places = self._places_of(columns, rows)
        self.counts += np.bincount(places, minlength=len(self.counts))

    def add_amounts(
        self,
        columns: ViewColumns | EventColumns,
        rows: NDArray[np.integer[Any]],
        codes: NDArray[np.integer[Any]],
    ) -> None:
        """Add the codes of amounts by the rows of the conversions that they are in."""
        keys = self._places_of(columns, rows) << _CODE_BITS | codes
        self._amounts.append(np.unique(keys, return_counts=True))

    def _places_of(
        self, columns: ViewColumns | EventColumns, rows: NDArray[np.integer[Any]]
    ) -> NDArray[np.intp]:
        # Times are slow to read.
        if self.buckets is None:
            return np.zeros(len(rows), np.intp)
        return self.buckets.of(columns.time_ms[rows])

    def include(self, found: Conversions) -> None:
        """Add conversions that were counted without buckets."""
        self.counts += found.counts
        if found.amounts is not None:
            self._amounts.append((found.amounts.properties, found.amounts.times))

    def result(self) -> Conversions:
        """Return what was added."""
        amounts = None
        if self.revenue is not None:
            pieces = [(np.zeros(0, np.int64),) * 2, *self._amounts]
            keys, times = map(np.concatenate, zip(*pieces, strict=True))
            keys, places = np.unique(keys, return_inverse=True)
            # Weights are floats, which are exact for these sums.
            times = np.bincount(places, times, len(keys)).astype(np.int64)
            amounts = AmountCounts(keys >> _CODE_BITS, keys & ((1 << _CODE_BITS) - 1), times)
        return Conversions(self.goal, self.counts, amounts)


def find_conversions(
    selection: Selection, query: Query, goals: Sequence[Goal], buckets: Buckets | None
) -> ReachedGoals:
    """Return the conversions of goals by bucket, or in all.

    They are those of the selected visits; where visits are unknown, among the selected views and
    events. If the query is with visits, also how many reached each goal.
    """
    snapshot, filter_ = selection.snapshot, selection.filter
    found = [FoundConversions.of(goal, selection, buckets) for goal in goals]
    search, reached = _search_of(found, selection), None
    if query.with_visits and not filter_.matches_all_included:
        reached = _add_visits(selection, search, found, buckets)
        # Other selected views than those that are begun in the period select other visits.
        if query.filters_on(VIEW_CONDITIONS) and not all(
            selection.period.contains(*part.time_bounds) for part in snapshot.parts
        ):
            reached = count_reached(selection, buckets, search)
        gaps: set[DayGap] = set()
        if snapshot.rollup_segments or snapshot.left_out_ms:
            _, gaps = _loose_events(selection, found, without_view=False)
    else:
        if query.with_visits:
            reached = count_reached(selection, buckets, search)
        others = selection
        if buckets is None and filter_.matches_all:
            others = _add_cached(selection, found)
        without_view = matches_without_view(query) and not query.has_property_filter
        gaps = _add_parts(others, search, found, without_view=without_view)
        _add_loose_amounts(selection, found)
    for rollup in snapshot.rollups:
        if not all(
            selection.period.is_outside(*bounds)
            for bounds in (rollup.time_bounds, rollup.event_time_bounds)
        ):
            gaps.add((Gap.FIGURES, rollup.day))
    return ReachedGoals([each.result() for each in found], reached, Gaps(gaps))


def _search_of(found: Sequence[FoundConversions], selection: Selection) -> GoalSearch:
    goals, masks = [each.goal for each in found], [each.reaching for each in found]
    return GoalSearch(goals, masks, selection.snapshot)


def _add_cached(selection: Selection, found: Sequence[FoundConversions]) -> Selection:
    """Add the conversions in segments that never change and are in the period.

    Return the selection of all else.
    """
    covered, others = divide(
        selection.snapshot,
        selection.period,
        lambda header: enclosing_bounds((header.time_bounds, header.event_time_bounds)),
    )
    for segment in covered.segments:
        of_segment = evolve(selection, snapshot=covered.with_segments([segment]), period=ALWAYS)
        for each in found:
            count = partial(_count, of_segment, each.goal)
            each.include(of_segment.snapshot.cached((_count, each.goal), count))
    return evolve(selection, snapshot=others)


def _count(of_segment: Selection, goal: Goal) -> Conversions:
    """Return the conversions in a segment, as `_add_parts` finds them."""
    found = FoundConversions.of(goal, of_segment, None)
    (part,) = of_segment.snapshot.parts
    counters = part.counters(Dimension.PATH)
    if counters is not None and goal.path is not None and goal.revenue is None:
        views = counters.sums[VIEWS][found.reaching.take(counters.codes)]
        return Conversions(goal, views.sum(dtype=np.int64, keepdims=True), None)
    _add_parts(of_segment, _search_of([found], of_segment), [found], without_view=True)
    return found.result()


def _add_parts(
    selection: Selection,
    search: GoalSearch,
    found: Sequence[FoundConversions],
    *,
    without_view: bool,
) -> set[DayGap]:
    """Add the selected views and events that reach goals; return the gaps.

    `without_view` selects events that have no view. What `_add_loose_amounts` adds is left out.
    """
    period = selection.period
    for part in selection.snapshot.leaves() if found else ():
        selection.cancellation.check()
        if period.is_outside(*part.time_bounds) and period.is_outside(*part.event_time_bounds):
            continue
        mask = selection.filter.mask(part, selection.snapshot)
        are_selected = _all if mask is None else mask.of
        _add_part(part, search, found, period, are_selected)
    events, gaps = _loose_events(selection, found, without_view=without_view)
    for each in found:
        if each.goal.path is None:
            rows = np.flatnonzero(each.reaching.take(events.property))
            each.add(events, rows[begin_events(events.event[rows])])
            if each.revenue is not None:
                amounts = np.flatnonzero(each.revenue.mask.take(events.property))
                amounts = amounts[are_among(events.event[amounts], events.event[rows])]
                each.add_amounts(events, amounts, events.property[amounts])
    return gaps


def _add_part(
    part: ViewColumns,
    search: GoalSearch,
    found: Sequence[FoundConversions],
    period: Period,
    are_selected: Callable[[NDArray[np.uint32]], Mask],
) -> None:
    """Add the conversions of a period by the selected views of a part and by their events."""
    is_inside = _is_inside(part, period)
    for place, each in enumerate(found):
        rows = search.views_in(part, place)
        is_selected = are_selected(rows)
        if is_inside and each.buckets is None and each.revenue is None:
            each.counts += np.count_nonzero(is_selected)
            continue
        events = search.events_in(part, place)
        columns: ViewColumns | EventColumns = part if events is None else part.own
        rows = (rows if events is None else events)[is_selected]
        if not is_inside:
            rows = rows[period.mask(columns.time_ms[rows])]
        each.add(columns, rows)
        if each.revenue is not None and len(rows):
            amounts = amounts_in(part, rows, each.revenue, of_views=events is None)
            of_rows = part.own.view[amounts] if events is None else amounts
            each.add_amounts(columns, of_rows, part.own.property[amounts])


def _is_inside(part: ViewColumns, period: Period) -> bool:
    """Return whether all views and events of a part are in a period."""
    # Times of gathered views are slow to read.
    return period == ALWAYS or (
        period.contains(*part.time_bounds) and period.contains(*part.event_time_bounds)
    )


def _add_visits(
    selection: Selection,
    search: GoalSearch,
    found: Sequence[FoundConversions],
    buckets: Buckets | None,
) -> NDArray[np.int64]:
    """Add the conversions in the period of the visits that have a view which the filters match.

    Return what `count_reached` does of these visits.
    """
    counts, period = no_counts(search, buckets), selection.period
    can_count = buckets is None and all(each.revenue is None for each in found)
    counted: list[GoalsInVisits] = []
    for visits in whole_visits(selection).groups(ALWAYS):
        if can_count and _is_inside(visits.part, period):
            counted.append(search.in_visits(visits))
            counts[0] += len(visits)
            continue

        def are_theirs(views: NDArray[np.uint32], visits: PartVisits = visits) -> Mask:
            return visits.chosen.of(LOOPS.first_rows(visits.columns.offsets, views.astype(np.intp)))

        # All events of the visits are in the part.
        _add_part(visits.part, search, found, period, are_theirs)
        add_counts(visits, search.have_reached(visits), period, buckets, counts)
    if counted:
        conversions, reached = LOOPS.count_goals(counted, len(found))
        counts[1:, 0] += reached
        for each, count in zip(found, conversions, strict=True):
            each.counts += count
    return counts


def _add_loose_amounts(selection: Selection, found: Sequence[FoundConversions]) -> None:
    """Add amounts in events that are not stored with their view, where a view reached a goal."""
    goals = [
        (each, each.revenue.mask)
        for each in found
        if each.goal.path is not None and each.revenue is not None
    ]
    if not goals:
        return
    events = joined(loose_events(selection.snapshot, selection.cancellation))
    amounts = np.flatnonzero(_any([revenue for _, revenue in goals]).take(events.property))
    for part, places, rows in views_of(selection, events.view[amounts]):
        codes, paths = events.property[amounts[places]], part.codes(Dimension.PATH)[rows]
        is_selected = selection.filter.mask_of(part, rows, selection.snapshot)
        is_selected &= selection.period.mask(part.time_ms[rows])
        for each, revenue in goals:
            is_amount = is_selected & each.reaching.take(paths) & revenue.take(codes)
            each.add_amounts(part, rows[is_amount], codes[is_amount])


def _loose_events(
    selection: Selection, found: Sequence[FoundConversions], *, without_view: bool
) -> tuple[EventColumns, set[DayGap]]:
    """Return the selected events that are not stored with their view, and the gaps.

    Those that may matter to goals that are events.
    """
    found = [each for each in found if each.goal.path is None]
    if not found:
        return NO_EVENTS, set()
    masks = [each.reaching for each in found]
    masks += [each.revenue.mask for each in found if each.revenue is not None]
    pieces = list(loose_events(selection.snapshot, selection.cancellation))
    return EventFilter(selection, without_view).loose(pieces, _any(masks))


def _all(rows: NDArray[np.uint32]) -> Mask:
    return np.ones(len(rows), np.bool_)


def _any(masks: Sequence[Mask]) -> Mask:
    """Return which codes match any of some masks; texts that only some of them have are new."""
    size = min(map(len, masks))
    union: Mask = np.logical_or.reduce([mask[:size] for mask in masks])
    return union
