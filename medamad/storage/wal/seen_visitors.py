"""Visitors of followed logs: whether one was here before on a day, and on a page of the website.

In memory alone, as hashes that no other process can reproduce: after a restart, everyone is new.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from attrs import define, field
from twisted.logger import Logger

from medamad.domain.hits import Visitor
from medamad.domain.zones import DAY_MS

MAX_SEEN: Final = 1 << 20
"""How many visitors and pages of each are remembered, in about 70 MB."""
_log: Final = Logger()


@define(eq=False)
class SeenVisitors:
    """Used by the writer thread alone. What a transaction adds is remembered once it commits."""

    most: int = MAX_SEEN
    _days: dict[int, set[int]] = field(factory=dict, init=False)
    """By day, the one of which a view last arrived at the end: an old log may be read."""
    _arrived_ms: dict[int, int] = field(factory=dict, init=False)
    """When a view of each day last arrived."""

    def batch(self, now_ms: int) -> "SeenBatch":
        """Return what finds the first views among those of one transaction."""
        return SeenBatch(self, now_ms)

    def of(self, day: int) -> AbstractSet[int]:
        """Return what was seen on a day."""
        return self._days.get(day, frozenset())

    def add(self, day: int, seen: AbstractSet[int], now_ms: int) -> None:
        """Remember what was seen on a day, and forget the days that no view comes from."""
        known = self._days.pop(day, None) or set()
        self._days[day] = known
        self._arrived_ms[day] = now_ms
        known.update(seen)
        total = sum(map(len, self._days.values()))
        for other in [other for other in self._days if other != day]:
            if total <= self.most and now_ms - self._arrived_ms[other] <= DAY_MS:
                break
            total -= len(self._days.pop(other))
            del self._arrived_ms[other]
        if total > self.most:
            known.clear()
            _log.warn(
                "visitors in followed logs count again today: more than {most} of them, and of the"
                " pages of each, were seen",
                most=self.most,
            )


@define(eq=False)
class SeenBatch:
    """The visitors of one transaction's views."""

    _before: SeenVisitors
    _now_ms: int
    _added: dict[int, set[int]] = field(factory=dict)
    """By day."""

    def is_first(self, visitor: Visitor, website: int, *page: str) -> bool:
        """Take note of a view; return whether it is the first of the day, or of a page."""
        seen = hash((visitor.day, website, visitor.name, *page))
        added = self._added.setdefault(visitor.day, set())
        if seen in added or seen in self._before.of(visitor.day):
            return False
        added.add(seen)
        return True

    def remember(self) -> None:
        """Remember what was committed."""
        for day, seen in self._added.items():
            self._before.add(day, seen, self._now_ms)
