"""Retention: which hits are past their time, what remains of them, and a forecast."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import ViewNumber
from medamad.domain.zones import day_at, start_of_day
from medamad.storage.compaction.division import (
    LeftOut,
    LeftOutOf,
    Share,
    divide,
    nothing_left_out,
)
from medamad.storage.dictionary.decode import PropertyNameNumbers
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.errors import DamagedSegment
from medamad.storage.segments.build import Content, content_of
from medamad.storage.segments.day_visits import BegunVisits, VisitsContent
from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import NO_TIME, EventColumns, ViewColumns
from medamad.storage.segments.read import open_segment
from medamad.storage.segments.rollup import RollupContent, encode_rollup, merge_rollups
from medamad.storage.settings import Keep

SETTLED_MS: Final = 90_000_000
"""25 hours: nothing corrects an older hit, as beacons are kept for a day."""
_MAX_DAYS: Final = 31
"""Days that one job expires."""


def _includes_all(_header: SegmentHeader) -> bool:
    return True


@frozen
class Cutoff:
    """Views and events before a local midnight are deleted."""

    before_ms: int
    zone: tzinfo
    keeps_rollups: bool
    """Whether a rollup of each of their days remains."""
    includes: Callable[[SegmentHeader], bool] = _includes_all
    """Whether it is for a segment."""
    is_in_cluster: bool = False
    """Whether a cluster has what is deleted."""

    @property
    def day(self) -> int:
        """The local date that begins at the cutoff, as days since 1970-01-01."""
        return day_at(self.zone, self.before_ms // 1000)

    def span(self, day: int) -> tuple[int, int]:
        """Return the first and the last millisecond of a local date."""
        return start_of_day(self.zone, day) * 1000, start_of_day(self.zone, day + 1) * 1000 - 1

    def concerns(self, segment: Segment) -> bool:
        """Return whether a segment may have hits before the cutoff."""
        header = segment.header
        earliest_ms = min(header.time_bounds[0], header.event_time_bounds[0])
        return earliest_ms < self.before_ms and self.includes(header)


@frozen
class Removed:
    """How many views and events were deleted for good, and the rollups of how many days."""

    views: int = 0
    events: int = 0
    days: int = 0

    @classmethod
    def of(cls, content: Content) -> "Removed":
        """Count the hits of some content."""
        return cls(len(content), len(np.unique(content.events.event)))

    def __add__(self, other: "Removed") -> "Removed":
        """Return both together."""
        return Removed(self.views + other.views, self.events + other.events, self.days + other.days)


def cutoff_of(keep: Keep, zone: tzinfo, now_ms: int) -> Cutoff | None:
    """Return the cutoff at a moment; None if everything is kept."""
    if not keep.raw_days:
        return None
    day = day_at(zone, now_ms // 1000) - keep.raw_days
    while start_of_day(zone, day) * 1000 > now_ms - SETTLED_MS:
        day -= 1
    return Cutoff(start_of_day(zone, day) * 1000, zone, keep.after == "sums")


@frozen(eq=False)
class Split:
    """A segment's hits, split into those that expire now and those that stay."""

    expired: Content
    days: Sequence[tuple[int, Content]]
    """The expired hits by local date."""
    rest: Content
    is_complete: bool
    """Whether `rest` has no more hits that could expire now."""


def split_expired(
    content: Content, cutoff: Cutoff, may_be_kept: Callable[[NDArray[Any]], Any]
) -> Split:
    """Split a segment's hits.

    An event stays as long as its view. `may_be_kept` returns which sequence numbers may be of views
    that other segments keep.
    """
    events = content.events
    view_expires = content.time_ms < cutoff.before_ms
    event_expires = events.time_ms < cutoff.before_ms
    kept = content.sequence[~view_expires]
    is_elsewhere = ~np.isin(events.view, content.sequence) & (events.view > 0)
    event_expires &= ~np.isin(events.view, kept)
    event_expires[is_elsewhere] &= ~may_be_kept(events.view[is_elsewhere])
    view_day, event_day = _days(content.time_ms, cutoff), _days(events.time_ms, cutoff)
    found = np.unique(np.concatenate((view_day[view_expires], event_day[event_expires])))
    days = found[:_MAX_DAYS]
    view_expires &= np.isin(view_day, days)
    event_expires &= np.isin(event_day, days)
    return Split(
        expired=content.select(view_expires, event_expires),
        days=[
            (
                day,
                content.select(
                    view_expires & (view_day == day), event_expires & (event_day == day)
                ),
            )
            for day in days.tolist()
        ],
        rest=content.select(~view_expires, ~event_expires),
        is_complete=len(days) == len(found),
    )


