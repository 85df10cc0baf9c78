"""The jobs of flush, compaction, retention and import: what is written and what it replaces.

A job is decided by the planner and carried out by the compactor. Its drafts are written in steps of
a few milliseconds, over several transactions; then one transaction publishes all of them and
retires the segments that they replace.
"""

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from attrs import define, field

from medamad.storage.compaction.division import Share
from medamad.storage.compaction.retention import DayVisitSearch, Removed
from medamad.storage.dictionary.decode import PropertyNameNumbers
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Databases
from medamad.storage.import_content import ImportedRollup
from medamad.storage.segments.build import (
    Content,
    EncodedSegment,
    Put,
    encode_merged,
    encode_segment,
    merged_header,
)
from medamad.storage.segments.corrections import Correction
from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.read import open_part
from medamad.storage.segments.rollup import StoredRollup, encode_rollup, merge_rollups
from medamad.storage.wal.memtable import Cut


@define(eq=False, kw_only=True)
class Draft:
    """A segment, merged segment or rollup that is being written."""

    number: int
    key: bytes
    """The prefix of its keys."""
    header: SegmentHeader = field(init=False)
    """Set before the first value is written."""

    def writes(self) -> Iterator[Put | None]:
        """Return what to write, in small steps. None stands for a step that writes nothing."""
        for _ in self.prepare():
            yield None
        encoded = self.encode()
        self.header = encoded.header
        yield None
        yield from encoded.puts

    def prepare(self) -> Iterator[None]:
        """Look up what `encode` needs, in small steps."""
        return iter(())

    @abstractmethod
    def encode(self) -> EncodedSegment:
        """Return the header, and what to write."""


@define(eq=False, kw_only=True)
class SegmentDraft(Draft):
    """A segment of these views and events."""

    content: Content
    names: PropertyNameNumbers
    counted_from: int

    def prepare(self) -> Iterator[None]:
        return self.names.look_up([self.content.events.property])

    def encode(self) -> EncodedSegment:
        return encode_segment(self.content, self.key, self.names, counted_from=self.counted_from)


@define(eq=False, kw_only=True)
class MergedSegmentDraft(Draft):
    """A merged segment of these members."""

    members: Sequence[Segment]
    access: WriterAccess
    databases: Databases

    def encode(self) -> EncodedSegment:
        header = merged_header([(member.number, member.header) for member in self.members])
        members = [open_part(member, None, self.access, self.databases) for member in self.members]
        return EncodedSegment(header, encode_merged(members, header, self.key))


@define(eq=False, kw_only=True)
class RollupDraft(Draft):
    """The rollup of views and events of a day that are deleted, added to earlier ones of it."""

    day: int
    span: tuple[int, int]
    share: Share
    names: PropertyNameNumbers
    earlier: Sequence[StoredRollup]
    visits: DayVisitSearch
    access: WriterAccess

    def prepare(self) -> Iterator[None]:
        codes = (rollup.event_sums().codes for rollup in self.earlier)
        yield from self.names.look_up(chain([self.share.content.events.property], codes))
        yield from self.visits.steps(self.access)

    def encode(self) -> EncodedSegment:
        added = self.share.rollup(self.day, self.span, self.names, self.visits.result())
        rollups = [*(rollup.loaded() for rollup in self.earlier), added]
        return encode_rollup(merge_rollups(rollups, self.names), self.key)


PlannedRollups: TypeAlias = Generator[None, None, tuple[Sequence[RollupDraft], Sequence[Segment]]]
"""Plans rollups in small steps; returns their drafts, and the rollups that these replace."""


@define(eq=False, kw_only=True)
class ImportedRollupDraft(Draft):
    """The rollup of a day that was imported as one."""

    day: ImportedRollup

    def encode(self) -> EncodedSegment:
        return encode_rollup(self.day.content(), self.key)


@define(eq=False, kw_only=True)
class Job:
    """A change of a website's segments: what is written, and what it replaces."""

    partition: Partition
    access: WriterAccess
    """The drafts read what they are made of through it, whatever transaction it is at."""
    drafts: Sequence[Draft] = ()
    replaced: Sequence[Segment] = ()
    folded: Sequence[Correction] = ()
    """Corrections that the drafts contain, or that change nothing."""

    def writes(self) -> Iterator[tuple[bytes, Put] | None]:
        """Return what to write of all drafts, each value with the prefix of its key."""
        for draft in self.drafts:
            for put in draft.writes():
                yield None if put is None else (draft.key, put)

    def is_obsolete(self) -> bool:
        """Return whether something has happened since planning that the drafts lack."""
        return False

    def removed(self) -> Removed:
        """Return what is deleted for good, once the job is done."""
        return Removed()


@define(eq=False, kw_only=True)
class Nothing(Job):
    """Nothing was due in what was searched so far: the rest is searched in another step."""

    def is_obsolete(self) -> bool:
        return True


@define(eq=False, kw_only=True)
class Flush(Job):
    """Turn the oldest part of the memtable, with any small segments before it, into a segment."""

    cut: Cut


@define(eq=False, kw_only=True)
class Merge(Job):
    """Put a merged segment over its members, which stay."""

    members: Sequence[Segment]


@define(eq=False, kw_only=True)
class Expire(Job):
    """Delete the views and events of a segment that are past their retention."""

    expired: Content
    """What is deleted. Its rollups, if any, can no longer be corrected."""
    rollups: PlannedRollups | None
    """Plans its rollups; None if there are none."""

    def writes(self) -> Iterator[tuple[bytes, Put] | None]:
        """Plan the rollups in small steps, then return what to write of all drafts."""
        if self.rollups is not None:
            drafts, replaced = yield from self.rollups
            self.drafts, self.replaced = [*self.drafts, *drafts], [*self.replaced, *replaced]
        yield from super().writes()

    def is_obsolete(self) -> bool:
        return not set(self.partition.corrections_of(self.expired)) <= set(self.folded)

    def removed(self) -> Removed:
        return Removed.of(self.expired)


@define(eq=False, kw_only=True)
class ExpireRollups(Job):
    """Delete rollups that are past their retention."""

    def removed(self) -> Removed:
        return Removed(
            days=len({rollup.header.day.span for rollup in self.replaced if rollup.header.day})
        )
