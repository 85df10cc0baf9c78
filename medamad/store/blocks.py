"""Sealed blocks: what is known of them in memory, and how a question reads their columns.

A block is a head, up to twenty-odd columns, and the counters of its views. A group is a head that
names its members, the merged counters, and the sorted durations.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Final, TypeAlias
from zlib import crc32

import msgspec
import numpy as np
from attrs import define, field, frozen
from numpy.typing import DTypeLike, NDArray

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.store.ascending import Ascending
from medamad.store.columns import Whole, decode_column
from medamad.store.counters import (
    SLOT_MS,
    VIEWS,
    Change,
    Counters,
    changed,
    decode_counters,
)
from medamad.store.environment import Database, Databases
from medamad.store.errors import Damaged, DamagedBlock
from medamad.store.flags import timed_flags
from medamad.store.parts import NO_TIME, Codes, EventCounts, Events, Group, Part, Views
from medamad.store.reading import Reading


class Column(IntEnum):
    """The columns of a block beside its codes, which go by `Dimension`. Part of the format."""

    TIME = 32
    SEQUENCE = 33
    FLAGS = 34
    DURATION = 35
    NUMBER_TODAY = 36
    WIDTH = 37
    OWN_EVENT = 40
    OWN_TIME = 41
    OWN_PLACE = 42
    OWN_PROPERTY = 43
    OWN_LAG = 44
    """How long after their views the events were, in the place of OWN_TIME."""
    LOOSE_EVENT = 48
    LOOSE_TIME = 49
    LOOSE_VIEW = 50
    LOOSE_PROPERTY = 51
    DURATIONS_LOW = 56
    DURATIONS_STARTS = 57
    DAY_PATHS = 60
    """Of the sums of a day: the paths that have durations, how many each, and these."""
    DAY_COUNTS = 61
    DAY_DURATIONS_LOW = 62
    """The lower 16 bits, and the upper ones."""
    DAY_DURATIONS_HIGH = 63


SLOTS: Final = 0
"""The kind of the counters by slot; those by dimension go by its number."""

COUNTER_KINDS: Final = (SLOTS, *VIEW_DIMENSIONS)
_OWN: Final = (Column.OWN_EVENT, Column.OWN_TIME, Column.OWN_PLACE, Column.OWN_PROPERTY)
_LOOSE: Final = (Column.LOOSE_EVENT, Column.LOOSE_TIME, Column.LOOSE_VIEW, Column.LOOSE_PROPERTY)

_HEAD_KEY: Final = struct.Struct(">II")
_BLOCK_KEY: Final = struct.Struct(">IQI")
_CRC: Final = struct.Struct("<I")


class Day(msgspec.Struct, frozen=True, array_like=True):
    """What day sums are of, and what is known of it."""

    number: int
    """The local date, as the number of days since 1970-01-01."""
    span: tuple[int, int]
    """Its first and its last millisecond."""
    dimensions: tuple[int, ...]
    has_durations: bool


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What a block, a group, or the sums of a day are, without what they hold."""

    first_ms: int
    """The time that its keys name."""
    first: int
    """The least sequence number of its views and events."""
    last: int
    """The greatest."""
    views: int
    ascends: bool
    time_bounds: tuple[int, int]
    sequence_bounds: tuple[int, int]
    event_time_bounds: tuple[int, int]
    own: int
    """Rows of the events of its own views."""
    loose: int
    """Rows of other events."""
    events: int
    has_lags: bool
    """Whether it has OWN_LAG: no event of its views was before its view."""
    is_plain: bool
    """Whether no event of it carries a name twice."""
    has_counters: bool
    members: tuple[int, ...] = ()
    """The blocks, or groups, of a group."""
    day: Day | None = None
    """What the sums of a day are of; they have neither columns of views nor members."""
    batch: int = 0
    """The batch that all of it was imported with, 0 for none."""


def head_key(website: int, number: int) -> bytes:
    """Give the key of a head."""
    return _HEAD_KEY.pack(website, number)


def encode_head(key: bytes, head: Head) -> bytes:
    """Give a head as stored, with a checksum over it and its key."""
    packed = msgspec.msgpack.encode(head)
    return _CRC.pack(crc32(packed, crc32(key))) + packed


def decode_head(key: bytes, value: bytes) -> Head:
    """Read a head. Raises Damaged."""
    if _CRC.pack(crc32(value[_CRC.size :], crc32(key))) != value[: _CRC.size]:
        raise Damaged("its checksum does not match")
    try:
        return msgspec.msgpack.decode(value[_CRC.size :], type=Head)
    except msgspec.DecodeError as error:
        raise Damaged(str(error)) from error


def number_of(head_key: bytes) -> int:
    """Give the number of the block whose head stands under a key."""
    number: int = _HEAD_KEY.unpack(head_key)[1]
    return number


def block_key(website: int, head: Head, number: int) -> bytes:
    """Give what the keys of a block's columns and counters begin with."""
    return _BLOCK_KEY.pack(website, head.first_ms, number)


