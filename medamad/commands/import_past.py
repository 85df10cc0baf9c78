"""What of an import does not stay: the website's views are not kept for so long."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import numpy as np
from attrs import define

from medamad.model.websites import Website
from medamad.store.day_counts import DayCounts
from medamad.store.offline import Guest
from medamad.store.retaining import Bound, bound_of
from medamad.store.sealing import Content
from medamad.store.settings import Retention
from medamad.store.trusted import until_believed


@define(eq=False)
class Past:
    """Counts, of what comes in, the hits and the days that are to go by a bound; None for none."""

    bound: Bound | None
    waits_ms: int = 0
    """For how much longer nothing goes, as the clock is not believed yet."""
    views: int = 0
    events: int = 0
    days: int = 0
    """Of those that another program has added up."""
    _day: int | None = None

    @classmethod
    def of(cls, guest: Guest, website: Website, retention: Retention, now_ms: int) -> "Past":
        """Begin to count, for a website."""
        registered = {each.hostname for each in guest.websites()}
        keep = retention.of(website.hostname, registered)
        return cls(bound_of(keep, retention.zone, now_ms), guest.doubt_left_ms(now_ms))

    def add(self, content: Content) -> None:
        """Count hits; an event comes in one piece."""
        if self.bound is None:
            return
        before_ms, events = self.bound.before_ms, content.events
        self.views += int((content.time_ms < before_ms).sum())
        self.events += len(np.unique(events.event[events.time_ms < before_ms]))

    def add_days(self, counts: Sequence[DayCounts]) -> None:
        """Count days, which come one after another; sums are kept where those of views are."""
        if self.bound is None or self.bound.sums:
            return
        for each in counts:
            self.days += each.day != self._day and each.span[0] < self.bound.before_ms
            self._day = each.day

    def told(self) -> Iterator[str]:
        """Say what does not stay, if anything."""
        if self.bound is None or not (self.views or self.events or self.days):
            return
        before = datetime.fromtimestamp(self.bound.before_ms // 1000, self.bound.zone).date()
        some = (
            f"{count:,} {noun}{'s' * (count != 1)}"
            for count, noun in ((self.views, "view"), (self.events, "event"), (self.days, "day"))
            if count
        )
        remains = "sums of their days remain" if self.bound.sums else "nothing of them remains"
        soon = "soon after"
        if self.waits_ms:
            soon = f"but not {until_believed(self.waits_ms)}, as the clock is not believed yet"
        yield (
            f"[retention] removes what is from before {before} {soon}:"
            f" {' and '.join(some)}; {remains}"
        )
