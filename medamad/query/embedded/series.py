"""Sums and median durations of the selected views: of all of them, and by bucket of a series."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import groupby, pairwise
from typing import Any, Final

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.query.buckets import Buckets
from medamad.query.embedded.aggregate import (
    repeatable,
    tally_all,
    tally_buckets,
)
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.left_out import LeftOutViews
from medamad.query.embedded.loops import Batch, Batches, Groups, PartViews, same_number
from medamad.query.embedded.quantiles import GroupedDurations, median
from medamad.query.embedded.rollups import SelectedRollup, selected_rollups
from medamad.query.embedded.scan import Selection, WantedColumns
from medamad.query.embedded.view_filter import Counted, SelectedViews
from medamad.query.period import Period
from medamad.query.request import DayGap, Gap, Gaps
from medamad.query.sums import Series, Tally
from medamad.storage.segments.counters import SLOT_MS, SUMS, VIEWS, keys_of, sums_of
from medamad.storage.segments.format import Integers, Segment, SortedDurations
from medamad.storage.segments.parts import MergedSegment
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot

_CACHED_BUCKETS: Final = 400
_FEW_BUCKETS: Final = 2_500
"""Up to this many, the durations of each bucket are collected; for more, all are sorted at once."""


def total_of(selection: Selection) -> Series:
    """Return the sums and the median of all selected views, as those of one bucket.

    Without filters, they are cached once no view of the period can change.
    """
    selection.cancellation.check()
    rollups = list(selected_rollups(selection))
    gaps = Gaps(gap for rollup in rollups for gap in rollup.gaps)
    if not selection.filter.matches_all_included:
        return _filtered(selection, None, [(0, rollup) for rollup in rollups], gaps)

    def find() -> NDArray[np.int64]:
        sums = tally_all(selection)
        for rollup in rollups:
            sums[:, 0] += rollup.sums
        return np.append(sums, _median_of_all(selection, rollups))

    period, settled = selection.period, _settled_segments(selection)
    if settled is None:
        found = find()
    else:
        state = selection.filter.state_of(settled.segments)
        found = settled.cached((total_of, period.start_ms, period.end_ms, state), find)
    return Series(Tally(found[:SUMS, np.newaxis], gaps), found[SUMS:])


def _settled_segments(selection: Selection) -> Snapshot | None:
    """Return the segments with views in the period, None if there are none or other views.

    None of them has an overlay, so what is computed of them is the same at any time.
    """
    snapshot, period = selection.snapshot, selection.period
    rollups = (segment.header.time_bounds for segment in snapshot.rollup_segments)
    others = (*(chunk.time_bounds for chunk in snapshot.chunks), *rollups)
    if any(not period.is_outside(*bounds) for bounds in others):
        return None
    near = [each for each in snapshot.segments if not period.is_outside(*each.header.time_bounds)]
    if not near or any(each.number in snapshot.overlays for each in near):
        return None
    return snapshot.only(near)


def _median_of_all(selection: Selection, rollups: Iterable[SelectedRollup]) -> NDArray[np.int64]:
    """Return the median of all views that no rule leaves out, and of those of rollups."""
    whole, left_out = selection.apart() or (selection, None)
    unsorted_ms, ascending = _durations_of(whole)
    unsorted_ms += [rollup.duration_ms for rollup in rollups]
    removed = () if left_out is None else _durations_of(left_out)
    return np.array([median(unsorted_ms, ascending, *removed)], np.int64)


def series_of(selection: Selection, buckets: Buckets) -> Series:
    """Return the sums and the medians of the selected views by bucket.

    Every selected view must be in a bucket. A rollup whose day is in several buckets is a gap.
    """
    if len(buckets.dates) > _FEW_BUCKETS:
        return _sorted_at_once(selection, buckets)
    rollups, gaps = _rollups_by_bucket(selection, buckets)
    if not selection.filter.matches_all_included:
        return _filtered(selection, buckets, rollups, gaps)
    cached = _CachedMedians.find(selection, buckets)
    size = len(buckets.dates)
    pieces: list[list[Integers]] = [[] for _ in range(size)]
    for period in cached.missing():
        for views in evolve(selection, period=period).views():
            cut = _cut_at_buckets(views, buckets)
            duration_ms = cut.ordered(views.duration_ms)
            for bucket, begin, end in cut.buckets():
                pieces[bucket].append(duration_ms[begin:end])
    rollup_sums = np.zeros((SUMS, size), np.int64)
    for bucket, rollup in rollups:
        rollup_sums[:, bucket] += rollup.sums
        pieces[bucket].append(rollup.duration_ms)
    medians_ms = np.array([median(of_bucket) for of_bucket in pieces], np.int64)
    tally = Tally(tally_buckets(selection, buckets) + rollup_sums, gaps)
    total = Series(tally.total(), _median_of_all(selection, (rollup for _, rollup in rollups)))
    return Series(tally, cached.with_others(medians_ms), total)


def _filtered(
    selection: Selection,
    buckets: Buckets | None,
    rollups: Sequence[tuple[int, SelectedRollup]],
    gaps: Gaps,
) -> Series:
    """Return the series of selected views, and of rollups by bucket. None stands for one bucket."""
    filter_, size = selection.filter, 1 if buckets is None else len(buckets.dates)
    batches = repeatable(partial(_views_by_bucket, selection, buckets), filter_)
    of_rollups = [
        PartViews(
            0,
            len(rollup.duration_ms),
            None,
            same_number(bucket),
            duration_ms=rollup.duration_ms,
        )
        for bucket, rollup in rollups
    ]

    def medians_ms(groups: Groups) -> NDArray[np.int64]:
        with_rollups = partial(_with_one_more, batches, of_rollups)
        return LOOPS.quartiles(with_rollups, groups).quartile(2)

    sums = LOOPS.tally(batches(), size)
    for bucket, rollup in rollups:
        sums[:, bucket] += rollup.sums
    tally = Tally(sums, gaps)
    in_one = np.append(np.zeros(size, np.uint32), np.uint32(1))
    total = Series(tally.total(), medians_ms(Groups(in_one, 1)))
    if size == 1:
        return evolve(total, total=total)
    return Series(tally, medians_ms(Groups(np.arange(size + 1, dtype=np.uint32), size)), total)


def _with_one_more(batches: Batches, batch: Batch) -> Iterator[Batch]:
    yield from batches()
    yield batch


def _views_by_bucket(selection: Selection, buckets: Buckets | None) -> Iterator[PartViews]:
    """Return the views of each part that may be selected, those of each bucket on their own."""
    if buckets is None:
        yield from selection.all_part_views(WantedColumns(None, flags=True, durations=True))
        return
    same = cache(same_number)
    for candidates in selection.all_candidates():
        part, window = candidates.part, candidates.window
        if not part.ascends:
            numbers = buckets.of(part.time_ms)
            yield candidates.views(numbers, part.flags, part.duration_ms)
        elif window.start < window.stop:
            whole = candidates.views(flags=part.flags, duration_ms=part.duration_ms)
            for bucket, begin, end in _cut_at_buckets(
                SelectedViews(part, window), buckets
            ).buckets():
                yield evolve(
                    whole,
                    begin=window.start + begin,
                    end=window.start + end,
                    numbers=same(bucket),
                )


@frozen(eq=False)
class _CachedMedians:
    """The medians of the buckets of which all views are in segments that never change.

    They are cached, unless there are many buckets: finding them would take longer than counting.
    `segments` has the segments with views in each bucket, None if there may be other views.
    """

    first_ms: Sequence[int]
    last_ms: Sequence[int]
    segments: Sequence[Snapshot | None]
    keys: Sequence[Hashable]
    """What the median of each bucket is cached as."""
    found: Sequence[int | None]

    @classmethod
    def find(cls, selection: Selection, buckets: Buckets) -> "_CachedMedians":
        """Return those of the buckets of a period."""
        size = len(buckets.dates)
        first_ms, last_ms = buckets.edges_ms[:-1].tolist(), (buckets.edges_ms[1:] - 1).tolist()
        start_ms, end_ms = selection.period.start_ms, selection.period.end_ms
        if size and start_ms is not None and end_ms is not None:
            first_ms[0], last_ms[-1] = max(first_ms[0], start_ms), min(last_ms[-1], end_ms)
        segments: list[Snapshot | None] = [None] * size
        if size <= _CACHED_BUCKETS:
            segments = _segments_by_bucket(selection.snapshot, buckets)
        keys = [
            None if alone is None else (cls, first, last, selection.filter.state_of(alone.segments))
            for first, last, alone in zip(first_ms, last_ms, segments, strict=True)
        ]
        found = [
            None if alone is None else alone.find_cached(key)
            for key, alone in zip(keys, segments, strict=True)
        ]
        return cls(first_ms, last_ms, segments, keys, found)

    def missing(self) -> Iterator[Period]:
        """Return the periods of the buckets that are not known, which follow each other."""
        places = range(len(self.found))
        for is_missing, run in groupby(places, lambda place: self.found[place] is None):
            if is_missing:
                of_run = list(run)
                yield Period(self.first_ms[of_run[0]], self.last_ms[of_run[-1]])

    def with_others(self, medians_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return all medians, with those that were missing, and cache these."""
        for place, alone in enumerate(self.segments):
            found = self.found[place]
            if found is not None:
                medians_ms[place] = found
            elif alone is not None:
                alone.cache(self.keys[place], medians_ms[place])
        return medians_ms


