"""What is due for a website, one job at a time: what to flush, merge, compact or delete."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from attrs import define, field, frozen

from medamad.storage.compaction.purge import PurgeQueue
from medamad.storage.compaction.retention import SETTLED_MS, Bound, Parted, parted
from medamad.storage.dictionary.decode import PropertyNames
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Databases, Environment
from medamad.storage.environment.writer import Transaction
from medamad.storage.import_content import CodedDay
from medamad.storage.segments.build import (
    Content,
    Written,
    content_of,
    first_ms,
    group_header,
    group_puts,
    joined,
    segment_of,
    weight,
)
from medamad.storage.segments.corrections import Correction
from medamad.storage.segments.format import Segment
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import (
    ViewColumns,
)
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment, open_one
from medamad.storage.segments.rollup import StoredRollup, added_up, open_sums, sums_of, written_sums
from medamad.storage.wal.memtable import CHUNK_VIEWS, Cut


@define(eq=False)
class SegmentDraft:
    """A segment, a group, or the sums of a day."""

    number: int
    key: bytes
    """What its keys begin with."""
    make: Callable[[], Written]
    looking_up: Iterator[None] = field(factory=lambda: iter(()))
    """Finds out beforehand, bit by bit, what `make` needs to know."""
    written: Written | None = None


@define(eq=False)
class CompactionJob:
    """Pieces that are shown together, once all are written."""

    partition: Partition
    pieces: Sequence[SegmentDraft]
    writing: WriterAccess
    members: Sequence[Segment] = ()
    """Of the one piece that is a group."""
    replaced: Sequence[Segment] = ()
    contained: Sequence[Correction] = ()
    """The corrections that the pieces have."""
    cut: Cut | None = None
    gone: Content | None = None
    """The hits of which sums remain at most: nothing may be corrected of them any more."""

    def steps(self, databases: Databases) -> Iterator[None]:
        """Write bit by bit, in whatever transaction `writing` is at; goes on where it stopped."""
        for piece in self.pieces:
            if piece.written is None:
                # By `yield from`, to be left here would end it.
                for _ in piece.looking_up:
                    yield
                piece.written = piece.make()
                yield
            for is_counters, kind, value in piece.written.puts:
                database = databases.counters if is_counters else databases.segments
                self.writing.txn.put(piece.key + bytes((kind,)), value, db=database)
                yield

    def written(self) -> list[tuple[SegmentDraft, Written]] | None:
        """Return what each piece has become; None as long as one has not."""
        written = [(piece, piece.written) for piece in self.pieces if piece.written is not None]
        return written if len(written) == len(self.pieces) else None

    def is_overtaken(self) -> bool:
        """Return whether more has become known of hits that go, which their sums do not have."""
        if self.gone is None:
            return False
        return not set(self.partition.corrections_of(self.gone)) <= set(self.contained)


DAY_MS: Final = 86_400_000
_LEAVINGS_OF_A_VIEW: Final = 2


@frozen
class Sizes:
    """How much makes a segment and a group. `counted_from` views and events, a segment has counters."""

    chunk_views: int = CHUNK_VIEWS
    group_members: int = 16
    counted_from: int = 1_024


@define(eq=False)
class Planner:
    """Used in the writer thread, but for what says otherwise."""

    _environment: Environment
    _purge_queue: PurgeQueue
    sizes: Sizes = field(factory=Sizes)

    def is_due(self, partition: Partition) -> bool:
        """Return whether a memtable has grown too long. For any thread.

        Leavings of flushed views take no more room, however often pages are left.
        """
        memtable = partition.memtable
        held = max(weight(len(memtable), memtable.rows), memtable.leavings // _LEAVINGS_OF_A_VIEW)
        return held > 2 * self.sizes.chunk_views

    def room(self, partition: Partition) -> int:
        """Return how many views would make the last segment a full one. For any thread."""
        last = [segment for segment in partition.segments if not segment.header.batch][-1:]
        held = _weight(last[0]) if last and not last[0].members else 0
        return self.sizes.chunk_views - held % self.sizes.chunk_views

    def next(
        self, txn: Transaction, partition: Partition, now_ms: int, bound: Bound | None
    ) -> CompactionJob | None:
        """Begin with what is due first; None when nothing is."""
        writing = WriterAccess(txn.lmdb)
        if self.is_due(partition) or (
            not partition.memtable.is_empty and partition.memtable.oldest_ms < now_ms - DAY_MS
        ):
            return self._begin_flushing(txn, partition, writing)
        if bound is not None and (making := self._begin_removing(txn, partition, writing, bound)):
            return making
        overlay = partition.overlay()
        for segment in partition.leaves():
            if (
                segment.number in overlay
                and is_settled(segment, now_ms)
                and _is_sound(partition, segment)
            ):
                return self._begin_segment(txn, partition, writing, [segment])
        if members := self._to_group(partition, now_ms):
            return self._begin_group(txn, partition, writing, members)
        return None

    def addition(self, txn: Transaction, partition: Partition, content: Content) -> CompactionJob:
        """Begin with hits that never were in the journal, and the last segment if that is small."""
        small = self._small(partition, content.weight, least_gain=0, batch=content.batch)
        writing = WriterAccess(txn.lmdb)
        held = content_of(self._opened(partition, small, writing)) if small else None
        whole = content if held is None else joined([held, content])
        return self._make_of(txn, partition, writing, whole, old=small)

    def addition_of_days(
        self, txn: Transaction, partition: Partition, days: Sequence[CodedDay]
    ) -> CompactionJob:
        """Begin with days whose views never were here."""

        def make(day: CodedDay, key: bytes) -> Written:
            return written_sums(day.sums(), key)

        pieces = [
            self._piece(txn, partition, max(0, day.span[0]), partial(make, day)) for day in days
        ]
        return CompactionJob(partition, pieces, WriterAccess(txn.lmdb))

    def _begin_flushing(
        self, txn: Transaction, partition: Partition, writing: WriterAccess
    ) -> CompactionJob:
        """Seal the oldest chunk; a memtable shorter than one whole, together with small segments."""
        everything = len(partition.memtable) < self.sizes.chunk_views
        cut = partition.memtable.cut(everything=everything)
        small = self._small(partition, weight(sum(map(len, cut.chunks)), len(cut.events)))
        return self._begin_segment(txn, partition, writing, small, cut)

    def _small(
        self, partition: Partition, added: int, least_gain: float = 0.5, batch: int = 0
    ) -> list[Segment]:
        """Return the last segments of a batch, or of none, that are to be merged with what weighs so.

        Segments that are much larger are left alone: what is added has to be `least_gain` of them.
        """
        small: list[Segment] = []
        for segment in reversed(
            [each for each in partition.segments if each.header.batch == batch]
        ):
            size = _weight(segment)
            is_small = least_gain * size <= added <= self.sizes.chunk_views - size
            if segment.members or not is_small or not _is_sound(partition, segment):
                break
            small.append(segment)
            added += size
        return small

    def _opened(
        self, partition: Partition, segments: Sequence[Segment], writing: WriterAccess
    ) -> list[ViewColumns]:
        overlay, databases = partition.overlay(), self._environment.databases
        parts = [open_one(each, overlay.get(each.number), writing, databases) for each in segments]
        return [part for part in parts if isinstance(part, OpenSegment)]

    def _begin_segment(
        self,
        txn: Transaction,
        partition: Partition,
        writing: WriterAccess,
        old: Sequence[Segment],
        cut: Cut | None = None,
    ) -> CompactionJob:
        parts = [*self._opened(partition, old, writing), *(cut.chunks if cut else ())]
        content = content_of(parts, [cut.events] if cut else ())
        return self._make_of(txn, partition, writing, content, old=old, cut=cut)

    def _make_of(
        self,
        txn: Transaction,
        partition: Partition,
        writing: WriterAccess,
        content: Content,
        *,
        old: Sequence[Segment] = (),
        cut: Cut | None = None,
    ) -> CompactionJob:
        return CompactionJob(
            partition=partition,
            pieces=[self._segment_piece(txn, partition, content, self._names(partition, writing))],
            writing=writing,
            replaced=old,
            contained=partition.corrections_of(content),
            cut=cut,
        )

    def _names(self, partition: Partition, writing: WriterAccess) -> PropertyNames:
        return PropertyNames(writing, self._environment.databases, partition.website)

    def _segment_piece(
        self, txn: Transaction, partition: Partition, content: Content, names: PropertyNames
    ) -> SegmentDraft:
        make = partial(segment_of, content, names_of=names, counted_from=self.sizes.counted_from)
        piece = self._piece(txn, partition, first_ms(content), make)
        piece.looking_up = names.look_up([content.events.property])
        return piece

    def _piece(
        self, txn: Transaction, partition: Partition, time_ms: int, make: Callable[[bytes], Written]
    ) -> SegmentDraft:
        """Return a piece whose keys name a time; on the list of the doomed until it is shown."""
        number, key = self._purge_queue.begin(txn, partition.website, time_ms)
        return SegmentDraft(number, key, lambda: make(key))

    def _begin_removing(
        self, txn: Transaction, partition: Partition, writing: WriterAccess, bound: Bound
    ) -> CompactionJob | None:
        """Begin with a segment that has hits beyond a bound, the earliest first."""
        if not bound.sums:
            days = [segment for segment in partition.days if bound.concerns(segment)]
            if days:
                return CompactionJob(partition, (), writing, replaced=days)
        due = [
            segment
            for segment in partition.leaves()
            if bound.concerns(segment)
            and _is_sound(partition, segment)
            and partition.waiting.get(segment.number) != bound.before_ms
        ]
        for segment in sorted(due, key=lambda segment: segment.header.first):
            content = content_of(self._opened(partition, [segment], writing))
            gone = parted(content, bound, partition.may_stay(segment, bound.before_ms))
            if gone.days:
                making = self._begin_parting(txn, partition, writing, segment, gone, bound)
                making.contained = partition.corrections_of(content)
                return making
            partition.waiting[segment.number] = bound.before_ms
        return None

    def _begin_parting(  # noqa: PLR0917 - all of it is needed once
        self,
        txn: Transaction,
        partition: Partition,
        writing: WriterAccess,
        segment: Segment,
        gone: Parted,
        bound: Bound,
    ) -> CompactionJob:
        pieces, replaced, names = [], [segment], self._names(partition, writing)
        if len(gone.rest) or len(gone.rest.events):
            pieces.append(self._segment_piece(txn, partition, gone.rest, names))
            if gone.is_all:
                # What the bound concerns and nevertheless stays waits for the next one.
                partition.waiting[pieces[0].number] = bound.before_ms
        for day, content in gone.days if bound.sums else ():
            span = bound.span(day)
            before = self._before(partition, span, content)
            replaced += before
            known = [open_sums(each, writing, self._environment.databases) for each in before]

            def make(
                key: bytes,
                day: int = day,
                content: Content = content,
                span: tuple[int, int] = span,
                known: Sequence[StoredRollup] = known,
            ) -> Written:
                sums = sums_of(content, day, span, names)
                return written_sums(
                    added_up([*(each.loaded() for each in known), sums], names), key
                )

            piece = self._piece(txn, partition, max(0, span[0]), make)
            piece.looking_up = names.look_up(
                chain([content.events.property], (each.event_sums().codes for each in known))
            )
            pieces.append(piece)
        return CompactionJob(
            partition=partition,
            pieces=pieces,
            writing=writing,
            replaced=replaced,
            gone=gone.gone,
        )

    def _before(
        self, partition: Partition, span: tuple[int, int], content: Content
    ) -> list[Segment]:
        """Return the sums of the same day that further ones are to be added to, unless too large."""
        before, views = [], len(content)
        for segment in partition.days:
            header = segment.header
            is_same = header.day is not None and (header.day.span, header.batch) == (
                span,
                content.batch,
            )
            if (
                is_same
                and _is_sound(partition, segment)
                and views + header.views <= self.sizes.chunk_views
            ):
                before.append(segment)
                views += header.views
        return before

    def _to_group(self, partition: Partition, now_ms: int) -> list[Segment]:
        levels: dict[tuple[int, int], list[Segment]] = {}
        overlay = partition.overlay()
        for segment in partition.segments:
            if not _is_sound(partition, segment):
                continue
            if segment.members or (
                segment.header.has_counters
                and 2 * segment.header.views >= self.sizes.chunk_views
                and segment.number not in overlay
                and is_settled(segment, now_ms)
            ):
                level = levels.setdefault((segment.header.batch, _level(segment)), [])
                level.append(segment)
                if len(level) == self.sizes.group_members:
                    return level
        return []

    def _begin_group(
        self,
        txn: Transaction,
        partition: Partition,
        writing: WriterAccess,
        members: Sequence[Segment],
    ) -> CompactionJob:
        header = group_header([(member.number, member.header) for member in members])
        databases = self._environment.databases

        def open_member(member: Segment) -> OpenSegment | OpenMergedSegment:
            part = open_one(member, None, writing, databases)
            assert isinstance(part, OpenSegment | OpenMergedSegment)  # noqa: S101 - no chunk is a member
            return part

        def make(key: bytes) -> Written:
            return Written(header, group_puts([open_member(each) for each in members], header, key))

        piece = self._piece(txn, partition, header.first_ms, make)
        return CompactionJob(partition, [piece], writing, members)


def is_settled(segment: Segment, now_ms: int) -> bool:
    """Return whether nothing is corrected of a segment's hits any more."""
    return segment.header.time_bounds[1] < now_ms - SETTLED_MS


def _weight(segment: Segment) -> int:
    return weight(segment.header.views, segment.header.own + segment.header.loose)


def _is_sound(partition: Partition, segment: Segment) -> bool:
    return segment.number not in partition.damaged


def _level(segment: Segment) -> int:
    return 1 + _level(segment.members[0]) if segment.members else 0
