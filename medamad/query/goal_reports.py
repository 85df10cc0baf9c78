"""The reports of goals and funnels: conversions, revenue, and the steps of a funnel."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import partial
from itertools import accumulate
from typing import Any, Final, TypeAlias

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
from medamad.query.goals import count_steps, goal_mask
from medamad.query.period import ALWAYS, Period
from medamad.query.properties import EventFilter
from medamad.query.request import Cancellation, DayGap, Gap, Gaps, Query, Result
from medamad.query.rows import fractions
from medamad.query.scan import Selection, divide, find_views, leaves, lookup, loose_events
from medamad.query.selection import select
from medamad.query.series import series_bounds
from medamad.query.visit_reports import count_reached
from medamad.storage.segments.parts import EventColumns
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
        conversions, gaps = self._find(selection, with_times=buckets is not None)
        for found in conversions:
            count = counted(np.concatenate(found.times_ms))
            count[0:1] += sum(kept.count for kept in found.kept)
            column: dict[str, Sequence[Any]] = {"conversions": count.tolist()}
            if found.revenue is not None:
                codes, time_ms = map(np.concatenate, zip(*found.amounts, strict=True))
                column["revenue"] = self._revenue(found, codes, places_of(time_ms), size)
            columns.append(column)
        if self.query.with_visits:
            total, *reached = count_reached(selection, buckets, self.goals)
            if self.query.goals:
                (total,) = count_reached(self._without_goals(period), buckets, ())
            for column, visits in zip(columns, reached, strict=True):
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

    def _find(self, selection: Selection, *, with_times: bool) -> tuple[list[_Conversions], Gaps]:
        """Return the conversions of each goal among the selected views and events, and the gaps."""
        texts, cancellation = self.snapshot.texts, self.cancellation
        found = [
            _Conversions(
                goal,
                goal_mask(texts, goal, cancellation),
                None
                if goal.revenue is None
                else goal_mask(texts, Goal(id="", name="", event=goal.revenue), cancellation),
            )
            for goal in self.goals
        ]
        pages = [each for each in found if each.goal.path is not None]
        if not with_times:
            plain = [each for each in pages if each.revenue is None]
            pages = [each for each in pages if each.revenue is not None]
            _count_views(selection, plain)
        _add_views(selection, pages)
        events = [each for each in found if each.goal.path is None]
        without_view = matches_without_view(self.query) and not self.query.has_property_filter
        if selection.filter.matches_all and not with_times:
            selection = _add_kept_events(selection, events)
        gaps = _add_events(selection, events, without_view=without_view, with_times=with_times)
        for rollup in self.snapshot.rollups:
            if not all(
                selection.period.is_outside(*bounds)
                for bounds in (rollup.time_bounds, rollup.event_time_bounds)
            ):
                gaps.add((Gap.FIGURES, rollup.day))
        return found, Gaps(gaps)

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


def _count_views(selection: Selection, goals: Sequence[_Conversions]) -> None:
    """Add the selected views that reach goals without revenue."""
    if not goals:
        return
    if selection.filter.matches_all:
        views = count_views_of_parts(selection, Dimension.PATH)
        for each in goals:
            each.kept.append(_KeptConversions(int(views[each.reaching[: len(views)]].sum())))
        return
    for part in selection.parts_in_period():
        is_whole = selection.period.contains(*part.time_bounds)
        for each in goals:
            rows = np.flatnonzero(lookup(part.codes(Dimension.PATH), each.reaching))
            if not is_whole:
                rows = rows[selection.period.mask(part.time_ms[rows])]
            count = np.count_nonzero(selection.filter.mask_of(part, rows))
            each.kept.append(_KeptConversions(int(count)))


def _add_kept_events(selection: Selection, goals: Sequence[_Conversions]) -> Selection:
    """Add the events that reach goals in segments that never change and are in the period.

    Return the selection of all other events.
    """
    cancellation = selection.cancellation
    whole, others = divide(
        selection.snapshot, selection.period, lambda header: header.event_time_bounds
    )
    for segment in whole.segments if goals else ():
        alone = Selection(whole.only([segment]), ALWAYS, selection.filter, cancellation)
        for each in goals:

            def count(alone: Selection = alone, each: _Conversions = each) -> _KeptConversions:
                found = _Conversions(each.goal, each.reaching, each.revenue)
                _add_events(alone, [found], without_view=True)
                codes = [np.repeat(kept.amounts, kept.times) for kept in found.kept]
                amounts = np.concatenate([np.zeros(0, np.uint32), *codes])
                return _KeptConversions(
                    sum(kept.count for kept in found.kept), *np.unique(amounts, return_counts=True)
                )

            each.kept.append(alone.snapshot.kept(each.goal, count, lambda kept: kept.nbytes))
    return evolve(selection, snapshot=others)


def _add_views(selection: Selection, goals: Sequence[_Conversions]) -> None:
    """Add the selected views that reach goals, and the amounts in the events of these views."""
    if not goals:
        return
    codes, views = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
    revenues = [each.revenue for each in goals if each.revenue is not None]
    if revenues:
        has_amount = _any(revenues)
        for events in loose_events(selection.snapshot, selection.cancellation):
            rows = np.flatnonzero(has_amount.take(events.property))
            codes = np.concatenate([codes, events.property[rows]])
            views = np.concatenate([views, events.view[rows].astype(np.uint64)])
    for selected in selection.views():
        part = selected.part
        rows_of_part, paths = selected.of(np.arange(len(part))), selected.codes(Dimension.PATH)
        for each in goals:
            reached = rows_of_part[each.reaching.take(paths)]
            each.times_ms.append(part.time_ms[reached])
            if each.revenue is None or not len(reached):
                continue
            has_reached = np.zeros(len(part), np.bool_)
            has_reached[reached] = True
            own = part.own
            rows = np.flatnonzero(
                each.revenue.take(own.property) & has_reached.take(own.view.astype(np.intp))
            )
            each.amounts.append((own.property[rows], part.time_ms[own.view[rows]]))
            found, places = find_views(part, views)
            is_amount = has_reached[places] & each.revenue.take(codes[found])
            each.amounts.append((codes[found[is_amount]], part.time_ms[places[is_amount]]))


def _add_events(
    selection: Selection,
    goals: Sequence[_Conversions],
    *,
    without_view: bool,
    with_times: bool = False,
) -> set[DayGap]:
    """Add the selected events that reach goals, and the amounts in them; return the gaps.

    `without_view` selects events that have no view. Times are slow to read.
    """
    if not goals:
        return set()
    snapshot, period, cancellation = selection.snapshot, selection.period, selection.cancellation
    event_filter = EventFilter(snapshot, period, selection.filter, without_view, cancellation)
    reaching = _any([each.reaching for each in goals])
    for part in leaves(snapshot.parts):
        cancellation.check()
        bounds = part.event_time_bounds
        if bounds[0] > bounds[1] or period.is_outside(*bounds):
            continue
        counts = part.event_counts()
        if counts is not None and not reaching.take(counts.codes).any():
            continue
        _add_rows(part.own, partial(event_filter.matching, part), goals, with_times=with_times)
    revenues = [each.revenue for each in goals if each.revenue is not None]
    loose = loose_events(snapshot, cancellation)
    selected, gaps = event_filter.loose(list(loose), _any([reaching, *revenues]))
    _add_rows(selected, None, goals, with_times=with_times)
    return gaps


def _add_rows(
    events: EventColumns,
    matching: Callable[[NDArray[np.intp]], NDArray[np.intp]] | None,
    goals: Sequence[_Conversions],
    *,
    with_times: bool,
) -> None:
    for each in goals:
        rows = np.flatnonzero(lookup(events.property, each.reaching))
        if matching is not None:
            rows = matching(rows)
        if not len(rows):
            continue
        numbers = events.event[rows]
        # The rows of an event follow each other.
        once = rows[np.concatenate(([True], numbers[1:] != numbers[:-1]))]
        amounts = rows[:0]
        if each.revenue is not None:
            amounts = np.flatnonzero(lookup(events.property, each.revenue))
            amounts = amounts[np.isin(events.event[amounts], numbers)]
        codes = events.property[amounts]
        if with_times:
            each.times_ms.append(events.time_ms[once])
            each.amounts.append((codes, events.time_ms[amounts]))
        else:
            each.kept.append(_KeptConversions(len(once), *np.unique(codes, return_counts=True)))


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
