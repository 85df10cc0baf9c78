"""Sealed blocks: what is known of them in memory, their heads, and their keys.

A block is a head, up to twenty-odd columns, and the counters of its views. A group is a head that
names its members, the merged counters, and the sorted durations.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final
from zlib import crc32

import msgspec
from attrs import field, frozen

from medamad.model.dimensions import VIEW_DIMENSIONS
from medamad.store.errors import Damaged


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
