"""What rollups know of the selected views of each day."""

from collections.abc import Iterable, Iterator

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.filters import Passing
from medamad.query.scan import Selection
from medamad.storage.segments.counters import DURATION_MS, TIMED_VISITORS, VIEWS, Counters
from medamad.storage.segments.parts import (
    DayRollup,
    PathDurations,
)
from medamad.storage.segments.snapshot import Missed, Missing

_UNKNOWN = np.zeros(0, np.uint32)


@frozen(eq=False)
class SummedDay:
    """The chosen views of a day: their sums, shape (6,), and their known durations."""

    day: DayRollup
    sums: NDArray[np.int64]
    duration_ms: NDArray[np.uint32]


@frozen(eq=False)
class _Days:
    """The days with single durations, or those without: opened one by one, each time anew."""

    days: Iterable[DayRollup]
    has_durations: bool

    def __iter__(self) -> Iterator[DayRollup]:
        return (day for day in self.days if day.has_durations is self.has_durations)


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
    for day, counters in counted_days(selection.without(dimension), dimension):
        passed = passing.take(counters.codes)
        if passed.any():
            yield _chosen(selection, day, counters, dimension, passed)


def counted_days(
    selection: Selection, dimension: Dimension
) -> Iterator[tuple[DayRollup, Counters]]:
    """Give each day that is chosen whole, and its sums by the codes of a dimension."""

    def known(day: DayRollup) -> tuple[DayRollup, Counters] | None:
        counters = day.counters(dimension)
        return None if counters is None else (day, counters)

    return selection.summed(known)


def note_unknown(
    missed: Missed, day: DayRollup, counters: Counters, passed: Passing | None = None
) -> None:
    """Note what sums of a day do not tell: they are of another program, which knew no such figure.

    `passed` tells which of the codes the answer is about, if not about all.
    """
    if day.has_durations or not _any_view(counters, passed):
        return
    for missing, row in ((Missing.DURATIONS, DURATION_MS), (Missing.BOUNCES, TIMED_VISITORS)):
        if not counters.sums[row].any():
            missed.note(missing, day)


def with_single_durations(selection: Selection) -> Selection:
    """Leave out the days of which these are not known, and note those that have a chosen view.

    There may be a filter on the path, as long as there is no other.
    """
    passing = selection.filter.passing.get(Dimension.PATH)
    others = evolve(selection, days=_Days(selection.days, has_durations=False))
    for day, counters in counted_days(others.without(Dimension.PATH), Dimension.PATH):
        if _any_view(counters, None if passing is None else passing.take(counters.codes)):
            selection.missed.note(Missing.DURATIONS, day)
    return evolve(selection, days=_Days(selection.days, has_durations=True))


def durations_by_path(selection: Selection) -> Iterator[PathDurations]:
    """Return the durations of each day, which have to be known, for as many paths as there are.

    A filter on the path is for the caller to look at.
    """
    return selection.without(Dimension.PATH).summed(lambda day: day.path_durations())


def _any_view(counters: Counters, passed: Passing | None) -> bool:
    views = counters.sums[VIEWS]
    return bool((views if passed is None else views[passed]).any())


def _chosen(
    selection: Selection,
    day: DayRollup,
    counters: Counters,
    dimension: Dimension | None,
    passed: Passing | None,
) -> SummedDay:
    sums = np.array(
        [(row if passed is None else row[passed]).sum(dtype=np.int64) for row in counters.sums],
        np.int64,
    )
    note_unknown(selection.missed, day, counters, passed)
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
