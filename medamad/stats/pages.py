"""The statistic of pages: views and visitors by path."""

import numpy as np

from medamad.model.dimensions import Dimension
from medamad.stats.counting import tally_by
from medamad.stats.question import Question
from medamad.stats.rows import Columns, Row, fractions, page, records
from medamad.stats.selecting import select
from medamad.store.parts import Snapshot
from medamad.vocabulary.sources import Sources


def report(snapshot: Snapshot, question: Question, sources: Sources) -> list[Row]:
    """Give a row for every path: most visitors of the page, then most views, first.

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
    return records(
        {
            **short,
            "pageviews": views[codes],
            "pageviews_percentage": fractions(views[codes], views.sum()),
            "bounce_percentage": fractions(tally.bounces[codes], tally.timed_visitors[codes]),
            "duration": tally.duration_ms[codes],
        }
    )
