"""The statistic of pages: views and visitors by path."""

import numpy as np

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query.aggregate import Tally, figures_of_time, tally_by
from medamad.query.request import Question
from medamad.query.rows import Columns, Row, fractions, page, records
from medamad.query.scan import select
from medamad.storage.segments.snapshot import Snapshot


def report(snapshot: Snapshot, question: Question, sources: Sources) -> list[Row]:
    """Return a row for every path: most visitors of the page, then most views, first.

    Path, visitors and their share; unless a summary is asked for, views and their share, the
    bounce rate and the total time too.
    """
    selection = select(snapshot, question, sources)
    tally = tally_by(selection, Dimension.PATH, timed=not question.summary)
    views, visitors = tally.views, tally.visitors(of_page=True)
    texts = snapshot.texts(Dimension.PATH)
    codes, paths = page(np.flatnonzero(views), (visitors, views), texts.__getitem__, question.rows)
    shares = fractions(visitors[codes], visitors.sum())
    short: Columns = {"path": paths, "visitors": visitors[codes], "visitors_percentage": shares}
    if question.summary:
        return records(short)
    shown = Tally(tally.sums[:, codes])
    return records(
        {
            **short,
            "pageviews": shown.views,
            "pageviews_percentage": fractions(shown.views, views.sum()),
            **figures_of_time(shown, shown.duration_ms, question),
        }
    )
