"""Whose views there are in files, and which are a visitor's first: decided by their time."""

from array import array
from collections.abc import Hashable
from datetime import UTC, datetime, tzinfo
from typing import Final

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.moves.repeats import Repeats

_OF_DAY: Final = 1
_OF_PAGE: Final = 2
_NOTHING: Final = np.zeros(0, np.int64)


def _int64s() -> "array[int]":
    return array("q")


@define(eq=False)
class Noted:
    """Views that are noted while files are read, and told of when they are read again.

    So it does not matter in which order the files, and the views in them, come. In memory alone:
    32 bytes for each view, as hashes that no other process could make.
    """

    zone: tzinfo
    """Whose days count."""
    has_agents: bool = True
    """Whether logs tell of User-Agents, as they do unless it turns out that none has any."""
    is_decided: bool = False
    repeats: Repeats = field(factory=Repeats)
    """Which of them, and of events, come again."""
    _visitors: "array[int]" = field(factory=_int64s)
    _pages: "array[int]" = field(factory=_int64s)
    _times_ms: "array[int]" = field(factory=_int64s)
    _numbers: "array[int]" = field(factory=_int64s)
    _flags: bytes = b""
    """Of the views, by their numbers."""
    _has_events: bool = False
    _ordered: tuple[NDArray[np.int64], ...] = (_NOTHING, _NOTHING, _NOTHING)
    """Pages of visitors, ascending, and times and numbers of their views."""

    def note(self, number: int, time_ms: int, visitor: Hashable, path: str) -> None:
        """Take note of a view. Numbers are more than 0, and ascend."""
        day = self._day(time_ms)
        self._visitors.append(hash((day, visitor)))
        self._pages.append(hash((day, visitor, path)))
        self._times_ms.append(time_ms)
        self._numbers.append(number)

    def decide(self) -> None:
        """Decide which are first, when all are noted. Of the same time it is the one read first."""
        times, numbers = np.frombuffer(self._times_ms, "q"), np.frombuffer(self._numbers, "q")
        flags = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.uint8)
        for flag, noted in ((_OF_DAY, self._visitors), (_OF_PAGE, self._pages)):
            whose = np.frombuffer(noted, "q")
            order = np.lexsort((times, whose))
            ordered = whose[order]
            is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(order)]
            flags[numbers[order[is_first]]] |= flag
            if flag == _OF_PAGE and self._has_events:
                self._ordered = ordered, times[order], numbers[order]
        self._flags = flags.tobytes()
        self._visitors, self._pages = _int64s(), _int64s()
        self._times_ms, self._numbers = _int64s(), _int64s()
        self.repeats.decide()
        self.is_decided = True

    def firsts(self, number: int) -> tuple[bool, bool]:
        """Tell whether a view is its visitor's first of the day, and first of its page."""
        flags = self._flags[number] if number < len(self._flags) else 0
        return bool(flags & _OF_DAY), bool(flags & _OF_PAGE)

    def view_before(self, time_ms: int, visitor: Hashable, path: str) -> int:
        """Give the number of the visitor's last view of a page at a time, 0 for none.

        One that counts, of the same day or of the day before. Always 0 as long as nothing is
        decided.
        """
        self._has_events = True
        if not self.is_decided:
            return 0
        pages, times, numbers = self._ordered
        day = self._day(time_ms)
        for page in (hash((day, visitor, path)), hash((day - 1, visitor, path))):
            first, end = np.searchsorted(pages, page), np.searchsorted(pages, page, "right")
            at = first + np.searchsorted(times[first:end], time_ms, "right")
            if at > first:
                return self.repeats.counting(int(numbers[at - 1]))
        return 0

    def _day(self, time_ms: int) -> int:
        return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(self.zone).toordinal()
