"""The format of a segment: header, keys, column encoding and flags.

A segment is a head, up to twenty-odd columns, and the counters of its views. A group is a head that
names its members, the merged counters, and the sorted durations.

Three encodings. CONSTANT: one number for all. PLAIN: what each is above the least of them, or the
number itself, in the narrowest unsigned type; read without a copy. STEPS: for numbers that
ascend, what each is above the one before.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, TypeAlias
from zlib import crc32

import msgspec
import numpy as np
from attrs import field, frozen
from numpy.typing import DTypeLike, NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS
from medamad.storage.errors import Damaged


class Column(IntEnum):
    """The columns of a segment beside its codes, which go by `Dimension`. Part of the format."""

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


class SegmentHeader(msgspec.Struct, frozen=True, array_like=True):
    """What a segment, a group, or the sums of a day are, without what they hold."""

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
    """The segments, or groups, of a group."""
    day: Day | None = None
    """What the sums of a day are of; they have neither columns of views nor members."""
    batch: int = 0
    """The batch that all of it was imported with, 0 for none."""


def header_key(website: int, number: int) -> bytes:
    """Return the key of a head."""
    return _HEAD_KEY.pack(website, number)


def encode_header(key: bytes, header: SegmentHeader) -> bytes:
    """Return a head as stored, with a checksum over it and its key."""
    packed = msgspec.msgpack.encode(header)
    return _CRC.pack(crc32(packed, crc32(key))) + packed


def decode_header(key: bytes, value: bytes) -> SegmentHeader:
    """Read a head. Raises Damaged."""
    if _CRC.pack(crc32(value[_CRC.size :], crc32(key))) != value[: _CRC.size]:
        raise Damaged("its checksum does not match")
    try:
        return msgspec.msgpack.decode(value[_CRC.size :], type=SegmentHeader)
    except msgspec.DecodeError as error:
        raise Damaged(str(error)) from error


def number_of(header_key: bytes) -> int:
    """Return the number of the segment whose head stands under a key."""
    number: int = _HEAD_KEY.unpack(header_key)[1]
    return number


def segment_key(website: int, header: SegmentHeader, number: int) -> bytes:
    """Return what the keys of a segment's columns and counters begin with."""
    return _BLOCK_KEY.pack(website, header.first_ms, number)


def website_of(segment_key: bytes) -> int:
    """Return the website that the key of a segment begins with."""
    return int.from_bytes(segment_key[:4], "big")