def _days(time_ms: NDArray[np.int64], cutoff: Cutoff) -> NDArray[np.int64]:
    """Return the local date of each time before the cutoff, in days since 1970-01-01."""
    before = time_ms[time_ms < cutoff.before_ms]
    if not len(before):
        return np.zeros(len(time_ms), np.int64)
    first = day_at(cutoff.zone, int(before.min()) // 1000)
    last = day_at(cutoff.zone, cutoff.before_ms // 1000)
    starts_ms = [start_of_day(cutoff.zone, day) * 1000 for day in range(first, last + 2)]
    return np.searchsorted(np.array(starts_ms, np.int64), time_ms, side="right") - 1 + first


@define(eq=False)
class DayVisitSearch:
    """Finds all views of the visits that began on a day, before those of the day are deleted.

    `content` has views and events of the day. The views after midnight are still in other
    segments, as expired views are deleted in the order in which they were stored. What the visits
    do after their day has expired is lost for its rollup.
    """

    _content: Content
    _span: tuple[int, int]
    _partition: Partition
    _begun: BegunVisits = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._begun = BegunVisits.of(self._content)

    def steps(self, access: WriterAccess) -> Iterator[None]:
        """Read what has their views, in small steps."""
        partition = self._partition
        for segment in partition.leaves():
            if segment.number not in partition.damage.numbers:
                overlay = partition.overlays.get(segment.number)
                if self._begun.add(open_segment(segment, overlay, access, partition.databases)):
                    yield
        chunks, events = partition.memtable.publish()
        for chunk in chunks:
            if self._begun.add(chunk):
                yield
        for piece in events:
            self._begun.add_events(piece)

    def result(self) -> VisitsContent | None:
        """Return the sums of the visits, or None if no view belongs to one."""
        if not self._content.numbers[ViewNumber.VISIT_OFFSET].any():
            return None
        return self._begun.content(self._span)


_KEY_BYTES: Final = 17


@frozen(kw_only=True)
class Forecast:
    """What is kept of a website, and what a cutoff would delete.

    Bytes are those of flushed segments; of a segment that is deleted in part, its share.
    """

    views: int
    bytes: int
    earliest_ms: int | None
    """The time of the earliest view."""
    days: int
    """Days that have a rollup."""
    bytes_of_days: int
    due_views: int
    due_events: int
    due_bytes: int
    new_days: int
    """Days of which rollups would be made."""
    bytes_of_new_days: int
    due_days: int
    """Days whose rollups would be deleted."""
    bytes_of_due_days: int
    damaged: tuple[str, ...]
    """What cannot be read, and stays."""


def forecast(
    partition: Partition,
    databases: Databases,
    txn: Txn,
    cutoff: Cutoff | None,
    left_out: LeftOutOf = nothing_left_out,
) -> Forecast:
    """Return what is kept of a website, and what a cutoff would delete."""
    leaves, (chunks, events) = partition.leaves(), partition.memtable.publish()
    sizes = {
        segment.number: _size(segment, databases, txn) for segment in (*leaves, *partition.rollups)
    }
    access = WriterAccess(txn)
    names = PropertyNameNumbers(access, databases, partition.website)
    due = _Due(partition, access, sizes, names, left_out)
    if cutoff is not None:
        for segment in leaves:
            if cutoff.concerns(segment):
                due.add_segment(segment, cutoff)
        if not partition.memtable.is_empty:
            due.add(chunks, events, cutoff, 0)
    due_rollups = [
        rollup
        for rollup in partition.rollups
        if cutoff and not cutoff.keeps_rollups and cutoff.concerns(rollup)
    ]
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
        days=_count_days(partition.rollups),
        bytes_of_days=sum(sizes[rollup.number] for rollup in partition.rollups),
        due_views=due.views,
        due_events=due.events,
        due_bytes=due.bytes,
        new_days=due.new_days,
        bytes_of_new_days=sum(due.new_rollup_sizes()),
        due_days=_count_days(due_rollups),
        bytes_of_due_days=sum(sizes[rollup.number] for rollup in due_rollups),
        damaged=tuple(dict.fromkeys(due.damaged)),
    )


@define(eq=False)
class _Due:
    """What a cutoff would delete, added up segment by segment."""

    _partition: Partition
    _access: WriterAccess
    _sizes: dict[int, int]
    _names: PropertyNameNumbers
    _left_out: LeftOutOf
    views: int = 0
    events: int = 0
    bytes: int = 0
    damaged: list[str] = field(factory=list)
    _rollups: dict[tuple[Any, ...], RollupContent] = field(factory=dict)
    """By the day's first and last millisecond, the import batch, and the rules."""

    def add_segment(self, segment: Segment, cutoff: Cutoff) -> None:
        overlay = self._partition.overlays.get(segment.number)
        part = open_segment(segment, overlay, self._access, self._partition.databases)
        try:
            self.add([part], (), cutoff, self._sizes[segment.number], segment)
        except DamagedSegment as error:
            self.damaged.append(str(error))

    def add(
        self,
        parts: Sequence[ViewColumns],
        events: Sequence[EventColumns],
        cutoff: Cutoff,
        size: int,
        segment: Segment | None = None,
    ) -> None:
        content = content_of(parts, events)
        weight, left_out = content.weight, LeftOut()
        if cutoff.keeps_rollups:
            left_out = self._left_out(self._partition, self._access, parts, events)
        may_be_kept = self._partition.may_be_kept(segment, cutoff.before_ms)
        is_complete = False
        while not is_complete:
            split = split_expired(content, cutoff, may_be_kept)
            expired, content, is_complete = split.expired, split.rest, split.is_complete
            self.views += len(expired)
            self.events += len(set(expired.events.event.tolist()))
            self.bytes += size * expired.weight // max(weight, 1)
            if cutoff.keeps_rollups:
                for day, of_day in split.days:
                    for share in divide(of_day, left_out, content):
                        self._add_day(day, share, cutoff.span(day))

    def _add_day(self, day: int, share: Share, span: tuple[int, int]) -> None:
        names, content = self._names, share.content
        key = (span, content.import_batch, share.left_out_by)
        rollup = share.rollup(day, span, names, self._visits_of(content, span))
        earlier = self._rollups.get(key)
        self._rollups[key] = rollup if earlier is None else merge_rollups([earlier, rollup], names)

    def _visits_of(self, content: Content, span: tuple[int, int]) -> VisitsContent | None:
        search = DayVisitSearch(content, span, self._partition)
        try:
            for _ in search.steps(self._access):
                pass
        except DamagedSegment as error:
            self.damaged.append(str(error))
            return None
        return search.result()

    @property
    def new_days(self) -> int:
        """How many days get a rollup, whether of one import batch or of several."""
        return len({rollup.span for rollup in self._rollups.values()})

    def new_rollup_sizes(self) -> Iterator[int]:
        """Return the bytes of each new rollup."""
        for rollup in self._rollups.values():
            puts = encode_rollup(rollup, b"").puts
            yield sum(_KEY_BYTES + len(value) for _, _, value in puts)


def _count_days(rollups: Iterable[Segment]) -> int:
    return len({rollup.header.day.number for rollup in rollups if rollup.header.day is not None})


def _size(segment: Segment, databases: Databases, txn: Txn) -> int:
    size, key = 0, segment.key
    for database in (databases.segments, databases.counters):
        with txn.cursor(db=database) as cursor:
            found = cursor.set_range(key)
            while found and cursor.key().startswith(key):
                size += _KEY_BYTES + len(cursor.value())
                found = cursor.next()
    return size
