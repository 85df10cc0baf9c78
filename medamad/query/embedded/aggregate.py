"""Exact sums of the selected views, by the codes of a dimension or by the buckets of a series.

A part that is selected as a whole contributes its counters. The views of other parts are counted,
those of several parts at a time.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import cache, partial
from itertools import chain, islice, pairwise
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import Batch, Batches, Groups, PartViews, same_number
from medamad.query.embedded.quantiles import NearDurations, windows_around
from medamad.query.embedded.rollups import duration_gaps, durations_by_path, rollup_counters
from medamad.query.embedded.scan import Selection, WantedColumns, divide, no_value
from medamad.query.embedded.view_filter import Candidates, ViewFilter
from medamad.query.request import DayGap, Gaps
from medamad.query.sums import Quartiles, Tally
from medamad.storage.segments import counters as row_numbers
from medamad.storage.segments.counters import SLOT_MS, SUMS, Counters, compact
from medamad.storage.segments.format import Integers, Segment
from medamad.storage.segments.parts import Part, ViewColumns
from medamad.storage.segments.snapshot import Snapshot

T = TypeVar("T")
Scan: TypeAlias = Callable[[Selection, bool], Iterator[PartViews | Counters]]
_AT_ONCE: Final = 128
"""The views of this many parts are counted at a time."""
_TIMED_PATHS: Final = WantedColumns(Dimension.PATH, flags=False, durations=True)
_KEPT_NUMBERS: Final = 1 << 14
"""With more, what is counted of each would take too much memory to be cached."""
_FURTHER_SHARE: Final = 4
"""Windows are found anew once more than one of so many views is in other segments."""
_MOST_COPIES: Final = 1 << 23
"""How many views are copied, each of which takes nine bytes."""
_KEPT_CODES: Final = 1 << 16
"""With more codes, their sums would take too much memory to be cached."""
_FEW_BUCKETS: Final = 32
"""The views of up to so many buckets are counted on their own, with the same number for all."""
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
    sums = tally_parts(selection, dimension, with_durations=with_durations)
    gaps: set[DayGap] = set()
    for rollup, counters in rollup_counters(selection, dimension):
        if counters is None:
            gaps.add((selection.gap, rollup.day))
            continue
        _add(sums, counters)
        if with_durations:
            gaps |= duration_gaps(
                rollup, counters, None if mask is None else mask.take(counters.codes)
            )
    if mask is not None:
        # There may be texts by now that are newer than the mask, and than all views.
        size = min(len(mask), sums.shape[1])
        sums = sums[:, :size] * mask[:size]
    return Tally(sums, Gaps(gaps))


def tally_buckets(selection: Selection, buckets: Buckets) -> NDArray[np.int64]:
    """Return the sums of the selected views of parts by bucket, without rollups.

    Every selected view must be in a bucket.
    """
    if len(buckets.dates) == 1:
        sums = tally_parts(selection, _SMALL, with_durations=True)
        total: NDArray[np.int64] = sums.sum(axis=1, keepdims=True)
        return total

    def scan(among: Selection, _with_durations: bool) -> Iterator[PartViews | Counters]:
        return views_by_bucket(among, buckets, partial(_counters_by_bucket, buckets))

    return sum_parts(selection, len(buckets.dates), scan, buckets.edges_ms.tobytes())


def tally_parts(
    selection: Selection, dimension: Dimension, *, with_durations: bool
) -> NDArray[np.int64]:
    """Return the sums of the selected views of parts by the codes of a dimension."""

    def scan(among: Selection, with_durations: bool) -> Iterator[PartViews | Counters]:
        wanted = WantedColumns(dimension, flags=True, durations=with_durations)
        return among.part_views(wanted, lambda part: part.counters(dimension))

    size = len(selection.snapshot.texts(dimension))
    return sum_parts(selection, size, scan, dimension, with_durations=with_durations)


def sum_parts(
    selection: Selection,
    size: int,
    scan: Scan,
    cached_as: Hashable,
    *,
    with_durations: bool = True,
) -> NDArray[np.int64]:
    """Return the sums of the selected views of parts by numbers below `size`, shape (SUMS, size).

    `scan` returns the views of each part with their numbers, and their durations on demand, or
    counters by number. What it finds in segments that never change is cached.
    """
    apart = selection.apart()
    if apart is not None:
        of_all, left_out = (
            sum_parts(each, size, scan, cached_as, with_durations=with_durations) for each in apart
        )
        return of_all - left_out
    sums = np.zeros((SUMS, size), np.int64)
    if size <= _KEPT_CODES and selection.filter.is_settled:
        covered, others = divide(selection.snapshot, selection.period)
        if covered.segments:
            key = (sum_parts, cached_as, selection.filter.state_of(covered.segments))
            of_covered = evolve(selection, snapshot=covered)
            find = partial(_find_counters, of_covered, size, scan, cached_as)
            _add(sums, covered.cached(key, find))
            selection = evolve(selection, snapshot=others)
    _add_all(sums, scan(selection, with_durations))
    return sums


def _find_counters(selection: Selection, size: int, scan: Scan, cached_as: Hashable) -> Counters:
    """Return the sums of the selected views of segments by number."""
    snapshot, sums = selection.snapshot, np.zeros((SUMS, size), np.int64)
    if selection.filter.matches_all or len(snapshot.segments) == 1:
        _add_all(sums, scan(selection, True))
    else:
        # What rules leave out of a segment has no counters.
        for segment in snapshot.segments:
            of_segment = evolve(selection, snapshot=snapshot.with_segments([segment]))
            sums += sum_parts(of_segment, size, scan, cached_as)
    return compact(sums)


def _add(sums: NDArray[np.int64], counters: Counters) -> None:
    """Add counters to sums by number."""
    codes = counters.codes
    if not len(codes):
        return
    size = int(codes[-1]) + 1
    # If every code occurs, a slice is faster.
    where = slice(0, size) if size == len(codes) else codes
    for row, added in zip(sums, counters.sums, strict=True):
        row[where] += added


def _add_all(sums: NDArray[np.int64], scanned: Iterator[PartViews | Counters]) -> None:
    """Add the views and the counters of parts to sums by number."""

    def views() -> Iterator[PartViews]:
        for each in scanned:
            if isinstance(each, Counters):
                _add(sums, each)
            else:
                yield each

    sums += LOOPS.tally(in_batches(views()), sums.shape[1])


def views_by_bucket(
    selection: Selection, buckets: Buckets, value_of: Callable[[Part], T | None]
) -> Iterator[PartViews | T]:
    """Return the views of each part that may be selected, numbered by bucket, or `value_of` it.

    Every selected view must be in a bucket.
    """
    if len(buckets.dates) == 1:
        wanted = WantedColumns(None, flags=True, durations=True)
        yield from selection.part_views(wanted, value_of)
        return
    same = cache(same_number)
    for scanned in selection.candidates(value_of):
        if not isinstance(scanned, Candidates):
            yield scanned
            continue
        part, window = scanned.part, scanned.window
        columns = (part.flags, part.duration_ms)
        first, bounds = _cut(part, buckets) if part.ascends else (0, None)
        if bounds is None or len(bounds) > _FEW_BUCKETS:
            yield scanned.views(bucket_numbers(part, buckets), *columns)
            continue
        views = scanned.views(same(first), *columns)
        inside = np.clip(bounds, window.start, window.stop).tolist()
        for bucket, (begin, end) in enumerate(pairwise(inside), first):
            if begin < end:
                yield evolve(views, begin=begin, end=end, numbers=same(bucket))


def bucket_numbers(part: ViewColumns, buckets: Buckets) -> Integers:
    """Return the bucket of each view of a part, or the nearest."""
    if not part.ascends:
        return buckets.nearest(part.time_ms)
    first, bounds = _cut(part, buckets)
    numbers = np.arange(first, first + len(bounds) - 1, dtype=np.uint32)
    return np.repeat(numbers, np.diff(bounds))


def _cut(part: ViewColumns, buckets: Buckets) -> tuple[int, NDArray[np.integer[Any]]]:
    """Return the first bucket of an ascending part, and the rows where it and others begin and end.

    Earlier views are in the first bucket, too, and later ones in the last.
    """
    first, last = buckets.nearest(np.array(part.time_bounds, np.int64)).tolist()
    edges_ms = buckets.edges_ms[first + 1 : last + 1]
    inner: NDArray[np.integer[Any]] = edges_ms
    if len(edges_ms):
        slots = None if np.any(edges_ms % SLOT_MS) else part.slots()
        if slots is None:
            inner = np.searchsorted(part.time_ms, edges_ms)
        else:
            # Times are slow to read. Before an edge are as many views as in the slots before it.
            up_to = np.append(0, np.cumsum(slots.sums[row_numbers.VIEWS], dtype=np.int64))
            inner = up_to[np.searchsorted(slots.codes, edges_ms // SLOT_MS)]
    return first, np.concatenate(([0], inner, [len(part)]))


def quartiles_by_path(selection: Selection, paths: NDArray[np.integer[Any]]) -> Quartiles:
    """Return the quartiles of the durations of the selected views on some pages.

    `paths` are ascending codes; group i is `paths[i]`. Rollups need single durations
    (see `with_single_durations`); those of which only some views are selected are left out, as
    they are in a tally by path.
    """

    def scan(among: Selection) -> Iterator[PartViews]:
        return among.part_views(_TIMED_PATHS, no_value)

    size = len(selection.snapshot.texts(Dimension.PATH))
    rollups = [
        timed_views(np.repeat(day.codes, day.counts), day.duration_ms)
        for day in durations_by_path(selection)
    ]
    return find_quartiles(selection, paths, size, scan, rollups=rollups, cached_as=Dimension.PATH)


def find_quartiles(
    selection: Selection,
    numbers: NDArray[np.integer[Any]],
    size: int,
    scan: Callable[[Selection], Iterator[PartViews]],
    *,
    rollups: Batch,
    cached_as: Hashable,
) -> Quartiles:
    """Return the quartiles of the durations of the selected views with some numbers below `size`.

    `scan` returns the views of parts with their numbers and durations, to which those of rollups
    are added. Without a filter, windows around the quartiles in segments that never change are
    cached by the first query about these, and what is in the windows by the second, so that one
    that is not repeated takes no longer. They stay while a few segments are added.
    """

    def views(among: Selection) -> Iterator[PartViews]:
        return chain(scan(among), rollups)

    def find(groups: Groups) -> Quartiles:
        return LOOPS.quartiles(repeatable(partial(views, selection), selection.filter), groups)

    groups = _groups_of(numbers, size)
    if not selection.filter.matches_all_included or size > _KEPT_NUMBERS:
        return find(groups)
    covered, others = divide(selection.snapshot, selection.period)
    if not covered.segments:
        return find(groups)
    # Segments are added at the end.
    first, key = covered.with_segments([next(covered.leaf_segments())]), (find_quartiles, cached_as)
    cached: CachedWindows | None = first.find_cached(key)
    further = None if cached is None else cached.further_segments(covered, selection.filter)
    if cached is not None and further is not None:
        near, last = cached.near, len(cached.windows) - 1
        if near is None:
            of_cached = evolve(selection, snapshot=covered.with_segments(cached.segments))
            every = _groups_of(np.arange(last + 1), last)
            near = LOOPS.find_near(in_batches(scan(of_cached)), every, cached.windows)
            first.cache(key, evolve(cached, near=near))
        # Texts that were added since have no views in these segments, like the last group.
        near = near.take(np.minimum(numbers, last))
        others = evolve(others, segments=(*others.segments, *further))
        of_others = views(evolve(selection, snapshot=others))
        added = LOOPS.find_near(in_batches(of_others), groups, near.windows)
        quartiles = LOOPS.near_quartiles(near, added)
        if quartiles is not None:
            return quartiles
    quartiles = find(_groups_of(np.arange(size + 1), size))
    state = selection.filter.state_of(covered.segments)
    first.cache(key, CachedWindows(covered.segments, state, windows_around(quartiles)))
    return quartiles.take(numbers)


@frozen(eq=False)
class CachedWindows:
    """Windows around quartiles in segments that never change, and what is in them if it was asked.

    `windows` are those of `NearDurations`. `state` is what rules leave out of the segments.
    """

    segments: tuple[Segment, ...]
    state: Hashable
    windows: NDArray[np.uint32]
    near: NearDurations | None = None

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.windows.nbytes if self.near is None else self.near.nbytes

    def further_segments(self, covered: Snapshot, filter_: ViewFilter) -> list[Segment] | None:
        """Return the segments of a snapshot besides these, none of them merged.

        None if it lacks some of these, has many others, or if rules leave out something else.
        """
        known = {leaf.number: leaf.header.views for each in self.segments for leaf in each.leaves()}
        leaves = list(covered.leaf_segments())
        further = [leaf for leaf in leaves if leaf.number not in known]
        is_whole = len(leaves) == len(known) + len(further)
        views = sum(leaf.header.views for leaf in further)
        if not is_whole or views * _FURTHER_SHARE > sum(known.values()):
            return None
        return further if filter_.state_of(self.segments) == self.state else None


def _groups_of(numbers: NDArray[np.integer[Any]], size: int) -> Groups:
    """Return a group of each of some numbers below `size`, or that, which stands for others."""
    group_of = np.full(size + 1, len(numbers), np.uint32)
    group_of[numbers] = np.arange(len(numbers), dtype=np.uint32)
    group_of[size] = len(numbers)
    return Groups(group_of, len(numbers))


def timed_views(numbers: Integers, duration_ms: Integers) -> PartViews:
    """Return views of a rollup with their durations, as those of parts."""
    return PartViews(0, len(duration_ms), None, numbers, duration_ms=duration_ms)


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


def _counters_by_bucket(buckets: Buckets, part: Part) -> Counters | None:
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