def _segments_by_bucket(snapshot: Snapshot, buckets: Buckets) -> list[Snapshot | None]:
    """Return the segments with views in each bucket, None if there are none or other views."""
    size = len(buckets.dates)
    found: list[list[Segment]] = [[] for _ in range(size)]
    may_change: set[int] = set()

    def places_of(bounds: tuple[int, int]) -> range:
        first, last = buckets.of(np.array(bounds, np.int64)).tolist()
        return range(max(first, 0), min(last, size - 1) + 1)

    for segment in snapshot.leaf_segments():
        places = places_of(segment.header.time_bounds)
        if segment.number in snapshot.overlays:
            may_change.update(places)
        for place in places:
            found[place].append(segment)
    for part in (*snapshot.chunks, *snapshot.rollups):
        may_change.update(places_of(part.time_bounds))
    return [
        snapshot.only(segments) if segments and place not in may_change else None
        for place, segments in enumerate(found)
    ]


def _rollups_by_bucket(
    selection: Selection, buckets: Buckets
) -> tuple[list[tuple[int, SelectedRollup]], Gaps]:
    """Return the rollups whose day is in one bucket, with its number, and the gaps."""
    rollups: list[tuple[int, SelectedRollup]] = []
    gaps: set[DayGap] = set()
    for rollup in selected_rollups(selection):
        gaps |= rollup.gaps
        if not rollup.sums.any():
            continue
        first, last = buckets.of(np.array(rollup.time_bounds, np.int64)).tolist()
        if first == last:
            rollups.append((first, rollup))
        else:
            gaps.add((Gap.INTERVAL, rollup.day))
    return rollups, Gaps(gaps)


