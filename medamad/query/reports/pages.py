"""The report of pages: views and visitors by path."""

import numpy as np

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query.aggregate import bounces_and_durations, tally
from medamad.query.request import Cancellation, Query
from medamad.query.result import Result
from medamad.query.rows import Columns, Row, fractions, make_rows, page_of_rows
from medamad.query.scan import select
from medamad.storage.segments.snapshot import Snapshot


def report(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Result[list[Row]]:
    """Return a row for each path: most visitors of the page first, then most views.

    Path, visitors and their share; unless a summary is asked for, also views and their share, the
    bounce rate and the total time.
    """
    selection = select(snapshot, query, sources, cancellation)
    sums = tally(selection, Dimension.PATH, with_durations=not query.is_brief)
    views, visitors = sums.views, sums.visitors(of_page=True)
    texts = snapshot.texts(Dimension.PATH)
    codes, paths = page_of_rows(
        np.flatnonzero(views), (visitors, views), texts.__getitem__, query.row_slice
    )
    columns: Columns = {
        "path": paths,
        "visitors": visitors[codes],
        "visitors_percentage": fractions(visitors[codes], visitors.sum()),
    }
    if not query.is_brief:
        shown_rows = sums.take(codes)
        columns["pageviews"] = shown_rows.views
        columns["pageviews_percentage"] = fractions(shown_rows.views, views.sum())
        columns |= bounces_and_durations(shown_rows, shown_rows.duration_ms, query)
    return Result(make_rows(columns), sums.gaps)
