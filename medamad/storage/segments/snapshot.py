"""A snapshot: the data of one website at one moment, which queries and exports read."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from sys import getsizeof
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from attrs import define, evolve, field, frozen

from medamad.domain.dimensions import Dimension
from medamad.storage.dictionary.decode import CodeTexts, TextCache
from medamad.storage.environment.access import ReadAccess
from medamad.storage.environment.environment import Databases
from medamad.storage.errors import DamagedSegment
from medamad.storage.segments.corrections import Overlays
from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.segments.parts import (
    NO_TIME,
    EventColumns,
    EventRows,
    Part,
    Rollup,
    ViewColumns,
    enclosing_bounds,
    joined,
)
from medamad.storage.segments.read import OpenSegment, open_part, read_all_values
from medamad.storage.segments.rollup import open_rollup
from medamad.storage.segments.visit_numbers import may_have_visits

T = TypeVar("T")
_ENTRY_BYTES: Final = 600
"""About what an entry of a cache takes besides its key and the arrays of its value."""


class _Arrays(Protocol):
    """What a cache keeps: an array, or what consists of some."""

    @property
    def nbytes(self) -> int:
        """The memory that they take."""


A = TypeVar("A", bound=_Arrays)


@define(eq=False)
class ResultCache:
    """What queries have computed from segments, which never change: what was used last.

    Any thread may use it. Nothing may change a value that is in it.
    """

    max_bytes: int = 32 << 20
    _values: OrderedDict[Hashable, tuple[Any, int]] = field(factory=OrderedDict)
    _bytes: int = 0
    _lock: Lock = field(factory=Lock)
    _computing: dict[Hashable, Lock] = field(factory=dict)
    """What is being computed at the moment."""

    def get(self, key: Hashable) -> Any:
        """Return the value of a key, or None."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: _Arrays) -> None:
        """Store a value, and drop those that were not used for longest.

        A value for which there is no room at all is not stored.
        """
        size = value.nbytes + _ENTRY_BYTES + getsizeof(key)
        if size > self.max_bytes:
            return
        with self._lock:
            self._bytes += size - self._values.pop(key, (None, 0))[1]
            self._values[key] = (value, size)
            while self._bytes > self.max_bytes:
                self._bytes -= self._values.popitem(last=False)[1][1]

    def get_or_compute(self, key: Hashable, compute: Callable[[], A]) -> A:
        """Return the value of a key, or compute and store it; threads wait for one of them."""
        found: A | None = self.get(key)
        if found is not None:
            return found
        with self._lock:
            computing = self._computing.setdefault(key, Lock())
        with computing:
            try:
                found = self.get(key)
                if found is None:
                    found = compute()
                    self.put(key, found)
            finally:
                with self._lock:
                    self._computing.pop(key, None)
        return found


@frozen(eq=False)
class SnapshotReader:
    """What an open snapshot reads its segments by."""

    access: ReadAccess
    databases: Databases
    report_damage: Callable[[DamagedSegment], None]
    """Called for each segment that is left out because it is damaged."""
    results: ResultCache = field(factory=ResultCache)
    segment_results: ResultCache = field(factory=ResultCache)
    """Those of single segments, such as masks of their rows."""


