"""Hostnames for which hits come though no website is registered, in bounded memory."""

from collections import OrderedDict
from typing import Final

from attrs import define, field, frozen

from medamad.collect.tallies import Tally
from medamad.model.websites import MAX_HOSTNAME

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
        """Give those of the last 24 hours, the newest first."""
        return [
            Unregistered(hostname, hits, tally.last)
            for hostname, tally in reversed(self._tallies.items())
            if (hits := tally.last_day(now))
        ]
