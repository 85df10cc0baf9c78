"""The reports of goals and funnels: conversions, revenue, and the steps of a funnel."""

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Context, Decimal
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import evolve, field, frozen

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import BadRequest
from medamad.domain.goals import EXACT, Definitions, Funnel, Goal, amount_of
from medamad.domain.zones import zone_named
from medamad.query.buckets import MAX_BUCKETS, Buckets, make_buckets
from medamad.query.period import Period
from medamad.query.reader import Reader, Selected, series_bounds
from medamad.query.request import Query, Result
from medamad.query.rows import fractions
from medamad.query.sums import Amounts

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
    reader: Reader,
    query: Query,
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
    counter = _GoalCounter(reader, query, goals)
    counted = counter.figures(period, None)
    gaps = counted.gaps
    rows = [
        {"id": goal.id, "name": goal.name, **figures}
        for goal, (figures,) in zip(goals, counted.content, strict=True)
    ]
    if options.interval is not None:
        start_ms, end_ms = series_bounds(reader, period, options.now_ms)
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
    return Result(rows[query.row_slice], gaps | counter.selected.left_out)


def preview_of_goal(reader: Reader, query: Query, *, goal: Goal) -> Result[Figures]:
    """Return the figures of a goal that need not be defined, as `goal_figures` has them."""
    counter = _GoalCounter(reader, query, [goal])
    counted = counter.figures(query.period, None)
    ((figures,),) = counted.content
    return Result(figures, counted.gaps | counter.selected.left_out)


@frozen(eq=False)
class _GoalCounter:
    """Counts the conversions of goals, and the visits that reached them."""

    reader: Reader
    query: Query
    goals: Sequence[Goal]
    selected: Selected = field(init=False)

    @selected.default
    def _select(self) -> Selected:
        return self.reader.select(self.query)

    def figures(self, period: Period, buckets: Buckets | None) -> Result[list[list[Figures]]]:
        """Return for each goal the figures of each bucket, or without buckets those of all."""
        selected = self.selected.during(period)
        size = 1 if buckets is None else len(buckets.dates)
        reached = selected.conversions(self.goals, buckets)
        gaps = reached.gaps
        columns: list[dict[str, Sequence[Any]]] = []
        for found in reached.conversions:
            column: dict[str, Sequence[Any]] = {"conversions": found.counts.tolist()}
            if found.amounts is not None:
                column["revenue"] = self._revenue(found.goal, found.amounts, size)
            columns.append(column)
        if reached.visits is not None:
            total = reached.visits[0]
            if self.query.goals:
                others = self.reader.select(self.query.without_goals)
                total = others.during(period).count_visits(buckets)
            for column, visits in zip(columns, reached.visits[1:], strict=True):
                column["visits"] = visits.tolist()
                column["visits_percentage"] = fractions(visits, total).tolist()
            gaps |= selected.visit_gaps
        figures: list[list[Figures]] = [
            [
                {name: column[name][place] for name in _ORDER if name in column}
                for place in range(size)
            ]
            for column in columns
        ]
        return Result(figures, gaps)

    def _revenue(self, goal: Goal, found: Amounts, size: int) -> list[Figures]:
        """Return the revenue of each bucket."""
        texts = self.reader.texts(Dimension.PROPERTY)
        different, places = np.unique(found.codes, return_inverse=True)
        amounts = [amount_of(split_property(texts[code])[1]) for code in different.tolist()]
        by_bucket: list[list[tuple[Decimal, int]]] = [[] for _ in range(size)]
        keys, groups = np.unique(found.buckets * len(different) + places, return_inverse=True)
        # Weights are floats, which are exact for these sums.
        counts = np.bincount(groups, found.times, len(keys)).astype(np.int64)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            bucket, place = divmod(key, len(different))
            amount = amounts[place]
            if amount is not None:
                by_bucket[bucket].append((amount, count))
        return [{**revenue_of(pairs), "currency": goal.currency} for pairs in by_bucket]


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
    reader: Reader,
    query: Query,
    *,
    funnel: Funnel,
    definitions: Definitions,
) -> Result[Figures]:
    """Return the id, the name and the steps of a funnel.

    A step has its goal, the visits that reached it after the steps before, and their share of those
    that reached the first.
    """
    goals = [definitions.goal(goal_id) for goal_id in funnel.goals]
    preview = preview_of_funnel(reader, query, goals=goals)
    return evolve(preview, content={"id": funnel.id, "name": funnel.name, **preview.content})


def preview_of_funnel(
    reader: Reader,
    query: Query,
    *,
    goals: Sequence[Goal],
) -> Result[Figures]:
    """Return the steps of a funnel that need not be defined, as `funnel_figures` has them."""
    selected = reader.select(query)
    visits = selected.count_steps(goals)
    shares = fractions(visits, visits[:1])
    steps = [
        {"goal": goal.id, "name": goal.name, "visits": count, "visits_percentage": share}
        for goal, count, share in zip(goals, visits.tolist(), shares.tolist(), strict=True)
    ]
    return Result({"steps": steps}, selected.visit_gaps | selected.left_out)
