"""The conversions of goals, found in the parts of a selection and in events without a view."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Self

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.buckets import Buckets
from medamad.query.embedded.aggregate import tally_parts
from medamad.query.embedded.goals import GoalSearch
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import CodeTable, GoalsInVisits
from medamad.query.embedded.properties import EventFilter
from medamad.query.embedded.scan import Selection, divide, loose_events
from medamad.query.embedded.selection import whole_visits
from medamad.query.embedded.visit_figures import add_counts, count_reached, no_counts
from medamad.query.filters import VIEW_CONDITIONS, Mask, goal_mask, matches_without_view
from medamad.query.period import ALWAYS, Period
from medamad.query.request import DayGap, Gap, Gaps, Query
from medamad.query.sums import AmountCounts, Conversions, ReachedGoals
from medamad.storage.segments.counters import VIEWS
from medamad.storage.segments.parts import NO_NUMBERS, EventColumns, Numbers, ViewColumns
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import find_ascending


@define(eq=False)
class FoundConversions:
    """A goal, the codes that reach it and those of its revenue, and what is found of it.

    `times_ms` has the time of each conversion; `amounts` the codes of the properties with the
    amounts, and the time of the conversion that each belongs to.
    """

    goal: Goal
    reaching: Mask
    revenue: Mask | None
    times_ms: list[NDArray[np.int64]] = field(factory=lambda: [np.zeros(0, np.int64)])
    amounts: list[tuple[NDArray[Any], NDArray[np.int64]]] = field(
        factory=lambda: [(np.zeros(0, np.uint32), np.zeros(0, np.int64))]
    )
    counted: "list[CountedConversions]" = field(factory=list)
    """Further conversions, whose times do not matter."""

    def add(
        self,
        columns: ViewColumns | EventColumns,
        rows: NDArray[np.intp],
        codes: NDArray[Any],
        amounts: NDArray[np.intp],
        *,
        with_times: bool,
    ) -> None:
        """Add conversions by their rows in columns, and the codes and rows of their amounts.

        Times are slow to read.
        """
        if with_times:
            self.times_ms.append(columns.time_ms[rows])
            self.amounts.append((codes, columns.time_ms[amounts]))
        else:
            self.counted.append(CountedConversions.of(len(rows), codes))

    def by_bucket(self, buckets: Buckets | None) -> Conversions:
        """Return the conversions and amounts of each bucket, or of all as those of one."""
        size = 1 if buckets is None else len(buckets.dates)

        def places_of(time_ms: NDArray[np.int64]) -> NDArray[np.intp]:
            return np.zeros(len(time_ms), np.intp) if buckets is None else buckets.of(time_ms)

        counts = np.bincount(places_of(np.concatenate(self.times_ms)), minlength=size)
        counts[0:1] += sum(each.count for each in self.counted)
        amounts = None
        if self.revenue is not None:
            codes, times_ms = map(np.concatenate, zip(*self.amounts, strict=True))
            untimed = np.concatenate([codes[:0], *(each.amounts for each in self.counted)])
            once = np.ones(len(codes), np.int64)
            amounts = AmountCounts(
                np.append(places_of(times_ms), np.zeros(len(untimed), np.intp)),
                np.concatenate([codes, untimed]),
                np.concatenate([once, *(each.times for each in self.counted)]),
            )
        return Conversions(self.goal, counts.astype(np.int64), amounts)


@frozen(eq=False)
class CountedConversions:
    """Conversions of a goal without their times.

    `count` is their number; `amounts` has the codes of the properties with their amounts, and
    `times` how often each occurs, shape (n,).
    """

    count: int
    amounts: NDArray[Any] = field(factory=lambda: np.zeros(0, np.uint32))
    times: NDArray[np.int64] = field(factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of(cls, count: int, codes: NDArray[Any]) -> Self:
        """Return conversions with the codes of their amounts, in any order."""
        return cls(count, *np.unique(codes, return_counts=True)) if len(codes) else cls(count)

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.amounts.nbytes + self.times.nbytes


def find_conversions(
    selection: Selection, query: Query, goals: Sequence[Goal], buckets: Buckets | None
) -> ReachedGoals:
    """Return the conversions of goals by bucket, or in all.

    They are those of the selected visits; where visits are unknown, among the selected views and
    events. If the query is with visits, also how many reached each goal.
    """
    with_times, with_visits = buckets is not None, query.with_visits
    found = [_look_for(goal, selection) for goal in goals]
    search, reached = search_of(found, selection.snapshot), None
    if selection.filter.matches_all:
        loose = add_all(selection, found, with_times=with_times)
        if with_visits:
            reached = count_reached(selection, buckets, search)
        gaps = add_loose_events(loose, found, without_view=True, with_times=with_times)
    elif with_visits and not selection.filter.matches_all_included:
        reached = _add_visits(selection, search, found, buckets)
        # Other selected views than those that are begun in the period select other visits.
        if query.filters_on(VIEW_CONDITIONS) and not all(
            selection.period.contains(*part.time_bounds) for part in selection.snapshot.parts
        ):
            reached = count_reached(selection, buckets, search)
        gaps = _gaps_of_loose_events(selection, found)
    else:
        if with_visits:
            reached = count_reached(selection, buckets, search)
        _add_parts(selection, search, found, with_times=with_times)
        without_view = matches_without_view(query) and not query.has_property_filter
        gaps = add_loose_events(selection, found, without_view=without_view, with_times=with_times)
    for rollup in selection.snapshot.rollups:
        if not all(
            selection.period.is_outside(*bounds)
            for bounds in (rollup.time_bounds, rollup.event_time_bounds)
        ):
            gaps.add((Gap.FIGURES, rollup.day))
    return ReachedGoals([each.by_bucket(buckets) for each in found], reached, Gaps(gaps))


def _look_for(goal: Goal, selection: Selection) -> FoundConversions:
    texts, cancellation = selection.snapshot.texts, selection.cancellation
    revenue = None
    if goal.revenue is not None:
        having_amount = Goal(id="", name="", event=goal.revenue)
        revenue = goal_mask(texts, having_amount, cancellation)
    return FoundConversions(goal, goal_mask(texts, goal, cancellation), revenue)


def _any(masks: Sequence[Mask]) -> Mask:
    """Return which codes match any of some masks; texts that only some of them have are new."""
    size = min(map(len, masks))
    union: Mask = np.logical_or.reduce([mask[:size] for mask in masks])
    return union


def search_of(goals: Sequence[FoundConversions], snapshot: Snapshot) -> GoalSearch:
    """Return the search for the visits that reach some goals."""
    return GoalSearch([each.goal for each in goals], [each.reaching for each in goals], snapshot)


def add_all(
    selection: Selection, goals: Sequence[FoundConversions], *, with_times: bool
) -> Selection:
    """Add all views in the period that reach goals, and all events that are stored with their view.

    Return the selection of the events that have yet to be added.
    """
    pages = [each for each in goals if each.goal.path is not None]
    events = [each for each in goals if each.goal.path is None]
    others = selection
    if not with_times:
        plain = [each for each in pages if each.revenue is None]
        pages = [each for each in pages if each.revenue is not None]
        views = np.zeros(0, np.int64)
        if plain:
            views = tally_parts(selection, Dimension.PATH, with_durations=False)[VIEWS]
        for each in plain:
            # Texts that are newer than this mask have no views.
            codes = np.flatnonzero(each.reaching[: len(views)])
            each.counted.append(CountedConversions(int(views[codes].sum())))
        others = _add_cached_events(selection, events)
    for scanned, some in ((selection, pages), (others, events)):
        search = search_of(some, selection.snapshot)
        _add_parts(scanned, search, some, with_times=with_times)
    return others


def _add_cached_events(selection: Selection, goals: Sequence[FoundConversions]) -> Selection:
    """Add the events that reach goals in segments that never change and are in the period.

    Return the selection of all other events.
    """
    covered, others = divide(
        selection.snapshot, selection.period, lambda header: header.event_time_bounds
    )
    for segment in covered.segments if goals else ():
        of_segment = evolve(selection, snapshot=covered.with_segments([segment]), period=ALWAYS)
        for each in goals:
            count = partial(_count_events, of_segment, each)
            each.counted.append(of_segment.snapshot.cached(each.goal, count))
    return evolve(selection, snapshot=others)


def _count_events(selection: Selection, goal: FoundConversions) -> CountedConversions:
    """Return the events in the period that reach a goal."""
    found = FoundConversions(goal.goal, goal.reaching, goal.revenue)
    search = search_of([found], selection.snapshot)
    _add_parts(selection, search, [found], with_times=False)
    add_loose_events(selection, [found], without_view=True, with_times=False)
    codes = [np.repeat(each.amounts, each.times) for each in found.counted]
    amounts = np.concatenate([np.zeros(0, np.uint32), *codes])
    return CountedConversions.of(sum(each.count for each in found.counted), amounts)


def _add_parts(
    selection: Selection, search: GoalSearch, goals: Sequence[FoundConversions], *, with_times: bool
) -> None:
    """Add the selected views that reach goals, and the events that are stored with their view.

    `search` looks for the goals. Times are slow to read.
    """
    period = selection.period
    if not goals:
        return
    amounts = _loose_amounts(selection, goals)
    for part in selection.snapshot.leaves():
        selection.cancellation.check()
        if period.is_outside(*part.time_bounds) and period.is_outside(*part.event_time_bounds):
            continue
        rows = [search.views_in(part, place).astype(np.intp) for place in range(len(goals))]
        is_selected = selection.filter.mask_of(part, np.concatenate(rows), selection.snapshot)
        _add_part(
            part,
            np.split(is_selected, np.cumsum([len(each) for each in rows[:-1]])),
            search,
            goals,
            period=selection.period,
            amounts=amounts,
            with_times=with_times,
        )


def _add_part(
    part: ViewColumns,
    are_selected: Sequence[Mask],
    search: GoalSearch,
    goals: Sequence[FoundConversions],
    *,
    period: Period,
    amounts: "_LooseAmounts",
    with_times: bool,
) -> None:
    """Add the conversions of a period by some views of a part and by their events.

    `are_selected` has for each goal which they are of `GoalSearch.views_in`.
    """
    own = part.own
    are_inside = _is_inside(part, period)
    for place, (each, is_selected) in enumerate(zip(goals, are_selected, strict=True)):
        if are_inside and each.revenue is None and not with_times:
            each.counted.append(CountedConversions(int(np.count_nonzero(is_selected))))
            continue
        events = search.events_in(part, place)
        if events is None:
            views = search.views_in(part, place)[is_selected].astype(np.intp)
            if not period.contains(*part.time_bounds):
                views = views[period.mask(part.time_ms[views])]
            _add_views(part, views, each, amounts, with_times=with_times)
        else:
            rows = events[is_selected].astype(np.intp)
            if not period.contains(*part.event_time_bounds):
                rows = rows[period.mask(own.time_ms[rows])]
            _add_events(own, rows, each, with_times=with_times)


def _is_inside(part: ViewColumns, period: Period) -> bool:
    """Return whether all views and events of a part are in a period."""
    # Times of gathered views are slow to read.
    return period == ALWAYS or (
        period.contains(*part.time_bounds) and period.contains(*part.event_time_bounds)
    )


def _add_visits(
    selection: Selection,
    search: GoalSearch,
    goals: Sequence[FoundConversions],
    buckets: Buckets | None,
) -> NDArray[np.int64]:
    """Add the conversions in the period of the visits that have a view which the filters match.

    Return what `count_reached` does of these visits.
    """
    counts, period = no_counts(search, buckets), selection.period
    can_count = buckets is None and all(each.revenue is None for each in goals)
    counted: list[GoalsInVisits] = []
    for visits in whole_visits(selection).groups(ALWAYS):
        part = visits.part
        if can_count and _is_inside(part, period):
            counted.append(search.in_visits(visits))
            counts[0] += len(visits)
            continue
        rows = (search.views_in(part, place).astype(np.intp) for place in range(len(goals)))
        # All events of the visits are in the part.
        _add_part(
            part,
            [visits.chosen.of(LOOPS.first_rows(visits.columns.offsets, each)) for each in rows],
            search,
            goals,
            period=period,
            amounts=_NO_AMOUNTS,
            with_times=buckets is not None,
        )
        add_counts(visits, search.have_reached(visits), period, buckets, counts)
    if counted:
        conversions, reached = LOOPS.count_goals(counted, len(goals))
        counts[1:, 0] += reached
        for each, count in zip(goals, conversions.tolist(), strict=True):
            each.counted.append(CountedConversions(count))
    return counts


@frozen(eq=False)
class _LooseAmounts:
    """The amounts in events that are not stored with their view, by the number of the view."""

    codes: NDArray[Any]
    views: Numbers


_NO_AMOUNTS: Final = _LooseAmounts(np.zeros(0, np.uint32), NO_NUMBERS)


def _loose_amounts(selection: Selection, goals: Sequence[FoundConversions]) -> _LooseAmounts:
    """Return the amounts of goals that are pages."""
    codes, views = np.zeros(0, np.uint32), NO_NUMBERS
    revenues = [
        each.revenue for each in goals if each.revenue is not None and each.goal.path is not None
    ]
    for events in loose_events(selection.snapshot, selection.cancellation) if revenues else ():
        rows = np.flatnonzero(_any(revenues).take(events.property))
        codes = np.concatenate([codes, events.property[rows]])
        views = np.concatenate([views, events.view[rows].astype(np.int64)])
    order = np.argsort(views, kind="stable")
    return _LooseAmounts(codes[order], views[order])


def _add_views(
    part: ViewColumns,
    rows: NDArray[np.intp],
    goal: FoundConversions,
    loose: _LooseAmounts,
    *,
    with_times: bool,
) -> None:
    """Add views of a part that reached a goal, and the amounts in the events of these views."""
    codes, views = np.zeros(0, np.uint32), rows[:0]
    if goal.revenue is not None and len(rows):
        has_reached = np.zeros(len(part), np.bool_)
        has_reached[rows] = True
        own = part.own
        is_amount = goal.revenue.take(own.property) & has_reached.take(own.view.astype(np.intp))
        found, places = find_ascending(part, loose.views)
        is_loose_amount = has_reached[places] & goal.revenue.take(loose.codes[found])
        codes = np.concatenate([own.property[is_amount], loose.codes[found[is_loose_amount]]])
        views = np.concatenate([own.view[is_amount].astype(np.intp), places[is_loose_amount]])
    goal.add(part, rows, codes, views, with_times=with_times)


def _add_events(
    events: EventColumns, rows: NDArray[np.intp], goal: FoundConversions, *, with_times: bool
) -> None:
    """Add events that reached a goal, by rows of which the events have one or more."""
    numbers = events.event[rows]
    # The rows of an event follow each other.
    once = rows[np.concatenate(([True], numbers[1:] != numbers[:-1]))] if len(rows) else rows
    amounts = rows[:0]
    if goal.revenue is not None and len(rows):
        amounts = LOOPS.match([events.property], [CodeTable(goal.revenue)]).rows
        amounts = amounts[np.isin(events.event[amounts], numbers)]
    codes = events.property[amounts]
    goal.add(events, once, codes, amounts, with_times=with_times)


def add_loose_events(
    selection: Selection,
    goals: Sequence[FoundConversions],
    *,
    without_view: bool,
    with_times: bool,
) -> set[DayGap]:
    """Add the selected events that reach goals and are not stored with their view; return the gaps.

    `without_view` selects events that have no view.
    """
    goals = [each for each in goals if each.goal.path is None]
    if not goals:
        return set()
    selected, gaps = _event_filter(selection, without_view=without_view).loose(
        _loose_events(selection), _wanted_properties(goals)
    )
    for each in goals:
        rows = np.flatnonzero(each.reaching.take(selected.property))
        _add_events(selected, rows, each, with_times=with_times)
    return gaps


def _gaps_of_loose_events(selection: Selection, goals: Sequence[FoundConversions]) -> set[DayGap]:
    """Return the gaps of `add_loose_events` under a filter."""
    goals = [each for each in goals if each.goal.path is None]
    if not goals:
        return set()
    event_filter = _event_filter(selection, without_view=False)
    return event_filter.gaps(_loose_events(selection), _wanted_properties(goals))


def _event_filter(selection: Selection, *, without_view: bool) -> EventFilter:
    return EventFilter(
        selection.snapshot,
        selection.period,
        selection.filter,
        without_view,
        selection.cancellation,
    )


def _loose_events(selection: Selection) -> list[EventColumns]:
    return list(loose_events(selection.snapshot, selection.cancellation))


def _wanted_properties(goals: Sequence[FoundConversions]) -> Mask:
    """Return the properties that reach goals or are amounts."""
    revenues = [each.revenue for each in goals if each.revenue is not None]
    return _any([*(each.reaching for each in goals), *revenues])
