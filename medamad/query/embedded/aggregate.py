"""Exact sums of the selected views, by the codes of a dimension or by the buckets of a series.

A part that is selected as a whole contributes its counters. The views of other parts are counted,
those of several parts at a time.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
from attrs import define, evolve, field
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import Batch, Batches, Groups, PartViews
from medamad.query.embedded.quantiles import NearDurations, windows_around
from medamad.query.embedded.rollups import duration_gaps, durations_by_path, rollup_counters
from medamad.query.embedded.scan import Selection, WantedColumns, divide
from medamad.query.embedded.view_filter import Counted, ViewFilter
from medamad.query.request import DayGap, Gaps
from medamad.query.sums import Quartiles, Tally
from medamad.storage.segments import counters as row_numbers
from medamad.storage.segments.counters import SLOT_MS, SUMS, Counters, compact
from medamad.storage.segments.snapshot import Snapshot

_AT_ONCE: Final = 128
"""The views of this many parts are counted at a time."""
_TIMED_PATHS: Final = WantedColumns(Dimension.PATH, flags=False, durations=True)
_KEPT_PATHS: Final = 1 << 14
"""With more paths, what is counted of each would take too much memory to be cached."""
_WINDOWS: Final = (NearDurations, "windows")
"""What the windows are cached as."""
_MOST_COPIES: Final = 1 << 23
"""How many views are copied, each of which takes nine bytes."""
_KEPT_CODES: Final = 1 << 16
"""With more codes, their sums would take too much memory to be cached."""
_SMALL: Final = Dimension.DEVICE
"""A dimension with few texts, by which all views are counted fast."""


def tally(selection: Selection, dimension: Dimension, *, with_durations: bool = True) -> Tally:
    """Return the sums of the selected views by the codes of a dimension.

    Without `with_durations` only views and visitors are summed, which is faster.
    """
    mask = selection.filter.codes.get(dimension)
    if mask is not None:
        # A filter on the same dimension selects among the sums instead of among the views.
        selection = selection.without(dimension)
    accumulator = _tally_parts(selection, dimension, with_durations=with_durations)
    gaps: set[DayGap] = set()
    for rollup, counters in rollup_counters(selection, dimension):
        if counters is None:
            gaps.add((selection.gap, rollup.day))
            continue
        accumulator.add(counters)
        if with_durations:
            gaps |= duration_gaps(
                rollup, counters, None if mask is None else mask.take(counters.codes)
            )
    return Tally(_masked(accumulator.sums, mask), Gaps(gaps))


def count_views_of_parts(selection: Selection, dimension: Dimension) -> NDArray[np.int64]:
    """Return the number of selected views of parts by the codes of a dimension, without rollups."""
    mask = selection.filter.codes.get(dimension)
    accumulator = _tally_parts(selection.without(dimension), dimension, with_durations=False)
    views: NDArray[np.int64] = _masked(accumulator.sums, mask)[row_numbers.VIEWS]
    return views


def tally_all(selection: Selection) -> NDArray[np.int64]:
    """Return the sums of all selected views of parts, as those of the number 0, without rollups."""
    dimensions = tuple(selection.filter.codes)
    dimension = dimensions[0] if len(dimensions) == 1 else _SMALL
    mask = selection.filter.codes.get(dimension)
    accumulator = _tally_parts(selection.without(dimension), dimension, with_durations=True)
    total: NDArray[np.int64] = _masked(accumulator.sums, mask).sum(axis=1, keepdims=True)
    return total


def tally_buckets(selection: Selection, buckets: Buckets) -> NDArray[np.int64]:
    """Return the sums of the selected views of parts by bucket, without rollups.

    Every selected view must be in a bucket.
    """
    apart = selection.apart()
    if apart is not None:
        whole, left_out = (tally_buckets(each, buckets) for each in apart)
        return whole - left_out
    accumulator = _Accumulator(len(buckets.dates), with_durations=True)

    def scanned() -> Iterator[PartViews | Counters]:
        for each in selection.candidates(partial(_counters_by_bucket, buckets)):
            if isinstance(each, Counters):
                yield each
            else:
                part = each.part
                numbers = buckets.of(part.time_ms)
                yield each.views(numbers, part.flags, part.duration_ms)

    accumulator.add_all(scanned())
    return accumulator.sums


def quartiles_by_path(
    selection: Selection, paths: NDArray[np.integer[Any]], size: int
) -> Quartiles:
    """Return the quartiles of the durations of the selected views on some pages.

    `paths` are ascending codes below `size`; group i is `paths[i]`. Rollups need single durations
    (see `with_single_durations`); those of which only some views are selected are left out, as
    they are in a tally by path.
    """
    if selection.filter.matches_all_included and size <= _KEPT_PATHS:
        whole, others = divide(selection.snapshot, selection.period, lambda each: each.time_bounds)
        if whole.segments:
            of_others = evolve(selection, snapshot=others)
            cached_as = selection.filter.state_of(whole.segments)
            found = _quartiles_near_cached(whole, of_others, paths, size, cached_as)
            if found is not None:
                return found
            every = np.arange(size + 1)
            found = LOOPS.quartiles(_timed_views(selection), _paths_as_groups(every, size))
            windows = windows_around(found)
            whole.cache((_WINDOWS, cached_as), windows)
            return found.take(paths)
    return LOOPS.quartiles(_timed_views(selection), _paths_as_groups(paths, size))


def _quartiles_near_cached(
    whole: Snapshot,
    others: Selection,
    paths: NDArray[np.integer[Any]],
    size: int,
    cached_as: Hashable,
) -> Quartiles | None:
    """Return the quartiles of the durations in both, if they are in the windows that are cached.

    The segments of `whole` never change. The windows are cached by the first query about them, what
    is in the windows by the second, so that one that is not repeated takes no longer.
    """
    windows: NDArray[np.uint32] | None = whole.find_cached((_WINDOWS, cached_as))
    if windows is None:
        return None
    cached: NearDurations | None = whole.find_cached((NearDurations, cached_as))
    if cached is None or cached.windows is not windows:
        every = np.arange(len(windows))
        cached = _near(evolve(others, snapshot=whole), every, len(windows) - 1, windows)
        whole.cache((NearDurations, cached_as), cached)
    # Texts that were added since have no views in these segments, like the last group.
    near = cached.take(np.minimum(paths, len(windows) - 1))
    return LOOPS.near_quartiles(near, _near(others, paths, size, near.windows))


def _near(
    selection: Selection,
    paths: NDArray[np.integer[Any]],
    size: int,
    windows: NDArray[np.uint32],
) -> NearDurations:
    """Return the durations of some pages that are in some windows."""
    batches = _timed_views(selection)
    return LOOPS.find_near(batches(), _paths_as_groups(paths, size), windows)


def _paths_as_groups(paths: NDArray[np.integer[Any]], size: int) -> Groups:
    """Return paths as groups, of which all are below `size` or that, which stands for none."""
    group_of = np.full(size + 1, len(paths), np.uint32)
    group_of[paths] = np.arange(len(paths), dtype=np.uint32)
    group_of[size] = len(paths)
    return Groups(group_of, len(paths))


def _timed_views(selection: Selection) -> Batches:
    """Return the selected views with their paths and durations."""
    filter_ = selection.filter

    def views() -> Iterator[PartViews]:
        yield from selection.all_part_views(_TIMED_PATHS)
        for day in durations_by_path(selection):
            codes = np.repeat(day.codes, day.counts)
            yield PartViews(0, len(codes), None, codes, duration_ms=day.duration_ms)

    return repeatable(views, filter_)


@define(eq=False)
class _Accumulator:
    """Sums for the numbers 0 to size - 1. Without `with_durations`, these and bounces are 0."""

    size: int
    with_durations: bool
    sums: NDArray[np.int64] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.sums = np.zeros((SUMS, self.size), np.int64)

    def add(self, counters: Counters) -> None:
        """Add counters by their codes."""
        codes = counters.codes
        if not len(codes):
            return
        size = int(codes[-1]) + 1
        # If every code occurs, a slice is faster.
        where = slice(0, size) if size == len(codes) else codes
        for row in range(SUMS if self.with_durations else row_numbers.TIMED_VISITORS):
            self.sums[row][where] += counters.sums[row]

    def add_all(self, scanned: Iterable[PartViews | Counters]) -> None:
        """Add the counters and the views of parts that a selection has."""

        def views() -> Iterator[PartViews]:
            for each in scanned:
                if isinstance(each, Counters):
                    self.add(each)
                else:
                    yield each

        added = LOOPS.tally(in_batches(views()), self.size)
        self.sums += added


def _tally_parts(
    selection: Selection, dimension: Dimension, *, with_durations: bool
) -> _Accumulator:
    apart = selection.apart()
    if apart is not None:
        whole, left_out = (
            _tally_parts(each, dimension, with_durations=with_durations) for each in apart
        )
        # Texts may be added in between, which no view of the snapshot has.
        size = min(whole.sums.shape[1], left_out.sums.shape[1])
        whole.sums[:, :size] -= left_out.sums[:, :size]
        return whole
    size = len(selection.snapshot.texts(dimension))
    accumulator = _Accumulator(size, with_durations)
    if selection.filter.matches_all and size <= _KEPT_CODES:
        selection = _add_cached(selection, dimension, accumulator)
    wanted = WantedColumns(dimension, flags=True, durations=with_durations)
    scanned = selection.part_views(wanted, lambda part: part.counters(dimension))
    accumulator.add_all(scanned)
    return accumulator


def _add_cached(selection: Selection, dimension: Dimension, accumulator: _Accumulator) -> Selection:
    """Add the sums of the segments that never change and are in the period, which are cached.

    Return the selection without these segments.
    """
    whole, others = divide(selection.snapshot, selection.period, lambda each: each.time_bounds)
    if len(whole.segments) <= 1:
        return selection

    def add_up() -> Counters:
        sums = _Accumulator(accumulator.size, with_durations=True)
        of_whole = evolve(selection, snapshot=whole)
        wanted = WantedColumns(dimension, flags=True, durations=True)
        sums.add_all(of_whole.part_views(wanted, lambda part: part.counters(dimension)))
        return compact(sums.sums)

    accumulator.add(whole.cached((Tally, dimension), add_up))
    return evolve(selection, snapshot=others)


def in_batches(views: Iterator[PartViews]) -> Iterator[Batch]:
    """Return views of parts in batches for the loops."""
    while batch := list(islice(views, _AT_ONCE)):
        yield batch


def repeatable(
    views: Callable[[], Iterator[PartViews]],
    filter_: ViewFilter,
    most_copies: int = _MOST_COPIES,
) -> Batches:
    """Return views for several passes.

    They are copied at once, unless there are so many that their copies would take much memory.
    """
    if filter_.matches_all:
        all_views = list(in_batches(views()))
        return lambda: all_views
    selected: list[Batch] = []
    count = 0
    for batch in in_batches(views()):
        selected.append(LOOPS.gather(batch))
        count += sum(each.end - each.begin for each in selected[-1])
        if count > most_copies:
            return lambda: in_batches(views())
    return lambda: selected


def _masked(sums: NDArray[np.int64], mask: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    if mask is None:
        return sums
    # There may be texts by now that are newer than the mask, and than all views.
    size = min(len(mask), sums.shape[1])
    return sums[:, :size] * mask[:size]


def _counters_by_bucket(buckets: Buckets, part: Counted) -> Counters | None:
    """Return the counters of views by bucket, if the buckets begin where its slots begin."""
    least_ms, greatest_ms = part.time_bounds
    if not buckets.are_aligned(SLOT_MS, least_ms, greatest_ms):
        return None
    slots = part.slots()
    if slots is None:
        return None
    begins_ms = np.clip(slots.codes.astype(np.int64) * SLOT_MS, least_ms, greatest_ms)
    numbers = buckets.of(begins_ms)
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    sums = tuple(np.add.reduceat(row.astype(np.int64), first) for row in slots.sums)
    return Counters(numbers[first], sums)
