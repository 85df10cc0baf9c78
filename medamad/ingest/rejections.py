"""Rejected and ignored hits, counted in bounded memory by website and reason."""

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Final

from attrs import define, field, frozen

from medamad.domain.websites import MAX_HOSTNAME

_SLOT_S: Final = 300
_SLOTS: Final = 86_400 // _SLOT_S + 1
"""A day, and the current slot."""
_MINUTE_S: Final = 60


@define(eq=False)
class Tally:
    """A count over the last day, in slots of five minutes, and over the last minute.

    If the clock is set back, earlier counts move to the time that it is set to.
    """

    last: int = 0
    """The time of the last one, in Unix seconds; 0 for none."""
    total: int = 0
    """The count since the start."""
    _newest: int = field(default=0, init=False)
    """The number of the latest slot, counted from 1970."""
    _slots: "array[int]" = field(factory=lambda: array("I", [0]) * _SLOTS, init=False)
    """The counts of the day up to the latest slot, each at its number modulo _SLOTS."""
    _minute: int = field(default=0, init=False)
    """The latest minute."""
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
            self._advance_to(slot)
        self._slots[slot % _SLOTS] += 1
        if minute != self._minute:
            self._in_minute_before = self._in_minute if minute == self._minute + 1 else 0
            self._minute, self._in_minute = minute, 0
        self._in_minute += 1

    def last_minute(self, now: float) -> int:
        """Return the count of the last full minute."""
        wanted = int(now // _MINUTE_S) - 1
        if wanted == self._minute:
            return self._in_minute
        return self._in_minute_before if wanted == self._minute - 1 else 0

    def last_day(self, now: float) -> int:
        """Return the count of the last 24 hours."""
        oldest = max(int(now // _SLOT_S), self._newest) - _SLOTS + 1
        return sum(self._slots[slot % _SLOTS] for slot in range(oldest, self._newest + 1))

    def _advance_to(self, slot: int) -> None:
        """Make a slot the latest, and clear those passed over."""
        early, late = sorted((slot, self._newest))
        passed = range(max(early, late - _SLOTS) + 1, late + 1)
        ahead = sum(self._slots[each % _SLOTS] for each in passed) if slot < self._newest else 0
        for each in passed:
            self._slots[each % _SLOTS] = 0
        self._slots[slot % _SLOTS] += ahead
        self._newest = slot


@frozen
class Rejection:
    """How many hits of the last 24 hours were rejected for a reason; `last` in Unix seconds."""

    reason: str
    hits: int
    last: int


@define(eq=False)
class Rejections:
    """Rejected hits by website and reason. Used in the reactor's thread, and not stored.

    Memory is bounded by the number of websites, since the reasons are fixed. Hits that belong to no
    website are counted under None.
    """

    _by_website: defaultdict[int | None, defaultdict[str, Tally]] = field(
        factory=lambda: defaultdict(lambda: defaultdict(Tally)), init=False
    )
    _of_all: defaultdict[str, Tally] = field(factory=lambda: defaultdict(Tally), init=False)

    def count(self, website: int | None, reason: str, now: float) -> None:
        """Count one hit."""
        self._of_all[reason].count(now)
        self._by_website[website][reason].count(now)

    def of(self, website: int | None, now: float) -> list[Rejection]:
        """Return the rejections of a website in the last 24 hours, the most frequent first."""
        return _last_day(self._by_website.get(website, {}), now)

    def of_all(self, now: float) -> list[Rejection]:
        """Return the rejections of all websites, including deleted ones, and of none."""
        return _last_day(self._of_all, now)

    def totals(self) -> dict[str, int]:
        """Return the number of rejected hits since the start, by reason."""
        return {reason: tally.total for reason, tally in self._of_all.items()}

    def forget(self, website: int) -> None:
        """Drop the counts of a deleted website."""
        self._by_website.pop(website, None)


def _last_day(tallies: Mapping[str, Tally], now: float) -> list[Rejection]:
    rejections = [
        Rejection(reason, hits, tally.last)
        for reason, tally in tallies.items()
        if (hits := tally.last_day(now))
    ]
    return sorted(rejections, key=lambda rejection: (-rejection.hits, rejection.reason))


MAX_HOSTNAMES: Final = 50
"""Anyone may send any hostname, so the least recently seen one is dropped first."""


@frozen
class Unregistered:
    """How many hits of the last 24 hours were for a hostname; `last` in Unix seconds."""

    hostname: str
    hits: int
    last: int


@define(eq=False)
class UnknownHostnames:
    """Hostnames of hits without a website. Used in the reactor's thread, and not stored."""

    _tallies: OrderedDict[str, Tally] = field(factory=OrderedDict, init=False)

    def count(self, hostname: str, now: float) -> None:
        """Count one hit."""
        kept = hostname[:MAX_HOSTNAME]
        if kept not in self._tallies:
            self._tallies[kept] = Tally()
        self._tallies[kept].count(now)
        self._tallies.move_to_end(kept)
        if len(self._tallies) > MAX_HOSTNAMES:
            self._tallies.popitem(last=False)

    def newest(self, now: float) -> list[Unregistered]:
        """Return the hostnames of the last 24 hours, the latest first."""
        return [
            Unregistered(hostname, hits, tally.last)
            for hostname, tally in reversed(self._tallies.items())
            if (hits := tally.last_day(now))
        ]
