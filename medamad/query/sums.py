"""What an engine finds for a report: sums, quartiles and counts, by code or by bucket."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, Since
from medamad.domain.goals import Goal
from medamad.query.request import NO_GAPS, Gaps


@frozen(eq=False, kw_only=True)
class Tally:
    """Sums of views for the numbers 0 to n - 1, such as codes: shape (n,) int64 each."""

    views: NDArray[np.int64]
    day_visitors: NDArray[np.int64]
    """First views of the day."""
    page_visitors: NDArray[np.int64]
    """First views of the page on that day."""
    timed_visitors: NDArray[np.int64]
    """Visitors whose first view of the day has a known duration."""
    bounces: NDArray[np.int64]
    """Those of the timed visitors whose first view lasted at most BOUNCE_MS."""
    duration_ms: NDArray[np.int64]
    """The total of the known durations, milliseconds."""
    gaps: Gaps = NO_GAPS

    def visitors(self, *, of_page: bool) -> NDArray[np.int64]:
        """Return the visitors: first views of the day, or first views of the page on that day."""
        return self.page_visitors if of_page else self.day_visitors

    def padded(self, size: int) -> "Tally":
        """Return the sums of at least `size` numbers; those of further ones are 0."""
        missing = max(size - len(self.views), 0)
        return self._each(lambda sums: np.pad(sums, (0, missing)))

    def take(self, numbers: NDArray[np.integer[Any]]) -> "Tally":
        """Return the sums of some numbers, in that order."""
        return self._each(lambda sums: sums[numbers])

    def grouped(self, groups: NDArray[np.intp], size: int) -> "Tally":
        """Return the sums of groups of numbers: `groups[number]` is 0 to size - 1."""
        return self._each(lambda sums: _grouped(sums, groups, size))

    def total(self) -> "Tally":
        """Return the sums of all numbers, as those of the number 0."""
        return self._each(lambda sums: sums.sum(keepdims=True))

    def _each(self, change: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> "Tally":
        return Tally(
            views=change(self.views),
            day_visitors=change(self.day_visitors),
            page_visitors=change(self.page_visitors),
            timed_visitors=change(self.timed_visitors),
            bounces=change(self.bounces),
            duration_ms=change(self.duration_ms),
            gaps=self.gaps,
        )


def joined_tallies(tallies: Sequence[Tally]) -> Tally:
    """Return the sums of the numbers of some tallies, one after the other."""

    def joined(name: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(tally, name) for tally in tallies])

    return Tally(
        views=joined("views"),
        day_visitors=joined("day_visitors"),
        page_visitors=joined("page_visitors"),
        timed_visitors=joined("timed_visitors"),
        bounces=joined("bounces"),
        duration_ms=joined("duration_ms"),
        gaps=reduce(or_, [tally.gaps for tally in tallies]),
    )


def _grouped(
    sums: NDArray[np.int64], groups: NDArray[np.integer[Any]], size: int
) -> NDArray[np.int64]:
    added = np.zeros(size, np.int64)
    np.add.at(added, groups, sums)
    return added


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
        quarters = np.maximum(self.counts - 1, 0) * number % 4
        between = _between(self.low_ms[number - 1], self.high_ms[number - 1], quarters)
        return np.where(self.counts, between, 0)

    def take(self, groups: NDArray[np.integer[Any]]) -> "Quartiles":
        """Return the quartiles of some groups, in that order."""
        return Quartiles(self.counts[groups], self.low_ms[:, groups], self.high_ms[:, groups])


def _between(
    low_ms: NDArray[np.int64], high_ms: NDArray[np.int64], quarters: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Return the numbers at some quarters of the way between two, rounded half to even."""
    value, rest = np.divmod(low_ms * (4 - quarters) + high_ms * quarters, 4)
    value += (rest == 3) | ((rest == 2) & (value % 2 == 1))  # noqa: PLR2004 - of four
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
        """Visits with one view and no event."""
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
        sums = [_grouped(row[is_in], groups[is_in], size) for row in self.sums]
        return VisitSums(np.arange(size), np.array(sums, np.int64))

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


@frozen
class FirstViewText:
    """Groups visits by the code of their first view in a dimension.

    Only those whose first view has any of some codes in another one, if `among` has these, and only
    those that reached a goal, if `reached` is one.
    """

    dimension: Dimension
    among: tuple[Dimension, frozenset[int]] | None = None
    reached: Goal | None = None


@frozen(eq=False)
class FirstViewAmounts:
    """The amounts in the conversions of visits, by the code of the visit's first view, shape (n,).

    `properties` are codes of Dimension.PROPERTY, and `times` how often each occurs with the code
    in the same place of `codes`.
    """

    codes: NDArray[np.int64]
    properties: NDArray[np.int64]
    times: NDArray[np.int64]


@frozen(eq=False)
class RowVisits:
    """The visits of each row of a dimension and, if asked for, how many bounced, shape (n,).

    `conversions` has how many of them reached a goal, if one is asked for.
    `total` is the number of visits; those that saw several pages are in several rows.
    """

    visits: NDArray[np.int64]
    bounces: NDArray[np.int64]
    conversions: NDArray[np.int64]
    total: int
    gaps: Gaps

    def grouped(self, codes: NDArray[np.intp], groups: NDArray[np.intp], size: int) -> "RowVisits":
        """Return the visits of groups of rows: `groups`, 0 to size - 1, has that of each code."""
        return RowVisits(
            _grouped(self.visits[codes], groups, size),
            _grouped(self.bounces[codes], groups, size),
            _grouped(self.conversions[codes], groups, size),
            self.total,
            self.gaps,
        )


def joined_visits(rows: Sequence[RowVisits], total: int) -> RowVisits:
    """Return the visits of rows that are the sums of others. `total` is the number of visits."""

    def joined(name: str) -> NDArray[np.int64]:
        return np.array([getattr(row, name).sum() for row in rows], np.int64)

    return RowVisits(
        joined("visits"),
        joined("bounces"),
        joined("conversions"),
        total,
        reduce(or_, [row.gaps for row in rows]),
    )


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
class Amounts:
    """The amounts of a goal's conversions: codes of Dimension.PROPERTY, shape (m,).

    `buckets` has the bucket of each, and `times` how often it occurs there; a code may be several
    times in a bucket.
    """

    codes: NDArray[np.integer[Any]]
    buckets: NDArray[np.intp]
    times: NDArray[np.int64]


@frozen(eq=False)
class Conversions:
    """The conversions of a goal in each of n buckets, shape (n,), and their amounts, if any."""

    goal: Goal
    counts: NDArray[np.int64]
    amounts: Amounts | None


@frozen(eq=False)
class ReachedGoals:
    """The conversions of some goals.

    `visits` are the selected visits, and for each goal those that reached it, shape (1 + goals, n);
    None if visits are not asked for.
    """

    conversions: Sequence[Conversions]
    visits: NDArray[np.int64] | None
    gaps: Gaps
