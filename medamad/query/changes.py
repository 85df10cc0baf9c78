"""The report of what changed between two periods: the parts of a difference, and pairs of these."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Final, Self, TypeAlias

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import BadRequest
from medamad.domain.goals import EXACT, Goal, amount_of
from medamad.domain.zones import DAY_MS
from medamad.query import rows, sums
from medamad.query.chance import (
    LEVEL_OF_PARTS,
    LEVEL_OF_PARTS_ALONE,
    LEVEL_OF_TOTAL,
    MAX_WEEKS,
    MIN_TESTED,
    Chance,
    Compared,
    Verdicts,
    dispersions,
)
from medamad.query.filters import GOAL_FIELD
from medamad.query.names import display_names
from medamad.query.period import BOUNDS, Period, parse_period, previous_period
from medamad.query.reader import Reader, Selected
from medamad.query.request import NO_GAPS, Filter, Gap, Gaps, Query, Result
from medamad.query.rows import Naming, page_of_rows
from medamad.query.sums import FirstViewAmounts, FirstViewText

Change: TypeAlias = dict[str, Any]
Figures: TypeAlias = NDArray[Any]
"""Integers: int64 or, of amounts that may be too large for these, Python's own. Or floats."""
Columns: TypeAlias = tuple[Figures, ...]

VISITS, VISITORS, PAGEVIEWS, CONVERSIONS, REVENUE = METRICS = (
    "visits",
    "visitors",
    "pageviews",
    "conversions",
    "revenue",
)
"""The figures of which the parts add up to the whole. The first is the default."""
OF_GOAL: Final = (CONVERSIONS, REVENUE)
"""Those that need a goal."""
PARTS: Final = 5
"""How many parts of each dimension are listed unless a limit is given."""
COMPARED: Final = ("compare_start", "compare_end")
"""The parameters of the period to compare with."""
MAX_PAIRED: Final = 3
"""For so many changes, the part of another dimension that explains them best is looked for."""

