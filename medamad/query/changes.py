"""The report of what changed between two periods: the parts of a difference, and pairs of these."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, Self, TypeAlias

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest
from medamad.domain.goals import Goal
from medamad.domain.zones import DAY_MS
from medamad.query.chance import (
    LEVEL_OF_PARTS,
    LEVEL_OF_PARTS_ALONE,
    LEVEL_OF_TOTAL,
    MAX_WEEKS,
    MIN_TESTED,
    Chance,
    Verdicts,
    dispersions,
)
from medamad.query.change_counts import (
    BEFORE,
    DIMENSIONS,
    METRICS,
    NOW,
    OF_GOAL,
    REVENUE,
    SHARED,
    VISITORS,
    WEEKS,
    PartCounter,
    Sums,
    Table,
    lacks_days,
)
from medamad.query.period import BOUNDS, Period, Span, parse_period, previous_period
from medamad.query.reader import Reader
from medamad.query.request import NO_GAPS, Gaps, Query, Result
from medamad.query.rows import page_of_rows

Change: TypeAlias = dict[str, Any]

PARTS: Final = 5
"""How many parts of each dimension are listed unless a limit is given."""
COMPARED: Final = ("compare_start", "compare_end")
"""The parameters of the period to compare with."""
MAX_PAIRED: Final = 3
"""For so many changes, the part of another dimension that explains them best is looked for."""
MOST_SAID: Final = 2
"""For so many parts there is a sentence of what changed."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WEEK_MS: Final = 7 * DAY_MS


@frozen(kw_only=True)
class ChangesOptions:
    """The metric, the goal that it may need, and the period to compare with, if it is given.

    Conversions and revenue are those of `goal`. With another metric, the goal is one more
    dimension. `limit` is the number of parts of each dimension.
    """

    now_ms: int
    metric: str = METRICS[0]
    goal: Goal | None = None
    compared: Period | None = None
    limit: int = PARTS


def parse_compared(start: str | None, end: str | None) -> Period | None:
    """Return the period to compare with, None if none is given. Raises BadRequest."""
    period = parse_period(start, end, COMPARED)
    missing = [name for name, text in zip(COMPARED, (start, end), strict=True) if text is None]
    if len(missing) == 1:
        raise BadRequest(f"{missing[0]}: required, since the other bound is given")
    return None if missing else period


def changes(reader: Reader, query: Query, *, options: ChangesOptions) -> Result[Change]:
    """Return the difference of a figure between two periods, split by each of some dimensions.

    Each dimension has the parts with the largest differences, and the sums of all others. `pairs`
    has, for the parts that deviate most from their share of the difference, the part of another
    dimension that explains this best. Where `by_chance` is true, chance explains a difference; None
    where that is unknown.

    Raises BadRequest for periods that cannot be compared, and without the goal of conversions.
    """
    goal = _goal_of_metric(options)
    before, now, shared, ratio = _periods_of(query, options)
    weeks = _earlier_weeks(before, now, reader.time_bounds())
    counter = PartCounter.over(
        reader, query, options.metric, options.goal, (before, now, *weeks.values())
    )
    counted = [counter.count(span) for span in (before, now, shared)]
    gaps = counted[BEFORE].gaps | counted[NOW].gaps
    known = []
    for week, span in weeks.items():
        of_week = counter.count(span)
        if not lacks_days(of_week.gaps):
            counted.append(of_week)
            known.append(week)
    counter = counter.knowing_amounts(counted)
    tables = counter.tables(counted)
    totals = Sums.of_fullest([table.sums for table in tables])
    # A dimension may be unknown for a day under a filter. Its parts would not add up to the totals.
    counts = totals.counts[:WEEKS, 0]
    tables = [t for t in tables if np.array_equal(t.sums.counts[:WEEKS].sum(axis=1), counts)]
    judge = _Judge.of(Chance(ratio, len(known)), np.array(known), totals, tables)
    is_certain = not lacks_days(gaps)
    pairs, gaps_of_pairs = (
        _pairs(counter, judge, (before, now, shared)) if is_certain else ([], NO_GAPS)
    )
    start, end = (_written(ms, before.zone) for ms in (before.start_ms, before.end_ms))
    content = {
        "metric": options.metric,
        **({"currency": goal.currency} if goal and options.metric == REVENUE else {}),
        "compared_with": {"start": start, "end": end},
        "earlier_weeks": len(known),
        **counter.difference(totals.figures[:, 0]),
        "by_chance": judge.on_totals.by_chance(0) if is_certain else None,
        "dimensions": [
            _listed(counter, table, verdicts if is_certain else None, options.limit)
            for table, verdicts in zip(tables, judge.on_parts, strict=True)
        ],
        "pairs": pairs,
    }
    return Result(content, gaps | gaps_of_pairs)