@frozen(eq=False)
class Segment:
    """A flushed segment, a group where there are members, or sums where the head names a day."""

    website: int
    number: int
    header: SegmentHeader
    members: tuple["Segment", ...] = ()
    checked: set[tuple[bool, int]] = field(factory=set)
    """The columns (False) and counters (True) whose checksum was found right."""

    @property
    def key(self) -> bytes:
        """What the keys of its columns and counters begin with."""
        return segment_key(self.website, self.header, self.number)

    def segments(self) -> Iterator["Segment"]:
        """Return the segments of a group, of all levels; itself if it is none."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.segments()


Whole: TypeAlias = NDArray[np.integer[Any]]

_CONSTANT, _PLAIN, _STEPS = range(3)
_HEAD: Final = struct.Struct("<IBBBxI4xQ")
"""Checksum, encoding, width in bytes, whether it is deflated, length, base."""


def encode_column(key: bytes, values: Whole, *, deflate: bool = False) -> bytes:
    """Return the stored form of numbers from 0, with a checksum over it and its key.

    `deflate` is for columns that are seldom read: compressed, if that makes them shorter.
    """
    encoding, base, kept = _chosen(values)
    data = kept.tobytes()
    deflated = False
    if deflate:
        packed = zlib.compress(data, 6)
        deflated = len(packed) < len(data)
        data = packed if deflated else data
    header = _HEAD.pack(0, encoding, kept.itemsize, deflated, len(values), base)[_CRC.size :]
    return _CRC.pack(zlib.crc32(data, zlib.crc32(header, zlib.crc32(key)))) + header + data


def _chosen(values: Whole) -> tuple[int, int, Whole]:
    """Choose the encoding: which, its base, and the narrow numbers that are kept."""
    if not len(values):
        return _CONSTANT, 0, np.zeros(0, np.uint8)
    least, greatest = int(values.min()), int(values.max())
    if least == greatest:
        return _CONSTANT, least, np.zeros(0, np.uint8)
    plain, above = _narrowest(greatest), _narrowest(greatest - least)
    if above.itemsize < plain.itemsize:
        if np.all(values[1:] >= values[:-1]):
            steps = np.diff(values, prepend=values[:1])
            narrow = _narrowest(int(steps.max()))
            if narrow.itemsize < above.itemsize:
                return _STEPS, least, steps.astype(narrow)
        return _PLAIN, least, (values - values.dtype.type(least)).astype(above)
    return _PLAIN, 0, values.astype(plain)


def _narrowest(greatest: int) -> np.dtype[Any]:
    return np.min_scalar_type(greatest).newbyteorder("<")


def decode_column(key: bytes, value: memoryview, dtype: DTypeLike, *, check: bool) -> Whole:
    """Read a column: as `dtype`, or, where it needs no copy, in the narrow type it is kept in.

    Raises Damaged; `check` asks for the checksum as well. What is not copied lives as long as the
    transaction that `value` is of.
    """
    try:
        crc, encoding, width, deflated, length, base = _HEAD.unpack_from(value)
    except struct.error as error:
        raise Damaged("cut short") from error
    if check and zlib.crc32(value[_CRC.size :], zlib.crc32(key)) != crc:
        raise Damaged("its checksum does not match")
    if encoding == _CONSTANT:
        narrow = dtype if base > np.iinfo(np.uint32).max else _narrowest(base)
        return np.full(length, base, narrow)
    data: Any = value[_HEAD.size :]
    if deflated:
        data = zlib.decompress(data)
    kept = np.frombuffer(data, f"<u{width}", length)
    if encoding == _STEPS:
        column: Whole = np.cumsum(kept, dtype=dtype)
        column += column.dtype.type(base)
        return column
    if base:
        column = kept.astype(dtype)
        column += column.dtype.type(base)
        return column
    return kept


VISITOR: Final = np.uint8(1)
"""The view was the visitor's first of the day (`p`)."""
PAGE_VISITOR: Final = np.uint8(2)
"""The view was the visitor's first of the page (`q`)."""
TIMED: Final = np.uint8(4)
"""It is known how long the view lasted."""
BOUNCED: Final = np.uint8(8)
"""It is known, and was no longer than BOUNCE_MS."""

BOUNCE_MS: Final = 5_000
FLAG_BITS: Final = 4
"""How many flags there are."""

_OF_VISIT: Final = np.uint8(VISITOR | PAGE_VISITOR)


def timed_flags(
    flags: NDArray[np.uint8], duration_ms: NDArray[np.unsignedinteger[Any]]
) -> NDArray[np.uint8]:
    """Return the flags of views that last so long: TIMED and BOUNCED are set anew."""
    timed = flags & _OF_VISIT
    timed |= (duration_ms > 0) * TIMED
    timed |= ((duration_ms > 0) & (duration_ms <= BOUNCE_MS)) * BOUNCED
    return timed


_BITS: Final = 16
_LOW: Final = 0xFFFF


@frozen(eq=False)
class SortedDurations:
    """Numbers below 2**32 in ascending order, shape (n,).

    `low` are their lower 16 bits. Those whose upper bits are h stand from `starts[h]` to
    `starts[h + 1]`; `starts` has one entry more than there are upper parts.
    """

    low: NDArray[np.unsignedinteger[Any]]
    starts: NDArray[np.unsignedinteger[Any]]

    @classmethod
    def of(cls, ascending: NDArray[np.uint32]) -> "SortedDurations":
        """Take sorted numbers apart."""
        high = ascending >> np.uint32(_BITS)
        uppers = np.arange(int(high[-1]) + 2 if len(high) else 1, dtype=np.uint32)
        starts = np.searchsorted(high, uppers).astype(np.uint32)
        return cls((ascending & np.uint32(_LOW)).astype(np.uint16), starts)

    def __len__(self) -> int:
        return len(self.low)

    def below(self, number: int) -> int:
        """Return how many are less than a number."""
        upper = number >> _BITS
        if upper + 1 >= len(self.starts):
            return len(self.low)
        begin, end = int(self.starts[upper]), int(self.starts[upper + 1])
        return begin + int(np.searchsorted(self.low[begin:end], self.low.dtype.type(number & _LOW)))

    def stretch(self, begin: int, end: int, step: int = 1) -> NDArray[np.uint32]:
        """Return every `step`-th number from place `begin` to before `end`."""
        places = np.arange(begin, end, step, dtype=self.starts.dtype)
        upper = np.searchsorted(self.starts, places, side="right") - 1
        return (upper.astype(np.uint32) << np.uint32(_BITS)) | self.low[begin:end:step]
