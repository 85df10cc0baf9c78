"""The reports of goals and funnels: conversions, revenue, and the steps of a funnel."""

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Context, Decimal
from functools import partial
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import BadRequest
from medamad.domain.goals import EXACT, Definitions, Funnel, Goal, amount_of
from medamad.domain.zones import zone_named
from medamad.lookup.referrers import Sources
from medamad.query.buckets import MAX_BUCKETS, Buckets, make_buckets
from medamad.query.conversions import (
    Conversions,
    add_all,
    add_loose_events,
    add_selected_views,
    search_of,
)
from medamad.query.filters import VIEW_FIELDS, matches_without_view
from medamad.query.goals import GoalSearch, count_steps, goal_mask
from medamad.query.period import Period
from medamad.query.request import PROPERTY_FIELDS, Cancellation, Gap, Gaps, Query, Result
from medamad.query.rows import fractions
from medamad.query.scan import Selection
from medamad.query.selection import select, whole_visits
from medamad.query.series import series_bounds
from medamad.query.visit_reports import count_reached
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
            count[0:1] += sum(each.count for each in found.counted)
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
    ) -> tuple[list[Conversions], NDArray[np.int64] | None, Gaps]:
        """Return the conversions of each goal, and the gaps.

        They are those of the selected visits; where visits are unknown, among the selected views
        and events. And what `count_reached` returns, if the query is with visits.
        """
        query, with_times, with_visits = self.query, buckets is not None, self.query.with_visits
        found = [self._conversions_of(goal) for goal in self.goals]
        search, reached = search_of(found), None
        loose = selection
        without_view = matches_without_view(query) and not query.has_property_filter
        if with_visits and query.filters_on((*VIEW_FIELDS, *PROPERTY_FIELDS)):
            reached = count_reached(selection, buckets, search)
            loose, without_view = whole_visits(selection), False
            for _ in add_selected_views(loose, search, found, with_times, loose):
                pass
        elif selection.filter.matches_all:
            loose = add_all(selection, found, with_times=with_times)
            if with_visits:
                reached = count_reached(selection, buckets, search)
        else:
            adding = partial(add_selected_views, selection, search, found, with_times)
            if with_visits:
                reached = count_reached(selection, buckets, search, adding)
            else:
                for _ in adding(selection):
                    pass
        gaps = add_loose_events(loose, found, without_view=without_view, with_times=with_times)
        for rollup in self.snapshot.rollups:
            if not all(
                selection.period.is_outside(*bounds)
                for bounds in (rollup.time_bounds, rollup.event_time_bounds)
            ):
                gaps.add((Gap.FIGURES, rollup.day))
        return found, reached, Gaps(gaps)

    def _conversions_of(self, goal: Goal) -> Conversions:
        texts, cancellation = self.snapshot.texts, self.cancellation
        revenue = None
        if goal.revenue is not None:
            having_amount = Goal(id="", name="", event=goal.revenue)
            revenue = goal_mask(texts, having_amount, cancellation)
        return Conversions(goal, goal_mask(texts, goal, cancellation), revenue)

    def _revenue(
        self, found: Conversions, codes: NDArray[Any], buckets: NDArray[np.intp], size: int
    ) -> list[Figures]:
        """Return the revenue of each bucket."""
        texts = self.snapshot.texts(Dimension.PROPERTY)
        codes = np.concatenate([codes, *(each.amounts for each in found.counted)])
        times = np.ones(len(codes), np.int64)
        times[len(buckets) :] = np.concatenate([times[:0], *(each.times for each in found.counted)])
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
