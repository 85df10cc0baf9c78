"""What is known of the chosen views of each day of which there are sums alone."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.model.dimensions import Dimension
from medamad.stats.filters import Passing
from medamad.stats.selecting import Selection
from medamad.store.counters import DURATION_MS, Counters
from medamad.store.parts import Missing, PathDurations, Sums

_UNKNOWN = np.zeros(0, np.uint32)


@frozen(eq=False)
class SummedDay:
    """The chosen views of a day: their sums, shape (6,), and their known durations."""

    day: Sums
    sums: NDArray[np.int64]
    duration_ms: NDArray[np.uint32]


def summed_days(selection: Selection) -> Iterator[SummedDay]:
    """Give each day of which any view is chosen, where that can be told.

    Where there is a filter on one dimension alone, it chooses among the sums by that.
    """
    filtered = tuple(selection.filter.passing)
    if len(filtered) != 1:
        for day, overall in selection.summed(lambda day: (day, day.overall())):
            if len(overall):
                yield _chosen(selection, day, overall, None, None)
        return
    (dimension,) = filtered
    passing = selection.filter.passing[dimension]

    def known(day: Sums) -> tuple[Sums, Counters] | None:
        counters = day.counters(dimension)
        return None if counters is None else (day, counters)

    for day, counters in selection.without(dimension).summed(known):
        passed = passing.take(counters.codes)
        if passed.any():
            yield _chosen(selection, day, counters, dimension, passed)


def durations_by_path(selection: Selection) -> Iterator[PathDurations]:
    """Give the known durations of each day, for as many paths as there are.

    A filter on the path is for the caller to look at.
    """
    days = selection.without(Dimension.PATH).summed(lambda day: (day, day.path_durations()))
    for day, durations in days:
        if durations is not None:
            yield durations
        else:
            selection.missed.note(Missing.DURATIONS, day)


def _chosen(
    selection: Selection,
    day: Sums,
    counters: Counters,
    dimension: Dimension | None,
    passed: Passing | None,
) -> SummedDay:
    sums = np.array(
        [(row if passed is None else row[passed]).sum(dtype=np.int64) for row in counters.sums],
        np.int64,
    )
    duration_ms = None
    durations = day.path_durations()
    if durations is None:
        pass
    elif passed is None or passed.all():
        duration_ms = durations.duration_ms
    elif dimension is Dimension.PATH:
        timed = np.isin(durations.codes, counters.codes[passed])
        duration_ms = durations.duration_ms[np.repeat(timed, durations.counts)]
    if duration_ms is None:
        duration_ms = _UNKNOWN
        if durations is None or sums[DURATION_MS]:
            selection.missed.note(Missing.DURATIONS, day)
    return SummedDay(day, sums, duration_ms)
