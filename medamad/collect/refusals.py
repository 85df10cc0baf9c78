"""Hits that were refused or ignored, counted by website and reason, in memory."""

from collections import Counter
from collections.abc import Iterable, Iterator

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

    Bounded by the websites that exist: reasons are few and fixed, a tally has a slot a minute.
    Hits that belong to no website are counted under None.
    """

    _tallies: dict[int | None, dict[str, Tally]] = field(factory=dict)
    _totals: Counter[str] = field(factory=Counter)

    def count(self, website: int | None, reason: str, now: float) -> None:
        """Count one hit."""
        self._totals[reason] += 1
        self._tallies.setdefault(website, {}).setdefault(reason, Tally()).count(now)

    def of(self, website: int | None, now: float) -> list[Refused]:
        """Give what was refused of a website in the last 24 hours, the most frequent first."""
        return _in_order(_last_day(self._tallies.get(website, {}).items(), now))

    def of_all(self, now: float) -> list[Refused]:
        """Give the same of all websites together, and of none."""
        reasons: dict[str, Refused] = {}
        for tallies in self._tallies.values():
            for one in _last_day(tallies.items(), now):
                so_far = reasons.get(one.reason, Refused(one.reason, 0, 0))
                reasons[one.reason] = Refused(
                    one.reason, so_far.hits + one.hits, max(so_far.last, one.last)
                )
        return _in_order(reasons.values())

    def totals(self) -> dict[str, int]:
        """Give how many hits were refused since the start, by reason."""
        return dict(self._totals)

    def forget(self, website: int) -> None:
        """Let go of a website that is no more."""
        self._tallies.pop(website, None)


def _last_day(tallies: Iterable[tuple[str, Tally]], now: float) -> Iterator[Refused]:
    for reason, tally in tallies:
        if hits := tally.last_day(now):
            yield Refused(reason, hits, tally.last)


def _in_order(refused: Iterable[Refused]) -> list[Refused]:
    return sorted(refused, key=lambda one: (-one.hits, one.reason))
