"""The login throttle: failed logins by network and in all, and the delay that they cause.

Ten failures in a row cost nothing. After them, a network waits between its attempts: 1, 2, 4
seconds and so on, up to a minute. Failures from anywhere count for the account too, so that many
networks guessing together are slowed as one. The wait runs from a network's own last failure, so a
network without failures does not wait, until ten networks have failures: from then on a throttle
that is `joint` makes all networks wait as if they were one, except those of the last logins. Within
one network, or all of them, a guesser can delay the others; known devices are therefore throttled
on their own.

An attempt counts from its beginning, since its outcome is not known yet: attempts at the same time
gain nothing over attempts one after the other.
"""

import math
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

from attrs import define

from medamad.domain.errors import TooMany, Unavailable

_FREE: Final = 10
_LONGEST_S: Final = 60
_FORGOTTEN_S: Final = 3_600
_KNOWN: Final = 100
_MOST_LOTS: Final = 8
"""The most lots of a network, so that others get their turn before all of them are drawn."""

_TOO_MANY: Final = "too many failed logins, try again later"


@define
class _Failures:
    """Failures in a row, and the Unix time from which the wait for the next attempt runs."""

    failures: int
    since: float
    lots: int = 1
    """One in this many attempts after the wait is admitted: the failed and the refused ones."""

    def forget(self, now: float) -> None:
        """Start over after a quiet hour; a clock that was set back causes no longer wait."""
        if now - self.since > _FORGOTTEN_S:
            self.failures = 0
        self.since = min(self.since, now)


class LoginThrottle:
    """The failures of the last hour, in bounded memory: the oldest are dropped first."""

    def __init__(
        self,
        capacity: int = 10_000,
        draw: Callable[[int], int] = secrets.randbelow,
        *,
        joint: bool = False,
    ) -> None:
        self._capacity = capacity
        self._joint = joint
        self._draw = draw
        self._networks: OrderedDict[bytes, _Failures] = OrderedDict()
        self._account = _Failures(0, -math.inf)
        self._under_way: Counter[bytes] = Counter()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def admit(self, network: bytes, now: float) -> None:
        """Let an attempt begin; to be followed by `ended`.

        Raises TooMany if the network has to wait after failures, and Unavailable if it would have
        to should its attempts under way fail. Each admitted attempt of a throttled network starts
        the wait for the next one.
        """
        self._account.forget(now)
        if self._joint and network not in self._known and self._is_from_many(now):
            row, here = self._account, self._under_way.total()
        else:
            row, here = self._networks.get(network, _Failures(0, now)), self._under_way[network]
            row.forget(now)
        delay = _delay(max(row.failures, self._account.failures)) if row.failures else 0
        left = row.since + delay - now
        if left > 0:
            row.lots = min(row.lots + 1, _MOST_LOTS)
            raise TooMany(_TOO_MANY, retry_after=math.ceil(left))
        suspected = max(row.failures + here, self._account.failures + self._under_way.total())
        if here and _delay(suspected):
            raise Unavailable("too many logins at once, try again later", retry_after=1)
        if delay:
            if delay == _LONGEST_S and self._draw(row.lots):
                row.lots -= 1
                raise TooMany(_TOO_MANY, retry_after=1)
            row.lots = 1
            row.since = now
        self._under_way[network] += 1

    def _is_from_many(self, now: float) -> bool:
        """Return whether ten networks have failures."""
        while self._networks and now - next(iter(self._networks.values())).since > _FORGOTTEN_S:
            self._networks.popitem(last=False)
        return len(self._networks) >= _FREE

    def ended(self, network: bytes) -> None:
        """End an admitted attempt, whatever its outcome."""
        self._under_way[network] -= 1
        if not self._under_way[network]:
            del self._under_way[network]

    def failed(self, network: bytes, now: float) -> None:
        """Count a failure."""
        row = self._networks.setdefault(network, _Failures(0, now))
        self._networks.move_to_end(network)
        while len(self._networks) > self._capacity:
            self._networks.popitem(last=False)
        for counted in (row, self._account):
            counted.forget(now)
            counted.failures += 1
            counted.since = now

    def succeeded(self, network: bytes) -> None:
        """Clear the failures of the network and the account: they are no longer in a row."""
        self._networks.pop(network, None)
        self._account.failures = 0
        self._known[network] = None
        self._known.move_to_end(network)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    def is_known(self, network: bytes) -> bool:
        """Return whether one of the last logins since the start came from a network."""
        return network in self._known

    def __len__(self) -> int:
        """Return how many networks have failures."""
        return len(self._networks)


def _delay(failures: int) -> int:
    """Return the seconds between attempts after a number of failures in a row."""
    doublings = failures - _FREE
    if doublings < 0:
        return 0
    return min(_LONGEST_S, 1 << min(doublings, 6))
