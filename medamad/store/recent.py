"""The visitors of the last 24 hours, counted in bounded memory for the list of websites."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from attrs import define, field

_DAY_MS: Final = 86_400_000
_SLOT_MS: Final = 900_000
_ALWAYS: Final = 1 << 62
_TIMES: Final = 4_096
"""How many times of a quarter of an hour are kept; of further visitors only their number."""


@define(eq=False)
class _Slot:
    """The visitors of a quarter of an hour: how many, and when the first of them came."""

    count: int = 0
    times: "array[int]" = field(factory=lambda: array("q"))

    def add(self, time_ms: int) -> None:
        self.count += 1
        if len(self.times) < _TIMES:
            self.times.append(time_ms)

    def since(self, since_ms: int) -> int | None:
        """Count those that came since a moment; None where not every time is known."""
        times = sorted(self.times)
        if len(times) < self.count:
            return None
        return len(times) - bisect_left(times, since_ms)


@define(eq=False)
class LastDay:
    """When the latest visitors came. Changed by the writer thread, read in any."""

    _slots: dict[int, _Slot] = field(factory=dict)
    """By quarter of an hour since 1970."""
    _newest: int = 0
    _complete_since_ms: int = _ALWAYS
    """Visitors that came since this moment are all here."""

    def fill(self, times_ms: Iterable[int], since_ms: int) -> None:
        """Begin with all visitors that came since a moment."""
        self._complete_since_ms = _ALWAYS
        self._slots = {}
        self.add(times_ms)
        # Last: other threads count meanwhile.
        self._complete_since_ms = since_ms

    def add(self, times_ms: Iterable[int]) -> None:
        """Count further visitors; those of more than a day ago make room."""
        for time_ms in times_ms:
            number = time_ms // _SLOT_MS
            slot = self._slots.get(number)
            if slot is None:
                slot = self._slots[number] = _Slot()
                self._forget(number)
            slot.add(time_ms)

    def count(self, now_ms: int) -> int | None:
        """Count those of the 24 hours before a moment; None where not enough is known of them."""
        since_ms = now_ms - _DAY_MS
        if since_ms < self._complete_since_ms:
            return None
        first = since_ms // _SLOT_MS
        total = 0
        for number, slot in list(self._slots.items()):
            if number > first:
                total += slot.count
            elif number == first:
                counted = slot.since(since_ms)
                if counted is None:
                    return None
                total += counted
        return total

    def _forget(self, newest: int) -> None:
        if newest <= self._newest:
            return
        self._newest = newest
        oldest = newest - _DAY_MS // _SLOT_MS - 1
        for slot in [slot for slot in self._slots if slot < oldest]:
            del self._slots[slot]
        self._complete_since_ms = max(self._complete_since_ms, oldest * _SLOT_MS)
