"""The reports of visits: entry and exit pages, what comes before and after a page, and columns."""

from typing import Final, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.lookup.referrers import Sources
from medamad.query.buckets import Buckets
from medamad.query.filters import Mask
from medamad.query.goals import have_reached
from medamad.query.request import Cancellation, Query, Result
from medamad.query.rows import Columns, Row, fractions, make_rows, page_of_rows
from medamad.query.scan import Selection
from medamad.query.selection import select
from medamad.query.visits import (
    Visits,
    VisitTotals,
    figures_of,
    page_views,
    pages_of_visits,
    select_visits,
    totals_of,
    visit_numbers,
)
from medamad.storage.segments.snapshot import Snapshot

END: Final = ""
"""The row of views that begin or end their visit; no path is empty."""


def visit_columns(totals: VisitTotals) -> Columns:
    """Return the figures of visits as columns."""
    return {"visits": totals.visits, **_means(totals)}


def _means(totals: VisitTotals) -> Columns:
    return {
        "views_per_visit": fractions(totals.views, totals.visits, decimals=2),
        "visit_bounce_percentage": fractions(totals.bounces, totals.visits),
        "visit_duration": totals.mean_duration_ms,
    }


def visits_in_all(selection: Selection) -> VisitTotals:
    """Return the sums of all selected visits, shape (1,)."""
    return totals_of(figures_of(select_visits(selection)))


def visits_in_buckets(selection: Selection, buckets: Buckets) -> VisitTotals:
    """Return the sums of the selected visits by the bucket in which they began.

    The period of the selection has to be that of the buckets.
    """
    figures = figures_of(select_visits(selection))
    return totals_of(figures, buckets.of(figures.began_ms), len(buckets.dates))


@frozen(eq=False)
class RowVisits:
    """The visits of each row of a dimension, and how many of them bounced, shape (n,).

    `conversions` has how many of them reached a goal, if one is asked for.
    `total` is the number of visits; those that saw several pages are in several rows.
    """

    visits: NDArray[np.int64]
    bounces: NDArray[np.int64]
    conversions: NDArray[np.int64]
    total: int


def visits_by_dimension(
    selection: Selection,
    dimension: Dimension,
    row_of_code: NDArray[np.intp] | None,
    size: int,
    conversions: Goal | None = None,
) -> RowVisits:
    """Return the selected visits by row: those that saw a page, or whose first view has a text.

    `row_of_code` has the row of each code, -1 for none; without it, a row has the number of its
    code.
    """
    visits = select_visits(selection)
    bounced = figures_of(visits).bounced
    if dimension is Dimension.PATH:
        places, codes = pages_of_visits(visits)
    else:
        places, codes = np.arange(len(visits)), visits.codes_of_first_views(dimension)
    # Codes that no selected view has are in no row.
    if row_of_code is None:
        is_in = codes < size
        rows = codes[is_in]
    else:
        known = codes < len(row_of_code)
        rows = row_of_code[codes[known]]
        known[known] = rows >= 0
        is_in, rows = known, rows[rows >= 0]
    places = places[is_in]

    def counted(mask: Mask) -> NDArray[np.int64]:
        return np.bincount(rows, mask[places], size).astype(np.int64)

    (reached,) = have_reached(visits, [conversions]) if conversions else [np.zeros_like(bounced)]
    return RowVisits(
        np.bincount(rows, minlength=size), counted(bounced), counted(reached), len(visits)
    )


def entry_pages(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Result[list[Row]]:
    """Return a row for each page where selected visits began; most visits first.

    Path, visits and their share; unless the report is to be brief, also their means.
    """
    selection = select(snapshot, query, sources, cancellation)
    visits = select_visits(selection)
    texts = snapshot.texts(Dimension.PATH)
    codes = visits.codes_of_first_views(Dimension.PATH)
    if query.is_brief:
        counts = np.bincount(codes, minlength=len(texts))
        totals = None
    else:
        totals = totals_of(figures_of(visits), codes, len(texts))
        counts = totals.visits
    numbers, paths = page_of_rows(
        np.flatnonzero(counts), (counts,), texts.__getitem__, query.row_slice
    )
    columns = _page_columns(paths, counts[numbers], len(visits))
    if totals is not None:
        columns |= _means(totals.take(numbers))
    return Result(make_rows(columns), selection.visit_gaps | selection.left_out)


def exit_pages(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Result[list[Row]]:
    """Return a row for each page where selected visits ended; most visits first.

    Path, visits and their share; unless the report is to be brief, also the share of the visits
    that saw the page.
    """
    selection = select(snapshot, query, sources, cancellation)
    visits = select_visits(selection)
    texts = snapshot.texts(Dimension.PATH)
    counts = np.bincount(visits.codes_of_last_views(Dimension.PATH), minlength=len(texts))
    numbers, paths = page_of_rows(
        np.flatnonzero(counts), (counts,), texts.__getitem__, query.row_slice
    )
    columns = _page_columns(paths, counts[numbers], len(visits))
    if not query.is_brief:
        _, codes = pages_of_visits(visits)
        seen = np.bincount(codes, minlength=len(texts))
        columns["exit_percentage"] = fractions(counts[numbers], seen[numbers])
    return Result(make_rows(columns), selection.visit_gaps | selection.left_out)


def _page_columns(paths: list[str], visits: NDArray[np.int64], total: int) -> Columns:
    return {
        "path": paths,
        "visits": visits,
        "visits_percentage": fractions(visits, np.array(total)),
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
    code = next((code for code, text in enumerate(texts) if text == path), None)
    selected = [np.zeros(0, np.uint64)]
    numbers = [np.zeros(0, np.uint64)]
    for views in selection.views():
        is_of_path = (views.codes(Dimension.PATH) == code) if code is not None else slice(0)
        selected.append(views.of(views.part.sequence)[is_of_path])
        numbers.append(views.of(visit_numbers(views.part))[is_of_path])
    known = np.unique(np.concatenate(numbers))
    viewed = page_views(Visits(snapshot, cancellation, known[known > 0]))
    from_path = np.flatnonzero(np.isin(viewed.sequence, np.concatenate(selected)))
    beside = from_path + step
    is_in = (beside >= 0) & (beside < len(viewed.visits))
    beside = beside[is_in]
    is_same = viewed.visits[beside] == viewed.visits[from_path[is_in]]
    counts = np.bincount(viewed.codes[beside[is_same]], minlength=len(texts))
    ends = len(from_path) - int(is_same.sum())
    names = [*texts[: len(counts)], END]
    counts = np.append(counts, ends)
    rows, paths = page_of_rows(
        np.flatnonzero(counts), (counts,), names.__getitem__, query.row_slice
    )
    columns: Columns = {
        "path": paths,
        "views": counts[rows],
        "views_percentage": fractions(counts[rows], np.array(len(from_path))),
    }
    return Result(make_rows(columns), selection.visit_gaps | selection.left_out)
