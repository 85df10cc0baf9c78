"""A website as it was at one moment, held for a while: asked as a whole, or read part by part."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

from attrs import frozen

from medamad.storage.environment.access import Reading
from medamad.storage.environment.environment import Databases
from medamad.storage.errors import DamagedSegment
from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.segments.partition import PartitionState
from medamad.storage.segments.parts import (
    NO_TIME,
    Events,
    Texts,
    ViewColumns,
    enclosing_bounds,
)
from medamad.storage.segments.read import open_one
from medamad.storage.segments.snapshot import EMPTY, Snapshot

T = TypeVar("T")


def _nothing() -> None:
    """Hold nothing that would have to be let go."""


@frozen(kw_only=True, eq=False)
class PinnedSnapshot:
    """What it names stays until `close` is called, once. For any thread, one at a time."""

    published: PartitionState | None
    """None for a website that has no hit."""
    databases: Databases
    reading: Callable[[], AbstractContextManager[Reading]]
    damaged: Callable[[DamagedSegment], None]
    """Is told of each segment that is left out."""
    close: Callable[[], None] = _nothing

    def ask(self, question: Callable[[Snapshot], T]) -> T:
        """Put a question to it. A segment that turns out to be damaged is left out of the answer."""
        if self.published is None:
            return question(EMPTY)
        without: frozenset[int] = frozenset()
        while True:
            with self.reading() as reading:
                try:
                    return question(self.published.snapshot(reading, self.databases, without))
                except DamagedSegment as error:
                    if error.number in without:
                        raise
                    self.damaged(error)
                    without |= {error.number}

    @property
    def texts(self) -> Texts:
        """The texts behind the codes."""
        return EMPTY.texts if self.published is None else self.published.texts

    @property
    def events(self) -> Sequence[Events]:
        """The events that no part has."""
        return () if self.published is None else self.published.events

    def time_spans(self) -> dict[int, tuple[int, int]]:
        """Return the times of the first and the last hit of each batch, 0 for those counted here.

        Unix milliseconds, of whole days where there are only sums; a batch without hits is left
        out.
        """
        if self.published is None:
            return {}
        found: dict[int, list[tuple[int, int]]] = {}
        for segment in (*self.published.segments, *self.published.days):
            header = segment.header
            found.setdefault(header.batch, []).extend(
                (header.time_bounds, header.event_time_bounds)
            )
        found.setdefault(0, []).extend(chunk.time_bounds for chunk in self.published.chunks)
        spans = {batch: enclosing_bounds(bounds) for batch, bounds in found.items()}
        return {batch: span for batch, span in spans.items() if span != NO_TIME}

    @property
    def summed(self) -> list[SegmentHeader]:
        """The days of which there are sums."""
        return [] if self.published is None else [segment.header for segment in self.published.days]

    @property
    def summed_spans(self) -> list[tuple[int, int]]:
        """The first and the last millisecond of each of them."""
        return [header.day.span for header in self.summed if header.day is not None]

    def parts(self) -> list["PinnedPart"]:
        """Return the parts without groups, in the order of their first sequence numbers."""
        if self.published is None:
            return []
        leaves = [leaf for segment in self.published.segments for leaf in segment.segments()]
        parts: list[PinnedPart] = [PinnedPart(self, leaf.header.first, leaf) for leaf in leaves]
        parts += [
            PinnedPart(self, chunk.sequence_bounds[0], chunk)
            for chunk in self.published.chunks
            if len(chunk)
        ]
        return sorted(parts, key=lambda part: part.first)


@frozen(eq=False)
class PinnedPart:
    """A part that is opened whenever it is read."""

    _held: PinnedSnapshot
    first: int
    """Its least sequence number."""
    _part: Segment | ViewColumns

    def read(self, question: Callable[[ViewColumns], T]) -> T | None:
        """Ask it something; gives None when it turns out to be damaged."""
        part, published = self._part, self._held.published
        if not isinstance(part, Segment):
            return question(part)
        assert published is not None  # noqa: S101 - it has this part
        with self._held.reading() as reading:
            opened = open_one(
                part, published.overlay.get(part.number), reading, self._held.databases
            )
            try:
                return question(opened)  # type: ignore[arg-type] # it has no members
            except DamagedSegment as error:
                self._held.damaged(error)
                return None

    @property
    def views(self) -> int:
        """How many views it has."""
        return self._part.header.views if isinstance(self._part, Segment) else len(self._part)

    @property
    def events(self) -> int:
        """How many rows of events it has."""
        part = self._part
        if isinstance(part, Segment):
            return part.header.own + part.header.loose
        return len(part.own) + len(part.loose)

    @property
    def time_bounds(self) -> tuple[int, int]:
        """The earliest and the latest time of a view."""
        part = self._part
        return part.header.time_bounds if isinstance(part, Segment) else part.time_bounds
