"""What an engine finds for a report: sums, quartiles and counts, by code or by bucket."""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Self

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, Since
from medamad.domain.goals import Goal
from medamad.query.request import Gaps


@define(eq=False)
class _Rows:
    """Sums for the numbers 0 to n - 1, such as codes: a row for each figure, shape (rows, n)."""

    sums: NDArray[np.int64]
    gaps: Gaps

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return len(self.sums[0])

    def padded(self, size: int) -> Self:
        """Return the sums of at least `size` numbers; those of further ones are 0."""
        if size <= self.size:
            return self
        return evolve(self, sums=np.pad(self.sums, ((0, 0), (0, size - self.size))))

    def take(self, numbers: NDArray[np.integer[Any]]) -> Self:
        """Return the sums of some numbers, in that order."""
        return evolve(self, sums=self.sums[:, numbers])

    def grouped(self, groups: NDArray[np.intp], size: int) -> Self:
        """Return the sums of groups of numbers: `groups[number]` is 0 to size - 1."""
        return evolve(self, sums=_grouped(self.sums, groups, size))

    def beside(self, other: Self) -> Self:
        """Return the totals of two: that of these under the number 0, of the others under 1."""
        totals = [each.sums.sum(axis=1) for each in (self, other)]
        return evolve(self, sums=np.stack(totals, axis=1), gaps=self.gaps | other.gaps)


def _grouped(
    sums: NDArray[np.int64], groups: NDArray[np.integer[Any]], size: int
) -> NDArray[np.int64]:
    """Return the sums of groups, shape (rows, size): `groups` has that of each column."""
    added = np.zeros((len(sums), size), np.int64)
    for row, of_groups in zip(sums, added, strict=True):
        np.add.at(of_groups, groups, row)
    return added


@define(eq=False)
class Tally(_Rows):
    """Sums of views for the numbers 0 to n - 1, such as codes: rows in the order of the fields."""

    views: NDArray[np.int64] = field(init=False)
    day_visitors: NDArray[np.int64] = field(init=False)
    """First views of the day."""
    page_visitors: NDArray[np.int64] = field(init=False)
    """First views of the page on that day."""
    timed_visitors: NDArray[np.int64] = field(init=False)
    """Visitors whose first view of the day has a known duration."""
    bounces: NDArray[np.int64] = field(init=False)
    """Those of the timed visitors whose first view lasted at most BOUNCE_MS."""
    duration_ms: NDArray[np.int64] = field(init=False)
    """The total of the known durations, milliseconds."""

    def __attrs_post_init__(self) -> None:
        self.views, self.day_visitors, self.page_visitors, *others = self.sums
        self.timed_visitors, self.bounces, self.duration_ms = others

    def visitors(self, *, of_page: bool) -> NDArray[np.int64]:
        """Return the visitors: first views of the day, or first views of the page on that day."""
        return self.page_visitors if of_page else self.day_visitors

    def total(self) -> "Tally":
        """Return the sums of all numbers, as those of the number 0."""
        return Tally(self.sums.sum(axis=1, keepdims=True), self.gaps)


@frozen(eq=False)
class Series:
    """The sums and the median durations of n buckets, `medians_ms` of shape (n,), 0 if unknown.

    `total` is the same for all buckets together, if it takes less time than without the buckets.
    """

    tally: Tally
    medians_ms: NDArray[np.int64]
    total: "Series | None" = None


@frozen(eq=False)
class Quartiles:
    """The quartiles of the durations of groups 0 to n - 1.

    `counts` has the number of durations of each group, shape (n,); `low_ms` and `high_ms` the two
    that each quartile is between, or that it is, shape (3, n).
    """

    counts: NDArray[np.int64]
    low_ms: NDArray[np.int64]
    high_ms: NDArray[np.int64]

    def quartile(self, number: int) -> NDArray[np.int64]:
        """Return the 1st, 2nd (the median) or 3rd quartile of each group in ms, 0 if it is empty.

        Shape (n,). Interpolated linearly between the two nearest durations and rounded half to
        even, with whole numbers throughout.
        """
        quarters = np.maximum(self.counts - 1, 0) * number & 3
        between = _between(self.low_ms[number - 1], self.high_ms[number - 1], quarters)
        return np.where(self.counts, between, 0)

    def take(self, groups: NDArray[np.integer[Any]]) -> "Quartiles":
        """Return the quartiles of some groups, in that order."""
        return Quartiles(self.counts[groups], self.low_ms[:, groups], self.high_ms[:, groups])


