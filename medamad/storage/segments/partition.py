"""All hits of one website as the writer has them: the memtable, the segments, what was corrected since.

The writer thread alone changes a partition. Queries see a `Snapshot`, which is
replaced as a whole.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray
from twisted.logger import Logger

from medamad.storage.dictionary.decode import Texts as WebsiteTexts
from medamad.storage.environment.access import ReadAccess
from medamad.storage.environment.environment import Databases
from medamad.storage.errors import Damaged
from medamad.storage.segments.build import Content
from medamad.storage.segments.corrections import (
    Corrected,
    Correction,
    Overlay,
    Overlays,
    Values,
    overlay_of,
)
from medamad.storage.segments.format import Segment
from medamad.storage.segments.read import OpenSegment, open_one
from medamad.storage.segments.snapshot import Snapshot, split_merged, with_members
from medamad.storage.wal.memtable import Memtable

_NO_LATES: Final[Overlays] = {}
_Known: TypeAlias = Mapping[Corrected, Values]


@define(eq=False)
class Partition:
    """The hits of one website."""

    website: int
    memtable: Memtable
    texts: WebsiteTexts
    databases: Databases
    segments: list[Segment] = field(factory=list)
    """Segments and groups that no group has, in the order of their first sequence numbers."""
    days: list[Segment] = field(factory=list)
    """The sums of days, in the order of these."""
    waiting: dict[int, int] = field(factory=dict)
    """By number, the segments of which all has gone that can: up to which time."""
    watermark: int = 0
    """No record of the journal up to this sequence number counts: a segment has it."""
    is_deleted: bool = False
    damaged: set[int] = field(factory=set)
    """The segments and groups that cannot be rewritten."""
    _corrections: dict[Corrected, Values] = field(
        factory=lambda: {kind: Values() for kind in Corrected}
    )
    _overlay: Overlays = field(default=_NO_LATES)
    _shown: tuple[Segment, ...] | None = None
    _hidden: frozenset[int] = frozenset()
    """The batches that no question sees."""
    _told: set[str] = field(factory=set)
    _log = Logger()

    def publish(self) -> Snapshot:
        """Return the present state as a value that never changes."""
        if self._shown is None:
            shown = split_merged(self.segments, frozenset(self._overlay))
            self._shown = tuple(each for each in shown if each.header.batch not in self._hidden)
        chunks, events = self.memtable.publish()
        days = tuple(each for each in self.days if each.header.batch not in self._hidden)
        return Snapshot(
            texts=self.texts,
            segments=self._shown,
            overlays=self._overlay,
            chunks=chunks,
            events=events,
            rollup_segments=days,
        )

    def delete(self) -> None:
        """Note that the website is deleted."""
        self.is_deleted = self.texts.is_deleted = True

    def leaves(self) -> list[Segment]:
        """Return all segments, those of groups too."""
        return [leaf for segment in self.segments for leaf in segment.segments()]

    def correction(self, kind: Corrected, sequence: int) -> int:
        """Return what is known to be corrected of a flushed hit, 0 for nothing."""
        return self._corrections[kind].get(sequence)

    def still(self, corrections: Iterable[Correction]) -> list[Correction]:
        """Return those of some corrections to which nothing has been added since."""
        return [
            correction
            for correction in corrections
            if self.correction(correction.kind, correction.sequence) == correction.value
        ]

    def correct(self, corrections: Iterable[Correction], reading: ReadAccess) -> None:
        """Lay corrections over the segments that have their hits."""
        known = {kind: Values() for kind in Corrected}
        for kind, sequence, value in corrections:
            self._corrections[kind].put(sequence, value)
            known[kind].put(sequence, value)
        if any(values.all() for values in known.values()):
            self._lay(self._having(known), known, reading)

    def replace(
        self,
        old: Sequence[Segment],
        new: Sequence[Segment],
        contained: Iterable[Correction],
        reading: ReadAccess,
    ) -> None:
        """Put segments, and sums of days, in the place of others.

        Corrections that they contain are forgotten. Groups that have one of the others are no
        more.
        """
        gone = frozenset(segment.number for segment in old)
        kept = [
            segment for segment in split_merged(self.segments, gone) if segment.number not in gone
        ]
        segments = [segment for segment in new if segment.header.day is None]
        self.segments = sorted([*kept, *segments], key=lambda segment: segment.header.first)
        days = [segment for segment in self.days if segment.number not in gone]
        days += [segment for segment in new if segment.header.day is not None]
        self.days = sorted(days, key=lambda segment: segment.header.first_ms)
        for number in gone:
            self.waiting.pop(number, None)
        self.forget(contained)
        self._overlay = {
            number: overlay for number, overlay in self._overlay.items() if number not in gone
        }
        self._lay(segments, self._corrections, reading)

    def group(self, members: Sequence[Segment], group: Segment) -> None:
        """Put a group in the place of its members."""
        numbers = {member.number for member in members}
        kept = [segment for segment in self.segments if segment.number not in numbers]
        self.segments = sorted([*kept, group], key=lambda segment: segment.header.first)
        self._shown = None

    def corrections_of(self, content: Content) -> list[Correction]:
        """Return what is corrected of the hits of a segment's content."""
        having = {Corrected.DURATION: content.sequence, Corrected.VIEW: content.events.event}
        found = []
        for kind, values in self._corrections.items():
            sequences = np.array(values.all(), np.uint64)
            there = sequences[np.isin(sequences, having[kind])]
            found += [Correction(kind, number, values.get(number)) for number in there.tolist()]
        return found

    def idle_corrections(self, settled: Iterable[Segment]) -> list[Correction]:
        """Return the corrections of segments, to which none is added any more, that change nothing.

        Segments may reach over each other: what another one may be concerned by is left out. Those
        that concern no segment are of hits of which sums remain, at most.
        """
        idle = {segment.number for segment in settled} - self._overlay.keys() - self.damaged
        leaves = self.leaves()
        others = [_reach(segment) for segment in leaves if segment.number not in idle]
        found = (
            Correction(kind, sequence, value)
            for segment in leaves
            if segment.number in idle
            for kind, values in self._corrections.items()
            for sequence, value in values.within(*_reach(segment))
            if not any(low <= sequence <= high for low, high in others)
        )
        of_none = (
            Correction(kind, sequence, values.get(sequence))
            for kind, values in self._corrections.items()
            for sequence in _outside(values.all(), map(_reach, leaves))
        )
        return list(dict.fromkeys(chain(found, of_none)))

    def may_stay(
        self, segment: Segment | None, before_ms: int
    ) -> Callable[[NDArray[Any]], NDArray[np.bool_]]:
        """Return which sequence numbers may be of views not before a time, but for those of a segment.

        For all that is known without looking at the views.
        """
        others = [
            leaf.header.sequence_bounds
            for leaf in self.leaves()
            if leaf is not segment and leaf.header.time_bounds[1] >= before_ms
        ]

        def tell(views: NDArray[Any]) -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = views > self.watermark
            for low, high in others:
                found |= (views >= low) & (views <= high)
            return found

        return tell

    def forget(self, corrections: Iterable[Correction]) -> None:
        """Drop corrections that change nothing."""
        by_kind: dict[Corrected, list[int]] = {}
        for kind, sequence, _ in corrections:
            by_kind.setdefault(kind, []).append(sequence)
        for kind, sequences in by_kind.items():
            self._corrections[kind].remove(sequences)

    def groups_of(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the groups that have one of some segments, at whatever level."""
        numbers = {segment.number for segment in segments}
        return [
            each
            for segment in self.segments
            for each in with_members(segment)
            if each.members and any(leaf.number in numbers for leaf in each.segments())
        ]

    def of_batch(self, batch: int) -> list[Segment]:
        """Return the segments, groups and sums of a batch, the groups before their members."""
        found = [*self.days, *(each for segment in self.segments for each in with_members(segment))]
        return [each for each in found if each.header.batch == batch]

    def hide(self, batch: int) -> None:
        """Show nothing of a batch from the next publishing on."""
        self._hidden |= {batch}
        self._shown = None

    def reveal(self, batch: int) -> None:
        """Show a batch from the next publishing on."""
        self._hidden -= {batch}
        self._shown = None

    def drop(self, segments: Iterable[Segment]) -> None:
        """Forget segments, and groups of which no member is left behind that is to stay whole."""
        gone = frozenset(segment.number for segment in segments)
        self.segments = [
            each for each in split_merged(self.segments, gone) if each.number not in gone
        ]
        self.days = [each for each in self.days if each.number not in gone]
        self._overlay = {
            number: overlay for number, overlay in self._overlay.items() if number not in gone
        }
        self._shown = None

    def overlay(self) -> Overlays:
        """Return what is laid over which segments."""
        return self._overlay

    def _having(self, known: _Known) -> list[Segment]:
        """Return the segments that may have one of some hits."""
        sequences = chain.from_iterable(values.all() for values in known.values())
        wanted = np.sort(np.array([*sequences], np.uint64))
        leaves = self.leaves()
        reach = np.array([_reach(segment) for segment in leaves], np.uint64).reshape(-1, 2)
        begins = np.searchsorted(wanted, reach[:, 0])
        ends = np.searchsorted(wanted, reach[:, 1], side="right")
        return [leaves[place] for place in np.flatnonzero(begins < ends).tolist()]

    def _lay(self, segments: Iterable[Segment], known: _Known, reading: ReadAccess) -> None:
        """Lay what became known over segments, beside what they have already, which may be much."""
        overlay = dict(self._overlay)
        for segment in segments:
            try:
                found = self._overlay_of(segment, known, reading)
            except Damaged as error:
                self.damaged.add(segment.number)
                if str(error) not in self._told:
                    self._told.add(str(error))
                    self._log.error("a block is damaged: {place}", place=str(error))
                continue
            if len(found):
                before = overlay.get(segment.number)
                overlay[segment.number] = found if before is None else before.and_then(found)
        self._overlay = overlay
        self._shown = None

    def _overlay_of(self, segment: Segment, known: _Known, reading: ReadAccess) -> Overlay:
        part = open_one(segment, None, reading, self.databases)
        assert isinstance(part, OpenSegment)  # noqa: S101 - it has no members
        reach = _reach(segment)
        raised, bound = known[Corrected.DURATION], known[Corrected.VIEW]
        return overlay_of(part, raised.within(*reach), bound.within(*reach))


def _reach(segment: Segment) -> tuple[int, int]:
    """Return the least and greatest sequence number of what a segment may have."""
    return segment.header.first, segment.header.last


def _outside(ascending: Sequence[int], reaches: Iterable[tuple[int, int]]) -> list[int]:
    """Return the numbers that lie within none of some reaches."""
    numbers = np.array(ascending, np.uint64)
    is_outside = np.ones(len(numbers), np.bool_)
    for low, high in reaches:
        begin, end = np.searchsorted(numbers, np.array((low, high + 1), np.uint64))
        is_outside[begin:end] = False
    outside: list[int] = numbers[is_outside].tolist()
    return outside
