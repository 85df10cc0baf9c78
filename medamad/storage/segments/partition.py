"""All data of one website as the writer has it: memtable, segments, rollups and corrections.

The writer thread alone changes a partition. Queries see a `Snapshot`, which is replaced as a
whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
from attrs import define, field

from medamad.storage.dictionary.decode import WebsiteTexts
from medamad.storage.environment.access import ReadAccess
from medamad.storage.environment.environment import Databases
from medamad.storage.errors import DamagedSegment
from medamad.storage.segments.build import Content
from medamad.storage.segments.corrections import (
    Corrected,
    Correction,
    Overlay,
    Overlays,
    Values,
    overlay_of,
)
from medamad.storage.segments.damage import Damage
from medamad.storage.segments.format import Segment
from medamad.storage.segments.read import open_segment
from medamad.storage.segments.snapshot import Snapshot, split_merged, with_members
from medamad.storage.wal.memtable import Memtable

_NO_OVERLAYS: Final[Overlays] = {}
_Corrections: TypeAlias = Mapping[Corrected, Values]


@define(eq=False)
class Partition:
    """The data of one website. Changed by the writer thread alone."""

    website: int
    memtable: Memtable
    texts: WebsiteTexts
    databases: Databases
    segments: list[Segment] = field(factory=list)
    """Segments and merged segments without the members of merged ones, by first sequence number."""
    rollups: list[Segment] = field(factory=list)
    """In the order of their days."""
    expired_up_to: dict[int, int] = field(factory=dict)
    """By segment number, the cutoff before which no more of it can expire."""
    watermark: int = 0
    """Records up to this sequence number are flushed."""
    is_deleted: bool = False
    damage: Damage = field(factory=Damage)
    """Any thread may add to it."""
    _corrections: dict[Corrected, Values] = field(
        factory=lambda: {kind: Values() for kind in Corrected}
    )
    overlays: Overlays = field(default=_NO_OVERLAYS)
    """By segment number, how corrections change a segment."""
    _visible: tuple[Segment, ...] | None = None
    """The segments that queries see, None after a change."""
    _hidden_batches: frozenset[int] = frozenset()
    """The import batches that no query sees."""

    def publish(self) -> Snapshot:
        """Return the present state as a snapshot, which never changes."""
        if self._visible is None:
            # The counters of a merged segment are not those of members with an overlay.
            split = split_merged(self.segments, frozenset(self.overlays))
            self._visible = self._without_hidden(split)
        chunks, events = self.memtable.publish()
        return Snapshot(
            texts=self.texts,
            segments=self._visible,
            overlays=self.overlays,
            chunks=chunks,
            events=events,
            rollup_segments=self._without_hidden(self.rollups),
            left_out_ms=self.damage.lost_ms,
        )

    def damaged_places(self) -> list[str]:
        """Return what is known to be damaged."""
        tops = (*self.segments, *self.rollups)
        return self.damage.places({segment.number for top in tops for segment in with_members(top)})

    def delete(self) -> None:
        """Mark the website as deleted."""
        self.is_deleted = self.texts.is_deleted = True

    def leaves(self) -> list[Segment]:
        """Return all segments, and the members of merged ones instead of these."""
        return [leaf for segment in self.segments for leaf in segment.leaves()]

    def correction(self, kind: Corrected, sequence: int) -> int:
        """Return the value of a correction of a flushed hit, 0 for none."""
        return self._corrections[kind].get(sequence)

    def unchanged(self, corrections: Iterable[Correction]) -> list[Correction]:
        """Return the corrections that still have the same value."""
        return [
            correction
            for correction in corrections
            if self.correction(correction.kind, correction.sequence) == correction.value
        ]

    def add_corrections(self, corrections: Iterable[Correction], reading: ReadAccess) -> None:
        """Add corrections, and overlay the segments that have their hits."""
        added = {kind: Values() for kind in Corrected}
        for kind, sequence, value in corrections:
            self._corrections[kind].put(sequence, value)
            added[kind].put(sequence, value)
        if any(values.all() for values in added.values()):
            self._overlay(self._possibly_having(added), added, reading)

    def replace(
        self,
        old: Sequence[Segment],
        new: Sequence[Segment],
        folded: Iterable[Correction],
        reading: ReadAccess,
    ) -> None:
        """Replace segments and rollups by others, and drop the corrections that these contain.

        A merged segment that has one of the old ones is dropped; its other members stay.
        """
        retired = frozenset(segment.number for segment in old)
        kept = [
            segment
            for segment in split_merged(self.segments, retired)
            if segment.number not in retired
        ]
        segments = [segment for segment in new if segment.header.day is None]
        self.segments = sorted(
            [*kept, *segments], key=lambda segment: segment.header.first_sequence
        )
        rollups = [rollup for rollup in self.rollups if rollup.number not in retired]
        rollups += [rollup for rollup in new if rollup.header.day is not None]
        self.rollups = sorted(rollups, key=lambda rollup: rollup.header.key_ms)
        for number in retired:
            self.expired_up_to.pop(number, None)
        self._drop_corrections(folded)
        self.overlays = {
            number: overlay for number, overlay in self.overlays.items() if number not in retired
        }
        self._overlay(segments, self._corrections, reading)

    def merge(self, members: Sequence[Segment], merged: Segment) -> None:
        """Put a merged segment over its members."""
        numbers = {member.number for member in members}
        kept = [segment for segment in self.segments if segment.number not in numbers]
        self.segments = sorted([*kept, merged], key=lambda segment: segment.header.first_sequence)
        self._visible = None

    def corrections_of(self, content: Content) -> list[Correction]:
        """Return the corrections of the hits of some content."""
        numbers = {Corrected.DURATION: content.sequence, Corrected.VIEW: content.events.event}
        found = []
        for kind, values in self._corrections.items():
            sequences = np.array(values.all(), np.uint64)
            of_content = sequences[np.isin(sequences, numbers[kind])]
            found += [
                Correction(kind, sequence, values.get(sequence)) for sequence in of_content.tolist()
            ]
        return found

    def idle_corrections(self, settled: Iterable[Segment]) -> list[Correction]:
        """Return the corrections that change nothing, given the segments that get no more of them.

        They are of a settled segment that has no overlay; or of no segment, where the hit has
        expired. Segments may overlap in sequence numbers: what may be of another one is left out.
        """
        idle = {segment.number for segment in settled} - self.overlays.keys() - self.damage.numbers
        leaves = self.leaves()
        others = [_numbers(segment) for segment in leaves if segment.number not in idle]
        found = (
            Correction(kind, sequence, value)
            for segment in leaves
            if segment.number in idle
            for kind, values in self._corrections.items()
            for sequence, value in values.within(*_numbers(segment))
            if not any(low <= sequence <= high for low, high in others)
        )
        of_none = (
            Correction(kind, sequence, values.get(sequence))
            for kind, values in self._corrections.items()
            for sequence in _outside(values.all(), map(_numbers, leaves))
        )
        return list(dict.fromkeys(chain(found, of_none)))

    def merged_over(self, segments: Sequence[Segment]) -> list[Segment]:
        """Return the merged segments that contain any of some segments, at any level."""
        numbers = {segment.number for segment in segments}
        if not numbers:
            return []
        return [
            merged
            for top in self.segments
            for merged in with_members(top)
            if merged.members and any(leaf.number in numbers for leaf in merged.leaves())
        ]

    def segments_of_batch(self, batch: int) -> list[Segment]:
        """Return an import batch's rollups and segments, merged ones before their members."""
        found = [
            *self.rollups,
            *(segment for top in self.segments for segment in with_members(top)),
        ]
        return [segment for segment in found if segment.header.import_batch == batch]

    def hide(self, batch: int) -> None:
        """Hide an import batch from queries, once the partition is published again."""
        self._hidden_batches |= {batch}
        self._visible = None

    @property
    def hidden_batches(self) -> frozenset[int]:
        """The import batches that no query sees. For any thread."""
        return self._hidden_batches

    def reveal(self, batch: int) -> None:
        """Show an import batch to queries, once the partition is published again."""
        self._hidden_batches -= {batch}
        self._visible = None

    def _without_hidden(self, segments: Iterable[Segment]) -> tuple[Segment, ...]:
        hidden = self._hidden_batches
        return tuple(segment for segment in segments if segment.header.import_batch not in hidden)

    def _drop_corrections(self, corrections: Iterable[Correction]) -> None:
        by_kind: dict[Corrected, list[int]] = {}
        for kind, sequence, _ in corrections:
            by_kind.setdefault(kind, []).append(sequence)
        for kind, sequences in by_kind.items():
            self._corrections[kind].remove(sequences)

    def _possibly_having(self, corrections: _Corrections) -> list[Segment]:
        """Return the segments whose range of numbers includes a corrected hit."""
        sequences = chain.from_iterable(values.all() for values in corrections.values())
        wanted = np.sort(np.array([*sequences], np.uint64))
        leaves = self.leaves()
        bounds = np.array([_numbers(segment) for segment in leaves], np.uint64).reshape(-1, 2)
        begins = np.searchsorted(wanted, bounds[:, 0])
        ends = np.searchsorted(wanted, bounds[:, 1], side="right")
        return [leaves[place] for place in np.flatnonzero(begins < ends).tolist()]

    def _overlay(
        self, segments: Iterable[Segment], corrections: _Corrections, reading: ReadAccess
    ) -> None:
        """Add corrections to the overlays of segments, which may be large already."""
        overlays = dict(self.overlays)
        for segment in segments:
            try:
                added = self._overlay_of(segment, corrections, reading)
            except DamagedSegment as error:
                self.damage.add_segment(error)
                continue
            if len(added):
                earlier = overlays.get(segment.number)
                overlays[segment.number] = added if earlier is None else earlier.extended(added)
        self.overlays = overlays
        self._visible = None

    def _overlay_of(
        self, segment: Segment, corrections: _Corrections, reading: ReadAccess
    ) -> Overlay:
        part = open_segment(segment, None, reading, self.databases)
        numbers = _numbers(segment)
        return overlay_of(
            part,
            corrections[Corrected.DURATION].within(*numbers),
            corrections[Corrected.VIEW].within(*numbers),
        )


def _numbers(segment: Segment) -> tuple[int, int]:
    """Return the least and the greatest number of a segment's views and events."""
    return segment.header.first_sequence, segment.header.last_sequence


def _outside(ascending: Sequence[int], bounds: Iterable[tuple[int, int]]) -> list[int]:
    """Return the numbers that lie outside all of some bounds."""
    numbers = np.array(ascending, np.uint64)
    is_outside = np.ones(len(numbers), np.bool_)
    for low, high in bounds:
        begin, end = np.searchsorted(numbers, np.array((low, high + 1), np.uint64))
        is_outside[begin:end] = False
    outside: list[int] = numbers[is_outside].tolist()
    return outside
