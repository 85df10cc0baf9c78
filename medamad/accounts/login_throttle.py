"""Failed logins, counted by network and for the account, and the delay they cause.

Ten failures in a row cost nothing. After them a network waits between its attempts: 1, 2, 4
seconds and so on, a minute at most. Failures from anywhere count for the account too, so that
many networks guessing together are slowed as one; but the wait runs from a network's own last
failure, so a network that has not failed is never kept waiting. Within one network a guesser can
keep others waiting: who is known by the device is therefore counted by that, apart.

An attempt counts from its beginning, for nobody knows yet how it ends: so many at the same time
are no more than so many one after the other.
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
"""Who asks more often has more of them. So few are drawn before others have come with theirs."""

_TOO_MANY: Final = "too many failed logins, try again later"


@define
class _Row:
    """Failures in a row, and the Unix time from which the wait for the next attempt runs."""

    failures: int
    since: float
    lots: int = 1
    """Of so many that come after the wait one is let in: who failed, and who was told to wait."""

    def forget(self, now: float) -> None:
        """Begin anew after a quiet hour; a clock that was set back makes no longer wait."""
        if now - self.since > _FORGOTTEN_S:
            self.failures = 0
        self.since = min(self.since, now)


class Attempts:
    """The failures of the last hour, in bounded memory: the network that failed first goes."""

    def __init__(
        self, capacity: int = 10_000, draw: Callable[[int], int] = secrets.randbelow
    ) -> None:
        self._capacity = capacity
        self._draw = draw
        self._networks: OrderedDict[bytes, _Row] = OrderedDict()
        self._account = _Row(0, -math.inf)
        self._under_way: Counter[bytes] = Counter()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def admit(self, network: bytes, now: float) -> None:
        """Let an attempt begin; to be followed by `ended`.

        Raises TooMany when the network has to wait after failures, and Unavailable when it would
        have to, if those of its attempts fail that are under way. An admitted attempt of a network
        that is being slowed starts the wait of the next one.
        """
        row = self._networks.get(network, _Row(0, now))
        row.forget(now)
        self._account.forget(now)
        delay = 0
        if row.failures:
            delay = _delay(max(row.failures, self._account.failures))
        left = row.since + delay - now
        if left > 0:
            row.lots = min(row.lots + 1, _MOST_LOTS)
            raise TooMany(_TOO_MANY, retry_after=math.ceil(left))
        here = self._under_way[network]
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

    def ended(self, network: bytes) -> None:
        """Note that an admitted attempt is over, whatever came of it."""
        self._under_way[network] -= 1
        if not self._under_way[network]:
            del self._under_way[network]

    def failed(self, network: bytes, now: float) -> None:
        """Count a failure."""
        row = self._networks.setdefault(network, _Row(0, now))
        self._networks.move_to_end(network)
        while len(self._networks) > self._capacity:
            self._networks.popitem(last=False)
        for counted in (row, self._account):
            counted.forget(now)
            counted.failures += 1
            counted.since = now

    def succeeded(self, network: bytes) -> None:
        """Forget the network's failures and the account's: they were no longer in a row."""
        self._networks.pop(network, None)
        self._account.failures = 0
        self._known[network] = None
        self._known.move_to_end(network)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)

    def is_known(self, network: bytes) -> bool:
        """Return whether a login from a network has succeeded, lately and since the start."""
        return network in self._known

    def __len__(self) -> int:
        """Count the networks that are remembered."""
        return len(self._networks)


def _delay(failures: int) -> int:
    """Return the seconds between attempts after so many failures in a row."""
    doublings = failures - _FREE
    if doublings < 0:
        return 0
    return min(_LONGEST_S, 1 << min(doublings, 6))
