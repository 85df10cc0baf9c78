"""Retention: which visits are past their time, what remains of them, and a forecast."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import COMPLETE_MS, VISIT_MS, ViewNumber
from medamad.domain.zones import day_at, start_of_day
from medamad.storage.compaction.division import (
    LeftOut,
    LeftOutOf,
    Share,
    divide,
    finish,
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
from medamad.storage.segments.parts import NO_TIME, Elsewhere, EventColumns, Numbers, ViewColumns
from medamad.storage.segments.read import OpenSegment, open_segment
from medamad.storage.segments.rollup import RollupContent, encode_rollup, merge_rollups
from medamad.storage.segments.visit_numbers import find_ascending, visit_numbers
from medamad.storage.settings import Keep

_MAX_DAYS: Final = 31
"""Days that one job expires."""
_GONE: Final = -1 << 62
"""The time of a view that is in no segment any more."""
_UNREADABLE: Final = 1 << 62
"""The time of a view that may be in a damaged segment."""


def _includes_all(_header: SegmentHeader) -> bool:
    return True


@frozen
class Cutoff:
    """Visits that began before a local midnight are deleted, and other views and events from then.

    What a cluster has is deleted by its own time: it is kept for some hours, whatever its visit.
    """

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
        return _earliest_ms(segment) < self.before_ms and self.includes(segment.header)

    def reaches(self, segment: Segment) -> bool:
        """Return whether a segment may have hits of visits that began before the cutoff."""
        lasts_ms = 0 if self.is_in_cluster else COMPLETE_MS
        return _earliest_ms(segment) < self.before_ms + lasts_ms and self.includes(segment.header)


def _earliest_ms(segment: Segment) -> int:
    """Return the time of the earliest view or event of a segment."""
    return min(segment.header.time_bounds[0], segment.header.event_time_bounds[0])


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
    """Return the cutoff at a moment; None if everything is kept.

    Visits that began before it are complete.
    """
    if not keep.raw_days:
        return None
    day = day_at(zone, now_ms // 1000) - keep.raw_days
    while start_of_day(zone, day) * 1000 > now_ms - COMPLETE_MS:
        day -= 1
    return Cutoff(start_of_day(zone, day) * 1000, zone, keep.after == "sums")


@define(eq=False)
class VisitBegins:
    """Finds when the visits of views and events began, in whatever segment that was.

    Where the first view of a visit is gone, its day has expired, or it was never there: then the
    visit counts as begun as early as it can have. Where a damaged segment may have the first view,
    views and events count as their own begin.
    """

    _partition: Partition
    _access: WriterAccess
    _leaves: list[Segment] = field(init=False)
    _bounds: NDArray[np.int64] = field(init=False)
    """The least and the greatest number of a view of each, shape (n, 2)."""
    _chunks: Sequence[ViewColumns] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._leaves = self._partition.leaves()
        bounds = [leaf.header.sequence_bounds for leaf in self._leaves]
        self._bounds = np.array(bounds, np.int64).reshape(-1, 2)
        self._chunks, _ = self._partition.memtable.publish()

    def of(self, content: Content) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return when the visits of views and of events began, Unix milliseconds.

        Of those without a visit, their own time. Raises DamagedSegment.
        """
        sequence = content.sequence.astype(np.int64)
        offset = content.numbers[ViewNumber.VISIT_OFFSET]
        first_views = np.where(offset > 0, sequence + 1 - offset, sequence)
        events, view_begins = content.events, self._times(first_views)
        event_begins, have_view = events.time_ms.copy(), np.flatnonzero(events.view)
        begins_of_views = self._visit_begins(events.view[have_view].astype(np.int64))
        event_begins[have_view] = _known(begins_of_views, events.time_ms[have_view], COMPLETE_MS)
        return _known(view_begins, content.time_ms, VISIT_MS), event_begins

    def may_expire(self, part: OpenSegment, cutoff: Cutoff) -> bool:
        """Return whether a cutoff may concern some hits of a segment. Raises DamagedSegment."""
        if cutoff.concerns(part.segment):
            return True
        elsewhere = Elsewhere.of_views(part)
        begins = self._times(elsewhere.visits), self._visit_begins(elsewhere.views)
        return any((begins_ms < cutoff.before_ms).any() for begins_ms in begins)

    def _visit_begins(self, views: Numbers) -> NDArray[np.int64]:
        """Return when the visits of views began."""
        different, places = np.unique(views, return_inverse=True)
        first_views = different.copy()
        for part, near, rows in self._found(different):
            visits = visit_numbers(part, rows)
            first_views[near] = np.where(visits > 0, visits, different[near])
        return self._times(first_views)[places]

    def _times(self, views: Numbers) -> NDArray[np.int64]:
        """Return when views were; _GONE or _UNREADABLE if that is unknown."""
        different, places = np.unique(views, return_inverse=True)
        times_ms = np.full(len(different), _GONE)
        for leaf in self._near(different):
            if leaf.number in self._partition.damage.numbers:
                first, last = leaf.header.sequence_bounds
                times_ms[(different >= first) & (different <= last)] = _UNREADABLE
        for part, near, rows in self._found(different):
            times_ms[near] = part.time_ms[rows]
        return times_ms[places]

    def _found(
        self, views: Numbers
    ) -> Iterator[tuple[ViewColumns, NDArray[np.intp], NDArray[np.intp]]]:
        """Return the parts that have any of some views, ascending, their places and their rows."""
        partition = self._partition
        for leaf in self._near(views):
            if leaf.number not in partition.damage.numbers:
                part = open_segment(leaf, None, self._access, partition.databases)
                yield part, *find_ascending(part, views)
        for chunk in self._chunks:
            yield chunk, *find_ascending(chunk, views)

    def _near(self, views: Numbers) -> list[Segment]:
        """Return the segments that have any of some views, ascending, within their bounds."""
        begins = views.searchsorted(self._bounds[:, 0])
        ends = views.searchsorted(self._bounds[:, 1], side="right")
        return [self._leaves[place] for place in np.flatnonzero(begins < ends).tolist()]


