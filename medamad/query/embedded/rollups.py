"""What rollups know of the selected views of days whose views are gone."""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.embedded.scan import Selection
from medamad.query.filters import Mask
from medamad.query.request import DayGap, Gap, Gaps
from medamad.storage.segments.counters import DURATION_MS, SUMS, TIMED_VISITORS, VIEWS, Counters
from medamad.storage.segments.parts import PathDurations, Rollup

_NO_DURATIONS = np.zeros(0, np.uint32)


@frozen(eq=False)
class SelectedRollup:
    """What a rollup knows of its selected views: their sums and their known durations.

    `sums` has shape (6,), in the order of medamad.storage.segments.counters. `time_bounds` are the
    first and the last millisecond of the day. What the rollup does not know is 0 or empty, and in
    `gaps`.
    """

    day: int
    time_bounds: tuple[int, int]
    sums: NDArray[np.int64]
    duration_ms: NDArray[np.uint32]
    gaps: frozenset[DayGap]


def selected_rollups(selection: Selection) -> Iterator[SelectedRollup]:
    """Return the rollups that may have selected views, and what each knows of them.

    A rollup can be filtered by one dimension, but by no more.
    """
    filters = selection.filter.codes
    is_by_path = Dimension.PATH in filters
    if len(filters) == 1:
        ((dimension, mask),) = filters.items()
        found = rollup_counters(selection.without(dimension), dimension)
    else:
        mask, found = None, selection.rollups(lambda rollup: rollup.overall())
    for rollup, counters in found:
        sums, duration_ms = np.zeros(SUMS, np.int64), None
        gaps = {(selection.gap, rollup.day)}
        if counters is not None:
            matches = None if mask is None else mask.take(counters.codes)
            selected = counters if matches is None else counters.take(matches)
            if not len(selected):
                continue
            sums[:] = [row.sum(dtype=np.int64) for row in selected.sums]
            gaps = duration_gaps(rollup, counters, matches)
            is_whole = len(selected) == len(counters)
            duration_ms = _durations(rollup, selected, is_whole=is_whole, is_by_path=is_by_path)
            if duration_ms is None:
                gaps.add((Gap.DURATIONS, rollup.day))
        known_ms = _NO_DURATIONS if duration_ms is None else duration_ms
        yield SelectedRollup(rollup.day, rollup.time_bounds, sums, known_ms, frozenset(gaps))


def rollup_counters(
    selection: Selection, dimension: Dimension
) -> Iterator[tuple[Rollup, Counters | None]]:
    """Return each rollup that may have selected views, with its sums by the codes of a dimension.

    The sums are None, and the result has a gap, if they are unknown or include other views.
    """
    return selection.rollups(lambda rollup: rollup.counters(dimension))


def duration_gaps(rollup: Rollup, counters: Counters, matches: Mask | None = None) -> set[DayGap]:
    """Return the gaps of sums that were imported from a program without durations or bounces.

    `matches` selects some of the codes of the counters, None all of them.
    """
    if rollup.has_durations or not _has_views(counters, matches):
        return set()
    rows = ((Gap.DURATIONS, DURATION_MS), (Gap.BOUNCES, TIMED_VISITORS))
    return {(gap, rollup.day) for gap, row in rows if not counters.sums[row].any()}


def with_single_durations(selection: Selection) -> tuple[Selection, Gaps]:
    """Return the selection without rollups that have no single durations, and the gaps of those.

    There may be a filter on the path, but no other.
    """
    mask = selection.filter.codes.get(Dimension.PATH)
    gaps: set[DayGap] = set()
    without_durations = evolve(selection, with_durations=False).without(Dimension.PATH)
    for rollup, counters in rollup_counters(without_durations, Dimension.PATH):
        if counters is None:
            gaps.add((selection.gap, rollup.day))
        elif _has_views(counters, None if mask is None else mask.take(counters.codes)):
            gaps.add((Gap.DURATIONS, rollup.day))
    return evolve(selection, with_durations=True), Gaps(gaps)


def durations_by_path(selection: Selection) -> Iterator[PathDurations]:
    """Return the durations of each rollup whose views are selected but for a filter on the path."""
    paths = selection.without(Dimension.PATH)
    for _, durations in paths.rollups(lambda rollup: rollup.path_durations()):
        if durations is not None:
            yield durations


def _has_views(counters: Counters, matches: Mask | None) -> bool:
    views = counters.sums[VIEWS]
    return bool((views if matches is None else views[matches]).any())


def _durations(
    rollup: Rollup, counters: Counters, *, is_whole: bool, is_by_path: bool
) -> NDArray[np.uint32] | None:
    """Return the known durations of views that have some counters, None if they are unknown.

    The counters are those of all views of the day if `is_whole`.
    """
    durations = rollup.path_durations()
    if durations is None:
        return None
    if is_whole:
        return durations.duration_ms
    if is_by_path:
        is_selected = np.isin(durations.codes, counters.codes)
        return durations.duration_ms[np.repeat(is_selected, durations.counts)]
    return None if counters.sums[DURATION_MS].any() else _NO_DURATIONS