def _goal_of_metric(options: ChangesOptions) -> Goal | None:
    """Return the goal of conversions or revenue, None for another metric. Raises BadRequest."""
    goal = options.goal
    if options.metric not in OF_GOAL:
        return None
    if goal is None:
        raise BadRequest("conversions: required with this metric, the id of a goal")
    if options.metric == REVENUE and goal.revenue is None:
        raise BadRequest("conversions: expected a goal with revenue")
    return goal


# Periods


def _periods_of(query: Query, options: ChangesOptions) -> tuple[Span, Span, Span | None, float]:
    """Return the period compared with, the period, and what they share, if they overlap.

    And how long the period is relative to the other, apart from what they share, as far as it is
    over. Without a period to compare with, that is as much of the previous period of the same
    length. Raises BadRequest.
    """
    now = Span.of(query.period, BOUNDS)
    length_ms = min(now.end_ms, options.now_ms) - now.start_ms + 1
    if length_ms <= 0:
        raise BadRequest("start: expected a date-time that is not in the future")
    if options.compared is None:
        before = Span.of(previous_period(now), BOUNDS)
        before = evolve(before, end_ms=before.start_ms + length_ms - 1)
    else:
        before = Span.of(options.compared, COMPARED)
    if before.is_outside(now.start_ms, now.end_ms):
        return before, now, None, length_ms / before.length_ms
    # In the order of their starts.
    first, last = sorted((before, now), key=lambda span: span.start_ms)
    if first.start_ms == last.start_ms or first.end_ms >= last.end_ms:
        raise BadRequest(f"{COMPARED[0]}: expected a period of which neither contains the other")
    shared = evolve(last, end_ms=first.end_ms)
    unshared_ms = length_ms - min(shared.length_ms, length_ms - 1)
    return before, now, shared, unshared_ms / (before.length_ms - shared.length_ms)


