"""The reports of goals and funnels: conversions, revenue, and the steps of a funnel."""

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Context, Decimal
from itertools import accumulate
from typing import Any, Final, TypeAlias

from attrs import evolve

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import BadRequest
from medamad.domain.goals import EXACT, Definitions, Funnel, Goal, amount_of
from medamad.query.buckets import MAX_BUCKETS, Buckets
from medamad.query.reader import Reader, Selected, SeriesOptions
from medamad.query.request import Gaps, Query, Result
from medamad.query.rows import fractions
from medamad.query.sums import AmountCounts

Figures: TypeAlias = dict[str, Any]

_MEANS: Final = Context(prec=EXACT.prec)
_LEAST_DECIMALS: Final = 2
"""A mean is rounded to this many decimals, or to as many as the sum has."""


def goal_figures(
    reader: Reader,
    query: Query,
    *,
    goals: Sequence[Goal],
    options: SeriesOptions,
) -> Result[list[Figures]]:
    """Return a row for each goal; most conversions first.

    Id, name and conversions; if the query is with visits, those that reached the goal and their
    share of the visits under the other filters; for a goal with revenue, its sum, mean and median.
    With an interval, the same for each bucket. Raises BadRequest for too many buckets.
    """
    period = query.period if options.zone is None else evolve(query.period, zone=options.zone)
    selected = reader.select(query)
    counted, gaps = _figures(reader, query, selected.during(period), goals)
    rows = [
        {"id": goal.id, "name": goal.name, **figures}
        for goal, (figures,) in zip(goals, counted, strict=True)
    ]
    of_series = options.buckets(reader, period)
    if of_series is not None:
        bounded, buckets = of_series
        if len(buckets.dates) * len(goals) > MAX_BUCKETS:
            raise BadRequest(
                f"interval: expected at most {MAX_BUCKETS} buckets of all goals together,"
                f" not every {options.interval}"
            )
        counted, more = _figures(reader, query, selected.during(bounded), goals, buckets)
        gaps |= more
        for row, series in zip(rows, counted, strict=True):
            row["interval"] = [
                {"date": date, **figures}
                for date, figures in zip(buckets.dates, series, strict=True)
            ]
    rows.sort(key=lambda row: (-row["conversions"], row["name"]))
    return Result(rows[query.row_slice], gaps | selected.left_out)


def preview_of_goal(reader: Reader, query: Query, *, goal: Goal) -> Result[Figures]:
    """Return the figures of a goal that need not be defined, as `goal_figures` has them."""
    selected = reader.select(query)
    ((figures,),), gaps = _figures(reader, query, selected, [goal])
    return Result(figures, gaps | selected.left_out)


def _figures(
    reader: Reader,
    query: Query,
    selected: Selected,
    goals: Sequence[Goal],
    buckets: Buckets | None = None,
) -> tuple[list[list[Figures]], Gaps]:
    """Return for each goal the figures of each bucket, or without buckets those of all."""
    reached = selected.conversions(goals, buckets)
    gaps = reached.gaps
    columns: list[dict[str, Sequence[Any]]] = [
        {"conversions": found.counts.tolist()} for found in reached.conversions
    ]
    if reached.visits is not None:
        total = reached.visits[0]
        if query.goals:
            others = reader.select(query.without_goals)
            total = others.during(selected.period).count_visits(buckets)
        for column, visits in zip(columns, reached.visits[1:], strict=True):
            column["visits"] = visits.tolist()
            column["visits_percentage"] = fractions(visits, total).tolist()
        gaps |= selected.visit_gaps
    texts = reader.texts(Dimension.PROPERTY)
    for column, found in zip(columns, reached.conversions, strict=True):
        if found.amounts is not None:
            size = len(found.counts)
            column["revenue"] = _revenue(texts, found.amounts, size, found.goal.currency)
    figures = [
        [dict(zip(column, values, strict=True)) for values in zip(*column.values(), strict=True)]
        for column in columns
    ]
    return figures, gaps


def _revenue(
    texts: Sequence[str], found: AmountCounts, size: int, currency: str | None
) -> list[Figures]:
    """Return the revenue of each bucket."""
    codes = found.properties.tolist()
    amounts = {code: amount_of(split_property(texts[code])[1]) for code in set(codes)}
    by_bucket: list[list[tuple[Decimal, int]]] = [[] for _ in range(size)]
    for bucket, code, times in zip(found.groups.tolist(), codes, found.times.tolist(), strict=True):
        amount = amounts[code]
        if amount is not None:
            by_bucket[bucket].append((amount, times))
    return [{**revenue_of(pairs), "currency": currency} for pairs in by_bucket]


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
    reader: Reader, query: Query, *, funnel: Funnel, definitions: Definitions
) -> Result[Figures]:
    """Return the id, the name and the steps of a funnel.

    A step has its goal, the visits that reached it after the steps before, and their share of those
    that reached the first.
    """
    goals = [definitions.goal(goal_id) for goal_id in funnel.goals]
    preview = preview_of_funnel(reader, query, goals=goals)
    return evolve(preview, content={"id": funnel.id, "name": funnel.name, **preview.content})


def preview_of_funnel(reader: Reader, query: Query, *, goals: Sequence[Goal]) -> Result[Figures]:
    """Return the steps of a funnel that need not be defined, as `funnel_figures` has them."""
    selected = reader.select(query)
    visits = selected.count_steps(goals)
    shares = fractions(visits, visits[:1])
    steps = [
        {"goal": goal.id, "name": goal.name, "visits": count, "visits_percentage": share}
        for goal, count, share in zip(goals, visits.tolist(), shares.tolist(), strict=True)
    ]
    return Result({"steps": steps}, selected.visit_gaps | selected.left_out)
