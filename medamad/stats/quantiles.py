"""Exact medians and quartiles of durations, one for each group of views."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.store.ascending import Ascending


@frozen(eq=False)
class Durations:
    """Durations of n groups: those of group i are the `counts[i]` from `starts[i]`, ascending."""

    ascending_ms: NDArray[np.integer[Any]]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    def quartile(self, number: int) -> NDArray[np.int64]:
        """Give the 1st, 2nd (the median) or 3rd quartile of each group, 0 where it is empty.

        Interpolated linearly between the two nearest, rounded half to even, in whole numbers
        throughout. Shape (n,).
        """
        if not len(self.ascending_ms):
            return np.zeros(len(self.counts), np.int64)
        last = np.maximum(self.counts - 1, 0)
        whole, quarters = np.divmod(last * number, 4)
        low = np.where(self.counts, self.starts + whole, 0)
        high = np.where(self.counts, self.starts + np.minimum(whole + 1, last), 0)
        return np.where(self.counts, self._between(low, high, quarters), 0)

    def _between(
        self, low: NDArray[np.int64], high: NDArray[np.int64], quarters: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        low_ms = self.ascending_ms[low].astype(np.int64)
        high_ms = self.ascending_ms[high].astype(np.int64)
        value, rest = np.divmod(low_ms * (4 - quarters) + high_ms * quarters, 4)
        value += (rest == 3) | ((rest == 2) & (value % 2 == 1))  # noqa: PLR2004 - of four
        return value


def by_group(
    groups: Sequence[NDArray[np.integer[Any]]],
    duration_ms: Sequence[NDArray[np.integer[Any]]],
    size: int,
) -> Durations:
    """Sort durations by groups 0 to size - 1, given in pieces of equal length."""
    if not groups:
        nothing = np.zeros(size, np.int64)
        return Durations(np.zeros(0, np.int64), nothing, nothing)
    # One number for group and duration: one fast sort for all groups.
    keys = np.concatenate(groups).astype(np.uint64)
    counts = np.bincount(keys.view(np.int64), minlength=size)
    keys <<= np.uint64(32)
    keys |= np.concatenate(duration_ms)
    keys.sort()
    return Durations(keys.astype(np.uint32), np.cumsum(counts) - counts, counts)


def median(duration_ms: Sequence[NDArray[np.integer[Any]]], known: Sequence[Ascending] = ()) -> int:
    """Give the median of durations given in pieces, sorted ones among them; 0 if there is none."""
    loose = np.concatenate([np.zeros(0, np.uint32), *duration_ms])
    count = len(loose) + sum(map(len, known))
    if not count:
        return 0
    lower, upper = (count - 1) // 2, count // 2
    if known:
        loose.sort()
        low_ms = _at(loose, known, lower)
        high_ms = low_ms if lower == upper else _at(loose, known, upper, low_ms)
    else:
        loose.partition(lower)
        low_ms = int(loose[lower])
        high_ms = low_ms if lower == upper else int(loose[upper:].min())
    pair = np.array([low_ms, high_ms], np.int64)
    return int(Durations(pair, np.zeros(1, np.int64), np.array([2])).quartile(2)[0])


def _at(
    loose: NDArray[np.integer[Any]], known: Sequence[Ascending], place: int, least: int = 0
) -> int:
    """Give the number, `least` or more, that stands at a place of all numbers sorted together."""
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
