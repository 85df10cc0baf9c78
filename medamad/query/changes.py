"""The report of what changed between two periods: the parts of a difference, and pairs of these."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Final, Self, TypeAlias

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import BadRequest
from medamad.domain.goals import Goal
from medamad.domain.zones import DAY_MS
from medamad.query import rows
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
from medamad.query.filters import GOAL_FIELD
from medamad.query.names import display_names
from medamad.query.period import BOUNDS, Period, parse_period, previous_period
from medamad.query.reader import Reader, Selected
from medamad.query.request import NO_GAPS, Filter, Gap, Gaps, Query, Result
from medamad.query.rows import Naming, page_of_rows
from medamad.query.sums import FirstViewText

Change: TypeAlias = dict[str, Any]
ByCode: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Codes, strictly ascending, and the figure of each."""

VISITS, VISITORS, PAGEVIEWS, CONVERSIONS = METRICS = (
    "visits",
    "visitors",
    "pageviews",
    "conversions",
)
"""The figures of which the parts add up to the whole. The first is the default."""
PARTS: Final = 5
"""How many parts of each dimension are listed unless a limit is given."""
COMPARED: Final = ("compare_start", "compare_end")
"""The parameters of the period to compare with."""
MAX_PAIRED: Final = 3
"""For so many changes, the part of another dimension that explains them best is looked for."""

_DIMENSIONS: Final[Sequence[tuple[str, Dimension, Naming]]] = (
    ("source", Dimension.REFERRER, rows.source),
    ("entry_page", Dimension.PATH, rows.as_stored),
    ("country", Dimension.COUNTRY, rows.country),
    ("device", Dimension.DEVICE, rows.as_stored),
    ("campaign", Dimension.UTM_CAMPAIGN, rows.as_stored),
)
GOAL_PARTS: Final = ("reached", "not reached")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WEEK_MS: Final = 7 * DAY_MS
_BEFORE, _NOW = 0, 1
"""The rows of figures by period; those of earlier weeks follow."""


