"""Retention: which hits are past their time, what remains of them, and a forecast."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, Final

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.zones import day_at, start_of_day
from medamad.storage.dictionary.decode import PropertyNames
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.errors import DamagedSegment
from medamad.storage.segments.build import Content, content_of
from medamad.storage.segments.format import Segment
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import (
    NO_TIME,
    EventRows,
)
from medamad.storage.segments.read import OpenSegment, open_one
from medamad.storage.segments.rollup import DaySums, added_up, sums_of, written_sums
from medamad.storage.settings import Keep

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
        """Return the first and the last millisecond of a local date."""
        return start_of_day(self.zone, day) * 1000, start_of_day(self.zone, day + 1) * 1000 - 1

    def concerns(self, segment: Segment) -> bool:
        """Return whether a segment may have hits that are to go."""
        header = segment.header
        least_ms = min(header.time_bounds[0], header.event_time_bounds[0])
        return least_ms < self.before_ms


@define
class Gone:
    """How many hits that are past their time have gone, and of how many days the sums."""

    views: int = 0
    events: int = 0
    days: int = 0

    def add(self, content: Content) -> None:
        """Count the hits of a segment."""
        self.views += len(content)
        self.events += len(np.unique(content.events.event))


def bound_of(keep: Keep, zone: tzinfo, now_ms: int) -> Bound | None:
    """Return what is to go now; None where everything is kept for ever."""
    if not keep.raw_days:
        return None
    day = day_at(zone, now_ms // 1000) - keep.raw_days
    while start_of_day(zone, day) * 1000 > now_ms - SETTLED_MS:
        day -= 1
    return Bound(start_of_day(zone, day) * 1000, zone, keep.after == "sums")


@frozen(eq=False)
class Parted:
    """A segment's hits: those that go, by day, and those that stay.

    `is_all` says that none stays that the bound concerns and that could go now.
    """

    gone: Content
    days: Sequence[tuple[int, Content]]
    rest: Content
    is_all: bool


def parted(content: Content, bound: Bound, may_stay: Callable[[NDArray[Any]], Any]) -> Parted:
    """Part a segment's hits.

    `may_stay` tells of sequence numbers which may be those of views of other segments that stay: an
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
    """Return the local date of each time before the bound, as the number of days since 1970-01-01."""
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


_KEY_BYTES: Final = 17


@frozen(kw_only=True)
class Forecast:
    """Views and bytes. Bytes are of what was flushed; of a segment of which a part goes, its share."""

    views: int
    bytes: int
    earliest_ms: int | None
    """When the earliest of the views was."""
    days: int
    """Of which there are sums."""
    bytes_of_days: int
    due_views: int
    due_events: int
    due_bytes: int
    new_days: int
    """Of which sums would be made, with the bytes that these take."""
    bytes_of_new_days: int
    due_days: int
    """Of which the sums would go, with their bytes."""
    bytes_of_due_days: int
    damaged: tuple[str, ...]
    """What cannot be read, and stays."""


def forecast(partition: Partition, databases: Databases, txn: Txn, bound: Bound | None) -> Forecast:
    """Return what is kept of a website, and what of it goes by a bound; by what was stored so far."""
    leaves, chunks = partition.leaves(), partition.memtable.publish()[0]
    sizes = {
        segment.number: _size(segment, databases, txn) for segment in (*leaves, *partition.days)
    }
    reading = WriterAccess(txn)
    due = _Due(partition, reading, sizes, PropertyNames(reading, databases, partition.website))
    if bound is not None:
        for segment in leaves:
            if bound.concerns(segment):
                due.add_segment(segment, bound)
        if not partition.memtable.is_empty:
            chunks_of, events = partition.memtable.publish()
            due.add(content_of(chunks_of, events), bound, 0)
    gone = [day for day in partition.days if bound and not bound.sums and bound.concerns(day)]
    earliest_ms = min(
        (
            *(leaf.header.time_bounds[0] for leaf in leaves),
            *(chunk.time_bounds[0] for chunk in chunks),
        ),
        default=NO_TIME[0],
    )
    return Forecast(
        views=sum(leaf.header.views for leaf in leaves) + sum(map(len, chunks)),
        bytes=sum(sizes[leaf.number] for leaf in leaves),
        earliest_ms=None if earliest_ms == NO_TIME[0] else earliest_ms,
        days=_forecast_days(partition.days),
        bytes_of_days=sum(sizes[day.number] for day in partition.days),
        due_views=due.views,
        due_events=due.events,
        due_bytes=due.bytes,
        new_days=due.new_days,
        bytes_of_new_days=sum(due.new_sums()),
        due_days=_forecast_days(gone),
        bytes_of_due_days=sum(sizes[day.number] for day in gone),
        damaged=tuple(due.damaged),
    )


@define(eq=False)
class _Due:
    """What goes, segment by segment."""

    _partition: Partition
    _reading: WriterAccess
    _sizes: dict[int, int]
    _names: PropertyNames
    views: int = 0
    events: int = 0
    bytes: int = 0
    damaged: list[str] = field(factory=list)
    _days: dict[tuple[tuple[int, int], int], DaySums] = field(factory=dict)

    def add_segment(self, segment: Segment, bound: Bound) -> None:
        overlay = self._partition.overlay().get(segment.number)
        part = open_one(segment, overlay, self._reading, self._partition.databases)
        try:
            content = content_of([part] if isinstance(part, OpenSegment) else [])
            self.add(content, bound, self._sizes[segment.number], segment)
        except DamagedSegment as error:
            self.damaged.append(str(error))

    def add(
        self, content: Content, bound: Bound, size: int, segment: Segment | None = None
    ) -> None:
        weight, stays = content.weight, self._partition.may_stay(segment, bound.before_ms)
        is_all = False
        while not is_all:
            parts = parted(content, bound, stays)
            gone, content, is_all = parts.gone, parts.rest, parts.is_all
            self.views += len(gone)
            self.events += len(set(gone.events.event.tolist()))
            self.bytes += size * gone.weight // max(weight, 1)
            if bound.sums:
                for day, of_day in parts.days:
                    self._add_day(day, of_day, bound.span(day))

    def _add_day(self, day: int, content: Content, span: tuple[int, int]) -> None:
        names, key = self._names, (span, content.batch)
        sums = sums_of(content, day, span, names)
        known = self._days.get(key)
        self._days[key] = sums if known is None else added_up([known, sums], names)

    @property
    def new_days(self) -> int:
        """Of how many days sums are made, however many imports have something of them."""
        return len({span for span, _ in self._days})

    def new_sums(self) -> Iterator[int]:
        """Return the bytes that the sums of a day take, of each import by itself."""
        for sums in self._days.values():
            puts = written_sums(sums, b"").puts
            yield sum(_KEY_BYTES + len(value) for _, _, value in puts)


def _forecast_days(segments: Iterable[Segment]) -> int:
    return len(
        {segment.header.day.number for segment in segments if segment.header.day is not None}
    )


def _size(segment: Segment, databases: Databases, txn: Txn) -> int:
    size, key = 0, segment.key
    for database in (databases.segments, databases.counters):
        with txn.cursor(db=database) as cursor:
            found = cursor.set_range(key)
            while found and cursor.key().startswith(key):
                size += _KEY_BYTES + len(cursor.value())
                found = cursor.next()
    return size
