"""Failed logins, counted by network and for the account: what slows a guesser down.

Ten failures in a row cost nothing. After them a network waits between its attempts: 1, 2, 4
seconds and so on, a minute at most. Failures from anywhere count for the account too, so that
many networks guessing together are slowed as one; but the wait runs from a network's own last
failure, so a network that has not failed is never kept waiting, and nobody is locked out by
somebody else.
"""

import math
from collections import OrderedDict
from typing import Final

from attrs import define

_FREE: Final = 10
_LONGEST_S: Final = 60
_FORGOTTEN_S: Final = 3_600


@define
class _Row:
    """Failures in a row, and the Unix time from which the wait for the next attempt runs."""

    failures: int
    since: float

    def forget(self, now: float) -> None:
        """Begin anew after a quiet hour; a clock that was set back makes no longer wait."""
        if now - self.since > _FORGOTTEN_S:
            self.failures = 0
        self.since = min(self.since, now)


class Attempts:
    """The failures of the last hour, in bounded memory: the network that failed first goes."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._networks: OrderedDict[bytes, _Row] = OrderedDict()
        self._account = _Row(0, -math.inf)

    def admit(self, network: bytes, now: float) -> int:
        """Give 0 and let an attempt begin, or the whole seconds that the network has to wait.

        An admitted attempt of a network that is being slowed starts the wait of the next one, so
        that attempts sent at the same time are not admitted together.
        """
        row = self._networks.get(network)
        if row is None:
            return 0
        row.forget(now)
        self._account.forget(now)
        delay = _delay(max(row.failures, self._account.failures))
        left = row.since + delay - now
        if left > 0:
            return math.ceil(left)
        if delay:
            row.since = now
        return 0

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

    def __len__(self) -> int:
        """Count the networks that are remembered."""
        return len(self._networks)


def _delay(failures: int) -> int:
    """Give the seconds between attempts after so many failures in a row."""
    doublings = failures - _FREE
    if doublings < 0:
        return 0
    return min(_LONGEST_S, 1 << min(doublings, 6))