@frozen(kw_only=True)
class ChangesOptions:
    """The metric, the goal that it may need, and the period to compare with, if it is given.

    Conversions are those of `goal`. With another metric, the goal is one more dimension. `limit` is
    the number of parts of each dimension.
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
    query = _query_of_metric(query, options)
    before, now, ratio = _periods_of(query, options)
    weeks = _earlier_weeks(before, now, reader.time_bounds())
    counter = _Counter.over(reader, query, options, (before, now, *weeks.values()))
    two, earlier = [counter.count(each.period) for each in (before, now)], []
    gaps = two[_BEFORE].gaps | two[_NOW].gaps
    known = []
    for week, span in weeks.items():
        counted = counter.count(span.period)
        if not _lacks_days(counted.gaps):
            earlier.append(counted)
            known.append(week)
    tables = counter.tables([*two, *earlier])
    # A dimension may be unknown for a day under a filter. Its parts would not add up to the whole.
    whole = np.max([table.figures.sum(axis=1) for table in tables], axis=0)
    tables = [t for t in tables if np.array_equal(t.two.sum(axis=1), whole[: len(two)])]
    judge = _Judge.of(Chance(ratio, len(known)), np.array(known), whole, tables)
    is_certain = not _lacks_days(gaps)
    pairs, gaps_of_pairs = _pairs(counter, judge, (before, now)) if is_certain else ([], NO_GAPS)
    start, end = (_written(ms, before.zone) for ms in (before.start_ms, before.end_ms))
    content = {
        "metric": options.metric,
        "compared_with": {"start": start, "end": end},
        "earlier_weeks": len(known),
        **_difference(whole[: len(two)]),
        "by_chance": judge.total.by_chance(0) if is_certain else None,
        "dimensions": [
            _listed(table, verdicts if is_certain else None, options.limit)
            for table, verdicts in zip(tables, judge.parts, strict=True)
        ],
        "pairs": pairs,
    }
    return Result(content, gaps | gaps_of_pairs)


def _query_of_metric(query: Query, options: ChangesOptions) -> Query:
    """Return the query with the filter that finds conversions as visits, if these are wanted."""
    goal = options.goal
    if options.metric != CONVERSIONS:
        return query
    if goal is None:
        raise BadRequest("conversions: required with this metric, the id of a goal")
    if goal in query.goals:
        return query
    reached = Filter(GOAL_FIELD, "eq", (goal.id,), goal)
    return evolve(query, filters=(*query.filters, reached))


# Periods


@frozen
class _Span:
    """A period with both bounds."""

    start_ms: int
    end_ms: int
    zone: tzinfo

    @classmethod
    def of(cls, period: Period, names: tuple[str, str]) -> Self:
        """Return a period. Raises BadRequest naming the bound that it lacks."""
        start_ms, end_ms = period.start_ms, period.end_ms
        if start_ms is None or end_ms is None:
            missing = names[0] if start_ms is None else names[1]
            raise BadRequest(f"{missing}: required, as two periods are compared")
        return cls(start_ms, end_ms, period.zone)

    @property
    def period(self) -> Period:
        """The same period."""
        return Period(self.start_ms, self.end_ms, self.zone)

    @property
    def length_ms(self) -> int:
        """How many milliseconds it has."""
        return self.end_ms - self.start_ms + 1


def _periods_of(query: Query, options: ChangesOptions) -> tuple[_Span, _Span, float]:
    """Return the period compared with, the period, and how long it is relative to the other.

    As far as it is over. Without a period to compare with, that is as much of the previous period
    of the same length. Raises BadRequest.
    """
    now = _Span.of(query.period, BOUNDS)
    length_ms = min(now.end_ms, options.now_ms) - now.start_ms + 1
    if length_ms <= 0:
        raise BadRequest("start: expected a date-time that is not in the future")
    if options.compared is None:
        before = _Span.of(previous_period(now.period), BOUNDS)
        before = evolve(before, end_ms=before.start_ms + length_ms - 1)
    else:
        before = _Span.of(options.compared, COMPARED)
    if not before.period.is_outside(now.start_ms, now.end_ms):
        raise BadRequest(f"{COMPARED[0]}: expected a period that does not overlap the other")
    return before, now, length_ms / before.length_ms


def _earlier_weeks(before: _Span, now: _Span, views_ms: tuple[int, int]) -> dict[int, _Span]:
    """Return the latest weeks that are before both periods, but not before the first view.

    By their distance from the period. Of a shorter period, the same days and hours of each week.
    """
    length_ms = min(now.length_ms, _WEEK_MS)
    nearest = -((min(before.start_ms, now.start_ms) - now.start_ms - length_ms) // _WEEK_MS)
    starts_ms = {
        -week: now.start_ms - week * _WEEK_MS for week in range(nearest, nearest + MAX_WEEKS)
    }
    return {
        week: _Span(start_ms, start_ms + length_ms - 1, now.zone)
        for week, start_ms in starts_ms.items()
        if views_ms[0] <= start_ms and views_ms[0] <= views_ms[1]
    }


def _lacks_days(gaps: Gaps) -> bool:
    return any(gaps.days(gap) for gap in (Gap.FIGURES, Gap.VISITS, Gap.DAMAGED))


def _written(time_ms: int, zone: tzinfo) -> str:
    precision = "milliseconds" if time_ms % 1000 else "seconds"
    try:
        moment = (_EPOCH + timedelta(milliseconds=time_ms)).astimezone(zone)
        return moment.isoformat(timespec=precision)
    except OverflowError:
        raise BadRequest("start: expected a previous period in the years 0001 to 9999") from None


# Figures


@frozen(eq=False)
class _Counted:
    """The figures of a period by the codes of each dimension, and those of a goal's parts."""

    by_code: Sequence[ByCode]
    of_goal: tuple[int, int] | None
    gaps: Gaps


@frozen(eq=False)
class _Table:
    """The figures of the n parts of a dimension by period, shape (periods, n)."""

    name: str
    figures: NDArray[np.int64]
    numbers: NDArray[np.intp]
    """The number of each part's name, ascending."""
    names: Sequence[str]
    dimension: Dimension | None = None
    codes: NDArray[np.int64] = field(factory=lambda: np.zeros(0, np.int64))
    parts: NDArray[np.intp] = field(factory=lambda: np.zeros(0, np.intp))
    """The part that each code belongs to."""

    @property
    def two(self) -> NDArray[np.int64]:
        """The figures of both periods, shape (2, n)."""
        return self.figures[:2]

    @property
    def differences(self) -> NDArray[np.int64]:
        differences: NDArray[np.int64] = self.figures[_NOW] - self.figures[_BEFORE]
        return differences

    def name_of(self, part: int) -> str:
        name: str = self.names[int(self.numbers[part])]
        return name

    def split_by(self, dimension: Dimension, part: int) -> FirstViewText:
        """Return the grouping of a part by another dimension."""
        codes = frozenset(self.codes[self.parts == part].tolist())
        return FirstViewText(dimension, (self.dimension, codes) if self.dimension else None)


