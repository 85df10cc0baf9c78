"""Sums and median durations of the selected views: of all of them, and by bucket of a series."""

from collections.abc import Iterable, Iterator, Sequence
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
from medamad.query.embedded.loops import Groups, PartViews, same_number
from medamad.query.embedded.rollups import SelectedRollup, selected_rollups
from medamad.query.embedded.scan import Selection, no_value
from medamad.query.request import DayGap, Gap, Gaps
from medamad.query.sums import Series, Tally

EVER: Final = Buckets(np.array([-(1 << 62), 1 << 62]), [""])
"""One bucket, that of all times."""


def series_of(selection: Selection, buckets: Buckets) -> Series:
    """Return the sums and the medians of the selected views by bucket.

    Every selected view must be in a bucket. A rollup whose day is in several buckets is a gap.
    """
    selection.cancellation.check()
    rollups, gaps = _rollups_by_bucket(selection, buckets)
    if not selection.filter.matches_all_included:
        return _filtered(selection, buckets, rollups, gaps)
    size = len(buckets.dates)
    sums = tally_buckets(selection, buckets)
    for bucket, rollup in rollups:
        sums[:, bucket] += rollup.sums

    def scan(among: Selection) -> Iterator[PartViews]:
        return views_by_bucket(among, buckets, no_value)

    quartiles = find_quartiles(
        selection,
        np.arange(size),
        size,
        scan,
        rollups=_timed(rollups),
        cached_as=buckets.edges_ms.tobytes(),
    )
    return Series(Tally(sums, gaps), quartiles.quartile(2))


def _filtered(
    selection: Selection,
    buckets: Buckets,
    rollups: Sequence[tuple[int, SelectedRollup]],
    gaps: Gaps,
) -> Series:
    """Return the series of selected views, and of rollups by bucket."""
    size = len(buckets.dates)
    views = partial(views_by_bucket, selection, buckets, no_value)
    batches, of_rollups = repeatable(views, selection.filter), _timed(rollups)

    def medians_ms(groups: Groups) -> NDArray[np.int64]:
        return LOOPS.quartiles(lambda: chain(batches(), [of_rollups]), groups).quartile(2)

    sums = LOOPS.tally(batches(), size)
    for bucket, rollup in rollups:
        sums[:, bucket] += rollup.sums
    tally = Tally(sums, gaps)
    in_one = np.append(np.zeros(size, np.uint32), np.uint32(1))
    total = Series(tally.total(), medians_ms(Groups(in_one, 1)))
    if size == 1:
        return evolve(total, total=total)
    return Series(tally, medians_ms(Groups(np.arange(size + 1, dtype=np.uint32), size)), total)


def _timed(rollups: Iterable[tuple[int, SelectedRollup]]) -> list[PartViews]:
    """Return the durations of rollups by bucket."""
    return [timed_views(same_number(bucket), rollup.duration_ms) for bucket, rollup in rollups]


def _rollups_by_bucket(
    selection: Selection, buckets: Buckets
) -> tuple[list[tuple[int, SelectedRollup]], Gaps]:
    """Return the rollups whose day is in one bucket, with its number, and the gaps."""
    found = list(selected_rollups(selection))
    bounds_ms = np.array([each.time_bounds for each in found], np.int64).reshape(-1, 2)
    rollups: list[tuple[int, SelectedRollup]] = []
    gaps: set[DayGap] = set()
    for rollup, (first, last) in zip(found, buckets.nearest(bounds_ms).tolist(), strict=True):
        gaps |= rollup.gaps
        if first == last:
            rollups.append((first, rollup))
        elif rollup.sums.any():
            gaps.add((Gap.INTERVAL, rollup.day))
    return rollups, Gaps(gaps)