def website_of(block_key: bytes) -> int:
    """Give the website that the key of a block begins with."""
    return int.from_bytes(block_key[:4], "big")


@frozen(eq=False)
class Block:
    """A sealed block, a group where there are members, or sums where the head names a day."""

    website: int
    number: int
    head: Head
    members: tuple["Block", ...] = ()
    checked: set[tuple[bool, int]] = field(factory=set)
    """The columns (False) and counters (True) whose checksum was found right."""

    @property
    def key(self) -> bytes:
        """What the keys of its columns and counters begin with."""
        return block_key(self.website, self.head, self.number)

    def blocks(self) -> Iterator["Block"]:
        """Give the blocks of a group, of all levels; itself if it is none."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.blocks()


@frozen(eq=False)
class Late:
    """What became known of a block's hits after it was sealed.

    `places` of views, ascending, and how long each was seen; `events` by number, ascending, and
    the sequence numbers of their views.
    """

    places: NDArray[np.intp]
    duration_ms: NDArray[np.uint32]
    events: NDArray[np.uint64]
    views: NDArray[np.uint64]


Lates: TypeAlias = Mapping[int, Late]


@define(eq=False)
class Stored:
    """What is read of a block or a group, each thing once."""

    block: Block
    _reading: Reading
    _databases: Databases
    _columns: dict[int, Whole] = field(factory=dict)

    def column(self, column: int, dtype: DTypeLike) -> Whole:
        """Read a column. Raises DamagedBlock."""
        found = self._columns.get(column)
        if found is None:
            key, value = self._value(column, self._databases.blocks, "column")
            check = (False, column) not in self.block.checked
            try:
                found = decode_column(key, value, dtype, check=check)
            except Damaged as error:
                raise self._damaged("column", column, str(error)) from error
            self.block.checked.add((False, column))
            self._columns[column] = found
        return found

    def counters(self, kind: int) -> Counters:
        """Read counters. Raises DamagedBlock."""
        key, value = self._value(kind, self._databases.counters, "counter")
        check = (True, kind) not in self.block.checked
        try:
            counters = decode_counters(key, value, check=check)
        except Damaged as error:
            raise self._damaged("counter", kind, str(error)) from error
        self.block.checked.add((True, kind))
        return counters

    def event_counts(self) -> EventCounts | None:
        """Read the counts of events, where they can be had without a scan."""
        head = self.block.head
        if not (head.is_plain and head.has_counters):
            return None
        counters = self.counters(Dimension.PROPERTY)
        return EventCounts(counters.codes, counters.sums[VIEWS], head.events)  # type: ignore[arg-type]

    def _value(self, kind: int, database: Database, what: str) -> tuple[bytes, memoryview]:
        key = self.block.key + bytes((kind,))
        value = self._reading.value(key, database)
        if value is None:
            raise self._damaged(what, kind, "it is missing")
        return key, value

    def _damaged(self, what: str, kind: int, told: str) -> DamagedBlock:
        block = self.block
        return DamagedBlock(
            block.number, f"website {block.website}, block {block.number}, {what} {kind}: {told}"
        )


@define(eq=False)
class OpenBlock:
    """A block as a part of a question's snapshot, with what became known since laid over it."""

    _stored: Stored
    _late: Late | None

    @property
    def block(self) -> Block:
        """What it is a part of a question for."""
        return self._stored.block

    @property
    def time_bounds(self) -> tuple[int, int]:
        return self._head.time_bounds

    @property
    def event_time_bounds(self) -> tuple[int, int]:
        return self._head.event_time_bounds

    @property
    def sequence_bounds(self) -> tuple[int, int]:
        return self._head.sequence_bounds

    @property
    def batch(self) -> int:
        return self._head.batch

    @property
    def ascends(self) -> bool:
        return self._head.ascends

    @property
    def time_ms(self) -> NDArray[np.int64]:
        return self._stored.column(Column.TIME, np.int64).astype(np.int64, copy=False)

    @property
    def sequence(self) -> NDArray[np.uint64]:
        return self._stored.column(Column.SEQUENCE, np.uint64).astype(np.uint64, copy=False)

    @property
    def flags(self) -> NDArray[np.uint8]:
        if self._late is None:
            return self._stored.column(Column.FLAGS, np.uint8)  # type: ignore[return-value]
        flags = self._stored.column(Column.FLAGS, np.uint8).astype(np.uint8)
        flags[self._late.places] = self._change(self._late).new_flags
        return flags

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        if self._late is None:
            return self._stored.column(Column.DURATION, np.uint32)  # type: ignore[return-value]
        duration_ms = self._stored.column(Column.DURATION, np.uint32).astype(np.uint32)
        duration_ms[self._late.places] = self._late.duration_ms
        return duration_ms

    @property
    def number_today(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._stored.column(Column.NUMBER_TODAY, np.uint16)  # type: ignore[return-value]

    @property
    def width_px(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._stored.column(Column.WIDTH, np.uint16)  # type: ignore[return-value]

    @property
    def own(self) -> Events:
        return _StoredEvents(self._stored, _OWN, self._head.own, None)

    @property
    def loose(self) -> Events:
        return _StoredEvents(self._stored, _LOOSE, self._head.loose, self._late)

    def codes(self, dimension: Dimension) -> Codes:
        return self._stored.column(dimension, np.uint32)  # type: ignore[return-value]

    def counters(self, dimension: Dimension) -> Counters | None:
        if not self._head.has_counters:
            return None
        counters = self._stored.counters(dimension)
        if self._late is not None and len(self._late.places):
            numbers = self.codes(dimension)[self._late.places]
            return changed(counters, numbers, self._change(self._late))
        return counters

    def slots(self) -> Counters | None:
        if not self._head.has_counters:
            return None
        counters = self._stored.counters(SLOTS)
        if self._late is not None and len(self._late.places):
            numbers = self.time_ms[self._late.places] // SLOT_MS
            return changed(counters, numbers, self._change(self._late))
        return counters

    def event_counts(self) -> EventCounts | None:
        return self._stored.event_counts()

    def __len__(self) -> int:
        return self._head.views

    @property
    def _head(self) -> Head:
        return self._stored.block.head

    def _change(self, late: Late) -> Change:
        flags = self._stored.column(Column.FLAGS, np.uint8)[late.places].astype(np.uint8)
        old_ms = self._stored.column(Column.DURATION, np.uint32)[late.places]
        new_flags = timed_flags(flags, late.duration_ms)
        return Change(flags, new_flags, late.duration_ms.astype(np.int64) - old_ms)


@define(eq=False)
class _StoredEvents:
    """The events of a block, read column by column; with what became known of their views."""

    _stored: Stored
    _kinds: tuple[Column, Column, Column, Column]
    _length: int
    _late: Late | None

    @property
    def event(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._stored.column(self._kinds[0], np.uint64)  # type: ignore[return-value]

    @property
    def time_ms(self) -> NDArray[np.int64]:
        if self._kinds is _OWN and self._stored.block.head.has_lags:
            view_ms = self._stored.column(Column.TIME, np.int64).astype(np.int64, copy=False)
            return view_ms.take(self.view) + self._stored.column(Column.OWN_LAG, np.int64)
        return self._stored.column(self._kinds[1], np.int64).astype(np.int64, copy=False)

    @property
    def view(self) -> NDArray[np.unsignedinteger[Any]]:
        view: Codes = self._stored.column(self._kinds[2], np.uint64)  # type: ignore[assignment]
        if self._late is None or not len(self._late.events):
            return view
        bound, event = self._late.events, self.event
        places = np.minimum(np.searchsorted(bound, event), len(bound) - 1)
        return np.where(bound[places] == event, self._late.views[places], view.astype(np.uint64))

    @property
    def property(self) -> Codes:
        return self._stored.column(self._kinds[3], np.uint32)  # type: ignore[return-value]

    def __len__(self) -> int:
        return self._length


@define(eq=False)
class OpenGroup(Group):
    """A group as a part of a question's snapshot. None of its blocks has anything laid over it."""

    _stored: Stored
    _reading: Reading
    _databases: Databases

    @property
    def block(self) -> Block:
        """What it is a part of a question for."""
        return self._stored.block

    @property
    def members(self) -> Iterable[Views | Group]:
        return opened(self._stored.block.members, {}, self._reading, self._databases)

    @property
    def time_bounds(self) -> tuple[int, int]:
        return self._stored.block.head.time_bounds

    @property
    def event_time_bounds(self) -> tuple[int, int]:
        return self._stored.block.head.event_time_bounds

    @property
    def sequence_bounds(self) -> tuple[int, int]:
        return self._stored.block.head.sequence_bounds

    def counters(self, dimension: Dimension) -> Counters | None:
        return self._stored.counters(dimension)

    def slots(self) -> Counters | None:
        return self._stored.counters(SLOTS)

    def event_counts(self) -> EventCounts | None:
        return self._stored.event_counts()

    def durations(self) -> Ascending | None:
        if self._stored.block.members[0].members:
            return None
        # A column comes in the narrowest type that holds it, which may be too narrow to compare.
        return Ascending(
            self._stored.column(Column.DURATIONS_LOW, np.uint16).astype(np.uint16, copy=False),
            self._stored.column(Column.DURATIONS_STARTS, np.uint32).astype(np.uint32, copy=False),
        )


def opened(
    blocks: Iterable[Block], late: Lates, reading: Reading, databases: Databases
) -> Iterator[Part]:
    """Open blocks and groups one after the other, as parts of a question."""
    for block in blocks:
        reading.renew()
        yield open_one(block, late.get(block.number), reading, databases)


def open_one(block: Block, late: Late | None, reading: Reading, databases: Databases) -> Part:
    """Open one block or group."""
    stored = Stored(block, reading, databases)
    if block.members:
        return OpenGroup(stored, reading, databases)
    return OpenBlock(stored, late)


def joint(bounds: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Give the bounds of times that lie within any of some bounds."""
    least, greatest = NO_TIME
    for low, high in bounds:
        least, greatest = min(least, low), max(greatest, high)
    return least, greatest
