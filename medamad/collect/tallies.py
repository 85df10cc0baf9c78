"""Counting what happens, by the minute and for a day, in memory."""

from collections import deque
from typing import Final

from attrs import define, field

_SLOT_S: Final = 60
_SLOTS: Final = 1440
"""A day in slots of a minute."""


@define(eq=False)
class Tally:
    """How often something happened. `last` is when, in Unix seconds; 0 for never."""

    last: int = 0
    total: int = 0
    """How often since the start."""
    _slots: deque[list[int]] = field(factory=lambda: deque(maxlen=_SLOTS + 1), init=False)
    """`[slot, hits]` in order of time."""

    def count(self, now: float) -> None:
        """Count one."""
        self.last = int(now)
        self.total += 1
        slot = int(now // _SLOT_S)
        slots = self._slots
        hits = 1
        while slots and slots[-1][0] >= slot:
            # This minute's; or counted before the clock was set back, and from now on as of now.
            hits += slots.pop()[1]
        slots.append([slot, hits])

    def last_minute(self, now: float) -> int:
        """Give how often it happened in the last full minute."""
        wanted = int(now // _SLOT_S) - 1
        return sum(hits for slot, hits in list(self._slots)[-2:] if slot == wanted)

    def last_day(self, now: float) -> int:
        """Give how often it happened in the last 24 hours."""
        oldest = int(now // _SLOT_S) - _SLOTS
        return sum(hits for slot, hits in self._slots if slot >= oldest)
