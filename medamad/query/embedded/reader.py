"""The engine over a snapshot of the store: what `medamad.query.reader` asks for."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.domain.goals import Goal
from medamad.lookup.referrers import Sources
from medamad.query.buckets import Buckets
from medamad.query.embedded import visit_figures
from medamad.query.embedded.aggregate import quartiles_by_path, tally
from medamad.query.embedded.conversions import find_conversions
from medamad.query.embedded.excluded import ExcludedViews
from medamad.query.embedded.goals import GoalSearch, count_steps
from medamad.query.embedded.properties import count_properties
from medamad.query.embedded.rollups import with_single_durations
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.selection import select
from medamad.query.embedded.series import EVER, series_of
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.embedded.visit_groups import (
    gaps_without_beginning,
    left_out_of,
    visits_in_groups,
)
from medamad.query.embedded.visitors import visitors_by_since
from medamad.query.period import ALWAYS, Period
from medamad.query.reader import OPEN_MS, Reader, Selected
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
from medamad.query.visit_reports import entry_pages, exit_pages
from medamad.storage.dictionary.decode import CodeTexts
from medamad.storage.segments.gathered import GatheredViews
from medamad.storage.segments.parts import Part, enclosing_bounds
from medamad.storage.segments.snapshot import Snapshot


@frozen(eq=False)
class EmbeddedSelected(Selected):
    """A selection of views, and the query that it is of."""

    query: Query
    selection: Selection

    @property
    def period(self) -> Period:
        return self.selection.period

    @property
    def left_out(self) -> Gaps:
        return left_out_of(self.selection)

    @property
    def visit_gaps(self) -> Gaps:
        return self.selection.visit_gaps | gaps_without_beginning(self.selection)

    def time_bounds(self) -> tuple[int, int]:
        scanned = list(self.selection.candidates(lambda part: part.time_bounds))
        found = enclosing_bounds(each for each in scanned if isinstance(each, tuple))
        # To read times is slow, and few parts have views before and after those of all others.
        candidates = [each for each in scanned if not isinstance(each, tuple)]
        candidates.sort(key=lambda each: each.part.time_bounds[0])
        latest_first = sorted(candidates, key=lambda each: -each.part.time_bounds[1])
        for each in (*candidates[:1], *latest_first, *candidates):
            first_ms, last_ms = each.part.time_bounds
            if found[0] <= found[1] and found[0] <= first_ms and last_ms <= found[1]:
                continue
            if len(rows := each.rows):
                time_ms = each.part.time_ms[rows]
                found = enclosing_bounds((found, (int(time_ms.min()), int(time_ms.max()))))
        return found

    def during(self, period: Period, gap: Gap = Gap.FIGURES) -> Self:
        return evolve(self, selection=evolve(self.selection, period=period, gap=gap))

    def with_single_durations(self) -> tuple[Self, Gaps]:
        selection, gaps = with_single_durations(self.selection)
        return evolve(self, selection=selection), gaps

    def tally(self, dimension: Dimension, *, with_durations: bool = True) -> Tally:
        return tally(self.selection, dimension, with_durations=with_durations)

    def series(self, buckets: Buckets | None) -> Series:
        return series_of(self.selection, EVER if buckets is None else buckets)

    def quartiles(self, paths: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        found = quartiles_by_path(self.selection, paths)
        return np.stack([found.quartile(number) for number in (1, 2, 3)])

    def visitors_by_since(self, buckets: Buckets) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        return visitors_by_since(self.selection, buckets)

    def visits_by_bucket(self, buckets: Buckets | None) -> tuple[VisitSums, Gaps]:
        return visit_figures.visits_by_bucket(self.selection, buckets)

    def group_visits(
        self, groupings: Sequence[VisitGrouping], *, include_rollups: bool = True
    ) -> GroupedVisits:
        return visit_figures.group_visits(
            self.selection, groupings, include_rollups=include_rollups
        )

    def amounts_by_first_view(
        self, goal: Goal, groupings: Sequence[VisitGrouping]
    ) -> tuple[list[AmountCounts], Gaps]:
        return visit_figures.amounts_by_first_view(self.selection, goal, groupings)

    def pages_beside(self, path: str, step: Literal[1, -1]) -> NDArray[np.int64]:
        return visit_figures.pages_beside(self.selection, path, step)

    def conversions(self, goals: Sequence[Goal], buckets: Buckets | None) -> ReachedGoals:
        return find_conversions(self.selection, self.query, goals, buckets)

    def count_visits(self, buckets: Buckets | None) -> NDArray[np.int64]:
        visits: NDArray[np.int64]
        search = GoalSearch((), (), self.selection.snapshot)
        (visits,) = visit_figures.count_reached(self.selection, buckets, search)
        return visits

    def count_steps(self, goals: Sequence[Goal]) -> NDArray[np.int64]:
        return count_steps(self.selection, goals)


def _latest_counted_ms(part: Part) -> int | None:
    """Return the time of the latest view of a part, None if it was imported."""
    return None if part.import_batch else part.time_bounds[1]


@frozen(eq=False)
class EmbeddedReader(Reader):
    """Reads a website from a snapshot of the store."""

    snapshot: Snapshot
    sources: Sources
    cancellation: Cancellation
    rules: Sequence[Query] = ()
    """What the rules of the website leave out: views that match any of them count nowhere."""
    _excluded: ExcludedViews | None = field(init=False)
    _counted: Snapshot = field(init=False)
    """The snapshot without the rollups of what rules leave out."""

    @_excluded.default
    def _find_excluded(self) -> ExcludedViews | None:
        if not self.rules:
            return None
        return ExcludedViews(self.snapshot, self.rules, self.sources, self.cancellation)

    @_counted.default
    def _find_counted(self) -> Snapshot:
        if self._excluded is None:
            return self.snapshot
        rollups = self._excluded.rollups(left_out=False)
        if rollups == self.snapshot.rollup_segments:
            # What is gathered from it is gathered once.
            return self.snapshot
        return evolve(self.snapshot, rollup_segments=rollups)

    def prepare(self) -> None:
        """Find what is cached for most statistics, if the website has merged segments.

        That is what these have around the median duration, what their segments have of each other's
        visits, its texts, and the order of its pages.
        """
        if not any(segment.members for segment in self.snapshot.segments):
            return
        for report in (entry_pages, exit_pages):
            report(self, Query())
        for visits in visits_in_groups(self.select(Query()).selection):
            if isinstance(visits.part, GatheredViews):
                visits.part.codes(Dimension.PATH)
                visits.part.events()
        # The first finds where the median is, the second what is near it.
        for _ in range(2):
            self.select(Query()).series(None)
        for dimension in VIEW_DIMENSIONS:
            self.texts(dimension)

    @property
    def texts(self) -> CodeTexts:
        return self.snapshot.texts

    def time_bounds(self) -> tuple[int, int]:
        rollups = (each.time_bounds for each in self._counted.rollups)
        return enclosing_bounds((self.select(Query()).time_bounds(), *rollups))

    def last_counted_ms(self, period: Period) -> int | None:
        last_ms, candidates = -1, []
        for each in self.select(Query(period)).selection.candidates(_latest_counted_ms):
            if isinstance(each, int):
                last_ms = max(last_ms, each)
            elif not each.part.import_batch:
                candidates.append(each)
        for each in sorted(candidates, key=lambda each: -each.part.time_bounds[1]):
            if each.part.time_bounds[1] <= last_ms:
                break
            if len(rows := each.rows):
                last_ms = max(last_ms, int(each.part.time_ms[rows].max()))
        return last_ms if last_ms >= 0 else None

    def open_pages(self, now_ms: int) -> int:
        period = Period(now_ms - OPEN_MS, now_ms)
        return sum(
            int(np.count_nonzero(each.part.duration_ms[rows] == 0))
            for each in self.select(Query(period)).selection.all_candidates()
            if len(rows := each.rows)
        )

    def select(self, query: Query) -> EmbeddedSelected:
        selection = select(self._counted, query, self.sources, self.cancellation, self._excluded)
        return EmbeddedSelected(query, selection)

    def select_left_out(self, rule: Query) -> list[tuple[EmbeddedSelected, tuple[int, int]]]:
        visits = ExcludedViews(self.snapshot, (rule,), self.sources, self.cancellation)
        snapshot = evolve(self.snapshot, rollup_segments=())
        days = evolve(
            self.snapshot.with_segments(()), rollup_segments=visits.rollups(left_out=True)
        )
        views, of_days = (
            EmbeddedSelected(Query(), Selection(among, ALWAYS, filter_, self.cancellation))
            for among, filter_ in ((snapshot, ViewFilter({}, None, visits)), (days, ViewFilter({})))
        )
        bounds = enclosing_bounds(day.time_bounds for day in days.rollups)
        return [(views, views.time_bounds()), (of_days, bounds)]

    def count_properties(self, query: Query, *, by_value: bool) -> PropertyCounts:
        return count_properties(
            self, lambda some: self.select(some).selection, query, by_value=by_value
        )
