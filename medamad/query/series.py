"""The sums and the median duration of all chosen views, and of those of each bucket of a series."""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.query.aggregate import Tally, tally_all, tally_series
from medamad.query.buckets import Buckets
from medamad.query.quantiles import GroupedDurations, median
from medamad.query.rollups import SummedDay, summed_days
from medamad.query.scan import Chosen, Selection
from medamad.storage.segments.counters import SLOT_MS, SUMS, VIEWS, keys_of, sums_by_flags, sums_of
from medamad.storage.segments.format import FLAG_BITS, SortedDurations
from medamad.storage.segments.parts import (
    MergedSegment,
    Part,
)
from medamad.storage.segments.snapshot import Missing

Numbers: TypeAlias = NDArray[np.integer[Any]]

_FEW_BUCKETS: Final = 2_500
"""Up to so many, the durations of each bucket are put together; beyond, all are sorted at once."""


@frozen(eq=False)
class Series:
    """Sums and median durations of n buckets, 0 where there is no known duration.

    `whole` is the same of all of them together, as one bucket, where that cost nothing more.
    """

    sums: Tally
    medians: NDArray[np.int64]
    whole: "Series | None" = None


def whole_of(selection: Selection) -> Series:
    """Count all views together, as one bucket."""
    if not selection.filter.is_open:
        pieces = _Pieces(1)
        for chosen in selection.views():
            pieces.add(0, chosen.flags, chosen.duration_ms)
        for day in summed_days(selection):
            pieces.add_day(0, day)
        return pieces.series()
    known: list[SortedDurations] = []
    loose: list[Numbers] = []
    for chosen_or_known in selection.choose(_sorted):
        if isinstance(chosen_or_known, SortedDurations):
            known.append(chosen_or_known)
        else:
            loose.append(chosen_or_known.duration_ms)
    sums = tally_all(selection).sums
    for day in summed_days(selection):
        sums[:, 0] += day.sums
        loose.append(day.duration_ms)
    return Series(Tally(sums), np.array([median(loose, known)], np.int64))


def series_of(selection: Selection, buckets: Buckets) -> Series:
    """Count the views of each bucket; every view must lie in one."""
    if len(buckets.dates) > _FEW_BUCKETS:
        return _sorted_at_once(selection, buckets)
    is_open = selection.filter.is_open
    pieces = _Pieces(len(buckets.dates))
    for chosen in selection.views():
        cut = _cut(chosen, buckets)
        flags = None if is_open else cut.ordered(chosen.flags)
        duration_ms = cut.ordered(chosen.duration_ms)
        for place, (begin, end) in enumerate(pairwise(cut.bounds.tolist())):
            if begin < end:
                piece = None if flags is None else flags[begin:end]
                pieces.add(cut.first + place, piece, duration_ms[begin:end])
    for bucket, day in _summed_by_bucket(selection, buckets):
        pieces.add_day(bucket, day)
    if is_open:
        sums = tally_series(selection, buckets).sums + pieces.of_days
        return Series(Tally(sums), pieces.medians())
    return pieces.series()


def _summed_by_bucket(selection: Selection, buckets: Buckets) -> Iterator[tuple[int, SummedDay]]:
    """Return the days that lie in one bucket, with its number."""
    for day in summed_days(selection):
        first, last = buckets.of(np.array(day.day.time_bounds, np.int64)).tolist()
        if first == last:
            yield first, day
        else:
            selection.missed.note(Missing.INTERVAL, day.day)


def _sorted_at_once(selection: Selection, buckets: Buckets) -> Series:
    size = len(buckets.dates)
    durations = GroupedDurations(size)
    keys: list[Numbers] = [np.zeros(0, np.uint32)]
    is_open = selection.filter.is_open
    for chosen in selection.views():
        cut = _cut(chosen, buckets)
        lengths = np.diff(cut.bounds)
        numbers = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
        numbers += np.uint32(cut.first)
        durations.add(numbers, cut.ordered(chosen.duration_ms))
        if not is_open:
            keys.append(keys_of(numbers, cut.ordered(chosen.flags)))
    of_days = np.zeros((SUMS, size), np.int64)
    for bucket, day in _summed_by_bucket(selection, buckets):
        of_days[:, bucket] += day.sums
        durations.add(np.full(len(day.duration_ms), bucket, np.uint32), day.duration_ms)
    medians = durations.sorted().quartile(2)
    if is_open:
        return Series(Tally(tally_series(selection, buckets).sums + of_days), medians)
    return Series(Tally(sums_of(np.concatenate(keys), None, size) + of_days), medians)


