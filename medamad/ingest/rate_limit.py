"""The rate limit of hits per network and minute."""

from collections import OrderedDict
from math import ceil
from typing import Final

from attrs import define, field

_WINDOW_S: Final = 60.0
_TOLERANCE_S: Final = 1e-6


@define(eq=False)
class RateLimiter:
    """Limits hits by network, in bounded memory: the least recently seen is dropped first.

    Each network has a token bucket that refills in a minute, of which only the time when it is full
    again is stored.
    """

    capacity: int = 65_536
    _full_at: OrderedDict[bytes, float] = field(factory=OrderedDict, init=False)

    def take(self, network: bytes, per_minute: int, now: float) -> int:
        """Count a hit and return 0, or return the seconds (1 to 60) to wait until there is room.

        `per_minute` is how many hits a network may send; 0 means no limit. There is none for b"".
        """
        if per_minute <= 0 or not network:
            return 0
        one_s = _WINDOW_S / per_minute
        full_at = self._full_at.get(network, now)
        if full_at < now or full_at > now + _WINDOW_S + _TOLERANCE_S:
            full_at = now  # full already, or written before the clock was set back
        full_at += one_s
        wait_s = full_at - now - _WINDOW_S
        if wait_s > _TOLERANCE_S:
            return ceil(wait_s)
        self._full_at[network] = full_at
        self._full_at.move_to_end(network)
        if len(self._full_at) > self.capacity:
            self._full_at.popitem(last=False)
        return 0

    def forget_idle(self, now: float) -> None:
        """Forget the networks that have sent nothing for as long as it counts."""
        idle = [network for network, full_at in self._full_at.items() if full_at <= now]
        for network in idle:
            del self._full_at[network]

    def __len__(self) -> int:
        """Return the number of networks in memory."""
        return len(self._full_at)