@frozen(kw_only=True, eq=False)
class Snapshot:
    """The data of a website at one moment.

    A partition publishes it after each change. It is opened by giving it a reader under a lease,
    which keeps its segments readable. One thread at a time uses an open snapshot.
    """

    texts: CodeTexts
    segments: tuple[Segment, ...] = ()
    """Segments and merged segments that are in no other, by their first sequence number."""
    overlays: Overlays = field(factory=dict)
    chunks: tuple[ViewColumns, ...] = ()
    """The views of the memtable."""
    events: Sequence[EventRows] = ()
    """The events of the memtable. Their `view` is a sequence number."""
    rollup_segments: tuple[Segment, ...] = ()
    left_out_ms: tuple[tuple[int, int], ...] = ()
    """The first and the last millisecond of each segment and rollup that is left out as damaged."""
    reader: SnapshotReader | None = None
    """None if there is nothing to open."""

    @property
    def parts(self) -> Iterator[Part]:
        """The segments, each opened when it is reached, and the chunks of the memtable."""
        for segment in self.segments:
            yield self._open(segment)
        yield from self.chunks

    @property
    def headers(self) -> tuple[SegmentHeader | ViewColumns, ...]:
        """What is known of the parts without opening them."""
        return (*(segment.header for segment in self.segments), *self.chunks)

    @property
    def rollups(self) -> Iterator[Rollup]:
        """The rollups of days whose views have been deleted, each opened when it is reached."""
        for segment in self.rollup_segments:
            reader = self._ready_reader()
            yield open_rollup(segment, reader.access, reader.databases)

    def leaves(self, visits: tuple[int, int] | None = None) -> Iterator[ViewColumns]:
        """Open all segments and chunks by their first sequence number, none of them merged.

        With bounds of the numbers of visits, only those that may have views of these.
        """
        first: list[tuple[int, Segment | ViewColumns]] = [
            (leaf.header.first_sequence, leaf)
            for segment in self.segments
            if may_have_visits(segment.header, visits)
            for leaf in segment.leaves()
            if may_have_visits(leaf.header, visits)
        ]
        first += [
            (chunk.sequence_bounds[0], chunk)
            for chunk in self.chunks
            if len(chunk) and may_have_visits(chunk, visits)
        ]
        for _, leaf in sorted(first, key=lambda pair: pair[0]):
            yield self._open(leaf) if isinstance(leaf, Segment) else leaf  # type: ignore[misc]

    def loose_events(self, first_view: int = 0) -> Iterator[EventColumns]:
        """Return the events that are not stored with their view, or have none.

        With the sequence number of a view, only those that may belong to it or to later ones.
        """
        for segment in self.segments:
            if not segment.header.loose_rows:
                continue
            if segment.number in self.overlays:
                yield self._loose_of(segment)
                continue
            # There are few, but in every segment.
            find = partial(self._loose_of, segment)
            loose = self.with_segments([segment]).cached(EventRows, find)
            if not first_view or int(loose.view.max()) >= first_view:
                yield loose
        yield from self.events

    def _loose_of(self, segment: Segment) -> EventRows:
        """Return copies of the loose events of a segment."""
        return joined(
            self._open(leaf).loose  # type: ignore[union-attr]
            for leaf in segment.leaves()
            if leaf.header.loose_rows
        )

    def run(self, read: Callable[["Snapshot"], T]) -> T:
        """Call `read` and return its result. Arrays borrowed from the snapshot are invalid then.

        If a segment turns out to be damaged, the function is called again without it, so that the
        result leaves it out consistently.
        """
        damaged: frozenset[int] = frozenset()
        while True:
            try:
                return read(self.without(damaged))
            except DamagedSegment as error:
                if self.reader is None or error.number in damaged:
                    raise
                self.reader.report_damage(error)
                damaged |= {error.number}
            finally:
                self._release()

    def read_once(self, read: Callable[["Snapshot"], T]) -> T:
        """Call `read` once and return its result. Raises DamagedSegment.

        For results that cannot start over. The next snapshot leaves the damaged segment out.
        """
        try:
            return read(self)
        except DamagedSegment as error:
            if self.reader is not None:
                self.reader.report_damage(error)
            raise
        finally:
            self._release()

    def verified(self) -> "Snapshot":
        """Read everything, and return the snapshot without what is damaged."""
        damaged = set()
        for segment in self._all_segments():
            try:
                reader = self._ready_reader()
                access, databases = reader.access, reader.databases
                if segment.header.day is None:
                    read_all_values(open_part(segment, None, access, databases))
                else:
                    open_rollup(segment, access, databases).loaded()
            except DamagedSegment as error:
                reader.report_damage(error)
                damaged.add(error.number)
            finally:
                self._release()
        return self.without(frozenset(damaged))

    def read_leaf(self, leaf: ViewColumns, read: Callable[[ViewColumns], T]) -> T | None:
        """Call `read` with one of the leaves and return its result, or None if that is damaged."""
        try:
            return read(leaf)
        except DamagedSegment as error:
            if self.reader is None:
                raise
            self.reader.report_damage(error)
            return None
        finally:
            self._release()

    def with_segments(self, segments: Iterable[Segment]) -> "Snapshot":
        """Return the snapshot of some of the segments alone."""
        # `evolve` takes several times as long.
        return Snapshot(
            texts=self.texts,
            segments=tuple(segments),
            overlays=self.overlays,
            reader=self.reader,
        )

    def cached(self, what: Hashable, compute: Callable[[], A]) -> A:
        """Return what was computed from the segments, or compute and cache it.

        The snapshot must have segments, none of them with an overlay, and nothing else.
        """
        return self._ready_reader().results.get_or_compute(self._key_of(what), compute)

    def find_cached(self, what: Hashable) -> Any:
        """Return what was computed from the segments and cached, or None."""
        return self._ready_reader().results.get(self._key_of(what))

    def cache(self, what: Hashable, value: _Arrays) -> None:
        """Cache what was computed from the segments."""
        self._ready_reader().results.put(self._key_of(what), value)

    def cached_of_segment(self, part: OpenSegment, what: Hashable, compute: Callable[[], A]) -> A:
        """Return what was found in a segment, such as which rows match, or find and cache it.

        No correction may change it.
        """
        key = (part.segment.website, part.segment.number, what)
        return self._ready_reader().segment_results.get_or_compute(key, compute)

    def _key_of(self, what: Hashable) -> Hashable:
        return (self.segments[0].website, what, *(segment.number for segment in self.segments))

    def leaf_segments(self) -> Iterator[Segment]:
        """Return the segments, none of them merged."""
        for segment in self.segments:
            yield from segment.leaves()

    def without(self, numbers: frozenset[int]) -> "Snapshot":
        """Return the snapshot without some segments; merged segments with any of them are split.

        A merged segment is no loss, as its members stay.
        """
        if not numbers:
            return self
        lost = [
            each.header
            for each in self._all_segments()
            if each.number in numbers and not each.members
        ]
        return evolve(
            self,
            segments=tuple(
                segment
                for segment in split_merged(self.segments, numbers)
                if segment.number not in numbers
            ),
            rollup_segments=tuple(
                segment for segment in self.rollup_segments if segment.number not in numbers
            ),
            left_out_ms=(
                *self.left_out_ms,
                *(enclosing_bounds((each.time_bounds, each.event_time_bounds)) for each in lost),
            ),
        )

    def batch_spans(self) -> dict[int, tuple[int, int]]:
        """Return the times of the first and the last hit of each import batch that has hits.

        Unix milliseconds; whole days where only a rollup is left. Batch 0 stands for the hits that
        were counted here.
        """
        bounds: dict[int, list[tuple[int, int]]] = {}
        for segment in (*self.segments, *self.rollup_segments):
            header = segment.header
            bounds.setdefault(header.import_batch, []).extend(
                (header.time_bounds, header.event_time_bounds)
            )
        bounds.setdefault(0, []).extend(chunk.time_bounds for chunk in self.chunks)
        spans = {batch: enclosing_bounds(of_batch) for batch, of_batch in bounds.items()}
        return {batch: span for batch, span in spans.items() if span != NO_TIME}

    def _all_segments(self) -> Iterator[Segment]:
        """Return segments, merged segments with their members, and rollups."""
        for segment in (*self.segments, *self.rollup_segments):
            yield from with_members(segment)

    def _open(self, segment: Segment) -> Part:
        reader = self._ready_reader()
        overlay = self.overlays.get(segment.number)
        return open_part(segment, overlay, reader.access, reader.databases)

    def _ready_reader(self) -> SnapshotReader:
        """Return the reader, without a transaction that has been open for long."""
        if self.reader is None:
            raise RuntimeError("the snapshot has not been opened for reading")
        self.reader.access.renew()
        return self.reader

    def _release(self) -> None:
        if self.reader is not None:
            self.reader.access.release()


@frozen
class _NoTexts:
    """The texts of a website that has no hits."""

    cache: TextCache = field(factory=TextCache)

    def __call__(self, _dimension: Dimension, /) -> Sequence[str]:
        return ()


EMPTY = Snapshot(texts=_NoTexts())
"""The snapshot of a website that has no hits."""


def split_merged(segments: Iterable[Segment], numbers: frozenset[int]) -> Iterator[Segment]:
    """Replace each merged segment that is, or contains, one of some segments by its members."""
    for segment in segments:
        if segment.members and any(each.number in numbers for each in with_members(segment)):
            yield from split_merged(segment.members, numbers)
        else:
            yield segment


def with_members(segment: Segment) -> Iterator[Segment]:
    """Return a segment and, at every level, the segments that it was merged from."""
    yield segment
    for member in segment.members:
        yield from with_members(member)
