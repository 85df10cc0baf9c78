"""Exact medians and quartiles of durations, one for each group of views."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.storage.segments.format import SortedDurations

Whole: TypeAlias = NDArray[np.integer[Any]]

_NARROW_BITS: Final = 32
_WIDE_BITS: Final = 64
_DURATION_BITS: Final = 32
_USUAL_BITS: Final = 19
"""Enough for a duration of almost nine minutes; few are longer."""


@define(eq=False)
class GroupedDurations:
    """Durations of groups 0 to size - 1, sorted all at once; those of 0 do not count.

    A sort of narrow numbers takes half the time of one of wide ones. So a group and a duration
    share 32 bits, if that leaves enough for most durations; what is longer is sorted apart.
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

    def add(self, groups: Whole, duration_ms: Whole) -> None:
        """Add durations, in milliseconds below 2**32, with the group of each."""
        limit = 1 << self._short.bits
        if limit < 1 << _DURATION_BITS:
            long = np.flatnonzero(duration_ms >= limit)
            if len(long):
                self._long.add(groups.take(long), duration_ms.take(long))
                duration_ms = duration_ms.copy()
                duration_ms[long] = 0
        self._short.add(groups, duration_ms)

    def sorted(self) -> "Spread":
        """Sort what was added."""
        return Spread(self._short.sorted(self.size), self._long.sorted(self.size))


@define(eq=False)
class _Keys:
    """Numbers of a group and a duration of so many bits."""

    dtype: type[np.unsignedinteger[Any]]
    bits: int
    _pieces: list[Whole] = field(factory=list)

    def add(self, groups: Whole, duration_ms: Whole) -> None:
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
    """Sorted keys: those of group i that have a duration are the `counts[i]` from `begins[i]`."""

    keys: Whole
    bits: int
    begins: NDArray[np.intp]
    counts: NDArray[np.intp]

    def at(self, places: NDArray[np.intp]) -> NDArray[np.int64]:
        """Return the durations at some places; anything for places that there are not."""
        if not len(self.keys):
            return np.zeros(len(places), np.int64)
        keys = self.keys.take(places, mode="clip")
        return (keys & keys.dtype.type((1 << self.bits) - 1)).astype(np.int64)


@frozen(eq=False)
class Spread:
    """The durations of groups, sorted within each."""

    _short: _Sorted
    _long: _Sorted

    @property
    def counts(self) -> NDArray[np.intp]:
        """How many durations each group has."""
        return self._short.counts + self._long.counts

    def quartile(self, number: int) -> NDArray[np.int64]:
        """Return the 1st, 2nd (the median) or 3rd quartile of each group, 0 where it is empty.

        Interpolated linearly between the two nearest, rounded half to even, in whole numbers
        throughout. Shape (n,).
        """
        last = np.maximum(self.counts - 1, 0)
        place, quarters = np.divmod(last * number, 4)
        low_ms, high_ms = self._at(place), self._at(np.minimum(place + 1, last))
        return np.where(self.counts, _between(low_ms, high_ms, quarters), 0)

    def _at(self, place: NDArray[np.intp]) -> NDArray[np.int64]:
        short, long = self._short, self._long
        beyond = place - short.counts
        return np.where(beyond < 0, short.at(short.begins + place), long.at(long.begins + beyond))


def _between(
    low_ms: NDArray[np.int64], high_ms: NDArray[np.int64], quarters: Whole
) -> NDArray[np.int64]:
    """Return what lies so many quarters of the way between numbers, rounded half to even."""
    value, rest = np.divmod(low_ms * (4 - quarters) + high_ms * quarters, 4)
    value += (rest == 3) | ((rest == 2) & (value % 2 == 1))  # noqa: PLR2004 - of four
    return value


def median(duration_ms: Sequence[Whole], known: Sequence[SortedDurations] = ()) -> int:
    """Return the median of durations given in pieces, sorted ones among them; 0 if there is none.

    Durations of 0 do not count; `known` has none of them.
    """
    # Pieces are as narrow as their own greatest duration.
    pieces = np.concatenate(duration_ms) if duration_ms else np.zeros(0, np.uint32)
    loose = pieces.astype(np.uint32, copy=False)
    unknown = len(loose) - int(np.count_nonzero(loose))
    count = len(loose) - unknown + sum(map(len, known))
    if not count:
        return 0
    lower, upper = (count - 1) // 2, count // 2
    if known:
        loose.sort()
        loose = loose[unknown:]
        low_ms = _at(loose, known, lower)
        high_ms = low_ms if lower == upper else _at(loose, known, upper, low_ms)
    else:
        loose.partition(unknown + lower)
        low_ms = int(loose[unknown + lower])
        high_ms = low_ms if lower == upper else int(loose[unknown + upper :].min())
    middle, rest = divmod(low_ms + high_ms, 2)
    return middle + (rest and middle % 2)


def _at(loose: Whole, known: Sequence[SortedDurations], place: int, least: int = 0) -> int:
    """Return the number, `least` or more, that stands at a place of all numbers sorted together."""
    greatest = (1 << 32) - 1
    while least < greatest:
        middle = (least + greatest) // 2
        up_to = int(np.searchsorted(loose, loose.dtype.type(middle), side="right"))
        up_to += sum(ascending.below(middle + 1) for ascending in known)
        if up_to > place:
            greatest = middle
        else:
            least = middle + 1
    return least
