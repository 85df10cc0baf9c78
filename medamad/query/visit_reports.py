"""The reports of visits: entry and exit pages, what comes before and after a page, and columns."""

from collections.abc import Iterator
from typing import Final, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.lookup.referrers import Sources
from medamad.query.buckets import Buckets
from medamad.query.filters import cached_mask
from medamad.query.goals import GoalSearch
from medamad.query.kept_sums import sum_visits
from medamad.query.names import order_of_texts
from medamad.query.part_visits import count_pages_beside
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation, Gaps, Query, Result
from medamad.query.rollup_visits import visits_by_code, visits_by_end, with_rollups
from medamad.query.rows import Columns, Row, fractions, make_rows, page_of_rows
from medamad.query.scan import Selection
from medamad.query.selection import select
from medamad.query.view_filter import SelectedViews
from medamad.query.visit_groups import FindViews, selecting_views, visits_in_groups
from medamad.query.visit_sums import (
    Beginnings,
    Count,
    FirstViews,
    Kind,
    LastPages,
    ReachedGoal,
    SeenPages,
    Totals,
    VisitSums,
)
from medamad.storage.segments.counters import SLOT_MS
from medamad.storage.segments.parts import CodeTexts
from medamad.storage.segments.snapshot import Snapshot

END: Final = ""
"""The row of views that begin or end their visit; no path is empty."""


def visit_columns(sums: VisitSums) -> Columns:
    """Return the figures of visits as columns."""
    return {"visits": sums.visits, "visit_pageviews": sums.views, **_means(sums)}


def _means(sums: VisitSums) -> Columns:
    return {
        "views_per_visit": fractions(sums.views, sums.visits, decimals=2),
        "visit_bounce_percentage": fractions(sums.bounces, sums.visits),
        "visit_duration": sums.mean_duration_ms,
    }


def sum_in_buckets(selection: Selection, buckets: Buckets | None) -> VisitSums:
    """Return the sums of the selected visits by the bucket in which they began, or of all.

    The period of the selection has to be that of the buckets.
    """
    if buckets is None and not selection.filter.matches_all:
        # Times are slow to read. Without a filter, the sums by time are kept.
        (sums,) = sum_visits(selection, [Totals()])
        return sums.total()
    slot_ms = _slot_ms(selection.period, buckets)
    (sums,) = sum_visits(selection, [Beginnings(slot_ms)])
    return sums.total() if buckets is None else _by_bucket(sums, slot_ms, selection.period, buckets)


def count_reached(
    selection: Selection,
    buckets: Buckets | None,
    search: GoalSearch,
    find_views: FindViews = selecting_views,
) -> NDArray[np.int64]:
    """Return the number of selected visits, and for each goal of those that reached it.

    By the bucket in which they began, or of all: shape (1 + goals, n), or (1 + goals, 1).
    `find_views` is for `visits_in_groups`, which is used under a filter.
    """
    if selection.filter.matches_all:
        slot_ms = None if buckets is None else _slot_ms(selection.period, buckets)
        count = Count(slot_ms=slot_ms)
        kinds: list[Kind] = [count, *(ReachedGoal(goal, count) for goal in search.goals)]
        found = sum_visits(selection, kinds)
        if buckets is None or slot_ms is None:
            return np.stack([sums.dense(1).visits for sums in found])
        return np.stack(
            [_by_bucket(sums, slot_ms, selection.period, buckets).visits for sums in found]
        )
    size = 1 if buckets is None else len(buckets.dates)
    counts = np.zeros((1 + len(search.goals), size), np.int64)
    for visits, views in visits_in_groups(selection, find_views):
        masks = [np.ones(len(visits), np.bool_), *search.have_reached(visits, views.part)]
        if buckets is None:
            counts[:, 0] += [np.count_nonzero(mask) for mask in masks]
            continue
        for part, begins, _ in visits.first_views():
            places = buckets.of(part.time_ms[begins])
            counts += [np.bincount(places[mask], minlength=size) for mask in masks]
    return counts


def _slot_ms(period: Period, buckets: Buckets | None) -> int:
    """Return the length of slots of which each is in one bucket."""
    if buckets is None or buckets.are_aligned(SLOT_MS, *_bounds(period)):
        return SLOT_MS
    return 1


def _by_bucket(sums: VisitSums, slot_ms: int, period: Period, buckets: Buckets) -> VisitSums:
    begins_ms = np.clip(sums.codes * slot_ms, *_bounds(period))
    return sums.grouped(buckets.of(begins_ms), len(buckets.dates))


def _bounds(period: Period) -> tuple[int, int]:
    # As those of buckets are.
    assert period.start_ms is not None  # noqa: S101
    assert period.end_ms is not None  # noqa: S101
    return period.start_ms, period.end_ms


def all_in_buckets(selection: Selection, buckets: Buckets | None) -> tuple[VisitSums, Gaps]:
    """Return the sums of the selected visits by bucket, or of all, with rollups, and the gaps."""
    return with_rollups(sum_in_buckets(selection, buckets), selection, buckets)


def visits_in(snapshot: Snapshot, period: Period, sources: Sources) -> int:
    """Return the number of visits that began in a period."""
    sums, _ = all_in_buckets(select(snapshot, Query(period), sources, Cancellation()), None)
    return int(sums.visits.sum())


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

        def added(column: NDArray[np.int64]) -> NDArray[np.int64]:
            sums = np.zeros(size, np.int64)
            np.add.at(sums, groups, column[codes])
            return sums

        return RowVisits(
            added(self.visits),
            added(self.bounces),
            added(self.conversions),
            self.total,
            self.gaps,
        )


