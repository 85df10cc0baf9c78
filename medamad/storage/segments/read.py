"""Read segments as parts of a query, with later corrections applied."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
from attrs import define, field
from numpy.typing import DTypeLike, NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.storage.environment.access import ReadAccess, is_mapped
from medamad.storage.environment.environment import Database, Databases
from medamad.storage.errors import Damaged, DamagedSegment
from medamad.storage.segments.corrections import Overlay, Overlays
from medamad.storage.segments.counters import (
    SLOT_MS,
    VIEWS,
    Change,
    Counters,
    changed,
    decode_counters,
)
from medamad.storage.segments.format import (
    COUNTER_KINDS,
    OF_VISITS,
    SLOTS,
    Column,
    Integers,
    MappedColumn,
    Segment,
    SegmentHeader,
    decode_column,
    timed_flags,
)
from medamad.storage.segments.parts import (
    Codes,
    Elsewhere,
    EventColumns,
    EventCounts,
    MergedSegment,
    ViewColumns,
    VisitColumns,
    are_late,
)
from medamad.storage.segments.visit_columns import visit_offsets, visits_of
from medamad.storage.segments.visit_numbers import sequences_of

_OWN: Final = (Column.OWN_EVENT, Column.OWN_TIME, Column.OWN_PLACE, Column.OWN_PROPERTY)
_LOOSE: Final = (Column.LOOSE_EVENT, Column.LOOSE_TIME, Column.LOOSE_VIEW, Column.LOOSE_PROPERTY)


@define(eq=False)
class StoredValues:
    """The columns and counters of a segment, each of them read and verified once."""

    segment: Segment
    _reading: ReadAccess
    _databases: Databases
    _columns: dict[int, Integers] = field(factory=dict)

    def column(self, column: int, dtype: DTypeLike) -> Integers:
        """Return a column. Raises DamagedSegment."""
        found: Integers | None = self.segment.mapped.get(column)
        if found is None:
            found = self._columns.get(column)
        if found is None:
            key, value = self._value(column, self._databases.segments, "column")
            check = (False, column) not in self.segment.checked
            try:
                found = decode_column(key, value, dtype, check=check)
            except Damaged as error:
                raise self._damaged("column", column, str(error)) from error
            self.segment.checked.add((False, column))
            if is_mapped(value) and np.may_share_memory(found, np.frombuffer(value, np.uint8)):
                self.segment.mapped[column] = found = MappedColumn.of(found)
            else:
                self._columns[column] = found
        return found

    def counters(self, kind: int) -> Counters:
        """Return counters. Raises DamagedSegment."""
        key, value = self._value(kind, self._databases.counters, "counter")
        check = (True, kind) not in self.segment.checked
        try:
            counters = decode_counters(key, value, check=check)
        except Damaged as error:
            raise self._damaged("counter", kind, str(error)) from error
        self.segment.checked.add((True, kind))
        return counters

    def counted_codes(self, kind: int) -> Integers:
        """Return the codes of counters. Raises DamagedSegment."""
        codes = self.segment.counted.get(kind)
        if codes is None:
            codes = self.segment.counted[kind] = self.counters(kind).codes.copy()
        return codes

    def event_counts(self) -> EventCounts | None:
        """Return the counts of events; None where they take a scan."""
        header = self.segment.header
        if not (header.has_distinct_names and header.has_counters):
            return None
        counters = self.counters(Dimension.PROPERTY)
        return EventCounts(counters.codes, counters.sums[VIEWS], header.events)

    def _value(self, kind: int, database: Database, what: str) -> tuple[bytes, memoryview]:
        key = self.segment.key + bytes((kind,))
        value = self._reading.value(key, database)
        if value is None:
            raise self._damaged(what, kind, "it is missing")
        return key, value

    def _damaged(self, what: str, kind: int, reason: str) -> DamagedSegment:
        segment = self.segment
        return DamagedSegment(
            segment.number,
            f"website {segment.website}, segment {segment.number}, {what} {kind}: {reason}",
        )


@define(eq=False)
class OpenedBase:
    """What an open segment, merged segment and rollup have in common: the header."""

    _stored: StoredValues

    @property
    def segment(self) -> Segment:
        """The segment that is open."""
        return self._stored.segment

    @property
    def import_batch(self) -> int:
        return self._header.import_batch

    @property
    def first_visit(self) -> int:
        return self._header.first_visit

    @property
    def time_bounds(self) -> tuple[int, int]:
        return self._header.time_bounds

    @property
    def event_time_bounds(self) -> tuple[int, int]:
        return self._header.event_time_bounds

    @property
    def sequence_bounds(self) -> tuple[int, int]:
        return self._header.sequence_bounds

    def counted_codes(self, dimension: Dimension) -> Integers | None:
        """Return the codes of the counters by a dimension, None without counters."""
        return self._stored.counted_codes(dimension) if self._header.has_counters else None

    def event_codes(self) -> Integers | None:
        """Return the codes of the counts of events, None without these."""
        counted = self._header.has_distinct_names and self._header.has_counters
        return self._stored.counted_codes(Dimension.PROPERTY) if counted else None

    @property
    def _header(self) -> SegmentHeader:
        return self._stored.segment.header


@define(eq=False)
class OpenSegment(OpenedBase):
    """The views and events of a segment, with later corrections applied."""

    _overlay: Overlay | None
    _made_visits: VisitColumns | None = field(default=None, init=False)
    """Those of a segment that an earlier build wrote, once they were made."""

    @property
    def ascends(self) -> bool:
        return self._header.ascends

    @property
    def time_ms(self) -> NDArray[np.int64]:
        return self._stored.column(Column.TIME, np.int64).astype(np.int64, copy=False)

    @property
    def sequence(self) -> NDArray[np.uint64]:
        return self._stored.column(Column.SEQUENCE, np.uint64).astype(np.uint64, copy=False)

    @property
    def flags(self) -> NDArray[np.uint8]:
        if self._overlay is None:
            return self._stored.column(Column.FLAGS, np.uint8)  # type: ignore[return-value]
        flags = self._stored.column(Column.FLAGS, np.uint8).astype(np.uint8)
        flags[self._overlay.places] = self._change(self._overlay).new_flags
        return flags

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        if self._overlay is None:
            return self._stored.column(Column.DURATION, np.uint32)  # type: ignore[return-value]
        duration_ms = self._stored.column(Column.DURATION, np.uint32).astype(np.uint32)
        duration_ms[self._overlay.places] = self._overlay.duration_ms
        return duration_ms

    @property
    def own(self) -> EventColumns:
        return _StoredEvents(self._stored, _OWN, self._header.own_rows, None)

    @property
    def loose(self) -> EventColumns:
        return _StoredEvents(self._stored, _LOOSE, self._header.loose_rows, self._overlay)

    def views_with_late_events(
        self, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.integer[Any]]:
        own, view = self.own, self.own.view
        places = slice(None) if among is None else np.flatnonzero(among.take(view))
        view, event = view[places], own.event[places]
        rows = view.astype(np.intp)
        if not self._header.has_lags:
            times_ms = self.time_ms[rows]
            late = are_late(event, own.time_ms[places], self.sequence.take(rows), times_ms)
        else:
            # Times are slow to read.
            lags_ms = self._stored.column(Column.OWN_LAG, np.int64)[places]
            numbers, no_time = sequences_of(self, rows), np.zeros(len(rows), np.int64)
            late = are_late(event, lags_ms.astype(np.int64, copy=False), numbers, no_time)
        return view.compress(late)

    def visits(self) -> VisitColumns:
        header = self._header
        if not header.has_visits:
            # An earlier build wrote it, and it is damaged or has yet to get what it lacks.
            if self._made_visits is None:
                self._made_visits = visits_of(self)
            return self._made_visits
        change = None
        if self._overlay is not None and len(self._overlay.places):
            change = self._change(self._overlay).added_ms
        return _StoredVisits(self._stored, self._overlay, change)

    def codes(self, dimension: Dimension) -> Codes:
        return self._stored.column(dimension, np.uint32)  # type: ignore[return-value]

    def numbers(self, number: ViewNumber) -> NDArray[np.unsignedinteger[Any]]:
        if number is ViewNumber.VISIT_OFFSET and self._header.has_visits:
            return visit_offsets(self)
        return self._stored.column(number.column, f"u{number.bytes}")  # type: ignore[return-value]

    def counters(self, dimension: Dimension) -> Counters | None:
        if not self._header.has_counters:
            return None
        counters = self._stored.counters(dimension)
        if self._overlay is not None and len(self._overlay.places):
            numbers = self.codes(dimension)[self._overlay.places]
            return changed(counters, numbers, self._change(self._overlay))
        return counters

    def visit_counters(self, kind: int) -> Counters | None:
        """Return the counters of visits of one of COUNTER_KINDS; None to read the visits."""
        header = self._header
        if self._overlay is not None or not (header.has_counters and header.has_visits):
            return None
        return self._stored.counters(OF_VISITS + kind)

    def slots(self) -> Counters | None:
        if not self._header.has_counters:
            return None
        counters = self._stored.counters(SLOTS)
        if self._overlay is not None and len(self._overlay.places):
            numbers = self.time_ms[self._overlay.places] // SLOT_MS
            return changed(counters, numbers, self._change(self._overlay))
        return counters

    def event_counts(self) -> EventCounts | None:
        return self._stored.event_counts()

    def __len__(self) -> int:
        return self._header.views

    def _change(self, overlay: Overlay) -> Change:
        flags = self._stored.column(Column.FLAGS, np.uint8)[overlay.places].astype(np.uint8)
        old_ms = self._stored.column(Column.DURATION, np.uint32)[overlay.places]
        new_flags = timed_flags(flags, overlay.duration_ms)
        return Change(flags, new_flags, overlay.duration_ms.astype(np.int64) - old_ms)


@define(eq=False)
class _StoredEvents:
    """The own or the loose events of a segment, with later corrections applied."""

    _stored: StoredValues
    _kinds: tuple[Column, Column, Column, Column]
    _length: int
    _overlay: Overlay | None

    @property
    def event(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._stored.column(self._kinds[0], np.uint64)  # type: ignore[return-value]

    @property
    def time_ms(self) -> NDArray[np.int64]:
        if self._kinds is _OWN and self._stored.segment.header.has_lags:
            view_ms = self._stored.column(Column.TIME, np.int64).astype(np.int64, copy=False)
            return view_ms.take(self.view) + self._stored.column(Column.OWN_LAG, np.int64)
        return self._stored.column(self._kinds[1], np.int64).astype(np.int64, copy=False)

    @property
    def view(self) -> NDArray[np.unsignedinteger[Any]]:
        view: Codes = self._stored.column(self._kinds[2], np.uint64)  # type: ignore[assignment]
        if self._overlay is None or not len(self._overlay.events):
            return view
        bound, event = self._overlay.events, self.event
        places = np.minimum(np.searchsorted(bound, event), len(bound) - 1)
        return np.where(bound[places] == event, self._overlay.views[places], view.astype(np.uint64))

    @property
    def property(self) -> Codes:
        return self._stored.column(self._kinds[3], np.uint32)  # type: ignore[return-value]

    def __len__(self) -> int:
        return self._length


@define(eq=False)
class _StoredVisits:
    """The visits that begin in a segment, with later corrections applied."""

    _stored: StoredValues
    _overlay: Overlay | None
    _added_ms: NDArray[np.int64] | None
    """How much longer the views at `_overlay.places` lasted."""
    _begins: NDArray[np.intp] | None = None

    @property
    def offsets(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._stored.column(Column.VISIT_ROWS, np.uint32)  # type: ignore[return-value]

    @property
    def visit_offset(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._stored.column(ViewNumber.VISIT_OFFSET.column, np.uint32)  # type: ignore[return-value]

    @property
    def begins(self) -> NDArray[np.intp]:
        if self._begins is None:
            self._begins = np.flatnonzero(self.offsets == 1)
        return self._begins

    @property
    def spans(self) -> Integers:
        return self._stored.column(Column.VISIT_SPAN, np.uint32)

    @property
    def views(self) -> Integers:
        return self._stored.column(Column.VISIT_VIEWS, np.uint32)

    @property
    def duration_ms(self) -> Integers:
        stored = self._stored.column(Column.VISIT_DURATION, np.int64)
        if self._overlay is None or self._added_ms is None:
            return stored
        header, duration_ms = self._stored.segment.header, stored.astype(np.int64)
        rows, offsets = self._overlay.places, self.offsets
        first_rows = rows + 1 - offsets[rows].astype(np.intp)
        are_here = offsets[rows] > 0
        place_of = np.full(header.views, -1)
        place_of[self.begins] = np.arange(len(self.begins))
        visits = place_of[first_rows[are_here]]
        np.add.at(duration_ms, visits[visits >= 0], self._added_ms[are_here][visits >= 0])
        return duration_ms

    @property
    def has_event(self) -> NDArray[np.bool_]:
        packed = self._stored.column(Column.VISIT_EVENT, np.uint8).astype(np.uint8, copy=False)
        return np.unpackbits(packed, count=len(self.views)).view(np.bool_)

    @property
    def repeats(self) -> Integers:
        return self._stored.column(Column.VISIT_REPEATS, np.uint32)

    @property
    def elsewhere(self) -> NDArray[np.int64]:
        column = self._stored.column(Column.VISIT_ELSEWHERE, np.int64)
        return column.astype(np.int64, copy=False)


@define(eq=False)
class OpenMergedSegment(OpenedBase, MergedSegment):
    """The counters of a merged segment, none of whose members has an overlay."""

    _reading: ReadAccess
    _databases: Databases

    @property
    def members(self) -> Iterable[ViewColumns | MergedSegment]:
        return open_parts(self.segment.members, {}, self._reading, self._databases)

    def counters(self, dimension: Dimension) -> Counters | None:
        return self._stored.counters(dimension)

    def slots(self) -> Counters | None:
        return self._stored.counters(SLOTS)

    def visit_counters(self, kind: int) -> Counters | None:
        """Return the counters of visits of one of COUNTER_KINDS; None to read the members."""
        return self._stored.counters(OF_VISITS + kind) if self._header.has_visits else None

    def elsewhere(self) -> Elsewhere:
        if not self._header.has_visits:
            return Elsewhere.of(map(Elsewhere.of_views, self.leaves))
        return Elsewhere(
            *(
                self._stored.column(column, np.int64).astype(np.int64, copy=False)
                for column in (Column.VISIT_ELSEWHERE, Column.VIEW_ELSEWHERE)
            )
        )

    def event_counts(self) -> EventCounts | None:
        return self._stored.event_counts()

    @property
    def leaves(self) -> Iterator[OpenSegment]:
        """The segments that it consists of at the lowest level."""
        for leaf in self.segment.leaves():
            yield open_segment(leaf, None, self._reading, self._databases)

    @property
    def is_of_leaves(self) -> bool:
        """Whether none of its members is merged."""
        return not self._stored.segment.members[0].members


def open_parts(
    segments: Iterable[Segment], overlays: Overlays, reading: ReadAccess, databases: Databases
) -> Iterator[OpenSegment | OpenMergedSegment]:
    """Open segments one after the other, merged or not."""
    for segment in segments:
        reading.renew()
        yield open_part(segment, overlays.get(segment.number), reading, databases)


def open_part(
    segment: Segment, overlay: Overlay | None, reading: ReadAccess, databases: Databases
) -> OpenSegment | OpenMergedSegment:
    """Open a segment, merged or not. A merged one has no overlay."""
    if segment.members:
        return OpenMergedSegment(StoredValues(segment, reading, databases), reading, databases)
    return open_segment(segment, overlay, reading, databases)


def read_all_values(part: OpenSegment | OpenMergedSegment) -> None:
    """Read all columns and counters of a part, not those of members. Raises DamagedSegment."""
    for dimension in VIEW_DIMENSIONS:
        part.counters(dimension)
    part.slots()
    part.event_counts()
    for kind in COUNTER_KINDS:
        part.visit_counters(kind)
    if isinstance(part, OpenMergedSegment):
        part.elsewhere()
    else:
        _read_all_columns(part)


def _read_all_columns(part: OpenSegment) -> None:
    for column in (part.time_ms, part.sequence, part.flags, part.duration_ms):
        len(column)
    for dimension in VIEW_DIMENSIONS:
        part.codes(dimension)
    for number in ViewNumber:
        part.numbers(number)
    visits = part.visits()
    for of_visits in (visits.spans, visits.views, visits.duration_ms, visits.has_event):
        len(of_visits)
    for numbers in (visits.repeats, visits.elsewhere, visits.offsets):
        len(numbers)
    for events in (part.own, part.loose):
        for column in (events.event, events.time_ms, events.view, events.property):
            len(column)


def open_segment(
    segment: Segment, overlay: Overlay | None, reading: ReadAccess, databases: Databases
) -> OpenSegment:
    """Open a segment that is not a merged one."""
    return OpenSegment(StoredValues(segment, reading, databases), overlay)
