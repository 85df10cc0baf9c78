"""The median duration of all chosen views, and of those of each bucket of a series."""

from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from medamad.stats.buckets import Buckets
from medamad.stats.quantiles import GroupedDurations, median
from medamad.stats.selecting import Chosen, Selection
from medamad.store.ascending import Ascending
from medamad.store.counters import SLOT_MS, VIEWS
from medamad.store.parts import Group, Part

Numbers = NDArray[np.integer[Any]]

_FEW_BUCKETS: Final = 2_500
"""Up to so many, the durations of each bucket are put together; beyond, all are sorted at once."""


def median_of(selection: Selection) -> int:
    """Give the median of the known durations, 0 if there is none."""
    known: list[Ascending] = []
    loose: list[Numbers] = []
    for chosen in selection.choose(_sorted):
        if isinstance(chosen, Ascending):
            known.append(chosen)
        else:
            loose.append(chosen.duration_ms)
    return median(loose, known)


def medians_of(selection: Selection, buckets: Buckets) -> NDArray[np.int64]:
    """Give the median of each bucket, 0 for those without a known duration."""
    size = len(buckets.dates)
    if size > _FEW_BUCKETS:
        return _medians_by_sorting(selection, buckets)
    pieces: list[list[Numbers]] = [[] for _ in range(size)]
    for chosen in selection.views():
        duration_ms = chosen.duration_ms
        if chosen.part.ascends:
            first, bounds = _bounds(chosen, buckets)
        else:
            numbers = buckets.of(chosen.time_ms)
            duration_ms = duration_ms[np.argsort(numbers, kind="stable")]
            first = int(numbers.min())
            bounds = np.concatenate(([0], np.cumsum(np.bincount(numbers - first))))
        for place, (begin, end) in enumerate(pairwise(bounds.tolist())):
            if begin < end:
                pieces[first + place].append(duration_ms[begin:end])
    return np.array([median(piece) for piece in pieces], np.int64)


def _bounds(chosen: Chosen, buckets: Buckets) -> tuple[int, Numbers]:
    """Give the first bucket of views whose times ascend, and where each bucket's begin and end."""
    part = chosen.part
    least_ms, greatest_ms = part.time_bounds
    slots = None
    if chosen.index is None and buckets.fall_on(SLOT_MS, least_ms, greatest_ms):
        slots = part.slots()
    if slots is None:
        time_ms = chosen.time_ms
        least_ms, greatest_ms = int(time_ms[0]), int(time_ms[-1])
    first, last = (int(number) for number in buckets.of(np.array([least_ms, greatest_ms])))
    edges_ms = buckets.edges_ms[first + 1 : last + 1]
    if slots is None:
        inner, size = np.searchsorted(time_ms, edges_ms), len(time_ms)
    else:
        # The times ascend: before an edge are as many views as the slots before it have.
        up_to = np.concatenate(([0], np.cumsum(slots.sums[VIEWS], dtype=np.int64)))
        inner = up_to[np.searchsorted(slots.codes, edges_ms // SLOT_MS)]
        size = len(part)
    return first, np.concatenate(([0], inner, [size]))


def _medians_by_sorting(selection: Selection, buckets: Buckets) -> NDArray[np.int64]:
    durations = GroupedDurations(len(buckets.dates))
    for chosen in selection.views():
        durations.add(buckets.of(chosen.time_ms), chosen.duration_ms)
    return durations.sorted().quartile(2)


def _sorted(part: Part) -> Ascending | None:
    return part.durations() if isinstance(part, Group) else None
