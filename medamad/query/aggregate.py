"""The sums of views by a number each view has, part by part, exact.

A part that is chosen whole answers by its counters; the views of others are gathered and counted
together.
"""

from typing import Any, Final

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.request import Question
from medamad.query.rollups import counted_days, note_unknown
from medamad.query.rows import Columns, fractions
from medamad.query.scan import Chosen, Selection
from medamad.storage.segments import counters as sums_of_counters
from medamad.storage.segments.counters import SLOT_MS, SUMS, Counters, keys_of, sums_of
from medamad.storage.segments.format import FLAG_BITS
from medamad.storage.segments.parts import (
    Part,
)

_GATHERED: Final = 1 << 17
"""How many views are counted at a time: so few that they stay in the processor's cache."""
_ANY: Final = Dimension.DEVICE
"""A dimension with few values: sums over it are sums over all views."""


@frozen(eq=False)
class Tally:
    """Sums for the numbers 0 to n - 1, shape (6, n) int64, one row for each kind of sum."""

    sums: NDArray[np.int64]

    @property
    def views(self) -> NDArray[np.int64]:
        """Views."""
        return self._row(sums_of_counters.VIEWS)

    @property
    def timed_visitors(self) -> NDArray[np.int64]:
        """Visitors' first views of the day with a known duration."""
        return self._row(sums_of_counters.TIMED_VISITORS)

    @property
    def bounces(self) -> NDArray[np.int64]:
        """Those of them that took at most BOUNCE_MS."""
        return self._row(sums_of_counters.BOUNCES)

    @property
    def duration_ms(self) -> NDArray[np.int64]:
        """Total of the known durations."""
        return self._row(sums_of_counters.DURATION_MS)

    def visitors(self, of_page: bool) -> NDArray[np.int64]:
        """Visitors: first views of the day, or first views of the page."""
        of_day, of_pages = sums_of_counters.VISITORS, sums_of_counters.PAGE_VISITORS
        return self._row(of_pages if of_page else of_day)

    def _row(self, number: int) -> NDArray[np.int64]:
        row: NDArray[np.int64] = self.sums[number]
        return row

    def grouped(self, groups: NDArray[np.intp], size: int) -> "Tally":
        """Add up the sums of the numbers that share a group: `groups[number]` is 0 to size - 1."""
        sums = np.zeros((SUMS, size), np.int64)
        for row, added in zip(sums, self.sums, strict=True):
            np.add.at(row, groups, added)
        return Tally(sums)

    def all(self) -> "Tally":
        """Add everything up, as the sums of the number 0."""
        return Tally(self.sums.sum(axis=1, keepdims=True))


def figures_of_time(tally: Tally, duration_ms: NDArray[np.int64], question: Question) -> Columns:
    """Return the bounce rate and the duration of all numbers: 0 where none is known.

    With blanks it is None where there are views, and of none of them it is known.
    """
    columns: Columns = {
        "bounce_percentage": fractions(tally.bounces, tally.timed_visitors),
        "duration": duration_ms,
    }
    if question.with_blanks:
        for name, known in zip(columns, (tally.timed_visitors, duration_ms), strict=True):
            blank = np.asarray(columns[name], np.object_)
            blank[(tally.views > 0) & (known == 0)] = None
            columns[name] = blank
    return columns


