"""Sorted numbers, kept in two bytes each: where a number would stand is a search, not a scan."""

from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

_BITS: Final = 16
_LOW: Final = 0xFFFF


@frozen(eq=False)
class Ascending:
    """Numbers below 2**32 in ascending order, shape (n,).

    `low` are their lower 16 bits. Those whose upper bits are h stand from `starts[h]` to
    `starts[h + 1]`; `starts` has one entry more than there are upper parts.
    """

    low: NDArray[np.unsignedinteger[Any]]
    starts: NDArray[np.unsignedinteger[Any]]

    @classmethod
    def of(cls, ascending: NDArray[np.uint32]) -> "Ascending":
        """Take sorted numbers apart."""
        high = ascending >> np.uint32(_BITS)
        uppers = np.arange(int(high[-1]) + 2 if len(high) else 1, dtype=np.uint32)
        starts = np.searchsorted(high, uppers).astype(np.uint32)
        return cls((ascending & np.uint32(_LOW)).astype(np.uint16), starts)

    def __len__(self) -> int:
        return len(self.low)

    def below(self, number: int) -> int:
        """Give how many are less than a number."""
        upper = number >> _BITS
        if upper + 1 >= len(self.starts):
            return len(self.low)
        begin, end = int(self.starts[upper]), int(self.starts[upper + 1])
        return begin + int(np.searchsorted(self.low[begin:end], self.low.dtype.type(number & _LOW)))

    def stretch(self, begin: int, end: int, step: int = 1) -> NDArray[np.uint32]:
        """Give every `step`-th number from place `begin` to before `end`."""
        places = np.arange(begin, end, step, dtype=self.starts.dtype)
        upper = np.searchsorted(self.starts, places, side="right") - 1
        return (upper.astype(np.uint32) << np.uint32(_BITS)) | self.low[begin:end:step]