MOST_SAID: Final = 2
"""For so many parts there is a sentence of what changed."""

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
_BEFORE, _NOW, _SHARED, _WEEKS = range(4)
"""The rows of sums by period: the last is the first of those of earlier weeks."""


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
    counter = _Counter.over(reader, query, options, (before, now, *weeks.values()))
    counted = [counter.count(span) for span in (before, now, shared)]
    gaps = counted[_BEFORE].gaps | counted[_NOW].gaps
    known = []
    for week, span in weeks.items():
        of_week = counter.count(span)
        if not _lacks_days(of_week.gaps):
            counted.append(of_week)
            known.append(week)
    counter = counter.knowing_amounts(counted)
    tables = counter.tables(counted)
    whole = _Sums.of_fullest([table.sums for table in tables])
    # A dimension may be unknown for a day under a filter. Its parts would not add up to the whole.
    counts = whole.counts[:_WEEKS, 0]
    tables = [t for t in tables if np.array_equal(t.sums.counts[:_WEEKS].sum(axis=1), counts)]
    judge = _Judge.of(Chance(ratio, len(known)), np.array(known), whole, tables)
    is_certain = not _lacks_days(gaps)
    pairs, gaps_of_pairs = (
        _pairs(counter, judge, (before, now, shared)) if is_certain else ([], NO_GAPS)
    )
    start, end = (_written(ms, before.zone) for ms in (before.start_ms, before.end_ms))
    content = {
        "metric": options.metric,
        **({"currency": goal.currency} if goal and options.metric == REVENUE else {}),
        "compared_with": {"start": start, "end": end},
        "earlier_weeks": len(known),
        **counter.difference(whole.figures[:, 0]),
        "by_chance": judge.total.by_chance(0) if is_certain else None,
        "dimensions": [
            _listed(counter, table, verdicts if is_certain else None, options.limit)
            for table, verdicts in zip(tables, judge.parts, strict=True)
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


def _periods_of(query: Query, options: ChangesOptions) -> tuple[_Span, _Span, _Span | None, float]:
    """Return the period compared with, the period, and what they share, if they overlap.

    And how long the period is relative to the other, apart from what they share, as far as it is
    over. Without a period to compare with, that is as much of the previous period of the same
    length. Raises BadRequest.
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
    if before.period.is_outside(now.start_ms, now.end_ms):
        return before, now, None, length_ms / before.length_ms
    # In the order of their starts.
    first, last = sorted((before, now), key=lambda span: span.start_ms)
    if first.start_ms == last.start_ms or first.end_ms >= last.end_ms:
        raise BadRequest(f"{COMPARED[0]}: expected a period of which neither contains the other")
    shared = evolve(last, end_ms=first.end_ms)
    alone_ms = length_ms - min(shared.length_ms, length_ms - 1)
    return before, now, shared, alone_ms / (before.length_ms - shared.length_ms)


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


ByCode: TypeAlias = tuple[NDArray[np.int64], Columns]
"""Codes, strictly ascending, and the columns of `_Sums` for each."""


@frozen(eq=False)
class _Sums:
    """Sums of a metric by period and part, shape (periods, n) each.

    Of what counts 1 each time, there is one column. Of amounts, the columns have exact figures, the
    same as floats, the sums of the squares, and the number of amounts.
    """

    columns: Columns

    @property
    def figures(self) -> Figures:
        """Exact figures."""
        return self.columns[0]

    @property
    def values(self) -> Figures:
        """The figures for calculations with chance, in any unit."""
        return self.columns[min(1, len(self.columns) - 1)]

    @property
    def squares(self) -> Figures:
        """The sums of the squares of single values."""
        return self.columns[min(2, len(self.columns) - 1)]

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of values."""
        return self.columns[-1]

    @classmethod
    def of_codes(
        cls, counted: Sequence[ByCode], codes: NDArray[np.int64], parts: NDArray[np.intp], size: int
    ) -> Self:
        """Return the sums of figures by period, of `size` parts that each code belongs to one of.

        The codes of each period are among `codes`.
        """
        columns = []
        for place, like in enumerate(counted[0][1]):
            sums = np.zeros((len(counted), size), like.dtype)
            for row, (found, found_columns) in zip(sums, counted, strict=True):
                np.add.at(row, parts[np.searchsorted(codes, found)], found_columns[place])
            columns.append(sums)
        return cls(tuple(columns))

    @classmethod
    def of_fullest(cls, tables: "Sequence[_Sums]") -> Self:
        """Return the whole of each period, shape (periods, 1), from the table with most of it."""
        fullest = np.argmax([sums.counts.sum(axis=1) for sums in tables], axis=0).tolist()
        return cls(
            tuple(
                np.array(
                    [tables[table].columns[place][row].sum() for row, table in enumerate(fullest)],
                    column.dtype,
                )[:, np.newaxis]
                for place, column in enumerate(tables[0].columns)
            )
        )

    def beside(self, others: "Sequence[_Sums]") -> "_Sums":
        """Return the sums of further parts after those of these, all without earlier weeks."""
        columns = zip(*(sums.columns for sums in (self, *others)), strict=True)
        return _Sums(tuple(np.concatenate([c[:_WEEKS] for c in each], axis=1) for each in columns))

    def of_part(self, part: int) -> "_Sums":
        """Return those of one part."""
        return _Sums(tuple(column[:, [part]] for column in self.columns))

    def compared(self) -> Compared:
        """Return those of both periods, without what they share: it has no difference."""
        alone = [column[:_SHARED] - column[_SHARED] for column in self.columns[1:] or self.columns]
        values, squares, counts = alone[0], alone[len(alone) // 2], alone[-1]
        return Compared(values[_BEFORE], values[_NOW], counts.sum(axis=0), squares.sum(axis=0))


@frozen(eq=False)
class _Amounts:
    """The exact amounts of some properties, as multiples of a power of ten.

    `codes` are those of the properties that are amounts, ascending.
    """

    codes: NDArray[np.int64]
    multiples: Figures
    exponent: int
    unit: int
    """The greatest of the multiples, apart from signs. Not all exact amounts fit into a float."""

    @classmethod
    def of(cls, texts: Sequence[str], found: Sequence[FirstViewAmounts]) -> Self:
        """Return all amounts that were found, in a type which has room for their sum."""
        different = np.unique(np.concatenate([_NONE, *(each.properties for each in found)]))
        amounts = [amount_of(split_property(texts[code])[1]) for code in different.tolist()]
        known = [amount for amount in amounts if amount is not None]
        exponents = [
            each for each in (a.as_tuple().exponent for a in known) if isinstance(each, int)
        ]
        exponent = min(exponents, default=0)
        multiples = [int(amount.scaleb(-exponent, EXACT)) for amount in known]
        unit = max(map(abs, multiples), default=0) or 1
        has_room = unit * sum(int(each.times.sum()) for each in found) < 1 << 63
        codes = different[[amount is not None for amount in amounts]]
        dtype = np.int64 if has_room else np.object_
        return cls(codes, np.array(multiples, dtype), exponent, unit)

    def by_code(self, found: FirstViewAmounts) -> ByCode:
        """Return the sums of amounts by the code of the first view, as `_Sums` has the columns."""
        places = np.minimum(np.searchsorted(self.codes, found.properties), len(self.codes) - 1)
        is_amount = np.zeros(len(places), np.bool_)
        if len(self.codes):
            is_amount = self.codes[places] == found.properties
        codes, groups = np.unique(found.codes[is_amount], return_inverse=True)
        times, multiples = found.times[is_amount], self.multiples[places[is_amount]]
        values = (multiples / self.unit).astype(np.float64)
        columns = (multiples * times, values * times, values**2 * times, times)
        sums = [np.zeros(len(codes), column.dtype) for column in columns]
        for of_codes, column in zip(sums, columns, strict=True):
            np.add.at(of_codes, groups, column)
        return codes, tuple(sums)

    def written(self, multiple: int) -> Decimal:
        """Return an amount, without an exponent and zeros at its end."""
        amount = Decimal(multiple).scaleb(self.exponent, EXACT).normalize(EXACT)
        return Decimal(format(amount, "f"))


def _column(figures: Figures) -> Columns:
    return (figures,)


Found: TypeAlias = ByCode | FirstViewAmounts
_NONE: Final = np.zeros(0, np.int64)
_NO_AMOUNTS: Final = FirstViewAmounts(_NONE, _NONE, _NONE)


@frozen(eq=False)
class _Counted:
    """What was found in a period by the codes of each dimension, and of the parts of a goal."""

    by_code: Sequence[Found]
    of_goal: tuple[int, int] | None
    gaps: Gaps


@frozen(eq=False)
class _Table:
    """The sums of the n parts of a dimension."""

    name: str
    sums: _Sums
    numbers: NDArray[np.intp]
    """The number of each part's name, ascending."""
    names: Sequence[str]
    dimension: Dimension | None = None
    codes: NDArray[np.int64] = field(factory=lambda: np.zeros(0, np.int64))
    parts: NDArray[np.intp] = field(factory=lambda: np.zeros(0, np.intp))
    """The part that each code belongs to."""

    @property
    def has_all(self) -> NDArray[np.bool_]:
        """Which part has all of both periods, if any does."""
        counts = self.sums.counts[:_SHARED].sum(axis=0)
        return np.asarray(counts == counts.sum(), np.bool_)

    def name_of(self, part: int) -> str:
        name: str = self.names[int(self.numbers[part])]
        return name

    def codes_of(self, part: int) -> tuple[Dimension, frozenset[int]] | None:
        """Return the codes of a part in its dimension, if that has any."""
        codes = frozenset(self.codes[self.parts == part].tolist())
        return (self.dimension, codes) if self.dimension else None


@frozen(eq=False)
class _Counter:
    """Counts a metric in periods."""

    reader: Reader
    metric: str
    selected: Selected
    of_page: bool
    """Whether visitors are those of pages."""
    goal: Goal | None
    """The one of which conversions or amounts are counted, else one that is a dimension."""
    reached: Selected | None
    """What is selected with the goal that is a dimension, where visitors are split by it."""
    amounts: _Amounts | None = None

    @classmethod
    def over(
        cls, reader: Reader, query: Query, options: ChangesOptions, periods: Sequence[_Span]
    ) -> Self:
        """Return what counts in some periods."""
        # The filters on visits find those of the period that is selected.
        start_ms = min(each.start_ms for each in periods)
        query = evolve(query, period=Period(start_ms, max(each.end_ms for each in periods)))
        reached, goal, metric = None, options.goal, options.metric
        if goal is not None and metric == VISITORS:
            of_goal = Filter(GOAL_FIELD, "eq", (goal.id,), goal)
            reached = reader.select(evolve(query, filters=(*query.filters, of_goal)))
        return cls(reader, metric, reader.select(query), query.has_path_filter, goal, reached)

    @property
    def is_split_by_goal(self) -> bool:
        """Whether a goal is one more dimension."""
        return self.goal is not None and self.metric not in OF_GOAL

    def grouping(
        self, dimension: Dimension, among: tuple[Dimension, frozenset[int]] | None = None
    ) -> FirstViewText:
        """Return the grouping of what is counted by a dimension."""
        reached = self.goal if self.metric == CONVERSIONS else None
        return FirstViewText(dimension, among, reached)

    def count(self, span: _Span | None) -> _Counted:
        """Return what is found in a period, or nothing without one."""
        groupings = [self.grouping(dimension) for _, dimension, _ in _DIMENSIONS]
        found, gaps = self.find_in(span, groupings)
        if not self.is_split_by_goal or span is None:
            return _Counted(found, (0, 0), gaps)
        of_goal = FirstViewText(groupings[0].dimension, reached=self.goal)
        among = self.selected if self.reached is None else self.reached
        (of_first,), more = self._counts(among.during(span.period), [of_goal])
        # A visit of a day that is unknown might have reached it.
        if _lacks_days(more):
            return _Counted(found, None, gaps | more)
        # The goal is no dimension of amounts.
        reached, whole = (int(self._by_code(each)[1][0].sum()) for each in (of_first, found[0]))
        return _Counted(found, (reached, whole - reached), gaps | more)

    def find_in(
        self, span: _Span | None, groupings: Sequence[FirstViewText]
    ) -> tuple[Sequence[Found], Gaps]:
        """Return what is found in each grouping in a period, or nothing without one."""
        self.reader.cancellation.check()
        if span is None:
            nothing: Found = _NO_AMOUNTS if self.metric == REVENUE else (_NONE, (_NONE,))
            return [nothing] * len(groupings), NO_GAPS
        selected = self.selected.during(span.period)
        if self.metric != REVENUE or self.goal is None:
            return self._counts(selected, groupings)
        found, gaps = selected.amounts_by_first_view(self.goal, groupings)
        return found, gaps | selected.left_out

    def _counts(
        self, selected: Selected, groupings: Sequence[FirstViewText]
    ) -> tuple[list[ByCode], Gaps]:
        """Return the codes and numbers of each grouping."""
        if self.metric != VISITORS:
            row = sums.VIEWS if self.metric == PAGEVIEWS else sums.VISITS
            found, gaps = selected.visits_by_first_view(groupings, last=row)
            by_code = [(each.codes, _column(each.sums[row])) for each in found]
            return by_code, gaps | selected.left_out
        by_code = []
        gaps = selected.left_out
        for grouping in groupings:
            tally = selected.tally(grouping.dimension, with_durations=False)
            visitors = tally.visitors(of_page=self.of_page)
            codes = np.flatnonzero(visitors)
            by_code.append((codes, _column(visitors[codes])))
            gaps |= tally.gaps
        return by_code, gaps

    def knowing_amounts(self, counted: Sequence[_Counted]) -> Self:
        """Return the same with the amounts of what was counted."""
        found = [
            each
            for of_period in counted
            for each in of_period.by_code
            if isinstance(each, FirstViewAmounts)
        ]
        if self.metric != REVENUE:
            return self
        return evolve(self, amounts=_Amounts.of(self.reader.texts(Dimension.PROPERTY), found))

    def difference(self, figures: Figures) -> Change:
        """Return the figures of both periods and their difference."""
        before, now = figures[:_SHARED].tolist()
        found = {"before": before, "now": now, "difference": now - before}
        if self.amounts is None:
            return found
        return {name: self.amounts.written(figure) for name, figure in found.items()}

    def tables(self, counted: Sequence[_Counted]) -> list[_Table]:
        """Return the sums by dimension, of the parts that any of the periods has."""
        tables = [
            self.table(name, dimension, naming, [each.by_code[place] for each in counted])
            for place, (name, dimension, naming) in enumerate(_DIMENSIONS)
        ]
        of_goal = [each.of_goal for each in counted if each.of_goal is not None]
        if self.is_split_by_goal and len(of_goal) == len(counted):
            sums = _Sums((np.array(of_goal, np.int64),))
            tables.append(_Table("goal", sums, np.arange(2), GOAL_PARTS))
        return tables

    def table(
        self, name: str, dimension: Dimension, naming: Naming, found: Sequence[Found]
    ) -> _Table:
        """Return the sums of a dimension."""
        counted = [self._by_code(each) for each in found]
        codes = np.unique(np.concatenate([each for each, _ in counted]))
        reader = self.reader
        numbers, names = codes.astype(np.intp), reader.texts(dimension)
        if naming is not rows.as_stored:
            named, _ = display_names(
                reader.texts, dimension, naming, reader.sources, reader.cancellation
            )
            numbers, names = named.numbers_of(numbers), named.names
        numbers, parts = np.unique(numbers, return_inverse=True)
        sums = _Sums.of_codes(counted, codes, parts, len(numbers))
        return _Table(name, sums, numbers, names, dimension, codes, parts)

    def _by_code(self, found: Found) -> ByCode:
        if not isinstance(found, FirstViewAmounts):
            return found
        # They are known of all that is counted, and pairs have the same.
        assert self.amounts is not None  # noqa: S101
        return self.amounts.by_code(found)


# Differences


@frozen(eq=False)
class _Judge:
    """What chance explains of the differences in some tables."""

    chance: Chance
    tables: Sequence[_Table]
    whole: _Sums
    """That of each period."""
    dispersions: Sequence[NDArray[np.float64]]
    total: Verdicts
    parts: Sequence[Verdicts]
    """Those on the parts of each table."""

    @classmethod
    def of(
        cls, chance: Chance, weeks: NDArray[np.intp], whole: _Sums, tables: Sequence[_Table]
    ) -> Self:
        """Return the judge of tables whose whole is that of each period."""

        def dispersion(sums: _Sums) -> NDArray[np.float64]:
            return dispersions(weeks, sums.values[_WEEKS:], sums.squares[_WEEKS:])

        total = chance.verdicts(whole.compared(), dispersion(whole), level=LEVEL_OF_TOTAL)
        level = LEVEL_OF_PARTS if total.are_changes[0] else LEVEL_OF_PARTS_ALONE
        compared = [table.sums.compared() for table in tables]
        tested = sum(int((each.counts >= MIN_TESTED).sum()) for each in compared)
        found = [dispersion(table.sums) for table in tables]
        parts = [
            chance.verdicts(each, of_parts, level=level / max(tested, 1))
            for each, of_parts in zip(compared, found, strict=True)
        ]
        return cls(chance, tables, whole, found, total, parts)

    def largest_changes(self) -> Iterator[tuple[_Table, int, float]]:
        """Return the changes that deviate most from their share of the whole's difference.

        By table and place, with their dispersions. A part that has nearly all visits has nearly all
        of the difference, and explains nothing. None of a goal, which is no text of a first view.
        """
        before, now = self.whole.values[:_SHARED, 0].tolist()
        rate = (now - before) / ((before + now) or 1)
        found = [
            (
                -abs(float(values[_NOW] - values[_BEFORE] - rate * values.sum())),
                place,
                table.name_of(part),
                part,
            )
            for place, (table, verdicts) in enumerate(zip(self.tables, self.parts, strict=True))
            if table.dimension is not None
            for part in np.flatnonzero(verdicts.are_changes & ~table.has_all).tolist()
            for values in [table.sums.values[:_SHARED, part]]
        ]
        for _, place, _, part in sorted(found)[:MAX_PAIRED]:
            yield self.tables[place], part, float(self.dispersions[place][part])


def _listed(counter: _Counter, table: _Table, verdicts: Verdicts | None, limit: int) -> Change:
    """Return the parts of a dimension with the largest differences, and the sums of all others."""
    two = table.sums.figures[:_SHARED]
    seen = np.flatnonzero(table.sums.counts[:_SHARED].sum(axis=0))
    size = int(table.numbers[-1]) + 1 if len(table.numbers) else 0
    by_number = np.zeros((2, size), two.dtype)
    by_number[:, table.numbers] = np.abs(two[_NOW] - two[_BEFORE]), two.sum(axis=0)
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
    counter: _Counter, judge: _Judge, periods: Sequence[_Span | None]
) -> tuple[list[Change], Gaps]:
    """Return the pairs of parts that explain the changes best, as `largest_changes` has these."""
    if counter.metric == VISITORS:
        return [], NO_GAPS
    largest = list(judge.largest_changes())
    others = [
        [each for each in _DIMENSIONS if each[1] is not table.dimension] for table, *_ in largest
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
    if _lacks_days(gaps):
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
    chance: Chance, tables: Sequence[_Table], whole: _Sums, dispersion: float
) -> tuple[_Table, int] | None:
    """Return the piece of a part that exceeds its share of the part's change by most, if any does.

    `tables` split the part, of which `whole` has the sums, by each of the other dimensions.
    """
    sums = whole.beside([table.sums for table in tables])
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
    pairs = [(_without_whole(pair, counts), pair) for pair in found["pairs"]]
    named = {_key(part) for parts, _ in pairs for part in parts}
    single = [
        ([{"dimension": key[0], "name": key[1]}], part)
        for key, part in counts.items()
        if part["by_chance"] is False and key not in named and not _is_same(part, found)
    ]
    single.sort(key=lambda each: -abs(each[1]["difference"]))
    alone = [parts[0]["dimension"] for parts, _ in (*pairs, *single) if len(parts) == 1]
    single = [each for each in single if each[0][0]["dimension"] == alone[0]]
    return [*pairs, *single][:MOST_SAID]


def _without_whole(pair: Change, counts: Mapping[tuple[str, str], Change]) -> Sequence[Any]:
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
