"""Drawing many weighted numbers at once, and encoding texts as numbers."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Self, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from medamad.demo.people import Weighted

T = TypeVar("T")

_FEW = 1 << 13
_DRAWS = 20_000


@frozen(eq=False)
class Odds:
    """The numbers 0 to n - 1 in a table, each as often as it is to be drawn."""

    table: NDArray[np.unsignedinteger]

    @classmethod
    def of(cls, weights: ArrayLike) -> Self:
        """Return the odds of n numbers from their weights, which need not add up to one."""
        bounds = np.cumsum(np.asarray(weights, np.float64))
        size = 1 << (20 if len(bounds) <= _FEW else 23)
        places = (np.arange(size) + 0.5) / size * bounds[-1]
        numbers = np.minimum(np.searchsorted(bounds, places, side="right"), len(bounds) - 1)
        return cls(numbers.astype(np.min_scalar_type(len(bounds) - 1)))

    def draw(self, random: np.random.Generator, count: int) -> NDArray[np.unsignedinteger]:
        """Return `count` drawn numbers, in the narrowest type that holds all numbers."""
        drawn: NDArray[np.unsignedinteger] = self.table[
            random.integers(0, len(self.table), count, np.uint32)
        ]
        return drawn


def zipf(count: int, steepness: float = 1.0) -> NDArray[np.float64]:
    """Return descending weights by Zipf's law."""
    weights: NDArray[np.float64] = np.arange(1, count + 1, dtype=np.float64) ** -steepness
    return weights


def most_common(values: Weighted[T], random: Random) -> Sequence[tuple[T, int]]:
    """Return values drawn as in the demo, with their frequencies, most frequent first."""
    return Counter(values.draw(random) for _ in range(_DRAWS)).most_common()


def coded(values: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.unsignedinteger]]:
    """Return the distinct texts among values, and the index of each value in them."""
    texts, codes = np.unique(np.array(values, dtype=np.dtypes.StringDType()), return_inverse=True)
    return tuple(texts.tolist()), codes.astype(np.min_scalar_type(max(len(texts) - 1, 0)))