@frozen(eq=False)
class _Counter:
    """Counts a metric in periods."""

    reader: Reader
    metric: str
    selected: Selected
    of_page: bool
    """Whether visitors are those of pages."""
    reached: Selected | None
    """What is selected with the goal that is a dimension, if one is."""

    @classmethod
    def over(
        cls, reader: Reader, query: Query, options: ChangesOptions, periods: Sequence[_Span]
    ) -> Self:
        """Return what counts in some periods."""
        # The filters on visits find those of the period that is selected.
        start_ms = min(each.start_ms for each in periods)
        query = evolve(query, period=Period(start_ms, max(each.end_ms for each in periods)))
        reached, goal = None, options.goal
        if goal is not None and options.metric != CONVERSIONS:
            of_goal = Filter(GOAL_FIELD, "eq", (goal.id,), goal)
            reached = reader.select(evolve(query, filters=(*query.filters, of_goal)))
        return cls(reader, options.metric, reader.select(query), query.has_path_filter, reached)

    def count(self, period: Period) -> _Counted:
        """Return the figures of a period."""
        groupings = [FirstViewText(dimension) for _, dimension, _ in _DIMENSIONS]
        by_code, gaps = self.sums(self.selected.during(period), groupings)
        of_goal = None
        if self.reached is not None:
            (of_first,), more = self.sums(self.reached.during(period), groupings[:1])
            reached = int(of_first[1].sum())
            # A visit of a day that is unknown might have reached it.
            if not _lacks_days(more):
                of_goal = reached, int(by_code[0][1].sum()) - reached
            gaps |= more
        return _Counted(by_code, of_goal, gaps)

    def sums(
        self, selected: Selected, groupings: Sequence[FirstViewText]
    ) -> tuple[list[ByCode], Gaps]:
        """Return the codes and figures of each grouping."""
        self.reader.cancellation.check()
        if self.metric != VISITORS:
            of_views = self.metric == PAGEVIEWS
            sums, gaps = selected.visits_by_first_view(groupings, with_means=of_views)
            figures = [(each.codes, each.views if of_views else each.visits) for each in sums]
            return figures, gaps | selected.left_out
        by_code: list[ByCode] = []
        gaps = selected.left_out
        for grouping in groupings:
            tally = selected.tally(grouping.dimension, with_durations=False)
            visitors = tally.visitors(of_page=self.of_page)
            codes = np.flatnonzero(visitors)
            by_code.append((codes, visitors[codes]))
            gaps |= tally.gaps
        return by_code, gaps

    def tables(self, counted: Sequence[_Counted]) -> list[_Table]:
        """Return the figures by dimension, of the parts that either of the first two has."""
        tables = [
            self.table(name, dimension, naming, [each.by_code[place] for each in counted])
            for place, (name, dimension, naming) in enumerate(_DIMENSIONS)
        ]
        of_goal = [each.of_goal for each in counted if each.of_goal is not None]
        if of_goal and len(of_goal) == len(counted):
            figures = np.array(of_goal, np.int64)
            tables.append(_Table("goal", figures, np.arange(2), GOAL_PARTS))
        return tables

    def table(
        self,
        name: str,
        dimension: Dimension,
        naming: Naming,
        counted: Sequence[ByCode],
    ) -> _Table:
        """Return the figures of a dimension."""
        codes = np.unique(np.concatenate([each for each, _ in counted]))
        of_codes = np.zeros((len(counted), len(codes)), np.int64)
        for row, (found, values) in zip(of_codes, counted, strict=True):
            row[np.searchsorted(codes, found)] = values
        reader = self.reader
        numbers, names = codes.astype(np.intp), reader.texts(dimension)
        if naming is not rows.as_stored:
            named, _ = display_names(
                reader.texts, dimension, naming, reader.sources, reader.cancellation
            )
            numbers, names = named.numbers_of(numbers), named.names
        numbers, parts = np.unique(numbers, return_inverse=True)
        figures = np.zeros((len(numbers), len(counted)), np.int64)
        np.add.at(figures, parts, of_codes.T)
        figures = figures.T
        return _Table(name, figures, numbers, names, dimension, codes, parts)


# Differences