def _known(
    begins_ms: NDArray[np.int64], time_ms: NDArray[np.int64], lasts_ms: int
) -> NDArray[np.int64]:
    """Return when visits began, of which hits can be up to `lasts_ms` later."""
    begins_ms = np.where(begins_ms == _GONE, time_ms - lasts_ms, begins_ms)
    return np.where(begins_ms == _UNREADABLE, time_ms, begins_ms)


@frozen(eq=False)
class Split:
    """A segment's hits, split into those that expire now and those that stay."""

    expired: Content
    days: Sequence[tuple[int, Content]]
    """The expired hits by local date."""
    rest: Content
    is_complete: bool
    """Whether `rest` has no more hits that could expire now."""


def split_expired(content: Content, cutoff: Cutoff, begins: VisitBegins) -> Split:
    """Split hits into those whose visits began before a cutoff, and others.

    The days of hits are their own. Raises DamagedSegment.
    """
    view_ms, event_ms = content.time_ms, content.events.time_ms
    view_begins, event_begins = (view_ms, event_ms) if cutoff.is_in_cluster else begins.of(content)
    view_expires, event_expires = view_begins < cutoff.before_ms, event_begins < cutoff.before_ms
    view_day, event_day = (
        _days(time_ms, expires, cutoff.zone)
        for time_ms, expires in ((view_ms, view_expires), (event_ms, event_expires))
    )
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


def _days(time_ms: NDArray[np.int64], wanted: NDArray[np.bool_], zone: tzinfo) -> NDArray[np.int64]:
    """Return the local date of each wanted time, in days since 1970-01-01."""
    if not wanted.any():
        return np.zeros(len(time_ms), np.int64)
    some = time_ms[wanted]
    first, last = (day_at(zone, int(bound) // 1000) for bound in (some.min(), some.max()))
    starts_ms = [start_of_day(zone, day) * 1000 for day in range(first, last + 2)]
    return np.searchsorted(np.array(starts_ms, np.int64), time_ms, side="right") - 1 + first


@define(eq=False)
class DayVisitSearch:
    """Finds all views of the visits that began on a day, before these are deleted.

    `content` has views and events of the day. The later views are still in other segments, as
    segments expire in the order in which their hits were stored.
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
        for segment in partition.leaves() if len(self._begun.numbers) else ():
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
    due = _Due(partition, access, sizes, names, left_out, VisitBegins(partition, access))
    if cutoff is not None:
        for segment in leaves:
            if cutoff.reaches(segment):
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
    _begins: VisitBegins
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
            if self._begins.may_expire(part, cutoff):
                self.add([part], (), cutoff, self._sizes[segment.number])
        except DamagedSegment as error:
            self.damaged.append(str(error))

    def add(
        self,
        parts: Sequence[ViewColumns],
        events: Sequence[EventColumns],
        cutoff: Cutoff,
        size: int,
    ) -> None:
        content = content_of(parts, events)
        weight, left_out = content.weight, LeftOut()
        if cutoff.keeps_rollups:
            left_out = finish(self._left_out(self._partition, self._access, parts, events))
        is_complete = False
        while not is_complete:
            split = split_expired(content, cutoff, self._begins)
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