def visits_by_dimension(
    selection: Selection,
    dimension: Dimension,
    size: int,
    *,
    with_bounces: bool = False,
    include_rollups: bool = True,
    conversions: Goal | None = None,
) -> RowVisits:
    """Return the selected visits by code: those that saw a page, or whose first view has a text.

    For the codes 0 to size - 1 at least. With `conversions`, which rollups do not know, or without
    `include_rollups`, days of which only rollups are left are gaps.
    """
    is_by_page = dimension is Dimension.PATH
    # A visit that bounced saw its first page alone.
    first = FirstViews(dimension, with_durations=False) if with_bounces else Count(dimension)
    kinds: list[Kind] = [first, SeenPages()] if is_by_page else [first]
    if conversions is not None:
        kinds.append(ReachedGoal(conversions, SeenPages() if is_by_page else Count(dimension)))
    of_first, *others = sum_visits(selection, kinds)
    of_kind = others.pop(0) if is_by_page else of_first
    total, gaps = int(of_first.visits.sum()), selection.visit_gaps
    if include_rollups and conversions is None:
        days = visits_by_code(selection, dimension)
        total, gaps = total + days.visits, days.gaps
        of_first = days.of_first_views(of_first)
        of_kind = days.of_any_views(of_kind) if is_by_page else days.of_first_views(of_kind)
    size = max(size, int(of_kind.codes[-1]) + 1 if len(of_kind.codes) else 0)
    return RowVisits(
        of_kind.dense(size).visits,
        of_first.dense(size).bounces if with_bounces else np.zeros(size, np.int64),
        others[0].dense(size).visits if others else np.zeros(size, np.int64),
        total,
        gaps,
    )


def entry_pages(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Result[list[Row]]:
    """Return a row for each page where selected visits began; most visits first.

    Path, visits and their share; unless the report is to be brief, also their means.
    """
    selection = select(snapshot, query, sources, cancellation)
    kind = Count(Dimension.PATH) if query.is_brief else FirstViews(Dimension.PATH)
    (sums,) = sum_visits(selection, [kind])
    days = visits_by_end(selection, with_pages=False, with_exits=False)
    sums = days.of_first_views(sums)
    rows, paths = _page_of_paths(sums, snapshot.texts, query)
    columns = _page_columns(paths, sums.visits[rows], sums.visits.sum())
    if not query.is_brief:
        columns |= _means(sums.take(rows))
    return Result(make_rows(columns), days.gaps | selection.left_out)


def exit_pages(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Result[list[Row]]:
    """Return a row for each page where selected visits ended; most visits first.

    Path, visits and their share; unless the report is to be brief, also the share of the visits
    that saw the page.
    """
    selection = select(snapshot, query, sources, cancellation)
    kinds = [LastPages()] if query.is_brief else [LastPages(), SeenPages()]
    sums, *seen = sum_visits(selection, kinds)
    days = visits_by_end(selection, with_pages=not query.is_brief, with_exits=True)
    sums = days.of_last_views(sums)
    rows, paths = _page_of_paths(sums, snapshot.texts, query)
    columns = _page_columns(paths, sums.visits[rows], sums.visits.sum())
    if seen:
        (pages,) = map(days.of_any_views, seen)
        shown = pages.dense(len(snapshot.texts(Dimension.PATH))).take(sums.codes[rows])
        columns["exit_percentage"] = fractions(sums.visits[rows], shown.visits)
    return Result(make_rows(columns), days.gaps | selection.left_out)


def _page_of_paths(
    sums: VisitSums, texts: CodeTexts, query: Query
) -> tuple[NDArray[np.intp], list[str]]:
    """Return the places in some sums, and the paths, of the rows that a query asks for."""
    of_codes = texts(Dimension.PATH)
    visits = np.zeros(len(of_codes), np.int64)
    visits[sums.codes] = sums.visits
    order = order_of_texts(texts, Dimension.PATH)
    codes, paths = page_of_rows(np.flatnonzero(visits), (visits,), of_codes, query.row_slice, order)
    return np.searchsorted(sums.codes, codes), paths


def _page_columns(paths: list[str], visits: NDArray[np.int64], total: np.int64) -> Columns:
    return {
        "path": paths,
        "visits": visits,
        "visits_percentage": fractions(visits, np.asarray(total)),
    }


def pages_beside(
    snapshot: Snapshot,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    *,
    path: str,
    step: Literal[1, -1],
) -> Result[list[Row]]:
    """Return a row for each page that came next after selected views of a path; most views first.

    With a step of -1, that came before. Path, views and their share; the path END is that of views
    which ended, or began, their visit. Views whose visit is unknown do not count.
    """
    selection = select(snapshot, query, sources, cancellation)
    texts = snapshot.texts(Dimension.PATH)
    # A page that was vacuumed and seen again has several codes until its texts are read again.
    is_page = cached_mask(
        snapshot.texts,
        Dimension.PATH,
        (pages_beside, path),
        lambda piece: np.array([text == path for text in piece], np.bool_),
        cancellation,
    )

    def views_of_page(selection: Selection) -> Iterator[SelectedViews]:
        for selected in selection.views():
            places = np.flatnonzero(is_page.take(selected.codes(Dimension.PATH)))
            if len(places):
                yield SelectedViews(selected.part, selected.rows_of(places))

    counts = np.zeros(len(texts) + 1, np.int64)
    for visits, views in visits_in_groups(selection, views_of_page, ALWAYS):
        counts += count_pages_beside(visits, views, step=step, size=len(texts))
    names = [*texts[: len(counts) - 1], END]
    rows, paths = page_of_rows(np.flatnonzero(counts), (counts,), names, query.row_slice)
    columns: Columns = {
        "path": paths,
        "views": counts[rows],
        "views_percentage": fractions(counts[rows], counts.sum()),
    }
    return Result(make_rows(columns), selection.visit_gaps | selection.left_out)