@frozen(eq=False)
class _Judge:
    """What chance explains of the differences in some tables."""

    chance: Chance
    tables: Sequence[_Table]
    whole: NDArray[np.int64]
    """The figures of both periods, shape (2,)."""
    dispersions: Sequence[NDArray[np.float64]]
    total: Verdicts
    parts: Sequence[Verdicts]
    """Those on the parts of each table."""

    @classmethod
    def of(
        cls,
        chance: Chance,
        weeks: NDArray[np.intp],
        whole: NDArray[np.int64],
        tables: Sequence[_Table],
    ) -> Self:
        """Return the judge of tables whose whole is that of each period."""
        of_total = dispersions(weeks, whole[2:, np.newaxis])
        total = chance.verdicts(whole[:1], whole[1:2], of_total, level=LEVEL_OF_TOTAL)
        level = LEVEL_OF_PARTS if total.are_changes[0] else LEVEL_OF_PARTS_ALONE
        tested = sum(int((table.two.sum(axis=0) >= MIN_TESTED).sum()) for table in tables)
        found = [dispersions(weeks, table.figures[2:]) for table in tables]
        parts = [
            chance.verdicts(
                table.two[_BEFORE], table.two[_NOW], of_parts, level=level / max(tested, 1)
            )
            for table, of_parts in zip(tables, found, strict=True)
        ]
        return cls(chance, tables, whole[:2], found, total, parts)

    def largest_changes(self) -> Iterator[tuple[_Table, int, float]]:
        """Return the changes that deviate most from their share of the whole's difference.

        By table and place, with their dispersions. A part that has nearly all visits has nearly all
        of the difference, and explains nothing. None of a goal, which is no text of a first view.
        """
        before, now = self.whole.tolist()
        rate = (now - before) / max(before + now, 1)
        found = [
            (
                -abs(int(table.differences[part]) - rate * int(table.two[:, part].sum())),
                place,
                table.name_of(part),
                part,
            )
            for place, (table, verdicts) in enumerate(zip(self.tables, self.parts, strict=True))
            if table.dimension is not None
            for part in np.flatnonzero(verdicts.are_changes).tolist()
        ]
        for _, place, _, part in sorted(found)[:MAX_PAIRED]:
            yield self.tables[place], part, float(self.dispersions[place][part])


def _difference(two: NDArray[np.int64]) -> Change:
    before, now = two.tolist()
    return {"before": before, "now": now, "difference": now - before}


def _listed(table: _Table, verdicts: Verdicts | None, limit: int) -> Change:
    """Return the parts of a dimension with the largest differences, and the sums of all others."""
    two = table.two
    sizes = two.sum(axis=0)
    seen = np.flatnonzero(sizes)
    size = int(table.numbers[-1]) + 1 if len(table.numbers) else 0
    by_number = np.zeros((2, size), np.int64)
    by_number[:, table.numbers] = np.abs(table.differences), sizes
    shown, names = page_of_rows(table.numbers[seen], list(by_number), table.names, slice(0, limit))
    parts = np.searchsorted(table.numbers, shown).tolist()
    return {
        "dimension": table.name,
        "parts": [
            {
                "name": name,
                **_difference(two[:, part]),
                "by_chance": None if verdicts is None else verdicts.by_chance(part),
            }
            for name, part in zip(names, parts, strict=True)
        ],
        "others": {
            "parts": len(seen) - len(parts),
            **_difference(two.sum(axis=1) - two[:, parts].sum(axis=1)),
        },
    }


def _pairs(counter: _Counter, judge: _Judge, periods: Sequence[_Span]) -> tuple[list[Change], Gaps]:
    """Return the pairs of parts that explain the changes best, as `largest_changes` has these."""
    if counter.metric == VISITORS:
        return [], NO_GAPS
    largest = list(judge.largest_changes())
    others = [
        [each for each in _DIMENSIONS if each[1] is not table.dimension] for table, *_ in largest
    ]
    groupings = [
        table.split_by(dimension, part)
        for (table, part, _), splits in zip(largest, others, strict=True)
        for _, dimension, _ in splits
    ]
    counted, gaps = [], NO_GAPS
    for span in periods if groupings else ():
        by_code, more = counter.sums(counter.selected.during(span.period), groupings)
        counted.append(by_code)
        gaps |= more
    if _lacks_days(gaps):
        return [], gaps
    of_groupings = zip(*counted, strict=True)
    found: dict[frozenset[tuple[str, str]], Change] = {}
    for (table, part, dispersion), splits in zip(largest, others, strict=True):
        tables = [counter.table(*split, next(of_groupings)) for split in splits]
        best = _best_piece(judge.chance, tables, table.two[:, [part]], dispersion)
        if best is not None:
            parts = ((table.name, table.name_of(part)), (best[0].name, best[0].name_of(best[1])))
            found.setdefault(
                frozenset(parts),
                {
                    "parts": [{"dimension": each, "name": name} for each, name in parts],
                    **_difference(best[0].two[:, best[1]]),
                },
            )
    return list(found.values()), gaps


def _best_piece(
    chance: Chance, tables: Sequence[_Table], whole: NDArray[np.int64], dispersion: float
) -> tuple[_Table, int] | None:
    """Return the piece of a part that exceeds its share of the part's change by most, if any does.

    `tables` split the part by each of the other dimensions.
    """
    before, now = np.concatenate([*(table.two for table in tables), whole], axis=1)
    excess = chance.exceed_share(before, now, -1, dispersion)
    if excess.max() <= 0:
        return None
    pieces = [(table, part) for table in tables for part in range(table.figures.shape[1])]
    # Of equal ones the first by dimension and name, whatever the codes are.
    largest = [pieces[number] for number in np.flatnonzero(excess == excess.max()).tolist()]
    return min(largest, key=lambda piece: (tables.index(piece[0]), piece[0].name_of(piece[1])))
