"""Hits that were refused or ignored, counted by website and reason, in memory."""

from collections import defaultdict
from collections.abc import Mapping

from attrs import define, field, frozen

from medamad.collect.tallies import Tally


@frozen
class Refused:
    """How many hits of the last 24 hours were refused for a reason; `last` in Unix seconds."""

    reason: str
    hits: int
    last: int


@define(eq=False)
class Refusals:
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

    def of(self, website: int | None, now: float) -> list[Refused]:
        """Give what was refused of a website in the last 24 hours, the most frequent first."""
        return _last_day(self._by_website.get(website, {}), now)

    def of_all(self, now: float) -> list[Refused]:
        """Give the same of all websites together, also of those that are no more, and of none."""
        return _last_day(self._of_all, now)

    def totals(self) -> dict[str, int]:
        """Give how many hits were refused since the start, by reason."""
        return {reason: tally.total for reason, tally in self._of_all.items()}

    def forget(self, website: int) -> None:
        """Let go of a website that is no more."""
        self._by_website.pop(website, None)


def _last_day(tallies: Mapping[str, Tally], now: float) -> list[Refused]:
    refused = [
        Refused(reason, hits, tally.last)
        for reason, tally in tallies.items()
        if (hits := tally.last_day(now))
    ]
    return sorted(refused, key=lambda one: (-one.hits, one.reason))
