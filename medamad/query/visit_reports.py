"""The reports of visits: entry and exit pages, what comes before and after a page, and columns."""

from typing import Final, Literal

import numpy as np

from medamad.domain.dimensions import Dimension
from medamad.query.names import order_of_texts
from medamad.query.period import Period
from medamad.query.reader import Reader
from medamad.query.request import Query, Result
from medamad.query.rows import Columns, Row, fractions, make_rows, page_of_rows
from medamad.query.sums import DURATION_MS, VISITS, VisitGrouping, VisitSums, WhichView
from medamad.storage.dictionary.decode import CodeTexts

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


def visits_in(reader: Reader, period: Period) -> int:
    """Return the number of visits that began in a period."""
    sums, _ = reader.select(Query(period)).visits_by_bucket(None)
    return int(sums.visits.sum())


def entry_pages(reader: Reader, query: Query) -> Result[list[Row]]:
    """Return a row for each page where selected visits began; most visits first.

    Path, visits and their share; unless the report is to be brief, also their means.
    """
    selected = reader.select(query)
    up_to = VISITS if query.is_brief else DURATION_MS
    found = selected.group_visits([VisitGrouping(Dimension.PATH, up_to=up_to)])
    (sums,) = found.sums
    columns, shown = _pages_of(sums, reader.texts, query)
    if not query.is_brief:
        columns |= _means(shown)
    return Result(make_rows(columns), found.gaps | selected.left_out)


def exit_pages(reader: Reader, query: Query) -> Result[list[Row]]:
    """Return a row for each page where selected visits ended; most visits first.

    Path, visits and their share; unless the report is to be brief, also the share of the visits
    that saw the page.
    """
    selected = reader.select(query)
    which = [WhichView.LAST] if query.is_brief else [WhichView.LAST, WhichView.ANY]
    found = selected.group_visits([VisitGrouping(Dimension.PATH, each) for each in which])
    sums, *pages = found.sums
    columns, shown = _pages_of(sums, reader.texts, query)
    if pages:
        of_pages = pages[0].dense(len(reader.texts(Dimension.PATH))).take(shown.codes)
        columns["exit_percentage"] = fractions(shown.visits, of_pages.visits)
    return Result(make_rows(columns), found.gaps | selected.left_out)


def _pages_of(sums: VisitSums, texts: CodeTexts, query: Query) -> tuple[Columns, VisitSums]:
    """Return the pages that a query asks for with their visits, and all sums of these."""
    of_codes = texts(Dimension.PATH)
    visits = np.zeros(len(of_codes), np.int64)
    visits[sums.codes] = sums.visits
    order = order_of_texts(texts, Dimension.PATH)
    codes, paths = page_of_rows(np.flatnonzero(visits), (visits,), of_codes, query.row_slice, order)
    shown = sums.take(np.searchsorted(sums.codes, codes))
    columns: Columns = {
        "path": paths,
        "visits": shown.visits,
        "visits_percentage": fractions(shown.visits, visits.sum()),
    }
    return columns, shown


def pages_beside(
    reader: Reader,
    query: Query,
    *,
    path: str,
    step: Literal[1, -1],
) -> Result[list[Row]]:
    """Return a row for each page that came next after selected views of a path; most views first.

    With a step of -1, that came before. Path, views and their share; the path END is that of views
    which ended, or began, their visit. Views whose visit is unknown do not count.
    """
    selected = reader.select(query)
    texts = reader.texts(Dimension.PATH)
    counts = selected.pages_beside(path, step)
    names = [*texts[: len(counts) - 1], END]
    rows, paths = page_of_rows(np.flatnonzero(counts), (counts,), names, query.row_slice)
    columns: Columns = {
        "path": paths,
        "views": counts[rows],
        "views_percentage": fractions(counts[rows], counts.sum()),
    }
    return Result(make_rows(columns), selected.visit_gaps | selected.left_out)