@define(eq=False)
class _Pieces:
    """Views bucket by bucket: how many have which flags, and their durations piece by piece."""

    size: int
    of_days: NDArray[np.int64] = field(init=False)
    """The sums of summed days, shape (SUMS, size)."""
    _by_flags: NDArray[np.int64] = field(init=False)
    _duration_ms: list[list[Numbers]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.of_days = np.zeros((SUMS, self.size), np.int64)
        self._by_flags = np.zeros((1 << FLAG_BITS, self.size), np.int64)
        self._duration_ms = [[] for _ in range(self.size)]

    def add(self, bucket: int, flags: NDArray[np.uint8] | None, duration_ms: Numbers) -> None:
        """Add views of one bucket; without flags, for their median alone."""
        if flags is not None:
            self._by_flags[:, bucket] += np.bincount(flags, minlength=1 << FLAG_BITS)
        self._duration_ms[bucket].append(duration_ms)

    def add_day(self, bucket: int, day: SummedDay) -> None:
        """Add the views of a summed day."""
        self.of_days[:, bucket] += day.sums
        self._duration_ms[bucket].append(day.duration_ms)

    def medians(self) -> NDArray[np.int64]:
        """Return the median of each bucket."""
        return np.array([median(pieces) for pieces in self._duration_ms], np.int64)

    def series(self) -> Series:
        """Return the buckets, and all of them as one."""
        whole_ms = median(list(chain.from_iterable(self._duration_ms)))
        sums = sums_by_flags(self._by_flags) + self.of_days
        whole = Series(Tally(sums).all(), np.array([whole_ms], np.int64))
        return whole if self.size == 1 else Series(Tally(sums), self.medians(), whole)


@frozen(eq=False)
class _Cut:
    """Where the buckets of chosen views begin and end.

    Bucket first + i has those from bounds[i] to before bounds[i + 1], once they are in `order`,
    if they are not as they are.
    """

    first: int
    bounds: NDArray[np.integer[Any]]
    order: NDArray[np.intp] | None = None

    def ordered(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return a column of the views in the order of their buckets."""
        return column if self.order is None else column.take(self.order)


def _cut(chosen: Chosen, buckets: Buckets) -> _Cut:
    part = chosen.part
    if not part.ascends:
        numbers = buckets.of(chosen.time_ms)
        first = int(numbers.min())
        bounds = np.concatenate(([0], np.cumsum(np.bincount(numbers - first))))
        return _Cut(first, bounds, np.argsort(numbers, kind="stable"))
    least_ms, greatest_ms = part.time_bounds
    slots = part.slots() if buckets.fall_on(SLOT_MS, least_ms, greatest_ms) else None
    if slots is None:
        time_ms = chosen.time_ms
        first, edges_ms = _between(buckets, int(time_ms[0]), int(time_ms[-1]))
        return _Cut(first, _around(np.searchsorted(time_ms, edges_ms), len(time_ms)))
    # As the times ascend, before an edge are as many views as the slots before it have.
    first, edges_ms = _between(buckets, least_ms, greatest_ms)
    up_to = np.concatenate(([0], np.cumsum(slots.sums[VIEWS], dtype=np.int64)))
    places = up_to[np.searchsorted(slots.codes, edges_ms // SLOT_MS)]
    if isinstance(chosen.index, slice):
        begin, end, _ = chosen.index.indices(len(part))
        return _Cut(first, _around(np.clip(places, begin, end) - begin, end - begin))
    if chosen.index is not None:
        return _Cut(first, _around(np.searchsorted(chosen.index, places), len(chosen.index)))
    return _Cut(first, _around(places, len(part)))


def _between(buckets: Buckets, least_ms: int, greatest_ms: int) -> tuple[int, NDArray[np.int64]]:
    """Return the bucket of the earlier time, and where those begin that come up to the later."""
    first, last = np.searchsorted(buckets.edges_ms, [least_ms, greatest_ms], side="right") - 1
    return int(first), buckets.edges_ms[first + 1 : last + 1]


def _around(inner: NDArray[np.integer[Any]], size: int) -> NDArray[np.integer[Any]]:
    return np.concatenate(([0], inner, [size]))


def _sorted(part: Part) -> SortedDurations | None:
    return part.durations() if isinstance(part, MergedSegment) else None
