"""The reports of goals and funnels: conversions, revenue, and the steps of a funnel."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from functools import partial
from itertools import accumulate
from typing import Any, Final, Self, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import BadRequest
from medamad.domain.goals import EXACT, Definitions, Funnel, Goal, amount_of
from medamad.domain.zones import zone_named
from medamad.lookup.referrers import Sources
from medamad.query.aggregate import count_views_of_parts
from medamad.query.buckets import MAX_BUCKETS, Buckets, make_buckets
from medamad.query.filters import Mask, matches_without_view
from medamad.query.goals import GoalSearch, count_steps, goal_mask
from medamad.query.loops import lookup
from medamad.query.period import ALWAYS, Period
from medamad.query.properties import EventFilter
from medamad.query.request import Cancellation, DayGap, Gap, Gaps, Query, Result
from medamad.query.rows import fractions
from medamad.query.scan import Selection, divide, leaves, loose_events
from medamad.query.selection import select
from medamad.query.series import series_bounds
from medamad.query.view_filter import SelectedViews, find_views
from medamad.query.visit_groups import selecting_views, selecting_views_of
from medamad.query.visit_reports import count_reached
from medamad.storage.segments.parts import EventColumns, ViewColumns
from medamad.storage.segments.snapshot import Snapshot

Figures: TypeAlias = dict[str, Any]

_MEANS: Final = Context(prec=EXACT.prec)
_LEAST_DECIMALS: Final = 2
"""A mean is rounded to this many decimals, or to as many as the sum has."""


@frozen(kw_only=True)
class GoalOptions:
    """What the figures of goals include besides those of the period, as in a summary."""

    now_ms: int
    interval: str | None = None
    timezone: str | None = None


def goal_figures(
    snapshot: Snapshot,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    *,
    goals: Sequence[Goal],
    options: GoalOptions,
) -> Result[list[Figures]]:
    """Return a row for each goal; most conversions first.

    Id, name and conversions; if the query is with visits, those that reached the goal and their
    share of the visits under the other filters; for a goal with revenue, its sum, mean and median.
    With an interval, the same for each bucket. Raises BadRequest for too many buckets.
    """
    period = query.period
    if options.timezone is not None:
        period = evolve(period, zone=zone_named(options.timezone))
    counter = _GoalCounter(snapshot, query, sources, cancellation, goals)
    counted = counter.figures(period, None)
    gaps = counted.gaps
    rows = [
        {"id": goal.id, "name": goal.name, **figures}
        for goal, (figures,) in zip(goals, counted.content, strict=True)
    ]
    if options.interval is not None:
        start_ms, end_ms = series_bounds(snapshot, period, options.now_ms)
        buckets = make_buckets(options.interval, start_ms, end_ms, period.zone)
        if len(buckets.dates) * len(goals) > MAX_BUCKETS:
            raise BadRequest(
                f"interval: expected at most {MAX_BUCKETS} buckets of all goals together,"
                f" not every {options.interval}"
            )
        in_buckets = counter.figures(Period(start_ms, end_ms), buckets)
        gaps |= in_buckets.gaps
        for row, series in zip(rows, in_buckets.content, strict=True):
            row["interval"] = [
                {"date": date, **figures}
                for date, figures in zip(buckets.dates, series, strict=True)
            ]
    rows.sort(key=lambda row: (-row["conversions"], row["name"]))
    return Result(rows[query.row_slice], gaps | counter.selection.left_out)


def preview_of_goal(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation, *, goal: Goal
) -> Result[Figures]:
    """Return the figures of a goal that need not be defined, as `goal_figures` has them."""
    counter = _GoalCounter(snapshot, query, sources, cancellation, [goal])
    counted = counter.figures(query.period, None)
    ((figures,),) = counted.content
    return Result(figures, counted.gaps | counter.selection.left_out)


@define(eq=False)
class _Conversions:
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
    kept: "list[_KeptConversions]" = field(factory=list)
    """Further conversions, whose times do not matter."""


@frozen(eq=False)
class _KeptConversions:
    """The conversions of a goal in segments that never change.

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