@define(eq=False)
class _Adding:
    """Sums that grow. Without `timed`, durations are left out."""

    timed: bool
    sums: NDArray[np.int64] = field(factory=lambda: np.zeros((SUMS, 0), np.int64))
    _keys: list[NDArray[np.integer[Any]]] = field(factory=list)
    _duration_ms: list[NDArray[np.integer[Any]]] = field(factory=list)
    _gathered: int = 0

    def add(self, counters: Counters) -> None:
        """Add counters, whose codes are the numbers."""
        codes = counters.codes
        if not len(codes):
            return
        size = int(codes[-1]) + 1
        self._grow(size)
        # Where every code occurs, they are places in a row.
        where = slice(0, size) if size == len(codes) else codes
        for row in range(SUMS if self.timed else sums_of_counters.TIMED_VISITORS):
            self.sums[row][where] += counters.sums[row]

    def gather(self, numbers: NDArray[np.integer[Any]], views: Chosen) -> None:
        """Add views of a part, out of the numbers of all of its views."""
        keys = views.of(keys_of(numbers, views.part.flags))
        self._keys.append(keys)
        if self.timed:
            self._duration_ms.append(views.duration_ms)
        self._gathered += len(keys)
        # Not so few that to clear the counts takes longer than to count.
        if self._gathered >= max(_GATHERED, self.sums.shape[1] << FLAG_BITS):
            self.count()

    def count(self) -> None:
        """Count what was gathered."""
        if not self._gathered:
            return
        keys = np.concatenate(self._keys)
        duration_ms = np.concatenate(self._duration_ms) if self.timed else None
        size = (int(keys.max()) >> FLAG_BITS) + 1
        self._grow(size)
        self.sums[:, :size] += sums_of(keys, duration_ms, size)
        self._keys, self._duration_ms, self._gathered = [], [], 0

    def _grow(self, size: int) -> None:
        if size > self.sums.shape[1]:
            grown = np.zeros((SUMS, size), np.int64)
            grown[:, : self.sums.shape[1]] = self.sums
            self.sums = grown


def tally_by(selection: Selection, dimension: Dimension, *, timed: bool = True) -> Tally:
    """Add up sums by the codes of a dimension; without `timed` only views and visitors."""
    passing = selection.filter.passing.get(dimension)
    if passing is not None:
        # A filter on what is counted by chooses among the sums, not among the views.
        selection = selection.without(dimension)
    adding = _Adding(timed)
    for chosen in selection.choose(lambda part: part.counters(dimension)):
        if isinstance(chosen, Counters):
            adding.add(chosen)
        else:
            adding.gather(chosen.part.codes(dimension), chosen)
    adding.count()
    for day, counters in counted_days(selection, dimension):
        adding.add(counters)
        if timed:
            passed = None if passing is None else passing.take(counters.codes)
            note_unknown(selection.missed, day, counters, passed)
    sums = adding.sums
    if passing is not None:
        sums *= passing[: sums.shape[1]]
    return Tally(sums)


def tally_all(selection: Selection) -> Tally:
    """Add up the sums of all views of parts, as those of the number 0."""
    filtered = tuple(selection.filter.passing)
    of_parts = evolve(selection, days=())
    return tally_by(of_parts, filtered[0] if len(filtered) == 1 else _ANY).all()


def tally_series(selection: Selection, buckets: Buckets) -> Tally:
    """Add up the sums of views of parts by the number of their bucket; each must lie in one."""
    size = len(buckets.dates)
    adding = _Adding(timed=True, sums=np.zeros((SUMS, size), np.int64))
    for chosen in selection.choose(lambda part: _by_bucket(part, buckets)):
        if isinstance(chosen, Counters):
            adding.add(chosen)
        else:
            adding.gather(buckets.of(chosen.part.time_ms), chosen)
    adding.count()
    return Tally(adding.sums)


def _by_bucket(part: Part, buckets: Buckets) -> Counters | None:
    """Turn the slots of a part into buckets, if these begin where slots begin."""
    least_ms, greatest_ms = part.time_bounds
    if not buckets.fall_on(SLOT_MS, least_ms, greatest_ms):
        return None
    slots = part.slots()
    if slots is None:
        return None
    begins_ms = np.clip(slots.codes.astype(np.int64) * SLOT_MS, least_ms, greatest_ms)
    numbers = buckets.of(begins_ms)
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    sums = tuple(np.add.reduceat(row.astype(np.int64), first) for row in slots.sums)
    return Counters(numbers[first], sums)
