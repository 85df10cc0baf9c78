"""Choices with unequal odds."""

from collections.abc import Mapping
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

T = TypeVar("T")


class Weighted(Generic[T]):
    """Values and how often each is drawn, relative to the others."""

    def __init__(self, weights: Mapping[T, float]) -> None:
        self._values = tuple(weights)
        self._sums = tuple(accumulate(weights.values()))

    def draw(self, random: Random) -> T:
        """Draw one value."""
        return random.choices(self._values, cum_weights=self._sums)[0]


def skewed(values: tuple[T, ...], steepness: float = 1.0) -> Weighted[T]:
    """Give values of which each is drawn less often than the one before it (Zipf's law)."""
    return Weighted({value: (n + 1) ** -steepness for n, value in enumerate(values)})
