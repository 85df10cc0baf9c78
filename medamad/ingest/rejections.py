"""Rejected and ignored hits, counted in bounded memory by website and reason."""

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from typing import Final

from attrs import define, field, frozen

from medamad.domain.websites import MAX_HOSTNAME

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
        """Return how often it happened in the last full minute."""
        wanted = int(now // _MINUTE_S) - 1
        if wanted == self._minute:
            return self._in_minute
        return self._in_minute_before if wanted == self._minute - 1 else 0

    def last_day(self, now: float) -> int:
        """Return how often it happened in the last 24 hours."""
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


@frozen
class Rejection:
    """How many hits of the last 24 hours were refused for a reason; `last` in Unix seconds."""

    reason: str
    hits: int
    last: int


@define(eq=False)
class Rejections:
    """Used in the reactor's thread. Forgotten when the daemon stops.

    Bounded by the websites that exist: reasons are few and fixed, as is the room of a tally.
    Hits that belong to no website are counted under None.
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
        """Return what was refused of a website in the last 24 hours, the most frequent first."""
        return _last_day(self._by_website.get(website, {}), now)

    def of_all(self, now: float) -> list[Rejection]:
        """Return the same of all websites together, also of those that are no more, and of none."""
        return _last_day(self._of_all, now)

    def totals(self) -> dict[str, int]:
        """Return how many hits were refused since the start, by reason."""
        return {reason: tally.total for reason, tally in self._of_all.items()}

    def forget(self, website: int) -> None:
        """Let go of a website that is no more."""
        self._by_website.pop(website, None)


def _last_day(tallies: Mapping[str, Tally], now: float) -> list[Rejection]:
    refused = [
        Rejection(reason, hits, tally.last)
        for reason, tally in tallies.items()
        if (hits := tally.last_day(now))
    ]
    return sorted(refused, key=lambda one: (-one.hits, one.reason))


MAX_HOSTNAMES: Final = 50
"""Strangers may send anything: the one that was not seen for longest is forgotten first."""


@frozen
class Unregistered:
    """How many hits of the last 24 hours were for a hostname; `last` in Unix seconds."""

    hostname: str
    hits: int
    last: int


@define(eq=False)
class UnknownHostnames:
    """Used in the reactor's thread. Forgotten when the daemon stops."""

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
        """Return those of the last 24 hours, the newest first."""
        return [
            Unregistered(hostname, hits, tally.last)
            for hostname, tally in reversed(self._tallies.items())
            if (hits := tally.last_day(now))
        ]