def _between(
    low_ms: NDArray[np.int64], high_ms: NDArray[np.int64], quarters: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Return the numbers at some quarters of the way between two, rounded half to even."""
    fourfold = low_ms * (4 - quarters) + high_ms * quarters
    # Shifts and masks take a third of the time of divisions.
    value, rest = fourfold >> 2, fourfold & 3
    value += (rest == 3) | ((rest == 2) & (value & 1))  # noqa: PLR2004 - of four
    return value


VISITS, VIEWS, BOUNCES, DURATION_MS = range(4)
"""The rows of the sums of visits, each of which takes longer to find than those before."""


@frozen(eq=False)
class VisitSums:
    """Sums of visits by code, shape (4, k): visits, their views, bounces and visible milliseconds.

    Sums of which only the first are asked for have fewer rows. `codes` are strictly ascending,
    shape (k,).
    """

    codes: NDArray[np.int64]
    sums: NDArray[np.int64]

    @property
    def visits(self) -> NDArray[np.int64]:
        """Visits."""
        return self._row(VISITS)

    @property
    def views(self) -> NDArray[np.int64]:
        """All views of the visits."""
        return self._row(VIEWS)

    @property
    def bounces(self) -> NDArray[np.int64]:
        """Visits with one view and no event after its load."""
        return self._row(BOUNCES)

    @property
    def mean_duration_ms(self) -> NDArray[np.int64]:
        """The mean visible time of a visit in whole milliseconds, rounded; 0 without visits."""
        visits = np.maximum(self.visits, 1)
        mean: NDArray[np.int64] = (2 * self._row(DURATION_MS) + visits) // (2 * visits)
        return mean

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.codes.nbytes + self.sums.nbytes

    def total(self) -> "VisitSums":
        """Return the sums of all codes, as those of the code 0."""
        return VisitSums(np.zeros(1, np.int64), self.sums.sum(axis=1, keepdims=True))

    def dense(self, size: int) -> "VisitSums":
        """Return the sums of the codes 0 to size - 1. Others are left out."""
        return self.grouped(self.codes, size)

    def grouped(self, groups: NDArray[np.integer[Any]], size: int) -> "VisitSums":
        """Return the sums of groups: `groups` has the group of each code, 0 to size - 1.

        Codes in any other group are left out.
        """
        is_in = (groups >= 0) & (groups < size)
        return VisitSums(np.arange(size), _grouped(self.sums[:, is_in], groups[is_in], size))

    def take(self, places: NDArray[np.integer[Any]]) -> "VisitSums":
        """Return the sums of some codes by their places, in that order."""
        return VisitSums(self.codes[places], self.sums[:, places])

    def __neg__(self) -> "VisitSums":
        return VisitSums(self.codes, -self.sums)

    def _row(self, number: int) -> NDArray[np.int64]:
        row: NDArray[np.int64] = self.sums[number]
        return row


SINCE_PLACES: Final[Mapping[str, int]] = MappingProxyType(
    {since: place for place, since in enumerate(Since, 1)}
)
"""The places in sums of visitors by when they were here last; 0 stands for an unknown time."""


class WhichView(Enum):
    """The views of a visit that say in which groups it is."""

    FIRST = "first"
    ANY = "any"
    LAST = "last"


@frozen
class VisitGrouping:
    """Groups visits by the code of their first view in a dimension.

    By pages, also by that of their last view, or of any: then, a visit is in several groups. Only
    those whose first view has any of some codes in another dimension, if `among` has these, and
    only those that reached a goal, if `reached` is one.

    `up_to` is the last row of their sums that is needed. Sums up to BOUNCES may lack views, and
    those by other views than the first have visits alone.
    """

    dimension: Dimension
    which: WhichView = WhichView.FIRST
    up_to: int = VISITS
    among: tuple[Dimension, frozenset[int]] | None = None
    reached: Goal | None = None


@frozen(eq=False)
class GroupedVisits:
    """The sums of visits in each of some groupings.

    `total` is the number of the visits in the first one, in which each may be in one group only;
    also of those that are in none, as imports of daily figures may have.
    """

    sums: Sequence[VisitSums]
    total: int
    gaps: Gaps


@define(eq=False)
class RowVisits(_Rows):
    """The visits of each row of a dimension, shape (4, n): rows in the order of the fields.

    Bounces and conversions are 0 if they are not asked for; conversions are a share of `among`.
    `total` is the number of visits; those that saw several pages are in several rows.
    """

    total: int
    visits: NDArray[np.int64] = field(init=False)
    bounces: NDArray[np.int64] = field(init=False)
    conversions: NDArray[np.int64] = field(init=False)
    among: NDArray[np.int64] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.visits, self.bounces, self.conversions, self.among = self.sums


@frozen(eq=False)
class PropertyCounts:
    """The events of a query by label: a property name, or a property's whole text.

    `events[i]` is the number of events with the label `labels[i]`, shape (n,) int64. `visits[i]` is
    that of the selected visits in which one occurred, if it is asked for. `total` is the number of
    events with any of them.
    """

    labels: Sequence[str]
    events: NDArray[np.int64]
    visits: NDArray[np.int64] | None
    total: int
    gaps: Gaps


@frozen(eq=False)
class AmountCounts:
    """The amounts in a goal's conversions, shape (n,) each.

    `groups` has what they are counted by, such as buckets, `properties` codes of
    Dimension.PROPERTY, and `times` how often each occurs there; it may be in a group several times.
    """

    groups: NDArray[np.integer[Any]]
    properties: NDArray[np.integer[Any]]
    times: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.groups.nbytes + self.properties.nbytes + self.times.nbytes


@frozen(eq=False)
class Conversions:
    """The conversions of a goal in each of n buckets, shape (n,), and their amounts, if any."""

    goal: Goal
    counts: NDArray[np.int64]
    amounts: AmountCounts | None

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.counts.nbytes + (0 if self.amounts is None else self.amounts.nbytes)


@frozen(eq=False)
class ReachedGoals:
    """The conversions of some goals.

    `visits` are the selected visits, and for each goal those that reached it, shape (1 + goals, n);
    None if visits are not asked for.
    """

    conversions: Sequence[Conversions]
    visits: NDArray[np.int64] | None
    gaps: Gaps
