"""Sums and median durations of the selected views: of all of them, and by bucket of a series."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Final

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from medamad.query.buckets import Buckets
from medamad.query.embedded.aggregate import (
    find_quartiles,
    repeatable,
    tally_buckets,
    timed_views,
    views_by_bucket,
)
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import Batch, Groups, PartViews, same_number
from medamad.query.embedded.rollups import selected_rollups
from medamad.query.embedded.scan import Selection, no_value
from medamad.query.request import DayGap, Gap, Gaps
from medamad.query.sums import Series, Tally
from medamad.storage.segments.counters import SUMS

EVER: Final = Buckets(np.array([-(1 << 62), 1 << 62]), [""])
"""One bucket, that of all times."""


def series_of(selection: Selection, buckets: Buckets) -> Series:
    """Return the sums and the medians of the selected views by bucket.

    Every selected view must be in a bucket. A rollup whose day is in several buckets is a gap.
    """
    selection.cancellation.check()
    of_rollups, timed = _rollups_by_bucket(selection, buckets)
    if not selection.filter.matches_all_included:
        return _filtered(selection, buckets, of_rollups, timed)
    size = len(buckets.dates)
    sums = tally_buckets(selection, buckets) + of_rollups.sums

    def scan(among: Selection) -> Iterator[PartViews]:
        return views_by_bucket(among, buckets, no_value)

    quartiles = find_quartiles(
        selection,
        np.arange(size),
        size,
        scan,
        rollups=timed,
        cached_as=buckets.edges_ms.tobytes(),
    )
    return Series(Tally(sums, of_rollups.gaps), quartiles.quartile(2))


def _filtered(selection: Selection, buckets: Buckets, of_rollups: Tally, timed: Batch) -> Series:
    """Return the series of selected views, with the sums and the durations of rollups."""
    size = len(buckets.dates)
    views = partial(views_by_bucket, selection, buckets, no_value)
    batches = repeatable(views, selection.filter)

    def medians_ms(groups: Groups) -> NDArray[np.int64]:
        return LOOPS.quartiles(lambda: chain(batches(), [timed]), groups).quartile(2)

    tally = Tally(LOOPS.tally(batches(), size) + of_rollups.sums, of_rollups.gaps)
    in_one = np.append(np.zeros(size, np.uint32), np.uint32(1))
    total = Series(tally.total(), medians_ms(Groups(in_one, 1)))
    if size == 1:
        return evolve(total, total=total)
    return Series(tally, medians_ms(Groups(np.arange(size + 1, dtype=np.uint32), size)), total)


def _rollups_by_bucket(selection: Selection, buckets: Buckets) -> tuple[Tally, list[PartViews]]:
    """Return the sums by bucket of the rollups whose day is in one, and their durations."""
    found = list(selected_rollups(selection))
    bounds_ms = np.array([each.time_bounds for each in found], np.int64).reshape(-1, 2)
    sums, timed = np.zeros((SUMS, len(buckets.dates)), np.int64), list[PartViews]()
    gaps: set[DayGap] = set()
    for rollup, (first, last) in zip(found, buckets.nearest(bounds_ms).tolist(), strict=True):
        gaps |= rollup.gaps
        if first == last:
            sums[:, first] += rollup.sums
            timed.append(timed_views(same_number(first), rollup.duration_ms))
        elif rollup.sums.any():
            gaps.add((Gap.INTERVAL, rollup.day))
    return Tally(sums, Gaps(gaps)), timed
