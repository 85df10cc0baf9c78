"""The statistic of time: how long each page is looked at."""

import numpy as np
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query.aggregate import tally_by
from medamad.query.quantiles import GroupedDurations, Spread
from medamad.query.request import Question
from medamad.query.rollups import durations_by_path, with_single_durations
from medamad.query.rows import Columns, Row, fractions, page, records, within_reach
from medamad.query.scan import Selection, select
from medamad.storage.segments.snapshot import Snapshot


def report(snapshot: Snapshot, question: Question, sources: Sources) -> list[Row]:
    """Return a row for every path with a timed view: most visitors of the page first.

    Path, median duration and the path's share of the total time; unless a summary is asked for,
    visitors and the quartiles too. A summary has the greatest share first. Days of which single
    durations are not known are left out.
    """
    selection = with_single_durations(select(snapshot, question, sources))
    tally = tally_by(selection, Dimension.PATH)
    total_ms, visitors = tally.duration_ms, tally.visitors(of_page=True)
    shares = fractions(total_ms, total_ms.sum())
    first = shares if question.summary else visitors
    # Durations are sorted only for the pages that can be shown, of which the sums decide.
    shown, stretch = within_reach(np.flatnonzero(total_ms), first, question.rows)
    texts = snapshot.texts(Dimension.PATH)
    spread = _spread(selection, shown, len(texts))
    medians = np.zeros(len(total_ms), np.int64)
    medians[shown] = spread.quartile(2)[: len(shown)]
    codes, paths = page(shown, (first, medians), texts.__getitem__, stretch)
    short: Columns = {
        "path": paths,
        "duration": medians[codes],
        "duration_percentage": shares[codes],
    }
    if question.summary:
        return records(short)
    places = np.searchsorted(shown, codes)
    return records(
        {
            **short,
            "visitors": visitors[codes],
            "duration_upper_quartile": spread.quartile(3)[places],
            "duration_lower_quartile": spread.quartile(1)[places],
        }
    )


def _spread(selection: Selection, paths: NDArray[np.integer], size: int) -> Spread:
    """Sort the durations on some pages, given by ascending codes out of `size`.

    Groups are the places among `paths`. Those of all other pages are one further group.
    """
    others = len(paths)
    place = np.full(size, others, np.min_scalar_type(others))
    place[paths] = np.arange(others)
    durations = GroupedDurations(others + 1)
    for chosen in selection.views():
        codes = chosen.codes(Dimension.PATH)
        durations.add(codes if others == size else place.take(codes), chosen.duration_ms)
    for found in durations_by_path(selection):
        durations.add(np.repeat(place.take(found.codes), found.counts), found.duration_ms)
    return durations.sorted()
