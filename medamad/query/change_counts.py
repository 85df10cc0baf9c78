"""What is counted in periods that are compared: sums by the parts of each dimension."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final, Self, TypeAlias

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.goals import EXACT, Goal, amount_of
from medamad.query import rows, sums
from medamad.query.chance import Compared
from medamad.query.filters import GOAL_FIELD
from medamad.query.names import display_names
from medamad.query.period import Period, Span
from medamad.query.reader import Reader, Selected
from medamad.query.request import NO_GAPS, Filter, Gap, Gaps, Query
from medamad.query.rows import Naming
from medamad.query.sums import AmountCounts, VisitGrouping

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
DIMENSIONS: Final[Sequence[tuple[str, Dimension, Naming]]] = (
    ("source", Dimension.REFERRER, rows.source),
    ("entry_page", Dimension.PATH, rows.as_stored),
    ("country", Dimension.COUNTRY, rows.country),
    ("device", Dimension.DEVICE, rows.as_stored),
    ("campaign", Dimension.UTM_CAMPAIGN, rows.as_stored),
)
"""What visits are split by."""
GOAL_PARTS: Final = ("reached", "not reached")
BEFORE, NOW, SHARED, WEEKS = range(4)
"""The rows of sums by period: the last is the first of those of earlier weeks."""


def lacks_days(gaps: Gaps) -> bool:
    """Return whether a period has days that others cannot be compared with.

    Something of them is unknown, or they have what exclusions leave out of the others.
    """
    return bool(gaps.days(Gap.FIGURES, Gap.VISITS, Gap.DAMAGED, Gap.EXCLUSIONS))


ByCode: TypeAlias = tuple[NDArray[np.int64], Columns]
"""Codes, strictly ascending, and the columns of `Sums` for each."""


@frozen(eq=False)
class Sums:
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
    def of_fullest(cls, tables: "Sequence[Sums]") -> Self:
        """Return the total of each period, shape (periods, 1), from the table with most of it."""
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

    def beside(self, others: "Sequence[Sums]") -> "Sums":
        """Return the sums of further parts after those of these, all without earlier weeks."""
        columns = zip(*(sums.columns for sums in (self, *others)), strict=True)
        return Sums(tuple(np.concatenate([c[:WEEKS] for c in each], axis=1) for each in columns))

    def of_part(self, part: int) -> "Sums":
        """Return those of one part."""
        return Sums(tuple(column[:, [part]] for column in self.columns))

    def compared(self) -> Compared:
        """Return those of both periods, without what they share: it has no difference."""
        unshared = [column[:SHARED] - column[SHARED] for column in self.columns[1:] or self.columns]
        values, squares, counts = unshared[0], unshared[len(unshared) // 2], unshared[-1]
        return Compared(values[BEFORE], values[NOW], counts.sum(axis=0), squares.sum(axis=0))


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
    def of(cls, texts: Sequence[str], found: Sequence[AmountCounts]) -> Self:
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

    def by_code(self, found: AmountCounts) -> ByCode:
        """Return the sums of amounts by the code of the first view, as `Sums` has the columns."""
        places = np.minimum(np.searchsorted(self.codes, found.properties), len(self.codes) - 1)
        is_amount = np.zeros(len(places), np.bool_)
        if len(self.codes):
            is_amount = self.codes[places] == found.properties
        codes, groups = np.unique(found.groups[is_amount], return_inverse=True)
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


Found: TypeAlias = ByCode | AmountCounts
_NONE: Final = np.zeros(0, np.int64)
_NO_AMOUNTS: Final = AmountCounts(_NONE, _NONE, _NONE)


@frozen(eq=False)
class Counted:
    """What was found in a period by the codes of each dimension, and of the parts of a goal."""

    by_code: Sequence[Found]
    of_goal: tuple[int, int] | None
    gaps: Gaps


@frozen(eq=False)
class Table:
    """The sums of the n parts of a dimension."""

    name: str
    sums: Sums
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
        counts = self.sums.counts[:SHARED].sum(axis=0)
        return np.asarray(counts == counts.sum(), np.bool_)

    def name_of(self, part: int) -> str:
        """Return the name of a part."""
        name: str = self.names[int(self.numbers[part])]
        return name

    def codes_of(self, part: int) -> tuple[Dimension, frozenset[int]] | None:
        """Return the codes of a part in its dimension, if that has any."""
        codes = frozenset(self.codes[self.parts == part].tolist())
        return (self.dimension, codes) if self.dimension else None


@frozen(eq=False)
class PartCounter:
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
        cls,
        reader: Reader,
        query: Query,
        metric: str,
        goal: Goal | None,
        periods: Sequence[Span],
    ) -> Self:
        """Return what counts in some periods."""
        # The filters on visits find those of the period that is selected.
        start_ms = min(each.start_ms for each in periods)
        query = evolve(query, period=Period(start_ms, max(each.end_ms for each in periods)))
        reached = None
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
    ) -> VisitGrouping:
        """Return the grouping of what is counted by a dimension."""
        up_to = sums.VIEWS if self.metric == PAGEVIEWS else sums.VISITS
        reached = self.goal if self.metric == CONVERSIONS else None
        return VisitGrouping(dimension, up_to=up_to, among=among, reached=reached)

    def count(self, span: Span | None) -> Counted:
        """Return what is found in a period, or nothing without one."""
        groupings = [self.grouping(dimension) for _, dimension, _ in DIMENSIONS]
        found, gaps = self.find_in(span, groupings)
        if not self.is_split_by_goal or span is None:
            return Counted(found, (0, 0), gaps)
        of_goal = evolve(groupings[0], reached=self.goal)
        among = self.selected if self.reached is None else self.reached
        (of_first,), more = self._counts(among.during(span), [of_goal])
        # A visit of a day that is unknown might have reached it.
        if lacks_days(more):
            return Counted(found, None, gaps | more)
        # The goal is no dimension of amounts.
        reached, total = (int(self._by_code(each)[1][0].sum()) for each in (of_first, found[0]))
        return Counted(found, (reached, total - reached), gaps | more)

    def find_in(
        self, span: Span | None, groupings: Sequence[VisitGrouping]
    ) -> tuple[Sequence[Found], Gaps]:
        """Return what is found in each grouping in a period, or nothing without one."""
        self.reader.cancellation.check()
        if span is None:
            nothing: Found = _NO_AMOUNTS if self.metric == REVENUE else (_NONE, (_NONE,))
            return [nothing] * len(groupings), NO_GAPS
        selected = self.selected.during(span)
        if self.metric != REVENUE or self.goal is None:
            return self._counts(selected, groupings)
        found, gaps = selected.amounts_by_first_view(self.goal, groupings)
        return found, gaps | selected.left_out

    def _counts(
        self, selected: Selected, groupings: Sequence[VisitGrouping]
    ) -> tuple[list[ByCode], Gaps]:
        """Return the codes and numbers of each grouping."""
        gaps, by_code = selected.left_out, list[ByCode]()
        if self.metric != VISITORS:
            found = selected.group_visits(groupings)
            for grouping, of_visits in zip(groupings, found.sums, strict=True):
                by_code.append((of_visits.codes, (of_visits.sums[grouping.up_to],)))
            return by_code, gaps | found.gaps
        for grouping in groupings:
            tally = selected.tally(grouping.dimension, with_durations=False)
            visitors = tally.visitors(of_page=self.of_page)
            codes = np.flatnonzero(visitors)
            by_code.append((codes, (visitors[codes],)))
            gaps |= tally.gaps
        return by_code, gaps

    def knowing_amounts(self, counted: Sequence[Counted]) -> Self:
        """Return the same with the amounts of what was counted."""
        found = [
            each
            for of_period in counted
            for each in of_period.by_code
            if isinstance(each, AmountCounts)
        ]
        if self.metric != REVENUE:
            return self
        return evolve(self, amounts=_Amounts.of(self.reader.texts(Dimension.PROPERTY), found))

    def difference(self, figures: Figures) -> dict[str, Any]:
        """Return the figures of both periods and their difference."""
        before, now = figures[:SHARED].tolist()
        found = {"before": before, "now": now, "difference": now - before}
        if self.amounts is None:
            return found
        return {name: self.amounts.written(figure) for name, figure in found.items()}

    def tables(self, counted: Sequence[Counted]) -> list[Table]:
        """Return the sums by dimension, of the parts that any of the periods has."""
        tables = [
            self.table(name, dimension, naming, [each.by_code[place] for each in counted])
            for place, (name, dimension, naming) in enumerate(DIMENSIONS)
        ]
        of_goal = [each.of_goal for each in counted if each.of_goal is not None]
        if self.is_split_by_goal and len(of_goal) == len(counted):
            sums = Sums((np.array(of_goal, np.int64),))
            tables.append(Table("goal", sums, np.arange(2), GOAL_PARTS))
        return tables

    def table(
        self, name: str, dimension: Dimension, naming: Naming, found: Sequence[Found]
    ) -> Table:
        """Return the sums of a dimension."""
        counted = [self._by_code(each) for each in found]
        codes = np.unique(np.concatenate([each for each, _ in counted]))
        numbers, names = codes.astype(np.intp), self.reader.texts(dimension)
        if naming is not rows.as_stored:
            named, _ = display_names(self.reader, dimension, naming)
            numbers, names = named.numbers_of(numbers), named.names
        numbers, parts = np.unique(numbers, return_inverse=True)
        sums = Sums.of_codes(counted, codes, parts, len(numbers))
        return Table(name, sums, numbers, names, dimension, codes, parts)

    def _by_code(self, found: Found) -> ByCode:
        if not isinstance(found, AmountCounts):
            return found
        # They are known of all that is counted, and pairs have the same.
        assert self.amounts is not None  # noqa: S101
        return self.amounts.by_code(found)
