"""Exact medians and quartiles of durations, one for each group of views."""

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray


@frozen(eq=False)
class Durations:
    """Durations of n groups: those of group i are the `counts[i]` from `starts[i]`, ascending."""

    ascending_ms: NDArray[np.int64]
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
        fourfold = self.ascending_ms[low] * (4 - quarters) + self.ascending_ms[high] * quarters
        value, rest = np.divmod(fourfold, 4)
        value += (rest == 3) | ((rest == 2) & (value % 2 == 1))  # noqa: PLR2004 - of four
        return np.where(self.counts, value, 0)


def by_group(
    groups: Sequence[NDArray[np.integer]], duration_ms: Sequence[NDArray[np.uint32]], size: int
) -> Durations:
    """Sort durations by groups 0 to size - 1, given in pieces of equal length."""
    if not groups:
        nothing = np.zeros(size, np.int64)
        return Durations(np.zeros(0, np.int64), nothing, nothing)
    # One number for group and duration: one fast sort for all groups.
    keys = np.concatenate(groups).astype(np.uint64) << np.uint64(32)
    keys |= np.concatenate(duration_ms)
    counts = np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=size)
    keys.sort()
    ascending_ms = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return Durations(ascending_ms, np.cumsum(counts) - counts, counts)


def median(duration_ms: Sequence[NDArray[np.uint32]]) -> int:
    """Give the median of durations given in pieces, 0 if there is none."""
    if not duration_ms:
        return 0
    ascending_ms = np.sort(np.concatenate(duration_ms)).astype(np.int64)
    count = np.array([len(ascending_ms)], np.int64)
    return int(Durations(ascending_ms, np.zeros(1, np.int64), count).quartile(2)[0])
