"""The sums of views by a number each view has, part by part, exact."""

from collections.abc import Iterable
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.model.dimensions import Dimension
from medamad.stats.selecting import Chosen
from medamad.store.parts import PAGE_VISITOR, VISITOR

BOUNCE_MS: Final = 5_000
"""A visitor who leaves within this has bounced."""

_SUMS: Final = 6


@frozen(eq=False)
class Tally:
    """Sums for the numbers 0 to n - 1, shape (6, n) int64, one row for each kind of sum."""

    sums: NDArray[np.int64]

    @property
    def views(self) -> NDArray[np.int64]:
        """Views."""
        return self._row(0)

    @property
    def timed_visitors(self) -> NDArray[np.int64]:
        """Visitors' first views of the day with a known duration."""
        return self._row(3)

    @property
    def bounces(self) -> NDArray[np.int64]:
        """Those of them that took at most BOUNCE_MS."""
        return self._row(4)

    @property
    def duration_ms(self) -> NDArray[np.int64]:
        """Total of the known durations."""
        return self._row(5)

    def visitors(self, of_page: bool) -> NDArray[np.int64]:
        """Visitors: first views of the day, or first views of the page."""
        return self._row(2 if of_page else 1)

    def _row(self, number: int) -> NDArray[np.int64]:
        row: NDArray[np.int64] = self.sums[number]
        return row

    def grouped(self, groups: NDArray[np.intp], size: int) -> "Tally":
        """Add up the sums of the numbers that share a group: `groups[number]` is 0 to size - 1."""
        sums = np.zeros((_SUMS, size), np.int64)
        for row, added in zip(sums, self.sums, strict=True):
            np.add.at(row, groups, added)
        return Tally(sums)


def tally(pieces: Iterable[tuple[NDArray[np.integer], Chosen]], size: int = 0) -> Tally:
    """Add up sums by number over pieces of views, each with the numbers of its views.

    n is one more than the greatest number, or `size` if that is more.
    """
    sums = np.zeros((_SUMS, size), np.int64)
    for numbers, views in pieces:
        added = _sums(numbers, views)
        if added.shape[1] > sums.shape[1]:
            sums, added = added, sums
        sums[:, : added.shape[1]] += added
    return Tally(sums)


def tally_by(chosen: Iterable[Chosen], dimension: Dimension) -> Tally:
    """Add up sums by the codes of a dimension.

    A part that is chosen whole can answer out of counters of its own: this is where.
    """
    return tally((views.codes(dimension), views) for views in chosen)


def tally_all(chosen: Iterable[Chosen]) -> Tally:
    """Add up the sums of all views, as those of the number 0."""
    return tally(((np.zeros(len(views.flags), np.intp), views) for views in chosen), 1)


def _sums(numbers: NDArray[np.integer], views: Chosen) -> NDArray[np.int64]:
    """Count the views of one part."""
    flags, duration_ms = views.flags, views.duration_ms
    visitor = np.flatnonzero((flags & VISITOR) != 0)
    page_visitor = np.flatnonzero((flags & PAGE_VISITOR) != 0)
    by_visitor, visit_ms = numbers[visitor], duration_ms[visitor]
    timed = np.flatnonzero(visit_ms > 0)
    bounced = np.flatnonzero((visit_ms > 0) & (visit_ms <= BOUNCE_MS))
    views_of = np.bincount(numbers)
    size = len(views_of)
    # The weights are floats: exact, since a part's total stays far below 2**53 ms.
    total_ms = np.bincount(numbers, duration_ms, size).astype(np.int64)
    return np.stack(
        (
            views_of,
            np.bincount(by_visitor, minlength=size),
            np.bincount(numbers[page_visitor], minlength=size),
            np.bincount(by_visitor[timed], minlength=size),
            np.bincount(by_visitor[bounced], minlength=size),
            total_ms,
        )
    )