@frozen(eq=False)
class _GoalCounter:
    """Counts the conversions of goals, and the visits that reached them."""

    snapshot: Snapshot
    query: Query
    sources: Sources
    cancellation: Cancellation
    goals: Sequence[Goal]
    selection: Selection = field(init=False)

    @selection.default
    def _select(self) -> Selection:
        return select(self.snapshot, self.query, self.sources, self.cancellation)

    def figures(self, period: Period, buckets: Buckets | None) -> Result[list[list[Figures]]]:
        """Return for each goal the figures of each bucket, or without buckets those of all."""
        selection = evolve(self.selection, period=period)
        size = 1 if buckets is None else len(buckets.dates)

        def places_of(time_ms: NDArray[np.int64]) -> NDArray[np.intp]:
            return np.zeros(len(time_ms), np.intp) if buckets is None else buckets.of(time_ms)

        def counted(time_ms: NDArray[np.int64]) -> NDArray[np.int64]:
            return np.bincount(places_of(time_ms), minlength=size).astype(np.int64)

        columns: list[dict[str, Sequence[Any]]] = []
        conversions, reached, gaps = self._find(selection, buckets)
        for found in conversions:
            count = counted(np.concatenate(found.times_ms))
            count[0:1] += sum(kept.count for kept in found.kept)
            column: dict[str, Sequence[Any]] = {"conversions": count.tolist()}
            if found.revenue is not None:
                codes, time_ms = map(np.concatenate, zip(*found.amounts, strict=True))
                column["revenue"] = self._revenue(found, codes, places_of(time_ms), size)
            columns.append(column)
        if reached is not None:
            total = reached[0]
            if self.query.goals:
                (total,) = count_reached(self._without_goals(period), buckets, GoalSearch((), ()))
            for column, visits in zip(columns, reached[1:], strict=True):
                column["visits"] = visits.tolist()
                column["visits_percentage"] = fractions(visits, total).tolist()
            gaps |= selection.visit_gaps
        figures: list[list[Figures]] = [
            [
                {name: column[name][place] for name in _ORDER if name in column}
                for place in range(size)
            ]
            for column in columns
        ]
        return Result(figures, gaps)

    def _without_goals(self, period: Period) -> Selection:
        query = evolve(self.query.without_goals, period=period)
        return select(self.snapshot, query, self.sources, self.cancellation)

    def _find(
        self, selection: Selection, buckets: Buckets | None
    ) -> tuple[list[_Conversions], NDArray[np.int64] | None, Gaps]:
        """Return the conversions of each goal among the selected views and events, and the gaps.

        And what `count_reached` returns, if the query is with visits.
        """
        with_times, with_visits = buckets is not None, self.query.with_visits
        found = [self._conversions_of(goal) for goal in self.goals]
        search, reached = _search_of(found), None
        loose = selection
        if selection.filter.matches_all:
            loose = _add_all(selection, found, with_times=with_times)
            if with_visits:
                reached = count_reached(selection, buckets, search)
        else:
            adding = partial(_selecting_views, selection, search, found, with_times)
            if with_visits:
                reached = count_reached(selection, buckets, search, adding)
            else:
                for _ in adding(selection):
                    pass
        without_view = matches_without_view(self.query) and not self.query.has_property_filter
        gaps = _add_loose_events(loose, found, without_view=without_view, with_times=with_times)
        for rollup in self.snapshot.rollups:
            if not all(
                selection.period.is_outside(*bounds)
                for bounds in (rollup.time_bounds, rollup.event_time_bounds)
            ):
                gaps.add((Gap.FIGURES, rollup.day))
        return found, reached, Gaps(gaps)

    def _conversions_of(self, goal: Goal) -> _Conversions:
        texts, cancellation = self.snapshot.texts, self.cancellation
        revenue = None
        if goal.revenue is not None:
            having_amount = Goal(id="", name="", event=goal.revenue)
            revenue = goal_mask(texts, having_amount, cancellation)
        return _Conversions(goal, goal_mask(texts, goal, cancellation), revenue)

    def _revenue(
        self, found: _Conversions, codes: NDArray[Any], buckets: NDArray[np.intp], size: int
    ) -> list[Figures]:
        """Return the revenue of each bucket."""
        texts = self.snapshot.texts(Dimension.PROPERTY)
        codes = np.concatenate([codes, *(kept.amounts for kept in found.kept)])
        times = np.ones(len(codes), np.int64)
        times[len(buckets) :] = np.concatenate([times[:0], *(kept.times for kept in found.kept)])
        buckets = np.append(buckets, np.zeros(len(codes) - len(buckets), np.intp))
        different, places = np.unique(codes, return_inverse=True)
        amounts = [amount_of(split_property(texts[code])[1]) for code in different.tolist()]
        by_bucket: list[list[tuple[Decimal, int]]] = [[] for _ in range(size)]
        keys, groups = np.unique(buckets * len(different) + places, return_inverse=True)
        # Weights are floats, which are exact for these sums.
        counts = np.bincount(groups, times, len(keys)).astype(np.int64)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            bucket, place = divmod(key, len(different))
            amount = amounts[place]
            if amount is not None:
                by_bucket[bucket].append((amount, count))
        return [{**revenue_of(pairs), "currency": found.goal.currency} for pairs in by_bucket]


_ORDER: Final = ("conversions", "visits", "visits_percentage", "revenue")


def _any(masks: Sequence[Mask]) -> Mask:
    union: Mask = np.logical_or.reduce(masks)
    return union


def _search_of(goals: Sequence[_Conversions]) -> GoalSearch:
    return GoalSearch([each.goal for each in goals], [each.reaching for each in goals])


