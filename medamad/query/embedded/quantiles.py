"""Windows around the quartiles of durations by group of views, and the durations in them."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.query.sums import Quartiles

WINDOWS: Final = 3
"""One around each quartile of a group."""


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

    def take(self, groups: NDArray[np.integer[Any]]) -> "NearDurations":
        """Return those of some groups, in that order."""
        columns = (self.windows, self.counts, self.begins, self.ends)
        windows, counts, begins, ends = (column.take(groups, axis=0) for column in columns)
        return NearDurations(windows, counts, begins, ends, self.duration_ms)
