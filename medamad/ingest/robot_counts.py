"""Robots that the daemon saw and has not stored yet: counts in memory, written every few seconds.

A robot's hit is answered at once, as it is ignored; so a process that is killed loses those of the
last seconds, and a robot that sends many hits costs no more writes than one that sends few.
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import tzinfo
from typing import Final, TypeAlias

from attrs import define, field

from medamad.domain.errors import Unavailable
from medamad.domain.zones import day_at
from medamad.lookup.robots import is_listed
from medamad.storage.request_totals import RequestCounts, merge_counts

WRITE_EVERY_S: Final = 2.0

AddCounts: TypeAlias = Callable[[Mapping[tuple[int, int], RequestCounts]], Awaitable[None]]


@define(eq=False)
class PendingRobots:
    """Counts by website and day. Used in the reactor's thread."""

    _add: AddCounts
    _counts: dict[tuple[int, int], dict[str, dict[str, int]]] = field(factory=dict)

    def count(self, website: int, time_s: float, zone: tzinfo, name: str, path: str) -> None:
        """Count a request at a time, on the day that it is in a zone."""
        of_day = self._counts.setdefault((website, day_at(zone, int(time_s))), {})
        known = of_day.get(name, {})
        if path in known:
            known[path] += 1
        else:
            merge_counts(of_day, {name: {path: 1}}, is_listed=is_listed)

    async def write(self) -> None:
        """Store what has been counted; if that is not possible now, keep it for the next time."""
        counts, self._counts = self._counts, {}
        if not counts:
            return
        try:
            await self._add(counts)
        except Unavailable:
            for key, of_day in self._counts.items():
                merge_counts(counts.setdefault(key, {}), of_day, is_listed=is_listed)
            self._counts = counts
