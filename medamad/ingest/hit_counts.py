"""Recent hits in bounded memory: how many, how many did not count and why, unknown hostnames."""

from array import array
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from itertools import chain
from typing import Final

from attrs import define, field, frozen

from medamad.domain.websites import MAX_HOSTNAME
from medamad.ingest.networks import Address, Sender

_INTERVAL_S: Final = 300
_INTERVALS: Final = 86_400 // _INTERVAL_S + 1
"""A day, and the current interval."""
_MINUTE_S: Final = 60


@define(eq=False)
class RecentCount:
    """A count over the last day, in intervals of five minutes, and over the last minute.

    If the clock is set back, earlier counts move to the time that it is set to.
    """

    last: int = 0
    """The time of the last one, in Unix seconds; 0 for none."""
    total: int = 0
    """The count since the start."""
    _newest: int = field(default=0, init=False)
    """The number of the latest interval, counted from 1970."""
    _intervals: "array[int]" = field(factory=lambda: array("I", [0]) * _INTERVALS, init=False)
    """The counts of the day up to the latest interval, each at its number modulo _INTERVALS."""
    _minute: int = field(default=0, init=False)
    """The latest minute."""
    _in_minute: int = field(default=0, init=False)
    _in_minute_before: int = field(default=0, init=False)

    def count(self, now: float) -> None:
        """Count one."""
        interval, minute = int(now // _INTERVAL_S), int(now // _MINUTE_S)
        if not self.total:
            self._newest = interval
        self.last = int(now)
        self.total += 1
        if interval != self._newest:
            self._advance_to(interval)
        self._intervals[interval % _INTERVALS] += 1
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
        oldest = max(int(now // _INTERVAL_S), self._newest) - _INTERVALS + 1
        return sum(self._intervals[each % _INTERVALS] for each in range(oldest, self._newest + 1))

    def _advance_to(self, interval: int) -> None:
        """Make an interval the latest, and clear those in between."""
        early, late = sorted((interval, self._newest))
        passed = range(max(early, late - _INTERVALS) + 1, late + 1)
        is_back = interval < self._newest
        ahead = sum(self._intervals[each % _INTERVALS] for each in passed) if is_back else 0
        for each in passed:
            self._intervals[each % _INTERVALS] = 0
        self._intervals[interval % _INTERVALS] += ahead
        self._newest = interval


@frozen
class Uncounted:
    """How many hits of the last 24 hours did not count for a reason; `last` in Unix seconds."""

    reason: str
    hits: int
    last: int


@define(eq=False)
class UncountedHits:
    """Hits that were ignored or rejected, by website and reason. Used in the reactor's thread.

    They are not stored. Memory is bounded by the number of websites, since the reasons are fixed.
    Hits that belong to no website are counted under None.
    """

    _by_website: defaultdict[int | None, defaultdict[str, RecentCount]] = field(
        factory=lambda: defaultdict(lambda: defaultdict(RecentCount)), init=False
    )
    _of_all: defaultdict[str, RecentCount] = field(
        factory=lambda: defaultdict(RecentCount), init=False
    )

    def count(self, website: int | None, reason: str, now: float) -> None:
        """Count one hit."""
        self._of_all[reason].count(now)
        self._by_website[website][reason].count(now)

    def of(self, website: int | None, now: float) -> list[Uncounted]:
        """Return those of a website in the last 24 hours, the most frequent reason first."""
        return _last_day(self._by_website.get(website, {}), now)

    def of_all(self, now: float) -> list[Uncounted]:
        """Return those of all websites, including deleted ones, and of none."""
        return _last_day(self._of_all, now)

    def totals(self) -> dict[str, int]:
        """Return their number since the start, by reason."""
        return {reason: counted.total for reason, counted in self._of_all.items()}

    def forget(self, website: int) -> None:
        """Drop the counts of a deleted website."""
        self._by_website.pop(website, None)


def added_up(of_collectors: Iterable[Iterable[Uncounted]]) -> list[Uncounted]:
    """Return the sums of what several collectors did not count, the most frequent reason first."""
    hits: Counter[str] = Counter()
    last: dict[str, int] = {}
    for one in chain.from_iterable(of_collectors):
        hits[one.reason] += one.hits
        last[one.reason] = max(last.get(one.reason, 0), one.last)
    return _ordered(Uncounted(reason, count, last[reason]) for reason, count in hits.items())


def _last_day(counts: Mapping[str, RecentCount], now: float) -> list[Uncounted]:
    return _ordered(
        Uncounted(reason, hits, counted.last)
        for reason, counted in counts.items()
        if (hits := counted.last_day(now))
    )


def _ordered(uncounted: Iterable[Uncounted]) -> list[Uncounted]:
    return sorted(uncounted, key=lambda one: (-one.hits, one.reason))


_SENDERS: Final = 400
_ENOUGH_SENDERS: Final = 200
_NEARLY_ALL: Final = 0.95
_NO_ADDRESS: Final = b""
"""That of a Unix socket."""


@define(eq=False)
class RecentSenders:
    """Which local addresses the latest hits came from. Used in the reactor's thread.

    Other addresses are visitors', and are not kept.
    """

    _recent: deque[Address | None] = field(factory=lambda: deque(maxlen=_SENDERS), init=False)
    """Local addresses, _NO_ADDRESS, and None for all others."""

    def count(self, sender: Sender) -> None:
        """Count one hit."""
        self._recent.append(None if sender.network else sender.address or _NO_ADDRESS)

    @property
    def warning(self) -> str:
        """What is wrong if nearly all hits come from one local address, "" if they do not."""
        if len(self._recent) < _ENOUGH_SENDERS:
            return ""
        (address, hits), *_ = Counter(self._recent).most_common(1)
        if address is None or hits < _NEARLY_ALL * len(self._recent):
            return ""
        place = ip_address(address) if address else "a Unix socket"
        return (
            f"nearly all hits come from {place}, so visitors with the same browser are hard to"
            " tell apart: if that is a proxy, add it to server.trusted_proxies"
        )


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

    _counts: OrderedDict[str, RecentCount] = field(factory=OrderedDict, init=False)

    def count(self, hostname: str, now: float) -> None:
        """Count one hit."""
        kept = hostname[:MAX_HOSTNAME]
        if kept not in self._counts:
            self._counts[kept] = RecentCount()
        self._counts[kept].count(now)
        self._counts.move_to_end(kept)
        if len(self._counts) > MAX_HOSTNAMES:
            self._counts.popitem(last=False)

    def newest(self, now: float) -> list[Unregistered]:
        """Return the hostnames of the last 24 hours, the latest first."""
        return [
            Unregistered(hostname, hits, counted.last)
            for hostname, counted in reversed(self._counts.items())
            if (hits := counted.last_day(now))
        ]


@frozen
class RecentHits:
    """The hits of the last 24 hours, or since the start."""

    accepted: int
    refused: list[Uncounted]
    unknown_hostnames: list[Unregistered]

    @classmethod
    def sum_of(cls, of_collectors: Sequence["RecentHits"]) -> "RecentHits":
        """Return the sum of those of several collectors."""
        hits: Counter[str] = Counter()
        last: dict[str, int] = {}
        for unknown in chain.from_iterable(each.unknown_hostnames for each in of_collectors):
            hits[unknown.hostname] += unknown.hits
            last[unknown.hostname] = max(last.get(unknown.hostname, 0), unknown.last)
        newest = sorted(last, key=lambda hostname: -last[hostname])[:MAX_HOSTNAMES]
        return cls(
            sum(each.accepted for each in of_collectors),
            added_up(each.refused for each in of_collectors),
            [Unregistered(hostname, hits[hostname], last[hostname]) for hostname in newest],
        )
