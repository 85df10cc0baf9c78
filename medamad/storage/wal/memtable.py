"""The memtable of a website: hits that are in no segment yet, as columns in memory.

The writer thread alone changes a memtable, by the same `extend` whether the records have just been
committed or are read back at start. What it publishes never changes afterwards: rows are only added
after the published ones, and a column is copied before a published row changes.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.storage.segments.corrections import Corrected, Correction
from medamad.storage.segments.counters import SLOT_MS, Counters, count_views
from medamad.storage.segments.format import SLOTS, first_visit_of, timed_flags
from medamad.storage.segments.parts import (
    EVENT_DTYPES,
    NO_EVENTS,
    NO_TIME,
    VIEW_DTYPES,
    Codes,
    EventColumns,
    EventCounts,
    EventRows,
    ViewColumns,
    VisitColumns,
)
from medamad.storage.segments.visit_columns import visits_of
from medamad.storage.wal.records import RecordKind, Rows

CHUNK_VIEWS: Final = 65_536
"""The views of a full chunk."""

_COUNTED_FROM: Final = 1_024
_FIRST_CAPACITY: Final = 8
_POSITION: Final = {dimension: position for position, dimension in enumerate(VIEW_DIMENSIONS)}
_NUMBERS: Final = tuple((number, number.attribute) for number in ViewNumber)
_AS_RECORDED: Final = ("flags", *(name for _, name in _NUMBERS))
_CHANGING: Final = ("flags", "duration_ms")


@frozen(eq=False)
class ChunkViews:
    """The views of a chunk as a query reads them.

    Counters are kept until the chunk changes, so that only the first query counts.
    """

    time_ms: NDArray[np.int64]
    sequence: NDArray[np.uint64]
    flags: NDArray[np.uint8]
    duration_ms: NDArray[np.uint32]
    by_number: Mapping[ViewNumber, NDArray[np.unsignedinteger[Any]]]
    matrix: NDArray[np.uint32]
    """Codes, shape (dimensions, n)."""
    time_bounds: tuple[int, int]
    first_visit: int
    ascends: bool
    _counters: dict[int, Counters] = field(factory=dict)
    _visits: list[VisitColumns] = field(factory=list)

    import_batch = 0
    own = loose = NO_EVENTS
    event_time_bounds = NO_TIME

    @property
    def sequence_bounds(self) -> tuple[int, int]:
        return int(self.sequence[0]), int(self.sequence[-1])

    def codes(self, dimension: Dimension) -> Codes:
        codes: Codes = self.matrix[_POSITION[dimension]]
        return codes

    def numbers(self, number: ViewNumber) -> NDArray[np.unsignedinteger[Any]]:
        return self.by_number[number]

    def counters(self, dimension: Dimension) -> Counters | None:
        return self._counted(dimension, self.codes(dimension))

    def views_with_late_events(self, among: object = None) -> NDArray[np.integer[Any]]:
        del among
        return np.zeros(0, np.intp)

    def visits(self) -> VisitColumns:
        if not self._visits:
            self._visits.append(visits_of(self))
        return self._visits[0]

    def slots(self) -> Counters | None:
        return self._counted(SLOTS, self.time_ms // SLOT_MS)

    def event_counts(self) -> EventCounts | None:
        return None

    def __len__(self) -> int:
        return len(self.sequence)

    def _counted(self, kind: int, numbers: NDArray[Any]) -> Counters | None:
        if len(self) < _COUNTED_FROM:
            return None
        found = self._counters.get(kind)
        if found is None:
            found = count_views(numbers, self.flags, self.duration_ms)
            self._counters[kind] = found
        return found


@define(eq=False)
class _Columns:
    """Columns that grow together by doubling. The last axis is the rows."""

    arrays: dict[str, NDArray[Any]]
    length: int = 0

    @classmethod
    def of(cls, dtypes: Mapping[str, np.dtype[Any]]) -> "_Columns":
        return cls({name: np.zeros(_FIRST_CAPACITY, dtype) for name, dtype in dtypes.items()})

    def make_room(self, rows: int) -> None:
        capacity = next(iter(self.arrays.values())).shape[-1]
        if self.length + rows <= capacity:
            return
        while capacity < self.length + rows:
            capacity *= 2
        for name, old in self.arrays.items():
            new = np.zeros((*old.shape[:-1], capacity), old.dtype)
            new[..., : self.length] = old[..., : self.length]
            self.arrays[name] = new

    def published(self, name: str) -> Any:
        array = self.arrays[name][..., : self.length]
        array.flags.writeable = False
        return array

    def without_first(self, rows: int) -> "_Columns":
        kept = {name: array[..., rows : self.length].copy() for name, array in self.arrays.items()}
        if rows == self.length:
            kept = {name: np.zeros(_FIRST_CAPACITY, array.dtype) for name, array in kept.items()}
        return _Columns(kept, self.length - rows)


@define(eq=False)
class _Chunk:
    """Views that become a segment."""

    columns: _Columns = field(factory=lambda: _Columns.of(VIEW_DTYPES))
    first_visit: int = 0
    """The least number of a visit of its views, 0 for none."""
    least_ms: int = NO_TIME[0]
    greatest_ms: int = NO_TIME[1]
    ascends: bool = True
    is_closed: bool = False
    is_shared: bool = False
    """Whether a query may hold the columns that can change."""
    published: ChunkViews | None = None
    durations: int = 0
    """How many duration records arrived for its views."""

    def __attrs_post_init__(self) -> None:
        self.columns.arrays["matrix"] = np.zeros((len(VIEW_DIMENSIONS), _FIRST_CAPACITY), np.uint32)

    def __len__(self) -> int:
        return self.columns.length

    @property
    def first_sequence(self) -> int:
        return int(self.columns.arrays["sequence"][0])

    def extend(self, rows: Rows) -> None:
        columns, count = self.columns, len(rows)
        columns.make_room(count)
        span = slice(columns.length, columns.length + count)
        arrays = columns.arrays
        time_ms = rows["time_ms"].astype(np.int64)
        last_ms = int(arrays["time_ms"][columns.length - 1]) if columns.length else 0
        least_ms, greatest_ms = int(time_ms[0]), int(time_ms[-1])
        if bool((time_ms[1:] < time_ms[:-1]).any()):
            self.ascends = False
            least_ms, greatest_ms = int(time_ms.min()), int(time_ms.max())
        self.ascends &= least_ms >= last_ms
        arrays["time_ms"][span] = time_ms
        arrays["sequence"][span] = rows["sequence"]
        for name in _AS_RECORDED:
            arrays[name][span] = rows[name]
        arrays["matrix"][:, span] = rows["codes"].T
        columns.length += count
        first_visit = first_visit_of(arrays["sequence"][span], arrays["visit_offset"][span])
        self.first_visit = min(self.first_visit or first_visit, first_visit or self.first_visit)
        self.least_ms = min(self.least_ms, least_ms)
        self.greatest_ms = max(self.greatest_ms, greatest_ms)
        self.published = None

    def duration_ms(self, sequence: int) -> int:
        arrays = self.columns.arrays
        known = arrays["sequence"][: self.columns.length]
        place = known.searchsorted(np.uint64(sequence))
        is_here = place < len(known) and known[place] == sequence
        return int(arrays["duration_ms"][place]) if is_here else 0

    def lengthen(self, sequences: NDArray[np.uint64], durations: NDArray[np.uint32]) -> None:
        """Raise the durations of views by sequence number; the longest counts."""
        self.durations += len(sequences)
        arrays = self.columns.arrays
        if self.is_shared:
            for name in _CHANGING:
                arrays[name] = arrays[name].copy()
            self.is_shared = False
        known = arrays["sequence"][: self.columns.length]
        places = np.minimum(np.searchsorted(known, sequences), len(known) - 1)
        found = known[places] == sequences
        places = places[found]
        np.maximum.at(arrays["duration_ms"], places, durations[found])
        arrays["flags"][places] = timed_flags(
            arrays["flags"][places], arrays["duration_ms"][places]
        )
        self.published = None

    def publish(self) -> ChunkViews:
        if self.published is None:
            self.is_shared = True
            published = self.columns.published
            self.published = ChunkViews(
                time_ms=published("time_ms"),
                sequence=published("sequence"),
                flags=published("flags"),
                duration_ms=published("duration_ms"),
                by_number={number: published(name) for number, name in _NUMBERS},
                matrix=published("matrix"),
                time_bounds=(self.least_ms, self.greatest_ms),
                first_visit=self.first_visit,
                ascends=self.ascends,
            )
        return self.published


@frozen(eq=False)
class Cut:
    """What a flush takes: all views and events up to the watermark, as they were at a moment."""

    watermark: int
    chunks: tuple[ChunkViews, ...]
    events: EventColumns


@define(eq=False)
class Memtable:
    """The unflushed hits of a website, in chunks of views."""

    chunk_views: int = CHUNK_VIEWS
    chunks: list[_Chunk] = field(factory=list)
    events: _Columns = field(factory=lambda: _Columns.of(EVENT_DTYPES))
    last_sequence: int = 0
    """The greatest sequence number of a row so far."""
    oldest_ms: int = NO_TIME[0]
    """The earliest time of a view or event that is not flushed."""
    _are_bindings_shared: bool = False

    def __len__(self) -> int:
        return sum(len(chunk) for chunk in self.chunks)

    @property
    def event_rows(self) -> int:
        """How many properties its events have."""
        return self.events.length

    @property
    def durations(self) -> int:
        """How many duration records arrived for its views."""
        return sum(chunk.durations for chunk in self.chunks)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither view nor event."""
        return not self.chunks and not self.events.length

    def extend(self, rows: Mapping[RecordKind, Rows]) -> None:
        """Add rows in order of their sequence numbers, all of which are greater than those here."""
        for of_kind in rows.values():
            self.last_sequence = max(self.last_sequence, int(of_kind["sequence"][-1]))
        if RecordKind.VIEW in rows:
            self._add_views(rows[RecordKind.VIEW])
        if RecordKind.DURATION in rows:
            self._add_durations(rows[RecordKind.DURATION])
        if RecordKind.PROPERTY in rows:
            self._add_properties(rows[RecordKind.PROPERTY])
        if RecordKind.BINDING in rows:
            self._bind(rows[RecordKind.BINDING])

    def duration_ms(self, view: int) -> int:
        """Return the duration of a view, 0 where it is unknown."""
        for chunk in reversed(self.chunks):
            if chunk.first_sequence <= view:
                return chunk.duration_ms(view)
        return 0

    def publish(self) -> tuple[tuple[ViewColumns, ...], tuple[EventRows, ...]]:
        """Return the present views and events, which never change."""
        return (
            tuple(chunk.publish() for chunk in self.chunks),
            (self._published_events(),) if self.events.length else (),
        )

    def cut(self, *, everything: bool) -> Cut:
        """Return the oldest chunk, or everything, and close it to later views."""
        chunks = self.chunks if everything else self.chunks[:1]
        for chunk in chunks:
            chunk.is_closed = True
        watermark = self.last_sequence
        if len(chunks) < len(self.chunks):
            watermark = self.chunks[len(chunks)].first_sequence - 1
        events = self._published_events()
        count = int(np.searchsorted(events.event, np.uint64(watermark), side="right"))
        return Cut(
            watermark=watermark,
            chunks=tuple(chunk.publish() for chunk in chunks),
            events=EventRows(
                events.event[:count],
                events.time_ms[:count],
                events.view[:count],
                events.property[:count],
            ),
        )

    def corrections_since(self, cut: Cut) -> list[Correction]:
        """Return what became known of the hits of a cut after it was taken."""
        corrections = []
        for chunk, then in zip(self.chunks, cut.chunks, strict=False):
            now = chunk.columns.arrays["duration_ms"][: len(then)]
            longer = np.flatnonzero(now > then.duration_ms)
            corrections += [
                Correction(Corrected.DURATION, view, duration_ms)
                for view, duration_ms in zip(
                    then.sequence[longer].tolist(), now[longer].tolist(), strict=True
                )
            ]
        view = self.events.arrays["view"][: len(cut.events)]
        bound = np.flatnonzero(view != cut.events.view)
        view_of_event = dict(
            zip(cut.events.event[bound].tolist(), view[bound].tolist(), strict=True)
        )
        corrections += [
            Correction(Corrected.VIEW, event, view) for event, view in view_of_event.items()
        ]
        return corrections

    def drop(self, cut: Cut) -> None:
        """Drop the hits of a cut: a segment has them now."""
        dropped = self.chunks[: len(cut.chunks)]
        del self.chunks[: len(dropped)]
        self.events = self.events.without_first(len(cut.events))
        times = [chunk.least_ms for chunk in self.chunks]
        if self.events.length:
            times.append(int(self.events.arrays["time_ms"][: self.events.length].min()))
        self.oldest_ms = min(times, default=NO_TIME[0])

    def _published_events(self) -> EventRows:
        self._are_bindings_shared = True
        return EventRows(**{name: self.events.published(name) for name in EVENT_DTYPES})

    def _add_views(self, rows: Rows) -> None:
        while len(rows):
            if not self.chunks or self.chunks[-1].is_closed:
                self.chunks.append(_Chunk())
            chunk = self.chunks[-1]
            room = self.chunk_views - len(chunk)
            chunk.extend(rows[:room])
            self.oldest_ms = min(self.oldest_ms, chunk.least_ms)
            chunk.is_closed = len(chunk) == self.chunk_views
            rows = rows[room:]

    def _add_durations(self, rows: Rows) -> None:
        if not self.chunks:
            return
        firsts = [chunk.first_sequence for chunk in self.chunks]
        views, durations = rows["view"], rows["duration_ms"]
        chunk_of = np.searchsorted(np.array(firsts, np.uint64), views, side="right") - 1
        for number, chunk in enumerate(self.chunks):
            here = chunk_of == number
            if here.any():
                chunk.lengthen(views[here], durations[here])

    def _add_properties(self, rows: Rows) -> None:
        self.oldest_ms = min(self.oldest_ms, int(rows["time_ms"].min()))
        columns, count = self.events, len(rows)
        columns.make_room(count)
        span = slice(columns.length, columns.length + count)
        for name in EVENT_DTYPES:
            columns.arrays[name][span] = rows[name]
        columns.length += count

    def _bind(self, rows: Rows) -> None:
        arrays = self.events.arrays
        if self._are_bindings_shared:
            arrays["view"] = arrays["view"].copy()
            self._are_bindings_shared = False
        known = arrays["event"][: self.events.length]
        events = rows["event"]
        begins = np.searchsorted(known, events, side="left")
        ends = np.searchsorted(known, events, side="right")
        for begin, end, view in zip(begins, ends, rows["view"], strict=True):
            arrays["view"][begin:end] = view
