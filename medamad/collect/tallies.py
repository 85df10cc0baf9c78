"""Counting what happens, for a day, in memory."""

from array import array
from typing import Final

from attrs import define, field

_SLOT_S: Final = 300
_SLOTS: Final = 86_400 // _SLOT_S + 1
"""A day, and the slot that has begun."""
_MINUTE_S: Final = 60


@define(eq=False)
class Tally:
    """How often something happened, in room for a day; a day begins at full five minutes.

    What was counted before the clock was set back counts as of the time that it was set to.
    """

    last: int = 0
    """When it happened last, in Unix seconds; 0 for never."""
    total: int = 0
    """How often since the start."""
    _newest: int = field(default=0, init=False)
    """The slot that was counted in last, by its number since 1970."""
    _slots: "array[int]" = field(factory=lambda: array("I", [0]) * _SLOTS, init=False)
    """How often in each slot of the day up to that one, which stands where its number says."""
    _minute: int = field(default=0, init=False)
    """The minute that was counted in last."""
    _in_minute: int = field(default=0, init=False)
    _in_minute_before: int = field(default=0, init=False)

    def count(self, now: float) -> None:
        """Count one."""
        slot, minute = int(now // _SLOT_S), int(now // _MINUTE_S)
        if not self.total:
            self._newest = slot
        self.last = int(now)
        self.total += 1
        if slot != self._newest:
            self._turn_to(slot)
        self._slots[slot % _SLOTS] += 1
        if minute != self._minute:
            self._in_minute_before = self._in_minute if minute == self._minute + 1 else 0
            self._minute, self._in_minute = minute, 0
        self._in_minute += 1

    def last_minute(self, now: float) -> int:
        """Give how often it happened in the last full minute."""
        wanted = int(now // _MINUTE_S) - 1
        if wanted == self._minute:
            return self._in_minute
        return self._in_minute_before if wanted == self._minute - 1 else 0

    def last_day(self, now: float) -> int:
        """Give how often it happened in the last 24 hours."""
        oldest = max(int(now // _SLOT_S), self._newest) - _SLOTS + 1
        return sum(self._slots[slot % _SLOTS] for slot in range(oldest, self._newest + 1))

    def _turn_to(self, slot: int) -> None:
        """Have a slot be the newest: those before it that nothing was counted in are empty."""
        early, late = sorted((slot, self._newest))
        passed = range(max(early, late - _SLOTS) + 1, late + 1)
        ahead = sum(self._slots[each % _SLOTS] for each in passed) if slot < self._newest else 0
        for each in passed:
            self._slots[each % _SLOTS] = 0
        self._slots[slot % _SLOTS] += ahead
        self._newest = slot