def _earlier_weeks(before: Span, now: Span, views_ms: tuple[int, int]) -> dict[int, Span]:
    """Return the latest weeks that are before both periods, but not before the first view.

    By their distance from the period. Of a shorter period, the same days and hours of each week.
    """
    length_ms = min(now.length_ms, _WEEK_MS)
    nearest = -((min(before.start_ms, now.start_ms) - now.start_ms - length_ms) // _WEEK_MS)
    starts_ms = {
        -week: now.start_ms - week * _WEEK_MS for week in range(nearest, nearest + MAX_WEEKS)
    }
    return {
        week: Span(start_ms, start_ms + length_ms - 1, now.zone)
        for week, start_ms in starts_ms.items()
        if views_ms[0] <= start_ms and views_ms[0] <= views_ms[1]
    }


def _written(time_ms: int, zone: tzinfo) -> str:
    precision = "milliseconds" if time_ms % 1000 else "seconds"
    try:
        moment = (_EPOCH + timedelta(milliseconds=time_ms)).astimezone(zone)
        return moment.isoformat(timespec=precision)
    except OverflowError:
        raise BadRequest("start: expected a previous period in the years 0001 to 9999") from None


# Differences


@frozen(eq=False)
class _Judge:
    """What chance explains of the differences in some tables."""

    chance: Chance
    tables: Sequence[Table]
    totals: Sums
    """The sums of all parts, in one column."""
    dispersions: Sequence[NDArray[np.float64]]
    on_totals: Verdicts
    on_parts: Sequence[Verdicts]
    """Those on the parts of each table."""

    @classmethod
    def of(
        cls, chance: Chance, weeks: NDArray[np.intp], totals: Sums, tables: Sequence[Table]
    ) -> Self:
        """Return the judge of tables, of which each adds up to the totals."""

        def dispersion(sums: Sums) -> NDArray[np.float64]:
            return dispersions(weeks, sums.values[WEEKS:], sums.squares[WEEKS:])

        on_totals = chance.verdicts(totals.compared(), dispersion(totals), level=LEVEL_OF_TOTAL)
        level = LEVEL_OF_PARTS if on_totals.are_changes[0] else LEVEL_OF_PARTS_ALONE
        compared = [table.sums.compared() for table in tables]
        tested = sum(int((each.counts >= MIN_TESTED).sum()) for each in compared)
        found = [dispersion(table.sums) for table in tables]
        on_parts = [
            chance.verdicts(each, of_parts, level=level / max(tested, 1))
            for each, of_parts in zip(compared, found, strict=True)
        ]
        return cls(chance, tables, totals, found, on_totals, on_parts)

    def largest_changes(self) -> Iterator[tuple[Table, int, float]]:
        """Return the changes that deviate most from their share of the total difference.

        By table and place, with their dispersions. A part that has nearly all visits has nearly all
        of the difference, and explains nothing. None of a goal, which is no text of a first view.
        """
        before, now = self.totals.values[:SHARED, 0].tolist()
        rate = (now - before) / ((before + now) or 1)
        found = [
            (
                -abs(float(values[NOW] - values[BEFORE] - rate * values.sum())),
                place,
                table.name_of(part),
                part,
            )
            for place, (table, verdicts) in enumerate(zip(self.tables, self.on_parts, strict=True))
            if table.dimension is not None
            for part in np.flatnonzero(verdicts.are_changes & ~table.has_all).tolist()
            for values in [table.sums.values[:SHARED, part]]
        ]
        for _, place, _, part in sorted(found)[:MAX_PAIRED]:
            yield self.tables[place], part, float(self.dispersions[place][part])


def _listed(counter: PartCounter, table: Table, verdicts: Verdicts | None, limit: int) -> Change:
    """Return the parts of a dimension with the largest differences, and the sums of all others."""
    two = table.sums.figures[:SHARED]
    seen = np.flatnonzero(table.sums.counts[:SHARED].sum(axis=0))
    size = int(table.numbers[-1]) + 1 if len(table.numbers) else 0
    by_number = np.zeros((2, size), two.dtype)
    by_number[:, table.numbers] = np.abs(two[NOW] - two[BEFORE]), two.sum(axis=0)
    shown, names = page_of_rows(table.numbers[seen], list(by_number), table.names, slice(0, limit))
    parts = np.searchsorted(table.numbers, shown).tolist()
    return {
        "dimension": table.name,
        "parts": [
            {
                "name": name,
                **counter.difference(two[:, part]),
                "by_chance": None if verdicts is None else verdicts.by_chance(part),
            }
            for name, part in zip(names, parts, strict=True)
        ],
        "others": {
            "parts": len(seen) - len(parts),
            **counter.difference(two.sum(axis=1) - two[:, parts].sum(axis=1)),
        },
    }


def _pairs(
    counter: PartCounter, judge: _Judge, periods: Sequence[Span | None]
) -> tuple[list[Change], Gaps]:
    """Return the pairs of parts that explain the changes best, as `largest_changes` has these."""
    if counter.metric == VISITORS:
        return [], NO_GAPS
    largest = list(judge.largest_changes())
    others = [
        [each for each in DIMENSIONS if each[1] is not table.dimension] for table, *_ in largest
    ]
    groupings = [
        counter.grouping(dimension, table.codes_of(part))
        for (table, part, _), splits in zip(largest, others, strict=True)
        for _, dimension, _ in splits
    ]
    counted, gaps = [], NO_GAPS
    for span in periods if groupings else ():
        found_here, more = counter.find_in(span, groupings)
        counted.append(found_here)
        gaps |= more
    if lacks_days(gaps):
        return [], gaps
    of_groupings = zip(*counted, strict=True)
    found: dict[frozenset[tuple[str, str]], Change] = {}
    for (table, part, dispersion), splits in zip(largest, others, strict=True):
        tables = [counter.table(*split, next(of_groupings)) for split in splits]
        best = _best_piece(judge.chance, tables, table.sums.of_part(part), dispersion)
        if best is not None:
            parts = ((table.name, table.name_of(part)), (best[0].name, best[0].name_of(best[1])))
            found.setdefault(
                frozenset(parts),
                {
                    "parts": [{"dimension": each, "name": name} for each, name in parts],
                    **counter.difference(best[0].sums.figures[:, best[1]]),
                },
            )
    return list(found.values()), gaps


def _best_piece(
    chance: Chance, tables: Sequence[Table], part_sums: Sums, dispersion: float
) -> tuple[Table, int] | None:
    """Return the piece of a part that exceeds its share of the part's change by most, if any does.

    `tables` split the part, which has `part_sums`, by each of the other dimensions.
    """
    sums = part_sums.beside([table.sums for table in tables])
    excess = chance.exceed_share(sums.compared(), 0, dispersion)[1:]
    if excess.max(initial=0) <= 0:
        return None
    pieces = [(table, part) for table in tables for part in range(len(table.numbers))]
    # Of equal ones the first by dimension and name, whatever the codes are.
    largest = [pieces[number] for number in np.flatnonzero(excess == excess.max()).tolist()]
    return min(largest, key=lambda piece: (tables.index(piece[0]), piece[0].name_of(piece[1])))


# What to say


def largest_parts(found: Change) -> list[tuple[Sequence[Any], Change]]:
    """Return the changes that explain the total best, each with the parts that it is of.

    Only what chance does not explain. Pairs come first; of one that is as large as one of its
    parts, that part is left. Other parts are of one dimension, so that no visit is in two of them.
    A part that has all there is explains nothing.
    """
    counts = {
        (dimension["dimension"], part["name"]): part
        for dimension in found["dimensions"]
        for part in dimension["parts"]
    }
    pairs = [(_fewest_parts(pair, counts), pair) for pair in found["pairs"]]
    named = {_key(part) for parts, _ in pairs for part in parts}
    single = [
        ([{"dimension": key[0], "name": key[1]}], part)
        for key, part in counts.items()
        if part["by_chance"] is False and key not in named and not _is_same(part, found)
    ]
    single.sort(key=lambda each: -abs(each[1]["difference"]))
    dimensions = [parts[0]["dimension"] for parts, _ in (*pairs, *single) if len(parts) == 1]
    single = [each for each in single if each[0][0]["dimension"] == dimensions[0]]
    return [*pairs, *single][:MOST_SAID]


def _fewest_parts(pair: Change, counts: Mapping[tuple[str, str], Change]) -> Sequence[Any]:
    """Return the parts of a pair, or the one that is as large as the pair."""
    for part in pair["parts"]:
        if (count := counts.get(_key(part))) and _is_same(count, pair):
            return [part]
    parts: Sequence[Any] = pair["parts"]
    return parts


def _key(part: Change) -> tuple[str, str]:
    return part["dimension"], part["name"]


def _is_same(one: Change, other: Change) -> bool:
    return (one["before"], one["now"]) == (other["before"], other["now"])
