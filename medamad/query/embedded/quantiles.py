"""Exact medians and quartiles of durations, by group of views."""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.query.sums import Quartiles
from medamad.storage.segments.format import LOW, Integers, SortedDurations

_NARROW_BITS: Final = 32
_DURATION_BITS: Final = 32
_USUAL_BITS: Final = 19
"""Enough for a duration of almost nine minutes. Few are longer."""
WINDOWS: Final = 3
"""One around each quartile of a group."""


@define(eq=False)
class GroupedDurations:
    """Durations of groups 0 to size - 1, sorted all at once; durations of 0 do not count.

    Sorting narrow numbers takes half the time of sorting wide ones. So a group and a duration share
    32 bits if that is enough for most durations, and longer ones are sorted apart.
    """

    size: int
    _short: "_Keys" = field(init=False)
    _long: "_Keys" = field(init=False)

    def __attrs_post_init__(self) -> None:
        group_bits = max(self.size - 1, 1).bit_length()
        if group_bits + _USUAL_BITS <= _NARROW_BITS:
            self._short = _Keys(np.uint32, _NARROW_BITS - group_bits)
        else:
            self._short = _Keys(np.uint64, _DURATION_BITS)
        self._long = _Keys(np.uint64, _DURATION_BITS)

    def add(self, groups: Integers, duration_ms: Integers) -> None:
        """Add durations, in milliseconds below 2**32, with the group of each."""
        limit = 1 << self._short.bits
        if limit < 1 << _DURATION_BITS:
            long = np.flatnonzero(duration_ms >= limit)
            if len(long):
                self._long.add(groups.take(long), duration_ms.take(long))
                duration_ms = duration_ms.copy()
                duration_ms[long] = 0
        self._short.add(groups, duration_ms)

    def quartiles(self) -> Quartiles:
        """Return the quartiles of what was added."""
        short, long = self._short.sorted(self.size), self._long.sorted(self.size)
        counts = short.counts + long.counts

        def at(place: NDArray[np.intp]) -> NDArray[np.int64]:
            beyond = place - short.counts
            return np.where(
                beyond < 0, short.at(short.begins + place), long.at(long.begins + beyond)
            )

        last = np.maximum(counts - 1, 0)
        places = [last * number // 4 for number in (1, 2, 3)]
        low_ms = np.stack([at(place) for place in places])
        high_ms = np.stack([at(np.minimum(place + 1, last)) for place in places])
        return Quartiles(counts, low_ms, high_ms)


@define(eq=False)
class _Keys:
    """Numbers that consist of a group and a duration of so many bits."""

    dtype: type[np.unsignedinteger[Any]]
    bits: int
    _pieces: list[Integers] = field(factory=list)

    def add(self, groups: Integers, duration_ms: Integers) -> None:
        keys = groups.astype(self.dtype)
        keys <<= self.dtype(self.bits)
        keys |= duration_ms.astype(self.dtype, copy=False)
        self._pieces.append(keys)

    def sorted(self, size: int) -> "_Sorted":
        keys = np.concatenate([np.zeros(0, self.dtype), *self._pieces])
        self._pieces.clear()
        keys.sort()
        first = np.arange(size, dtype=np.uint64) << np.uint64(self.bits)
        # Within a group, those without a duration come first.
        begins = np.searchsorted(keys, (first | np.uint64(1)).astype(self.dtype))
        last = (first | np.uint64((1 << self.bits) - 1)).astype(self.dtype)
        ends = np.searchsorted(keys, last, side="right")
        return _Sorted(keys, self.bits, begins, ends - begins)


@frozen(eq=False)
class _Sorted:
    """Sorted keys: the durations of group i are the `counts[i]` keys from `begins[i]`."""

    keys: Integers
    bits: int
    begins: NDArray[np.intp]
    counts: NDArray[np.intp]

    def at(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the durations at some places, and anything for places that are out of bounds."""
        if not len(self.keys):
            return np.zeros(len(places), np.int64)
        keys = self.keys.take(places, mode="clip")
        return (keys & keys.dtype.type((1 << self.bits) - 1)).astype(np.int64)


def windows_around(quartiles: Quartiles) -> NDArray[np.uint32]:
    """Return bounds around the quartiles, for `NearDurations`, in its shape.

    The quartiles should stay in them while there are a few hundredths more durations, if those
    are not very different. Of a hundred durations, they are 22% below and above the quartile,
    of a million half a percent.
    """
    counts = np.maximum(quartiles.counts, 1)
    share = 1 / 256 + 16 / counts + 0.6 / np.sqrt(counts)
    greatest = np.iinfo(np.uint32).max
    low_ms = np.floor(quartiles.low_ms * (1 - np.minimum(share, 1)))
    high_ms = np.where(share < 1, np.ceil(quartiles.high_ms * (1 + share)), greatest)
    bounds = np.stack([low_ms.T, np.minimum(high_ms, greatest).T], axis=1)
    return bounds.astype(np.uint32)


@frozen(eq=False)
class NearDurations:
    """How many durations n groups have, and those in a window around each of their quartiles.

    `windows` has the least and the greatest durations in them, shape (n, 2, 3). `counts` has how
    many are below each, and how many there are in all, shape (n, 4). Those in a window are
    `begins[group, window]` up to `ends[group, window]` of `duration_ms`, ascending. Both are of
    shape (n, 3).
    """

    windows: NDArray[np.uint32]
    counts: NDArray[np.uint32]
    begins: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    duration_ms: NDArray[np.uint32]

    @classmethod
    def of(
        cls,
        windows: NDArray[np.uint32],
        counts: NDArray[np.uint32],
        pieces: Sequence[NDArray[np.uint64]],
    ) -> "NearDurations":
        """Take durations below the number of their window, which is group * WINDOWS + window."""
        keys = np.concatenate([np.zeros(0, np.uint64), *pieces])
        keys.sort()
        numbers = (keys >> np.uint64(32)).astype(np.intp)
        sizes = np.bincount(numbers, minlength=len(windows) * WINDOWS).reshape(-1, WINDOWS)
        ends = np.cumsum(sizes).astype(np.uint32).reshape(sizes.shape)
        begins = ends - sizes.astype(np.uint32)
        return cls(windows, counts, begins, ends, keys.astype(np.uint32))

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        columns = (self.windows, self.counts, self.begins, self.ends, self.duration_ms)
        return sum(column.nbytes for column in columns)

    def keys(self) -> NDArray[np.uint64]:
        """Return the durations in windows as in `of`."""
        begins = self.begins.reshape(-1).astype(np.intp)
        sizes = self.ends.reshape(-1) - begins
        windows = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
        places = np.arange(len(windows)) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
        keys: NDArray[np.uint64] = (windows << np.uint64(32)) | self.duration_ms[places]
        return keys

    def take(self, groups: NDArray[np.integer[Any]]) -> "NearDurations":
        """Return those of some groups, in that order."""
        columns = (self.windows, self.counts, self.begins, self.ends)
        windows, counts, begins, ends = (column.take(groups, axis=0) for column in columns)
        return NearDurations(windows, counts, begins, ends, self.duration_ms)


def median(
    unsorted_ms: Sequence[Integers],
    ascending: Sequence[SortedDurations] = (),
    removed_ms: Sequence[Integers] = (),
    removed: Sequence[SortedDurations] = (),
) -> int:
    """Return the median of durations in pieces, unsorted and sorted ones; 0 without any.

    Durations of 0 do not count. There must be none among the sorted ones. Those in `removed_ms` and
    `removed`, all of which are in the others, do not count either.
    """
    # Each piece has the narrowest dtype for its durations.
    pieces = np.concatenate(unsorted_ms) if unsorted_ms else np.zeros(0, np.uint32)
    loose = pieces.astype(np.uint32, copy=False)
    zeros = len(loose) - int(np.count_nonzero(loose))
    if removed_ms:
        loose_removed = np.concatenate(removed_ms).astype(np.uint32, copy=False)
        loose_removed.sort()
        removed = [*removed, SortedDurations.of(loose_removed[np.searchsorted(loose_removed, 1) :])]
    count = len(loose) - zeros + sum(map(len, ascending)) - sum(map(len, removed))
    if not count:
        return 0
    lower, upper = (count - 1) // 2, count // 2
    if ascending or removed:
        loose.sort()
        added = [*ascending, SortedDurations.of(loose[zeros:])]
        counted: _Pieces = [*((1, piece) for piece in added), *((-1, piece) for piece in removed)]
        low_ms, high_ms = _at(counted, lower, upper)
    else:
        loose.partition(zeros + lower)
        low_ms = int(loose[zeros + lower])
        high_ms = low_ms if lower == upper else int(loose[zeros + upper :].min())
    middle, rest = divmod(low_ms + high_ms, 2)
    return middle + (rest and middle % 2)


_Pieces: TypeAlias = Sequence[tuple[Literal[1, -1], SortedDurations]]
"""Numbers that count, and with -1 others that do not, although they are in those."""


def _at(pieces: _Pieces, lower: int, upper: int) -> tuple[int, int]:
    """Return the numbers at two places, at most one apart, of all numbers sorted together."""
    starts = np.zeros(max(len(piece.starts) for _, piece in pieces), np.int64)
    for sign, piece in pieces:
        starts[: len(piece.starts)] += sign * piece.starts.astype(np.int64)
        starts[len(piece.starts) :] += sign * len(piece)
    low_ms = _number_at(pieces, starts, lower)
    if lower == upper or sum(sign * piece.below(low_ms + 1) for sign, piece in pieces) > upper:
        return low_ms, low_ms
    return low_ms, _number_at(pieces, starts, upper)


def _number_at(pieces: _Pieces, starts: NDArray[np.int64], place: int) -> int:
    """Return the number at a place; `starts` counts the numbers below each of the upper halves."""
    upper = int(np.searchsorted(starts, place, side="right")) - 1
    halves = [(sign, piece.low_of(upper)) for sign, piece in pieces]
    place -= int(starts[upper])
    least, greatest = 0, LOW
    while least < greatest:
        middle = (least + greatest) // 2
        up_to = sum(
            sign * int(half.searchsorted(half.dtype.type(middle), "right")) for sign, half in halves
        )
        if up_to > place:
            greatest = middle
        else:
            least = middle + 1
    return upper * (LOW + 1) + least
