"""Build a segment: gather its content and encode columns, counters and header."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.storage.dictionary.decode import NumberNames
from medamad.storage.segments.counters import (
    SLOT_MS,
    SUMS,
    Counters,
    count_views,
    encode_counters,
    merge,
)
from medamad.storage.segments.format import (
    COUNTER_KINDS,
    OF_VISITS,
    SLOTS,
    Column,
    SegmentHeader,
    encode_column,
    first_visit_of,
)
from medamad.storage.segments.gathered import Members, merge_visits_of_members
from medamad.storage.segments.parts import (
    NO_EVENTS,
    NO_TIME,
    Codes,
    Elsewhere,
    EventColumns,
    EventCounts,
    EventRows,
    ViewColumns,
    VisitColumns,
    are_late,
    enclosing_bounds,
)
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.visit_columns import MadeVisits, numbers_elsewhere
from medamad.storage.segments.visit_counters import count_visits, counters_of_visits

Put: TypeAlias = tuple[bool, int, bytes]
"""One value to write: whether it is counters, their kind or the column, and the bytes."""
RowChoice: TypeAlias = NDArray[np.bool_] | NDArray[np.intp] | slice
"""Some rows of columns."""

_ROWS_PER_VIEW: Final = 8
_COMPRESSED: Final = frozenset(
    (
        Dimension.BROWSER_VERSION,
        Dimension.OS_VERSION,
        Dimension.HOST,
        *(number.column for number in NUMBERS_OF_HITS),
    )
)
"""Columns that few queries read: no dimension that has a statistic of its own."""


_MOSTLY_ZERO: Final = frozenset(
    (
        Dimension.UTM_SOURCE,
        Dimension.UTM_MEDIUM,
        Dimension.UTM_CAMPAIGN,
        Dimension.UTM_TERM,
        Dimension.UTM_CONTENT,
        Column.OWN_LAG,
        ViewNumber.VISIT_OFFSET.column,
    )
)
"""Columns of which few rows are not 0: few views come from campaigns, most events with their views,
and of most views VISIT_ROWS says which visit they belong to."""


@frozen(eq=False)
class Content:
    """The views and events that become a segment. Shapes and dtypes as of `parts.ViewColumns`.

    `events` are all loose: they name their views by sequence number.
    """

    time_ms: NDArray[np.int64]
    sequence: NDArray[np.uint64]
    flags: NDArray[np.uint8]
    duration_ms: NDArray[np.unsignedinteger[Any]]
    numbers: Mapping[ViewNumber, NDArray[np.unsignedinteger[Any]]]
    codes: Mapping[Dimension, Codes]
    events: EventColumns
    import_batch: int = 0
    """The import batch that all of it belongs to, 0 for none."""

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def weight(self) -> int:
        """Its size in views; see `weight`."""
        return weight(len(self), len(self.events))

    def select(self, views: RowChoice, events: RowChoice = slice(None)) -> "Content":
        """Return some of the views and events, by masks, places or slices."""
        rows = self.events
        return evolve(
            self,
            time_ms=self.time_ms[views],
            sequence=self.sequence[views],
            flags=self.flags[views],
            duration_ms=self.duration_ms[views],
            numbers={number: column[views] for number, column in self.numbers.items()},
            codes={dimension: codes[views] for dimension, codes in self.codes.items()},
            events=EventRows(
                rows.event[events], rows.time_ms[events], rows.view[events], rows.property[events]
            ),
        )


def weight(views: int, rows: int) -> int:
    """Return the size of views and event rows together, in views: rows are smaller."""
    return max(views, rows // _ROWS_PER_VIEW)


def content_of(parts: Iterable[ViewColumns], events: Iterable[EventColumns] = ()) -> Content:
    """Copy parts, and further loose events, in the order of sequence numbers."""
    pieces = [_piece(part) for part in parts]
    return concatenate([*pieces, *(evolve(_NOTHING, events=loose) for loose in events)])


def concatenate(pieces: Sequence[Content]) -> Content:
    """Concatenate contents of the same batch, in the order of sequence numbers."""
    content = Content(
        time_ms=np.concatenate([piece.time_ms for piece in pieces]),
        sequence=np.concatenate([piece.sequence for piece in pieces]),
        flags=np.concatenate([piece.flags for piece in pieces]),
        duration_ms=np.concatenate([piece.duration_ms for piece in pieces]),
        numbers={
            number: np.concatenate([piece.numbers[number] for piece in pieces])
            for number in ViewNumber
        },
        codes={
            dimension: np.concatenate([piece.codes[dimension] for piece in pieces])
            for dimension in VIEW_DIMENSIONS
        },
        events=_joined([piece.events for piece in pieces]),
        import_batch=pieces[0].import_batch,
    )
    order = np.argsort(content.sequence, kind="stable")
    return content.select(order) if np.any(order[1:] < order[:-1]) else content


_NOTHING: Final = Content(
    time_ms=np.zeros(0, np.int64),
    sequence=np.zeros(0, np.uint64),
    flags=np.zeros(0, np.uint8),
    duration_ms=np.zeros(0, np.uint32),
    numbers={number: np.zeros(0, f"u{number.bytes}") for number in ViewNumber},
    codes={dimension: np.zeros(0, np.uint32) for dimension in VIEW_DIMENSIONS},
    events=NO_EVENTS,
)


def _piece(part: ViewColumns) -> Content:
    own, sequence = part.own, part.sequence.copy()
    from_own = EventRows(own.event, own.time_ms, sequence[own.view.astype(np.intp)], own.property)
    return Content(
        time_ms=part.time_ms.copy(),
        sequence=sequence,
        flags=part.flags.copy(),
        duration_ms=part.duration_ms.copy(),
        numbers={number: part.numbers(number).copy() for number in ViewNumber},
        codes={dimension: part.codes(dimension).copy() for dimension in VIEW_DIMENSIONS},
        events=_joined([from_own, part.loose]),
        import_batch=part.import_batch,
    )


def _joined(pieces: Sequence[EventColumns]) -> EventColumns:
    """Concatenate events, in the order of their numbers."""
    event = np.concatenate([piece.event.astype(np.uint64) for piece in pieces])
    order = np.argsort(event, kind="stable")
    return EventRows(
        event=event[order],
        time_ms=np.concatenate([piece.time_ms for piece in pieces])[order],
        view=np.concatenate([piece.view.astype(np.uint64) for piece in pieces])[order],
        property=np.concatenate([piece.property for piece in pieces])[order],
    )


def _own_and_loose(content: Content) -> tuple[EventColumns, EventColumns]:
    events, sequence = content.events, content.sequence
    if not len(sequence):
        return NO_EVENTS, events
    place = np.minimum(np.searchsorted(sequence, events.view), len(sequence) - 1)
    is_own = sequence[place] == events.view
    return _some(events, is_own, place), _some(events, ~is_own, events.view)


def _some(events: EventColumns, mask: NDArray[np.bool_], view: NDArray[Any]) -> EventColumns:
    return EventRows(
        events.event[mask],
        events.time_ms[mask],
        view[mask].astype(np.uint64),
        events.property[mask],
    )


@frozen(eq=False)
class EncodedSegment:
    """A segment to be written: its header and, computed one at a time, its values."""

    header: SegmentHeader
    puts: Iterator[Put]


def encode_segment(
    content: Content,
    key: bytes,
    names_of: NumberNames,
    *,
    counted_from: int,
    with_visits: bool = True,
) -> EncodedSegment:
    """Encode a segment. `key` is the prefix of its keys, with `segment_key_ms` of the content.

    It has counters if it has at least `counted_from` views and events.
    """
    own, loose = _own_and_loose(content)
    events, time_ms, sequence = content.events, content.time_ms, content.sequence
    numbered = [column for column in (sequence, events.event) if len(column)]
    header = SegmentHeader(
        key_ms=segment_key_ms(content),
        first_sequence=min(int(column[0]) for column in numbered),
        last_sequence=max(int(column[-1]) for column in numbered),
        views=len(content),
        ascends=bool(np.all(time_ms[1:] >= time_ms[:-1])),
        time_bounds=_bounds(time_ms),
        sequence_bounds=(int(sequence[0]), int(sequence[-1])) if len(sequence) else (0, 0),
        event_time_bounds=_bounds(events.time_ms),
        own_rows=len(own),
        loose_rows=len(loose),
        events=len(np.unique(events.event)),
        has_lags=bool(np.all(own.time_ms >= time_ms[own.view])),
        has_distinct_names=has_distinct_names(events, names_of),
        has_counters=len(content) + len(events) >= counted_from,
        import_batch=content.import_batch,
        first_visit=first_visit_of(sequence, content.numbers[ViewNumber.VISIT_OFFSET]),
        has_visits=with_visits and len(content) > 0,
    )
    return EncodedSegment(header, _segment_puts(content, own, loose, key, header))


def segment_key_ms(content: Content) -> int:
    """Return the time in the keys of a segment of this content: its earliest."""
    return max(0, min(_bounds(content.time_ms)[0], _bounds(content.events.time_ms)[0]))


def _bounds(time_ms: NDArray[np.int64]) -> tuple[int, int]:
    return (int(time_ms.min()), int(time_ms.max())) if len(time_ms) else NO_TIME


def has_distinct_names(events: EventColumns, names_of: NumberNames) -> bool:
    """Return whether no event has two properties of the same name."""
    codes, places = np.unique(events.property, return_inverse=True)
    names = names_of(codes)
    number_of_event = np.cumsum(np.diff(events.event, prepend=events.event[:1]) > 0)
    carried = number_of_event * (names.max(initial=0) + 1) + names[places]
    carried.sort()
    return bool(np.all(carried[1:] > carried[:-1]))


def _segment_puts(
    content: Content, own: EventColumns, loose: EventColumns, key: bytes, header: SegmentHeader
) -> Iterator[Put]:
    own_time: dict[int, NDArray[Any]] = {Column.OWN_TIME: own.time_ms}
    if header.has_lags:
        own_time = {Column.OWN_LAG: own.time_ms - content.time_ms[own.view]}
    visits = _visits(content, own) if header.has_visits else None
    numbers = dict(content.numbers)
    if visits is not None:
        of_views = content.numbers[ViewNumber.VISIT_OFFSET]
        numbers[ViewNumber.VISIT_OFFSET] = numbers_elsewhere(of_views, visits.offsets)
    columns: dict[int, NDArray[Any]] = {
        **{int(dimension): codes for dimension, codes in content.codes.items()},
        Column.TIME: content.time_ms,
        Column.SEQUENCE: content.sequence,
        Column.FLAGS: content.flags,
        Column.DURATION: content.duration_ms,
        **{number.column: values for number, values in numbers.items()},
        Column.OWN_EVENT: own.event,
        **own_time,
        Column.OWN_PLACE: own.view,
        Column.OWN_PROPERTY: own.property,
        Column.LOOSE_EVENT: loose.event,
        Column.LOOSE_TIME: loose.time_ms,
        Column.LOOSE_VIEW: loose.view,
        Column.LOOSE_PROPERTY: loose.property,
    }
    for column, values in columns.items():
        encoded = encode_column(
            key + bytes((column,)),
            values,
            deflate=column in _COMPRESSED,
            sparse=column in _MOSTLY_ZERO,
        )
        yield False, column, encoded
    if visits is not None:
        yield from visit_puts(visits, key)
    if not header.has_counters:
        return
    flags, duration_ms = content.flags, content.duration_ms
    for kind in COUNTER_KINDS:
        codes = content.time_ms // SLOT_MS if kind == SLOTS else content.codes[Dimension(kind)]
        counters = count_views(codes, flags, duration_ms)
        yield True, kind, encode_counters(key + bytes((kind,)), counters)
        if visits is not None:
            pages = content.codes[Dimension.PATH] if kind == Dimension.PATH else None
            of_visits = count_visits(visits, codes[visits.begins], pages)
            yield visit_counters_put(kind, of_visits, key)
    yield _event_counters(key, np.bincount(content.events.property))


def _visits(content: Content, own: EventColumns) -> MadeVisits:
    return MadeVisits(
        content.sequence,
        content.numbers[ViewNumber.VISIT_OFFSET],
        lambda: content.codes[Dimension.PATH],
        lambda: content.duration_ms,
        lambda: own.view.compress(
            are_late(own.event, own.time_ms, content.sequence[own.view], content.time_ms[own.view])
        ),
    )


def visit_counters_put(kind: int, counters: Counters, key: bytes) -> Put:
    """Return counters of visits, of a kind of those of views."""
    of_visits = OF_VISITS + kind
    return True, of_visits, encode_counters(key + bytes((of_visits,)), counters)


def offsets_put(visit_offset: Codes, key: bytes) -> Put:
    """Return the column with the numbers of the visits of those views that VISIT_ROWS lacks."""
    column = ViewNumber.VISIT_OFFSET.column
    return False, column, encode_column(key + bytes((column,)), visit_offset, sparse=True)


def visit_puts(visits: VisitColumns, key: bytes) -> Iterator[Put]:
    """Return the columns of the visits of a segment."""
    columns: dict[int, NDArray[Any]] = {
        Column.VISIT_ROWS: visits.offsets,
        Column.VISIT_VIEWS: visits.views,
        Column.VISIT_SPAN: visits.spans,
        Column.VISIT_DURATION: visits.duration_ms,
        Column.VISIT_EVENT: np.packbits(visits.has_event),
        Column.VISIT_REPEATS: visits.repeats,
        Column.VISIT_ELSEWHERE: visits.elsewhere,
    }
    for column, values in columns.items():
        yield False, column, encode_column(key + bytes((column,)), values)


def _sums_by_code(counts: Sequence[EventCounts]) -> NDArray[np.intp]:
    sizes = [int(found.codes[-1]) + 1 for found in counts if len(found.codes)]
    sums = np.zeros(max(sizes, default=0), np.intp)
    for found in counts:
        sums[found.codes] += found.events
    return sums


def _event_counters(key: bytes, counts: NDArray[np.intp]) -> Put:
    used = np.flatnonzero(counts)
    nothing = np.zeros(len(used), np.uint8)
    counters = Counters(used, (counts[used], *(nothing,) * (SUMS - 1)))
    encoded = encode_counters(key + bytes((Dimension.PROPERTY,)), counters)
    return True, Dimension.PROPERTY, encoded


def merged_header(members: Sequence[tuple[int, SegmentHeader]]) -> SegmentHeader:
    """Return the header of a merged segment, from the numbers and headers of its members."""
    headers = [header for _, header in members]
    return SegmentHeader(
        key_ms=min(header.key_ms for header in headers),
        first_sequence=min(header.first_sequence for header in headers),
        last_sequence=max(header.last_sequence for header in headers),
        views=sum(header.views for header in headers),
        ascends=False,
        time_bounds=enclosing_bounds(header.time_bounds for header in headers),
        sequence_bounds=enclosing_bounds(
            header.sequence_bounds for header in headers if header.views
        ),
        event_time_bounds=enclosing_bounds(header.event_time_bounds for header in headers),
        own_rows=sum(header.own_rows for header in headers),
        loose_rows=sum(header.loose_rows for header in headers),
        events=sum(header.events for header in headers),
        has_lags=False,
        has_distinct_names=all(header.has_distinct_names for header in headers),
        has_counters=True,
        members=tuple(number for number, _ in members),
        import_batch=headers[0].import_batch,
        first_visit=min((found for header in headers if (found := header.first_visit)), default=0),
        has_visits=all(header.has_visits or not header.views for header in headers),
    )


def encode_merged(
    members: Sequence[OpenSegment | OpenMergedSegment], header: SegmentHeader, key: bytes
) -> Iterator[Put]:
    """Return the merged counters of a merged segment."""
    for kind in COUNTER_KINDS:
        found = [
            member.slots() if kind == SLOTS else member.counters(Dimension(kind))
            for member in members
        ]
        merged = merge([counters for counters in found if counters is not None])
        yield True, kind, encode_counters(key + bytes((kind,)), merged)
    if header.has_visits:
        yield from merged_visit_puts(members, key)
    if header.has_distinct_names:
        counts = [member.event_counts() for member in members]
        yield _event_counters(key, _sums_by_code([found for found in counts if found is not None]))


def merged_visit_puts(
    members: Sequence[OpenSegment | OpenMergedSegment], key: bytes
) -> Iterator[Put]:
    """Return the counters of the visits of a merged segment, and what it has of others."""
    found = merge_visits_of_members(
        [
            Members([member] if isinstance(member, OpenSegment) else list(member.leaves))
            for member in members
        ],
        [
            Elsewhere.of_views(member) if isinstance(member, OpenSegment) else member.elsewhere()
            for member in members
        ],
        {kind: [_counters_of_visits(member, kind) for member in members] for kind in COUNTER_KINDS},
    )
    for kind, counters in found.counters.items():
        yield visit_counters_put(kind, counters, key)
    for column, numbers in (
        (Column.VISIT_ELSEWHERE, found.elsewhere.visits),
        (Column.VIEW_ELSEWHERE, found.elsewhere.views),
    ):
        yield False, column, encode_column(key + bytes((column,)), numbers)


def _counters_of_visits(member: OpenSegment | OpenMergedSegment, kind: int) -> Counters:
    counters = member.visit_counters(kind)
    if counters is not None:
        return counters
    assert isinstance(member, OpenSegment)  # noqa: S101 - a merged one has counters
    return counters_of_visits(member, kind)
