"""Which hits are to go, and what remains of them: the part of a block that a bound of time cuts."""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any, Final

import numpy as np
from attrs import define, evolve, frozen
from numpy.typing import NDArray

from medamad.model.zones import day_at, start_of_day
from medamad.store.blocks import Block
from medamad.store.parts import EventRows
from medamad.store.sealing import Content
from medamad.store.settings import Keep

SETTLED_MS: Final = 90_000_000
"""After this, 25 hours, nothing is corrected of a hit any more: beacons are known for a day."""
_MOST_DAYS: Final = 31
"""Of how many days sums are made in one step."""


@frozen
class Bound:
    """Hits before a midnight are to go; `sums` says whether those of their days remain."""

    before_ms: int
    zone: tzinfo
    sums: bool

    def span(self, day: int) -> tuple[int, int]:
        """Give the first and the last millisecond of a local date."""
        return start_of_day(self.zone, day) * 1000, start_of_day(self.zone, day + 1) * 1000 - 1

    def concerns(self, block: Block) -> bool:
        """Tell whether a block may have hits that are to go."""
        head = block.head
        least_ms = min(head.time_bounds[0], head.event_time_bounds[0])
        return least_ms < self.before_ms


@define
class Gone:
    """How many hits that are past their time have gone, and of how many days the sums."""

    views: int = 0
    events: int = 0
    days: int = 0

    def add(self, content: Content) -> None:
        """Count the hits of a block."""
        self.views += len(content)
        self.events += len(np.unique(content.events.event))


def bound_of(keep: Keep, zone: tzinfo, now_ms: int) -> Bound | None:
    """Give what is to go now; None where everything is kept for ever."""
    if not keep.raw_days:
        return None
    day = day_at(zone, now_ms // 1000) - keep.raw_days
    while start_of_day(zone, day) * 1000 > now_ms - SETTLED_MS:
        day -= 1
    return Bound(start_of_day(zone, day) * 1000, zone, keep.after == "sums")


@frozen(eq=False)
class Parted:
    """A block's hits: those that go, by day, and those that stay.

    `is_all` says that none stays that the bound concerns and that could go now.
    """

    gone: Content
    days: Sequence[tuple[int, Content]]
    rest: Content
    is_all: bool


def parted(content: Content, bound: Bound, may_stay: Callable[[NDArray[Any]], Any]) -> Parted:
    """Part a block's hits.

    `may_stay` tells of sequence numbers which may be those of views of other blocks that stay: an
    event of such a view stays with it, and so does one whose own view stays.
    """
    events = content.events
    view_goes = content.time_ms < bound.before_ms
    event_goes = events.time_ms < bound.before_ms
    stays = content.sequence[~view_goes]
    other = ~np.isin(events.view, content.sequence) & (events.view > 0)
    event_goes &= ~np.isin(events.view, stays)
    event_goes[other] &= ~may_stay(events.view[other])
    view_day, event_day = _days(content.time_ms, bound), _days(events.time_ms, bound)
    found = np.unique(np.concatenate((view_day[view_goes], event_day[event_goes])))
    days = found[:_MOST_DAYS]
    view_goes &= np.isin(view_day, days)
    event_goes &= np.isin(event_day, days)
    return Parted(
        gone=_some(content, view_goes, event_goes),
        days=[
            (day, _some(content, view_goes & (view_day == day), event_goes & (event_day == day)))
            for day in days.tolist()
        ],
        rest=_some(content, ~view_goes, ~event_goes),
        is_all=len(days) == len(found),
    )


def _days(time_ms: NDArray[np.int64], bound: Bound) -> NDArray[np.int64]:
    """Give the local date of each time before the bound, as the number of days since 1970-01-01."""
    before = time_ms[time_ms < bound.before_ms]
    if not len(before):
        return np.zeros(len(time_ms), np.int64)
    first = day_at(bound.zone, int(before.min()) // 1000)
    last = day_at(bound.zone, bound.before_ms // 1000)
    starts_ms = [start_of_day(bound.zone, day) * 1000 for day in range(first, last + 2)]
    return np.searchsorted(np.array(starts_ms, np.int64), time_ms, side="right") - 1 + first


def _some(content: Content, views: NDArray[np.bool_], events: NDArray[np.bool_]) -> Content:
    rows = content.events
    return evolve(
        content,
        time_ms=content.time_ms[views],
        sequence=content.sequence[views],
        flags=content.flags[views],
        duration_ms=content.duration_ms[views],
        number_today=content.number_today[views],
        width_px=content.width_px[views],
        codes={dimension: codes[views] for dimension, codes in content.codes.items()},
        events=EventRows(
            rows.event[events], rows.time_ms[events], rows.view[events], rows.property[events]
        ),
    )
