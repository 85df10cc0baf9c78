"""The conversions of goals, found in the parts of a selection and in events without a view."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.aggregate import count_views_of_parts
from medamad.query.filters import Mask
from medamad.query.goals import GoalSearch
from medamad.query.loops import lookup
from medamad.query.period import ALWAYS
from medamad.query.properties import EventFilter
from medamad.query.request import DayGap
from medamad.query.scan import Selection, divide, leaves, loose_events
from medamad.query.view_filter import SelectedViews, find_views
from medamad.query.visit_groups import selecting_views, selecting_views_of
from medamad.storage.segments.parts import EventColumns, ViewColumns


@define(eq=False)
class Conversions:
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


def _any(masks: Sequence[Mask]) -> Mask:
    """Return which codes match any of some masks; texts that only some of them have are new."""
    size = min(map(len, masks))
    union: Mask = np.logical_or.reduce([mask[:size] for mask in masks])
    return union


def search_of(goals: Sequence[Conversions]) -> GoalSearch:
    """Return the search for the visits that reach some goals."""
    return GoalSearch([each.goal for each in goals], [each.reaching for each in goals])


def add_all(selection: Selection, goals: Sequence[Conversions], *, with_times: bool) -> Selection:
    """Add all views in the period that reach goals, and all events that are stored with their view.

    Return the selection of the events that have yet to be added.
    """
    pages = [each for each in goals if each.goal.path is not None]
    events = [each for each in goals if each.goal.path is None]
    others = selection
    if not with_times:
        plain = [each for each in pages if each.revenue is None]
        pages = [each for each in pages if each.revenue is not None]
        views = count_views_of_parts(selection, Dimension.PATH) if plain else np.zeros(0, np.int64)
        for each in plain:
            # Texts that are newer than this mask have no views.
            codes = np.flatnonzero(each.reaching[: len(views)])
            each.counted.append(CountedConversions(int(views[codes].sum())))
        others = _add_kept_events(selection, events)
    for scanned, some in ((selection, pages), (others, events)):
        for _ in _add_parts(scanned, search_of(some), some, with_times=with_times):
            pass
    return others


def _add_kept_events(selection: Selection, goals: Sequence[Conversions]) -> Selection:
    """Add the events that reach goals in segments that never change and are in the period.

    Return the selection of all other events.
    """
    whole, others = divide(
        selection.snapshot, selection.period, lambda header: header.event_time_bounds
    )
    for segment in whole.segments if goals else ():
        alone = evolve(selection, snapshot=whole.only([segment]), period=ALWAYS)
        for each in goals:
            count = partial(_count_events, alone, each)
            each.counted.append(alone.snapshot.kept(each.goal, count))
    return evolve(selection, snapshot=others)


def _count_events(selection: Selection, goal: Conversions) -> CountedConversions:
    """Return the events in the period that reach a goal."""
    found = Conversions(goal.goal, goal.reaching, goal.revenue)
    for _ in _add_parts(selection, search_of([found]), [found], with_times=False):
        pass
    add_loose_events(selection, [found], without_view=True, with_times=False)
    codes = [np.repeat(each.amounts, each.times) for each in found.counted]
    amounts = np.concatenate([np.zeros(0, np.uint32), *codes])
    return CountedConversions.of(sum(each.count for each in found.counted), amounts)


def _add_parts(
    selection: Selection, search: GoalSearch, goals: Sequence[Conversions], *, with_times: bool
) -> Iterator[ViewColumns]:
    """Add the selected views that reach goals, and the events that are stored with their view.

    Return each part, none of them merged, that may have some, after it has been added. `search`
    looks for the goals. Times are slow to read.
    """
    period = selection.period
    if not goals:
        return
    amounts = _loose_amounts(selection, goals)
    for part in leaves(selection.snapshot.parts):
        selection.cancellation.check()
        of_views, of_events = part.time_bounds, part.event_time_bounds
        if period.is_outside(*of_views) and period.is_outside(*of_events):
            continue
        own = part.own
        rows, of_goals = search.all_rows_in(part)
        is_selected = selection.filter.mask_of(part, rows)
        for place, (each, of_goal) in enumerate(zip(goals, of_goals, strict=True)):
            chosen = is_selected[of_goal]
            _, events = search.rows_in(part, place)
            if events is None:
                views = rows[of_goal][chosen]
                if not period.contains(*of_views):
                    views = views[period.mask(part.time_ms[views])]
                _add_views(part, views, each, amounts, with_times=with_times)
            else:
                events = events[chosen]
                if not period.contains(*of_events):
                    events = events[period.mask(own.time_ms[events])]
                _add_events(own, events, each, with_times=with_times)
        yield part


def add_selected_views(
    selection: Selection,
    search: GoalSearch,
    goals: Sequence[Conversions],
    with_times: bool,
    among: Selection,
) -> Iterator[SelectedViews]:
    """Return what `selecting_views` does; of a selection, add each part before."""
    if among is not selection:
        yield from selecting_views(among)
        return
    for part in _add_parts(selection, search, goals, with_times=with_times):
        selected = selecting_views_of(part, selection)
        if selected is not None:
            yield selected


@frozen(eq=False)
class _LooseAmounts:
    """The amounts in events that are not stored with their view, and the number of the view."""

    codes: NDArray[Any]
    views: NDArray[np.uint64]


def _loose_amounts(selection: Selection, goals: Sequence[Conversions]) -> _LooseAmounts:
    """Return the amounts of goals that are pages."""
    codes, views = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
    revenues = [
        each.revenue for each in goals if each.revenue is not None and each.goal.path is not None
    ]
    for events in loose_events(selection.snapshot, selection.cancellation) if revenues else ():
        rows = np.flatnonzero(_any(revenues).take(events.property))
        codes = np.concatenate([codes, events.property[rows]])
        views = np.concatenate([views, events.view[rows].astype(np.uint64)])
    return _LooseAmounts(codes, views)


def _add_views(
    part: ViewColumns,
    rows: NDArray[np.intp],
    goal: Conversions,
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
        found, places = find_views(part, loose.views)
        is_loose_amount = has_reached[places] & goal.revenue.take(loose.codes[found])
        codes = np.concatenate([own.property[is_amount], loose.codes[found[is_loose_amount]]])
        views = np.concatenate([own.view[is_amount].astype(np.intp), places[is_loose_amount]])
    goal.add(part, rows, codes, views, with_times=with_times)


def _add_events(
    events: EventColumns, rows: NDArray[np.intp], goal: Conversions, *, with_times: bool
) -> None:
    """Add events that reached a goal, by rows of which the events have one or more."""
    numbers = events.event[rows]
    # The rows of an event follow each other.
    once = rows[np.concatenate(([True], numbers[1:] != numbers[:-1]))] if len(rows) else rows
    amounts = rows[:0]
    if goal.revenue is not None and len(rows):
        amounts = np.flatnonzero(lookup(events.property, goal.revenue))
        amounts = amounts[np.isin(events.event[amounts], numbers)]
    codes = events.property[amounts]
    goal.add(events, once, codes, amounts, with_times=with_times)


def add_loose_events(
    selection: Selection,
    goals: Sequence[Conversions],
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
    snapshot, cancellation = selection.snapshot, selection.cancellation
    event_filter = EventFilter(
        snapshot, selection.period, selection.filter, without_view, cancellation
    )
    revenues = [each.revenue for each in goals if each.revenue is not None]
    wanted = _any([*(each.reaching for each in goals), *revenues])
    selected, gaps = event_filter.loose(list(loose_events(snapshot, cancellation)), wanted)
    for each in goals:
        rows = np.flatnonzero(lookup(selected.property, each.reaching))
        _add_events(selected, rows, each, with_times=with_times)
    return gaps
