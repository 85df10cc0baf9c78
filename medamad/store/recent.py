"""The visitors of the last 24 hours, counted in memory for the list of websites."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from attrs import define, field

_DAY_MS: Final = 86_400_000
_SLOT_MS: Final = 900_000
_ALWAYS: Final = 1 << 62


@define(eq=False)
class LastDay:
    """When the latest visitors came. Changed by the writer thread, read in any."""

    _slots: dict[int, "array[int]"] = field(factory=dict)
    """Times by quarter of an hour, Unix milliseconds."""
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
            slot = time_ms // _SLOT_MS
            times = self._slots.get(slot)
            if times is None:
                times = self._slots[slot] = array("q")
                self._forget(slot)
            times.append(time_ms)

    def count(self, now_ms: int) -> int | None:
        """Count those of the 24 hours before a moment; None where not all of them are here."""
        since_ms = now_ms - _DAY_MS
        if since_ms < self._complete_since_ms:
            return None
        first = since_ms // _SLOT_MS
        total = 0
        for slot, times in list(self._slots.items()):
            if slot > first:
                total += len(times)
            elif slot == first:
                total += len(times) - bisect_left(sorted(times), since_ms)
        return total

    def _forget(self, newest: int) -> None:
        if newest <= self._newest:
            return
        self._newest = newest
        oldest = newest - _DAY_MS // _SLOT_MS - 1
        for slot in [slot for slot in self._slots if slot < oldest]:
            del self._slots[slot]
        self._complete_since_ms = max(self._complete_since_ms, oldest * _SLOT_MS)
