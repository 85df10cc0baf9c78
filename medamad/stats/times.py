"""The statistic of time: how long each page is looked at."""

import numpy as np

from medamad.model.dimensions import Dimension
from medamad.stats.counting import tally_by
from medamad.stats.quantiles import by_group
from medamad.stats.question import Question
from medamad.stats.rows import Columns, Row, fractions, page, records
from medamad.stats.selecting import view_filter
from medamad.store.parts import Snapshot
from medamad.vocabulary.sources import Sources


def report(snapshot: Snapshot, question: Question, sources: Sources) -> list[Row]:
    """Give a row for every path with a timed view: most visitors of the page first.

    Path, median duration and the path's share of the total time; unless a summary is asked for,
    visitors and the quartiles too. A summary has the greatest share first.
    """
    selection = view_filter(snapshot, question, sources)
    chosen = list(selection.choose(snapshot.parts, question.period))
    tally = tally_by(chosen, Dimension.PATH)
    spread = by_group(
        [views.codes(Dimension.PATH)[views.timed] for views in chosen],
        [views.duration_ms[views.timed] for views in chosen],
        len(tally.views),
    )
    medians, total_ms = spread.quartile(2), tally.duration_ms
    shares = fractions(total_ms, total_ms.sum())
    visitors = tally.visitors(of_page=True)
    codes, paths = page(
        np.flatnonzero(spread.counts),
        (shares if question.summary else visitors, medians),
        snapshot.texts(Dimension.PATH).__getitem__,
        question.rows,
    )
    short: Columns = {
        "path": paths,
        "duration": medians[codes],
        "duration_percentage": shares[codes],
    }
    if question.summary:
        return records(short)
    return records(
        {
            **short,
            "visitors": visitors[codes],
            "duration_upper_quartile": spread.quartile(3)[codes],
            "duration_lower_quartile": spread.quartile(1)[codes],
        }
    )