def _sorted_at_once(selection: Selection, buckets: Buckets) -> Series:
    size = len(buckets.dates)
    durations = GroupedDurations(size)
    keys: list[Integers] = [np.zeros(0, np.uint32)]
    unfiltered = selection.filter.matches_all_included
    for views in selection.views():
        cut = _cut_at_buckets(views, buckets)
        lengths = np.diff(cut.bounds)
        numbers = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
        numbers += np.uint32(cut.first)
        durations.add(numbers, cut.ordered(views.duration_ms))
        if not unfiltered:
            keys.append(keys_of(numbers, cut.ordered(views.flags)))
    rollup_sums = np.zeros((SUMS, size), np.int64)
    rollups, gaps = _rollups_by_bucket(selection, buckets)
    for bucket, rollup in rollups:
        rollup_sums[:, bucket] += rollup.sums
        durations.add(np.full(len(rollup.duration_ms), bucket, np.uint32), rollup.duration_ms)
    medians_ms = durations.quartiles().quartile(2)
    if unfiltered:
        sums = tally_buckets(selection, buckets)
    else:
        sums = sums_of(np.concatenate(keys), None, size)
    return Series(Tally(sums + rollup_sums, gaps), medians_ms)


@frozen(eq=False)
class _Cut:
    """Where the buckets of selected views begin and end.

    Bucket first + i has the views bounds[i] ≤ place < bounds[i + 1], in the order `order` if that
    is set.
    """

    first: int
    bounds: NDArray[np.integer[Any]]
    order: NDArray[np.intp] | None = None

    def ordered(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column of the views in the order of their buckets."""
        return column if self.order is None else column.take(self.order)

    def buckets(self) -> Iterator[tuple[int, int, int]]:
        """Return each bucket that has views, and the places where they begin and end."""
        for place, (begin, end) in enumerate(pairwise(self.bounds.tolist())):
            if begin < end:
                yield self.first + place, begin, end


def _cut_at_buckets(selected: SelectedViews, buckets: Buckets) -> _Cut:
    part = selected.part
    if not part.ascends:
        numbers = buckets.of(selected.time_ms)
        first = int(numbers.min())
        bounds = np.concatenate(([0], np.cumsum(np.bincount(numbers - first))))
        return _Cut(first, bounds, np.argsort(numbers, kind="stable"))
    first, edges_ms = _between(buckets, *part.time_bounds)
    places = np.zeros(0, np.int64)
    if len(edges_ms):
        slots = None if np.any(edges_ms % SLOT_MS) else part.slots()
        if slots is None:
            time_ms = selected.time_ms
            return _Cut(first, _around(np.searchsorted(time_ms, edges_ms), len(time_ms)))
        # Times ascend, so before an edge are as many views as in the slots before it.
        up_to = np.concatenate(([0], np.cumsum(slots.sums[VIEWS], dtype=np.int64)))
        places = up_to[np.searchsorted(slots.codes, edges_ms // SLOT_MS)]
    if isinstance(selected.index, slice):
        begin, end, _ = selected.index.indices(len(part))
        return _Cut(first, _around(np.clip(places, begin, end) - begin, end - begin))
    if selected.index is not None:
        return _Cut(first, _around(np.searchsorted(selected.index, places), len(selected.index)))
    return _Cut(first, _around(places, len(part)))


def _between(buckets: Buckets, least_ms: int, greatest_ms: int) -> tuple[int, NDArray[np.int64]]:
    """Return the bucket of the earlier time, and the beginnings of those up to the later time.

    The first bucket is also that of earlier times.
    """
    first, last = np.searchsorted(buckets.edges_ms, [least_ms, greatest_ms], side="right") - 1
    first = max(first, 0)
    return int(first), buckets.edges_ms[first + 1 : last + 1]


def _around(inner: NDArray[np.integer[Any]], size: int) -> NDArray[np.integer[Any]]:
    return np.concatenate(([0], inner, [size]))


def _durations_of(selection: Selection) -> tuple[list[Integers], list[SortedDurations]]:
    """Return the durations of the selected views in pieces, unsorted and sorted ones."""
    unsorted_ms: list[Integers] = []
    ascending: list[SortedDurations] = []
    for scanned in selection.scan(partial(_sorted_durations, selection.snapshot)):
        if isinstance(scanned, SortedDurations):
            ascending.append(scanned)
        else:
            unsorted_ms.append(scanned.duration_ms)
    return unsorted_ms, ascending


def _sorted_durations(snapshot: Snapshot, part: Counted) -> SortedDurations | None:
    """Return sorted durations of what never changes: a segment, or what is left out of it."""
    if isinstance(part, MergedSegment | LeftOutViews):
        return part.durations()
    if not isinstance(part, OpenSegment) or (alone := snapshot.alone(part)) is None:
        return None

    def compute() -> SortedDurations:
        return SortedDurations.of(np.sort(part.duration_ms[part.duration_ms > 0]))

    return alone.cached(SortedDurations, compute)
