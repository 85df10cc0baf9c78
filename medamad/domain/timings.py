"""Histograms of durations, cheap enough for every hit."""

from bisect import bisect_left
from typing import Final

from attrs import define, field

BOUNDS_S: Final = (
    *(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""The upper bounds of the buckets, in seconds."""


@define(eq=False)
class Timings:
    """A histogram of durations since the start. Written in one thread, read in any."""

    total_s: float = 0.0
    _counts: list[int] = field(factory=lambda: [0] * (len(BOUNDS_S) + 1), init=False)

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of durations in each bucket; the last one has no upper bound."""
        return tuple(self._counts)

    def __len__(self) -> int:
        """Return the number of durations."""
        return sum(self._counts)
