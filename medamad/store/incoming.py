"""What has come in so far of a batch that takes more: its visitors, its times, its days."""

from collections.abc import Iterable

import numpy as np
from attrs import define

from medamad.store.counters import VISITORS
from medamad.store.day_counts import DayCounts
from medamad.store.flags import VISITOR
from medamad.store.parts import NO_TIME, joint
from medamad.store.sealing import Content


@define
class Incoming:
    """It grows with every piece. Of hits that have gone since only this knows the times."""

    visitors: int = 0
    time_bounds: tuple[int, int] = NO_TIME
    days: tuple[int, int] | None = None
    """The first and the last of days that were added up elsewhere."""

    def add(self, content: Content) -> None:
        """Note hits."""
        self.visitors += int(np.count_nonzero(content.flags & VISITOR))
        for times in (content.time_ms, content.events.time_ms):
            if len(times):
                self._reach(int(times.min()), int(times.max()))

    def add_days(self, counts: Iterable[DayCounts]) -> None:
        """Note days."""
        for each in counts:
            if each.dimension is None:
                self.visitors += int(each.sums[VISITORS].sum())
            self._reach(*each.span)
            first, last = self.days or (each.day, each.day)
            self.days = min(first, each.day), max(last, each.day)

    def _reach(self, first_ms: int, last_ms: int) -> None:
        self.time_bounds = joint([self.time_bounds, (first_ms, last_ms)])
