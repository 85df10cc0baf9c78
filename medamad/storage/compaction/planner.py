"""Decide what a website's data needs next: a flush, an expiry, a fold or a merge.

A segment is settled when its hits are too old to be corrected (`SETTLED_MS`). A fold rewrites a
settled segment with its overlay applied, and deletes the corrections that it was made of.
"""

from collections.abc import Sequence
from typing import Final

from attrs import define, field, frozen

from medamad.domain.dimensions import SETTLED_MS
from medamad.domain.zones import DAY_MS
from medamad.storage.compaction.division import LeftOutOf, Share, divide, nothing_left_out
from medamad.storage.compaction.job import (
    Expire,
    ExpireRollups,
    Flush,
    ImportedRollupDraft,
    Job,
    Merge,
    MergedSegmentDraft,
    Nothing,
    PlannedRollups,
    RollupDraft,
    SegmentDraft,
)
from medamad.storage.compaction.purge import PurgeQueue
from medamad.storage.compaction.retention import (
    Cutoff,
    DayVisitSearch,
    Split,
    VisitBegins,
    split_expired,
)
from medamad.storage.dictionary.decode import PropertyNameNumbers
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Environment
from medamad.storage.import_content import ImportedRollup
from medamad.storage.segments.build import Content, concatenate, content_of, segment_key_ms, weight
from medamad.storage.segments.format import Segment
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.read import OpenSegment, open_segment
from medamad.storage.segments.rollup import open_rollup
from medamad.storage.wal.memtable import CHUNK_VIEWS

_DURATIONS_PER_VIEW: Final = 2
_STEP_CORRECTIONS: Final = 2_000
_STEP_SEGMENTS: Final = 100
_STEP_EXPIRIES: Final = 20
"""Segments that are searched at a time for something to expire."""


@frozen
class Sizes:
    """The sizes that decide when to flush and to merge."""

    chunk_views: int = CHUNK_VIEWS
    """Views of a chunk of the memtable, and so of a full segment."""
    merged_members: int = 16
    """Members of a merged segment."""
    counted_from: int = 1_024
    """Views and events from which on a segment has counters."""


