"""What a report asks of an engine: one website, for one request.

An engine finds sums by the codes of texts or by bucket. What these mean is decided above it: which
texts match a filter, names and their order, pages of rows, shares and their rounding.
`medamad.query.embedded` is the engine over the store of one machine, `medamad.query.clickhouse`
that over a cluster.
"""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, Final, Literal, Protocol, Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.lookup.referrers import Sources
from medamad.query.buckets import Buckets, make_buckets
from medamad.query.period import Period
from medamad.query.request import Cancellation, Gap, Gaps, Query
from medamad.query.sums import (
    AmountCounts,
    GroupedVisits,
    PropertyCounts,
    ReachedGoals,
    Series,
    Tally,
    VisitGrouping,
    VisitSums,
)
from medamad.storage.dictionary.decode import CodeTexts


class Selected(Protocol):
    """The views that match a query's filters and are in a period, and the visits that have one.

    A visit is in the period if it began in it. Codes are those of `Reader.texts`.
    """

    @property
    def period(self) -> Period:
        """The period."""

    @property
    def left_out(self) -> Gaps:
        """The days in the period of which damaged data is left out, or what a filter cannot see."""

    @property
    def visit_gaps(self) -> Gaps:
        """The days in the period that have views which belong to no known visit."""

    def during(self, period: Period, gap: Gap = Gap.FIGURES) -> Self:
        """Return the same in another period.

        `gap` is what results lack for a day of which only the totals of all views are known.
        """

    def with_single_durations(self) -> tuple[Self, Gaps]:
        """Return the same without days of which single durations are unknown, and these as gaps."""

    def tally(self, dimension: Dimension, *, with_durations: bool = True) -> Tally:
        """Return the sums of the views by the codes of a dimension.

        Without `with_durations` only views and visitors are summed, which is faster.
        """

    def series(self, buckets: Buckets | None) -> Series:
        """Return the sums and the medians of the views by bucket, or of all as those of one.

        Each view must be in a bucket.
        """

    def quartiles(self, paths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the three quartiles of the durations of some paths in ms, shape (3, n).

        Interpolated linearly and rounded half to even; 0 without a known duration.
        """

    def visitors_by_since(self, buckets: Buckets) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the visitors by bucket and SINCE_PLACES, shape (n, 1 + places).

        Those outside of all buckets count in the nearest. And which buckets are known: one is not
        if a day in it has only totals without when visitors were here last.
        """

    def visits_by_bucket(self, buckets: Buckets | None) -> tuple[VisitSums, Gaps]:
        """Return the sums of the visits by the bucket in which they began, or of all, and gaps.

        Each bucket has sums. The period has to be that of the buckets.
        """

    def group_visits(
        self, groupings: Sequence[VisitGrouping], *, include_rollups: bool = True
    ) -> GroupedVisits:
        """Return the visits in each of some groupings.

        Without `include_rollups`, or if one is of some visits only, days of which only rollups are
        left are gaps. Else such a day counts in all groupings by a dimension, or is a gap.
        """

    def amounts_by_first_view(
        self, goal: Goal, groupings: Sequence[VisitGrouping]
    ) -> tuple[list[AmountCounts], Gaps]:
        """Return the amounts in the conversions of a goal with revenue, in each of some groupings.

        By the code of the visit's first view. All conversions of the visits count, also those after
        the period. Days of which only rollups are left are gaps.
        """

    def pages_beside(self, path: str, step: Literal[1, -1]) -> NDArray[np.int64]:
        """Return how many views of each path came next after views of a page, shape (n + 1,).

        With a step of -1, came before. The last number is that of the views of the page that ended,
        or began, their visit. Views whose visit is unknown do not count.
        """

    def conversions(self, goals: Sequence[Goal], buckets: Buckets | None) -> ReachedGoals:
        """Return the conversions of goals by bucket, or in all.

        They are those of the visits; where visits are unknown, among the views and their events. If
        the query is with visits, also how many reached each goal.
        """

    def count_visits(self, buckets: Buckets | None) -> NDArray[np.int64]:
        """Return the number of the visits, without rollups, by bucket or in all, shape (n,)."""

    def count_steps(self, goals: Sequence[Goal]) -> NDArray[np.int64]:
        """Return how many visits reached each goal after all goals before it, shape (n,).

        The order is that of time, at the same time that in which they were stored. A view or an
        event may reach several in order.
        """


OPEN_MS: Final = 300_000
"""For so long a page whose view has no duration yet may be open."""


class Reader(Protocol):
    """A website as it is at one moment, for one request."""

    @property
    def texts(self) -> CodeTexts:
        """The texts of the codes, which are the reader's own."""

    @property
    def sources(self) -> Sources:
        """The names of referrers."""

    @property
    def cancellation(self) -> Cancellation:
        """Ends the request."""

    def time_bounds(self) -> tuple[int, int]:
        """Return the times of the first and the last view; without any, the last is before."""

    def last_counted_ms(self, period: Period) -> int | None:
        """Return the time of the last view in a period that was not imported, None without any."""

    def open_pages(self, now_ms: int) -> int:
        """Return how many views of the five minutes before a moment have a page not left yet.

        Such a view has no duration.
        """

    def select(self, query: Query) -> Selected:
        """Return the views that match a query's filters and are in its period, and their visits."""

    def select_left_out(self, rule: Query) -> Sequence[tuple[Selected, tuple[int, int]]]:
        """Return the views, and their visits, that a rule leaves out by its filters and period.

        Also views of its visits that are after the period, and what other rules leave out, too.
        Each is in one of the selections, which come with their time bounds.
        """

    def count_properties(self, query: Query, *, by_value: bool) -> PropertyCounts:
        """Return the number of events by property name or, with `by_value`, by name and value.

        An event counts by its own time. The filters on views look at its view.
        """


@frozen(kw_only=True)
class SeriesOptions:
    """The series that figures of a period come with: those of each interval, if there is one.

    `now_ms` ends a series that has no end; take it after the snapshot. `interval` is one of
    `buckets.INTERVALS`. `zone` replaces the UTC offset of the period's start.
    """

    now_ms: int
    interval: str | None = None
    zone: tzinfo | None = None

    def buckets(self, reader: Reader, period: Period) -> tuple[Period, Buckets] | None:
        """Return the buckets of the series and its period, which has both bounds.

        Without a start, that is the first view; if there is none, the end is before the start.
        Raises BadRequest for an unknown interval and for too many buckets.
        """
        if self.interval is None:
            return None
        start_ms, end_ms = period.start_ms, period.end_ms
        if end_ms is None:
            end_ms = self.now_ms
        if start_ms is None:
            first_ms, last_ms = reader.time_bounds()
            start_ms = first_ms if first_ms <= last_ms else end_ms + 1
        buckets = make_buckets(self.interval, start_ms, end_ms, self.zone or period.zone)
        return Period(start_ms, end_ms), buckets
