"""Visitors in the last 24 hours, counted in bounded memory."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.zones import DAY_MS
from medamad.storage.segments.counters import SLOT_MS
from medamad.storage.segments.format import VISITOR
from medamad.storage.segments.parts import (
    MergedSegment,
    Part,
    ViewColumns,
)
from medamad.storage.segments.snapshot import Snapshot


def visitor_times(snapshot: Snapshot, since_ms: int) -> NDArray[np.int64]:
    """Return when the visitors' first views of the day since a moment were, Unix milliseconds.

    Some are in the future where the clock was set back.
    """
    found = [
        part.time_ms[recent & ((part.flags & VISITOR) != 0)]
        for part, recent in _recent(snapshot.parts, since_ms)
    ]
    return np.concatenate([np.zeros(0, np.int64), *found])


def newest_ms(parts: Iterable[Part]) -> int:
    """Return the latest time of a view, Unix milliseconds; -1 without any."""
    return max([-1, *(part.time_bounds[1] for part in parts)])


def _recent(
    parts: Iterable[Part], since_ms: int
) -> Iterator[tuple[ViewColumns, NDArray[np.bool_]]]:
    """Return the parts that have views since a moment, and which views those are."""
    for part in parts:
        if part.time_bounds[1] < since_ms:
            continue
        if isinstance(part, MergedSegment):
            yield from _recent(part.members, since_ms)
        else:
            yield part, part.time_ms >= since_ms


_KEPT: Final = DAY_MS // SLOT_MS + 1
"""How many quarters of an hour are kept, before the latest one and after it."""
_ALWAYS: Final = 1 << 62
_TIMES: Final = 4_096
"""How many times are kept of a quarter of an hour. Further visitors are only counted."""


@define(eq=False)
class _Slot:
    """The visitors of a quarter of an hour: how many, and the times of the first of them."""

    count: int = 0
    latest_ms: int = 0
    times: "array[int]" = field(factory=lambda: array("q"))

    def add(self, time_ms: int) -> None:
        self.count += 1
        self.latest_ms = max(self.latest_ms, time_ms)
        if len(self.times) < _TIMES:
            self.times.append(time_ms)

    def within(self, since_ms: int, until_ms: int) -> int | None:
        """Count the visitors between two moments; None where not every time is known."""
        times = sorted(self.times)
        if len(times) < self.count:
            return None
        return bisect_right(times, until_ms) - bisect_left(times, since_ms)


@define(eq=False)
class VisitorsLastDay:
    """The times of the latest visitors. Changed by the writer thread, read by any."""

    _slots: dict[int, _Slot] = field(factory=dict)
    """By quarter of an hour since 1970."""
    _since_ms: int = _ALWAYS
    _until_ms: int = _ALWAYS
    """All visitors from the one moment to before the other are here."""

    def fill(self, times_ms: Iterable[int], now_ms: int) -> None:
        """Start with all visitors since a day before a moment."""
        self._since_ms = _ALWAYS
        self._until_ms = _ALWAYS
        self._slots = {}
        for time_ms in times_ms:
            self._add(time_ms)
        self._forget(now_ms // SLOT_MS)
        # Last, as other threads count meanwhile.
        self._since_ms = now_ms - DAY_MS

    def add(self, times_ms: Iterable[int]) -> None:
        """Add visitors; those of more than a day before or after them are dropped."""
        for time_ms in times_ms:
            if self._add(time_ms):
                self._forget(time_ms // SLOT_MS)

    def knows(self, now_ms: int) -> bool:
        """Return whether all visitors of the 24 hours before a moment are here."""
        return self._since_ms <= now_ms - DAY_MS and now_ms < self._until_ms

    def count(self, now_ms: int) -> int | None:
        """Count the visitors of the 24 hours before a moment; None where that is not known."""
        if not self.knows(now_ms):
            return None
        since_ms = now_ms - DAY_MS
        first, last = since_ms // SLOT_MS, now_ms // SLOT_MS
        total = 0
        for number, slot in list(self._slots.items()):
            if first < number < last or (number == last and slot.latest_ms <= now_ms):
                total += slot.count
            elif number in {first, last}:
                counted = slot.within(since_ms, now_ms)
                if counted is None:
                    return None
                total += counted
        return total

    def _add(self, time_ms: int) -> bool:
        """Add a visitor; return whether it is the first in its quarter of an hour."""
        number = time_ms // SLOT_MS
        slot = self._slots.get(number)
        is_first = slot is None
        if slot is None:
            slot = self._slots[number] = _Slot()
        slot.add(time_ms)
        return is_first

    def _forget(self, latest: int) -> None:
        """Drop what is more than a day away from a quarter of an hour."""
        for number in list(self._slots):
            if number < latest - _KEPT:
                self._since_ms = max(self._since_ms, (number + 1) * SLOT_MS)
            elif number > latest + _KEPT:
                self._until_ms = min(self._until_ms, number * SLOT_MS)
            else:
                continue
            del self._slots[number]