@define(eq=False)
class Planner:
    """Plans one job at a time, in the writer thread.

    Each method reads through an access to the current transaction, in which it also reserves the
    numbers of the segments to be written.
    """

    _environment: Environment
    _purge_queue: PurgeQueue
    sizes: Sizes = field(factory=Sizes)
    _left_out: LeftOutOf = nothing_left_out

    def is_memtable_full(self, partition: Partition) -> bool:
        """Return whether a memtable is due to be flushed for its size. For any thread.

        A view takes no more memory however many durations arrive for it, but their records take up
        the write-ahead log.
        """
        memtable = partition.memtable
        size = max(
            weight(len(memtable), memtable.event_rows), memtable.durations // _DURATIONS_PER_VIEW
        )
        return size > 2 * self.sizes.chunk_views

    def next_job(
        self, access: WriterAccess, partition: Partition, now_ms: int, cutoff: Cutoff | None
    ) -> Job | None:
        """Return the most urgent job, None when nothing is due. Raises DamagedSegment."""
        return (
            self._flush(access, partition, now_ms)
            or (self._expire(access, partition, cutoff) if cutoff is not None else None)
            or self._fold(access, partition, now_ms)
            or self._merge(access, partition, now_ms)
            or self._delete_idle_corrections(access, partition, now_ms)
        )

    # Imports

    def add_segment(self, access: WriterAccess, partition: Partition, content: Content) -> Job:
        """Add imported views and events, in one segment with the batch's last if that is small."""
        small = self._small_segments(
            partition, content.weight, min_share=0, batch=content.import_batch
        )
        if small:
            content = concatenate([content_of(self._open(access, partition, small)), content])
        return self._rewrite(access, partition, small, content)

    def add_rollups(
        self, access: WriterAccess, partition: Partition, days: Sequence[ImportedRollup]
    ) -> Job:
        """Add imported rollups."""
        drafts = []
        for day in days:
            number, key = self._reserve(access, partition, max(0, day.span[0]))
            drafts.append(ImportedRollupDraft(number=number, key=key, day=day))
        return Job(partition=partition, access=access, drafts=drafts)

    def remove_batch(self, access: WriterAccess, partition: Partition, batch: int) -> Job | None:
        """Remove some segments of an import batch; None when none is left."""
        segments = partition.segments_of_batch(batch)[:_STEP_SEGMENTS]
        if not segments:
            return None
        return Job(partition=partition, access=access, replaced=segments)

    # What may be due, most urgent first

    def _flush(self, access: WriterAccess, partition: Partition, now_ms: int) -> Job | None:
        """Flush a memtable that is full, or has hits of more than a day ago.

        Its oldest chunk becomes a segment; if no chunk is full, the whole memtable becomes one,
        combined with small segments before it.
        """
        memtable = partition.memtable
        is_old = not memtable.is_empty and memtable.oldest_ms < now_ms - DAY_MS
        if not is_old and not self.is_memtable_full(partition):
            return None
        cut = memtable.cut(everything=len(memtable) < self.sizes.chunk_views)
        small = self._small_segments(
            partition, weight(sum(map(len, cut.chunks)), len(cut.events)), min_share=0.5
        )
        content = content_of([*self._open(access, partition, small), *cut.chunks], [cut.events])
        return Flush(
            partition=partition,
            access=access,
            drafts=[self._segment_draft(access, partition, content)],
            replaced=small,
            folded=partition.corrections_of(content),
            cut=cut,
        )

    def _expire(self, access: WriterAccess, partition: Partition, cutoff: Cutoff) -> Job | None:
        """Delete what is past its retention: rollups, or else hits of one segment.

        Segments follow each other in the order in which their hits were stored, so that what a
        visit has elsewhere is still there when the segment that has its first view expires.
        """
        if not cutoff.keeps_rollups:
            rollups = [rollup for rollup in partition.rollups if cutoff.concerns(rollup)]
            if rollups:
                return ExpireRollups(partition=partition, access=access, replaced=rollups)
        due = [
            segment
            for segment in partition.leaves()
            if cutoff.reaches(segment)
            and segment.number not in partition.damage.numbers
            and partition.expired_up_to.get(segment.number) != cutoff.before_ms
        ]
        if not due:
            return None
        due.sort(key=lambda segment: segment.header.first_sequence)
        begins = VisitBegins(partition, access)
        for segment in due[:_STEP_EXPIRIES]:
            parts = self._open(access, partition, [segment])
            if begins.may_expire(parts[0], cutoff):
                content = content_of(parts)
                split = split_expired(content, cutoff, begins)
                if split.days:
                    return self._expire_hits(
                        access, partition, parts, content=content, split=split, cutoff=cutoff
                    )
            partition.expired_up_to[segment.number] = cutoff.before_ms
        return Nothing(partition=partition, access=access) if due[_STEP_EXPIRIES:] else None

    def _fold(self, access: WriterAccess, partition: Partition, now_ms: int) -> Job | None:
        """Rewrite a settled segment with its overlay."""
        for segment in partition.leaves():
            if (
                segment.number in partition.overlays
                and is_settled(segment, now_ms)
                and segment.number not in partition.damage.numbers
            ):
                content = content_of(self._open(access, partition, [segment]))
                return self._rewrite(access, partition, [segment], content)
        return None

    def _merge(self, access: WriterAccess, partition: Partition, now_ms: int) -> Job | None:
        """Merge enough segments of a batch, or merged segments of the same level."""
        levels: dict[tuple[int, int], list[Segment]] = {}
        for segment in partition.segments:
            if self._can_be_merged(partition, segment, now_ms):
                level = levels.setdefault((segment.header.import_batch, _level(segment)), [])
                level.append(segment)
                if len(level) == self.sizes.merged_members:
                    return self._merge_members(access, partition, level)
        return None

    def _delete_idle_corrections(
        self, access: WriterAccess, partition: Partition, now_ms: int
    ) -> Job | None:
        """Delete corrections that turned out to change nothing."""
        settled = [segment for segment in partition.leaves() if is_settled(segment, now_ms)]
        idle = partition.idle_corrections(settled)[:_STEP_CORRECTIONS]
        return Job(partition=partition, access=access, folded=idle) if idle else None

    # How

    def _rewrite(
        self,
        access: WriterAccess,
        partition: Partition,
        replaced: Sequence[Segment],
        content: Content,
    ) -> Job:
        return Job(
            partition=partition,
            access=access,
            drafts=[self._segment_draft(access, partition, content)],
            replaced=replaced,
            folded=partition.corrections_of(content),
        )

    def _expire_hits(
        self,
        access: WriterAccess,
        partition: Partition,
        parts: Sequence[OpenSegment],
        *,
        content: Content,
        split: Split,
        cutoff: Cutoff,
    ) -> Job:
        """Write what stays of a segment and, where they are kept, rollups of what expires."""
        drafts: list[SegmentDraft] = []
        if len(split.rest) or len(split.rest.events):
            rest = self._segment_draft(access, partition, split.rest)
            drafts.append(rest)
            if split.is_complete:
                # Hits before the cutoff that stay with their visit wait for the next cutoff.
                partition.expired_up_to[rest.number] = cutoff.before_ms
        rollups = None
        if cutoff.keeps_rollups:
            rollups = self._rollup_drafts(access, partition, parts, split, cutoff)
        return Expire(
            partition=partition,
            access=access,
            drafts=drafts,
            replaced=[part.segment for part in parts],
            folded=partition.corrections_of(content),
            expired=split.expired,
            rollups=rollups,
        )

    def _rollup_drafts(
        self,
        access: WriterAccess,
        partition: Partition,
        parts: Sequence[OpenSegment],
        split: Split,
        cutoff: Cutoff,
    ) -> PlannedRollups:
        """Divide what expires of parts, in small steps; return its rollups and what they extend."""
        left_out = yield from self._left_out(partition, access, parts, ())
        names = self._property_names(access, partition)
        drafts: list[RollupDraft] = []
        replaced: list[Segment] = []
        shares = (
            (day, share)
            for day, of_day in split.days
            for share in divide(of_day, left_out, split.rest)
        )
        for day, share in shares:
            span = cutoff.span(day)
            earlier = self._rollups_to_extend(partition, span, share)
            replaced += earlier
            number, key = self._reserve(access, partition, max(0, span[0]))
            drafts.append(
                RollupDraft(
                    number=number,
                    key=key,
                    day=day,
                    span=span,
                    share=share,
                    names=names,
                    earlier=[
                        open_rollup(rollup, access, self._environment.databases)
                        for rollup in earlier
                    ],
                    visits=DayVisitSearch(share.content, span, partition),
                    access=access,
                )
            )
            yield
        return drafts, replaced

    def _merge_members(
        self, access: WriterAccess, partition: Partition, members: Sequence[Segment]
    ) -> Job:
        time_ms = min(member.header.key_ms for member in members)
        number, key = self._reserve(access, partition, time_ms)
        draft = MergedSegmentDraft(
            number=number,
            key=key,
            members=members,
            access=access,
            databases=self._environment.databases,
        )
        return Merge(partition=partition, access=access, drafts=[draft], members=members)

    def _segment_draft(
        self, access: WriterAccess, partition: Partition, content: Content
    ) -> SegmentDraft:
        number, key = self._reserve(access, partition, segment_key_ms(content))
        return SegmentDraft(
            number=number,
            key=key,
            content=content,
            names=self._property_names(access, partition),
            counted_from=self.sizes.counted_from,
        )

    def _reserve(
        self, access: WriterAccess, partition: Partition, time_ms: int
    ) -> tuple[int, bytes]:
        return self._purge_queue.reserve(access.txn, partition.website, time_ms)

    def _property_names(self, access: WriterAccess, partition: Partition) -> PropertyNameNumbers:
        return PropertyNameNumbers(access, self._environment.databases, partition.website)

    def _open(
        self, access: WriterAccess, partition: Partition, segments: Sequence[Segment]
    ) -> list[OpenSegment]:
        overlays, databases = partition.overlays, self._environment.databases
        return [
            open_segment(segment, overlays.get(segment.number), access, databases)
            for segment in segments
        ]

    def _small_segments(
        self, partition: Partition, added: int, *, min_share: float, batch: int = 0
    ) -> list[Segment]:
        """Return the last segments of a batch that are rewritten with what is added to it.

        A segment is small if both fit into a full one; and, so that large segments are not
        rewritten for little, if what is added is at least `min_share` of it.
        """
        small: list[Segment] = []
        of_batch = [
            segment for segment in partition.segments if segment.header.import_batch == batch
        ]
        for segment in reversed(of_batch):
            size = weight(segment.header.views, segment.header.own_rows + segment.header.loose_rows)
            is_small = min_share * size <= added <= self.sizes.chunk_views - size
            if segment.members or not is_small or segment.number in partition.damage.numbers:
                break
            small.append(segment)
            added += size
        return small

    def _rollups_to_extend(
        self, partition: Partition, span: tuple[int, int], share: Share
    ) -> list[Segment]:
        """Return the rollups of the same day that are rewritten with more of it.

        They are of the same batch, left out by the same rules, and together not larger than a full
        segment.
        """
        found, views = [], len(share.content)
        for rollup in partition.rollups:
            header = rollup.header
            if (
                header.day is not None
                and (header.day.span, header.import_batch) == (span, share.content.import_batch)
                and (header.day.rules, header.day.left_out_by) == (share.rules, share.left_out_by)
                and rollup.number not in partition.damage.numbers
                and views + header.views <= self.sizes.chunk_views
            ):
                found.append(rollup)
                views += header.views
        return found

    def _can_be_merged(self, partition: Partition, segment: Segment, now_ms: int) -> bool:
        if segment.number in partition.damage.numbers:
            return False
        return bool(segment.members) or (
            segment.header.has_counters
            and 2 * segment.header.views >= self.sizes.chunk_views
            and segment.number not in partition.overlays
            and is_settled(segment, now_ms)
        )


def is_settled(segment: Segment, now_ms: int) -> bool:
    """Return whether a segment's hits are too old to be corrected."""
    return segment.header.time_bounds[1] < now_ms - SETTLED_MS


def _level(segment: Segment) -> int:
    return 1 + _level(segment.members[0]) if segment.members else 0
