"""Hits that were refused or ignored, counted by website and reason, in memory."""

from collections import Counter, deque
from typing import Final

from attrs import define, field, frozen

_SLOT_S: Final = 60
_SLOTS: Final = 1440
"""A day in slots of a minute."""


@frozen
class Refused:
    """How many hits of the last 24 hours were refused for a reason; `last` in Unix seconds."""

    reason: str
    hits: int
    last: int


@define
class _Tally:
    """The hits of one website and reason: `[slot, hits]` in order of time."""

    slots: deque[list[int]] = field(factory=lambda: deque(maxlen=_SLOTS + 1))
    last: int = 0


@define(eq=False)
class Refusals:
    """Used in the reactor's thread. Forgotten when the daemon stops.

    Bounded by the websites that exist: reasons are few and fixed, a tally has a slot a minute.
    Hits that belong to no website are counted under None.
    """

    _tallies: dict[int | None, dict[str, _Tally]] = field(factory=dict)
    _totals: Counter[str] = field(factory=Counter)

    def count(self, website: int | None, reason: str, now: float) -> None:
        """Count one hit."""
        self._totals[reason] += 1
        tally = self._tallies.setdefault(website, {}).setdefault(reason, _Tally())
        tally.last = int(now)
        slot = int(now // _SLOT_S)
        if not tally.slots or tally.slots[-1][0] < slot:
            tally.slots.append([slot, 0])
        tally.slots[-1][1] += 1

    def of(self, website: int | None, now: float) -> list[Refused]:
        """Give what was refused of a website in the last 24 hours, the most frequent first."""
        oldest = int(now // _SLOT_S) - _SLOTS
        counted = [
            Refused(reason, sum(hits for slot, hits in tally.slots if slot >= oldest), tally.last)
            for reason, tally in self._tallies.get(website, {}).items()
        ]
        return sorted(
            (refused for refused in counted if refused.hits),
            key=lambda refused: (-refused.hits, refused.reason),
        )

    def totals(self) -> dict[str, int]:
        """Give how many hits were refused since the start, by reason."""
        return dict(self._totals)

    def forget(self, website: int) -> None:
        """Let go of a website that is no more."""
        self._tallies.pop(website, None)