def _add_all(selection: Selection, goals: Sequence[_Conversions], *, with_times: bool) -> Selection:
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
            each.kept.append(_KeptConversions(int(views[each.reaching[: len(views)]].sum())))
        others = _add_kept_events(selection, events)
    for scanned, some in ((selection, pages), (others, events)):
        for _ in _add_parts(scanned, _search_of(some), some, with_times=with_times):
            pass
    return others


def _add_kept_events(selection: Selection, goals: Sequence[_Conversions]) -> Selection:
    """Add the events that reach goals in segments that never change and are in the period.

    Return the selection of all other events.
    """
    whole, others = divide(
        selection.snapshot, selection.period, lambda header: header.event_time_bounds
    )
    for segment in whole.segments if goals else ():
        alone = Selection(whole.only([segment]), ALWAYS, selection.filter, selection.cancellation)
        for each in goals:

            def count(alone: Selection = alone, each: _Conversions = each) -> _KeptConversions:
                found = [_Conversions(each.goal, each.reaching, each.revenue)]
                for _ in _add_parts(alone, _search_of(found), found, with_times=False):
                    pass
                _add_loose_events(alone, found, without_view=True, with_times=False)
                pieces = found[0].kept
                codes = [np.repeat(piece.amounts, piece.times) for piece in pieces]
                amounts = np.concatenate([np.zeros(0, np.uint32), *codes])
                return _KeptConversions.of(sum(piece.count for piece in pieces), amounts)

            each.kept.append(alone.snapshot.kept(each.goal, count, lambda kept: kept.nbytes))
    return evolve(selection, snapshot=others)


def _add_parts(
    selection: Selection, search: GoalSearch, goals: Sequence[_Conversions], *, with_times: bool
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


def _selecting_views(
    selection: Selection,
    search: GoalSearch,
    goals: Sequence[_Conversions],
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


def _loose_amounts(selection: Selection, goals: Sequence[_Conversions]) -> _LooseAmounts:
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
    goal: _Conversions,
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
    if with_times:
        goal.times_ms.append(part.time_ms[rows])
        goal.amounts.append((codes, part.time_ms[views]))
    else:
        goal.kept.append(_KeptConversions.of(len(rows), codes))


def _add_events(
    events: EventColumns, rows: NDArray[np.intp], goal: _Conversions, *, with_times: bool
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
    if with_times:
        goal.times_ms.append(events.time_ms[once])
        goal.amounts.append((codes, events.time_ms[amounts]))
    else:
        goal.kept.append(_KeptConversions.of(len(once), codes))


def _add_loose_events(
    selection: Selection,
    goals: Sequence[_Conversions],
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


def revenue_of(amounts: Sequence[tuple[Decimal, int]]) -> Figures:
    """Return the exact sum and median of amounts that each occur some times, and their mean.

    The mean is rounded. Without amounts, all are 0.
    """
    if not amounts:
        return dict.fromkeys(("sum", "mean", "median"), Decimal(0))
    ascending = sorted(amounts)
    total = Decimal(0)
    for amount, times in ascending:
        total = EXACT.fma(amount, times, total)
    ends = list(accumulate(times for _, times in ascending))
    count = ends[-1]
    low, high = (
        ascending[bisect_right(ends, place)][0] for place in ((count - 1) // 2, count // 2)
    )
    exponent = total.as_tuple().exponent
    decimals = max(_LEAST_DECIMALS, -exponent if isinstance(exponent, int) else 0)
    mean = _MEANS.quantize(_MEANS.divide(total, Decimal(count)), Decimal(1).scaleb(-decimals))
    median = EXACT.divide(EXACT.add(low, high), Decimal(2))
    # Without exponents: 1E+3 is written as 1000.
    return {
        name: Decimal(format(value, "f"))
        for name, value in (("sum", total), ("mean", mean), ("median", median))
    }


def funnel_figures(
    snapshot: Snapshot,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    *,
    funnel: Funnel,
    definitions: Definitions,
) -> Result[Figures]:
    """Return the id, the name and the steps of a funnel.

    A step has its goal, the visits that reached it after the steps before, and their share of those
    that reached the first.
    """
    goals = [definitions.goal(goal_id) for goal_id in funnel.goals]
    preview = preview_of_funnel(snapshot, query, sources, cancellation, goals=goals)
    return evolve(preview, content={"id": funnel.id, "name": funnel.name, **preview.content})


def preview_of_funnel(
    snapshot: Snapshot,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    *,
    goals: Sequence[Goal],
) -> Result[Figures]:
    """Return the steps of a funnel that need not be defined, as `funnel_figures` has them."""
    selection = select(snapshot, query, sources, cancellation)
    visits = count_steps(selection, goals)
    shares = fractions(visits, visits[:1])
    steps = [
        {"goal": goal.id, "name": goal.name, "visits": count, "visits_percentage": share}
        for goal, count, share in zip(goals, visits.tolist(), shares.tolist(), strict=True)
    ]
    return Result({"steps": steps}, selection.visit_gaps | selection.left_out)
