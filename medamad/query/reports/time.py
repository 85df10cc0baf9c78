"""The report of time: how long each page is viewed."""

import numpy as np

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query.aggregate import tally
from medamad.query.quantiles import quartiles_by_path
from medamad.query.request import Cancellation, Query
from medamad.query.result import Result
from medamad.query.rollups import with_single_durations
from medamad.query.rows import Columns, Row, fractions, make_rows, page_of_rows, rows_in_reach
from medamad.query.scan import select
from medamad.storage.segments.snapshot import Snapshot


def report(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Result[list[Row]]:
    """Return a row for each path that has a view with a known duration.

    Path, median duration and the path's share of the total time; most of it first. Unless a summary
    is asked for, also visitors and the quartiles; most visitors of the page first. Days of which
    single durations are unknown are left out.
    """
    selection, gaps = with_single_durations(select(snapshot, query, sources, cancellation))
    sums = tally(selection, Dimension.PATH)
    total_ms, visitors = sums.duration_ms, sums.visitors(of_page=True)
    shares = fractions(total_ms, total_ms.sum())
    first = shares if query.is_brief else visitors
    # Durations are sorted only for the pages that may be on the page of rows, as the sums decide.
    shown, row_slice = rows_in_reach(np.flatnonzero(total_ms), first, query.row_slice)
    texts = snapshot.texts(Dimension.PATH)
    quartiles = quartiles_by_path(selection, shown, len(texts))
    medians_ms = np.zeros(len(total_ms), np.int64)
    medians_ms[shown] = quartiles.quartile(2)[: len(shown)]
    codes, paths = page_of_rows(shown, (first, medians_ms), texts.__getitem__, row_slice)
    columns: Columns = {
        "path": paths,
        "duration": medians_ms[codes],
        "duration_percentage": shares[codes],
    }
    if not query.is_brief:
        places = np.searchsorted(shown, codes)
        columns["visitors"] = visitors[codes]
        columns["duration_upper_quartile"] = quartiles.quartile(3)[places]
        columns["duration_lower_quartile"] = quartiles.quartile(1)[places]
    return Result(make_rows(columns), gaps | sums.gaps)
