"""The format of a segment: header, keys, column encoding and flags.

A segment has a header, up to some thirty columns, of views and of visits, and counters of both. A
merged segment has a header that names its members, their merged counters, and what they have of
visits that begin elsewhere. A rollup has a header, counters of views and of visits, and durations
by path.

A column has one of five encodings. CONSTANT: one number for all rows. PLAIN: the numbers, or their
differences from the least, in the narrowest unsigned type; read without a copy. STEPS: for
ascending numbers, the difference of each from the one before. EVEN: that difference, if all are the
same. SPARSE: the rows whose number is not 0, and their numbers.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from attrs import field, frozen
from numpy.typing import DTypeLike, NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, ViewFlag
from medamad.storage.environment.meta import decoded, with_checksum
from medamad.storage.errors import Damaged

Integers: TypeAlias = NDArray[np.integer[Any]]


class Column(IntEnum):
    """The columns of a segment, apart from those of a `Dimension` or `ViewNumber`.

    Part of the format.
    """

    TIME = 32
    SEQUENCE = 33
    FLAGS = 34
    DURATION = 35
    OWN_EVENT = 40
    OWN_TIME = 41
    OWN_PLACE = 42
    OWN_PROPERTY = 43
    OWN_LAG = 44
    """The times of events relative to their views, instead of OWN_TIME."""
    LOOSE_EVENT = 48
    LOOSE_TIME = 49
    LOOSE_VIEW = 50
    LOOSE_PROPERTY = 51
    DAY_PATHS = 60
    """In a rollup: the paths that have durations, how many each has, and the durations."""
    DAY_COUNTS = 61
    DAY_DURATIONS_LOW = 62
    """The lower 16 bits; the upper ones follow."""
    DAY_DURATIONS_HIGH = 63
    VISIT_ROWS = 64
    """`VisitColumns.offsets`. ViewNumber.VISIT_OFFSET has the numbers of all other views."""
    VISIT_VIEWS = 65
    """A column of the visits that begin in the segment, as those that follow."""
    VISIT_SPAN = 66
    VISIT_DURATION = 67
    VISIT_REPEATS = 69
    """`VisitColumns.repeats`."""
    VISIT_ELSEWHERE = 70
    """`Elsewhere.visits`, also of a merged segment."""
    VISIT_EVENT = 71
    """A bit for each visit, the uppermost of a byte first. Format 12 had a byte for each in 68."""
    VIEW_ELSEWHERE = 72
    """`Elsewhere.views` of a merged segment."""
    DAY_GOING_ON = 73
    """In a rollup: `Rollup.going_on`."""


SLOTS: Final = 0
"""The kind of the counters by slot. Counters by dimension have its number as their kind."""

COUNTER_KINDS: Final = (SLOTS, *VIEW_DIMENSIONS)
OF_VISITS: Final = 32
"""Added to the kind of counters of views, this is the kind of those of visits."""

_HEADER_KEY: Final = struct.Struct(">II")
_SEGMENT_KEY: Final = struct.Struct(">IQI")
_CRC: Final = struct.Struct("<I")


class KnownVisits(msgspec.Struct, frozen=True, array_like=True):
    """What is known of the visits that began on the day of a rollup."""

    dimensions: tuple[int, ...]
    time_bounds: tuple[int, int]
    """The earliest and the latest time of a view of theirs, which may be of another day."""
    has_pages: bool
    """Whether it is known which pages they saw besides the first."""
    has_exits: bool
    """Whether it is known which pages they ended on."""


class Day(msgspec.Struct, frozen=True, array_like=True):
    """The day of a rollup, and what is known of it."""

    number: int
    """The local date, as the number of days since 1970-01-01."""
    span: tuple[int, int]
    """Its first and its last millisecond."""
    dimensions: tuple[int, ...]
    has_durations: bool
    visits: KnownVisits | None
    rules: tuple[int, ...] = ()
    """The rules by which the day's hits were divided among rollups."""
    left_out_by: tuple[int, ...] = ()
    """Those of the rules that leave out all that is in the rollup; none leaves out anything else
    of it."""
    has_going_on: bool = False
    """Whether it has DAY_GOING_ON."""


class SegmentHeader(msgspec.Struct, frozen=True, array_like=True):
    """The description of a segment, merged segment or rollup."""

    key_ms: int
    """The time in its keys, the earliest of its views and events."""
    first_sequence: int
    """The least sequence number of its views and events."""
    last_sequence: int
    """The greatest."""
    views: int
    ascends: bool
    time_bounds: tuple[int, int]
    sequence_bounds: tuple[int, int]
    event_time_bounds: tuple[int, int]
    own_rows: int
    """How many properties the events have whose views it has."""
    loose_rows: int
    """How many the other events have."""
    events: int
    has_lags: bool
    """Whether it has OWN_LAG: no event was before its view."""
    has_distinct_names: bool
    """Whether no event has two properties of the same name."""
    has_counters: bool
    members: tuple[int, ...] = ()
    """The numbers of a merged segment's members."""
    day: Day | None = None
    """The day of a rollup, which has neither columns of views nor members."""
    import_batch: int = 0
    """The import batch that all of it belongs to, 0 for none."""
    first_visit: int = 0
    """The least number of a visit that any of its views belongs to, 0 for none."""
    had_columns_of_visits: bool = False
    """Set by format 12, whose columns of visits are not read any more."""
    has_visits: bool = False
    """Whether it has the columns of visits and, if it has counters, those of visits."""


def header_key(website: int, number: int) -> bytes:
    """Return the key of a header."""
    return _HEADER_KEY.pack(website, number)


def encode_header(key: bytes, header: SegmentHeader) -> bytes:
    """Return a header as stored, with a checksum over it and its key."""
    return with_checksum(key, msgspec.msgpack.encode(header))


def decode_header(key: bytes, value: bytes) -> SegmentHeader:
    """Decode a header. Raises Damaged."""
    return decoded(key, value, SegmentHeader, msgspec.msgpack.decode)


def number_of(header_key: bytes) -> int:
    """Return the number of the segment whose header has this key."""
    number: int = _HEADER_KEY.unpack(header_key)[1]
    return number


def segment_key(website: int, header: SegmentHeader, number: int) -> bytes:
    """Return the prefix of the keys of a segment's columns and counters."""
    return _SEGMENT_KEY.pack(website, header.key_ms, number)


def website_of(segment_key: bytes) -> int:
    """Return the website of a segment's key."""
    return int.from_bytes(segment_key[:4], "big")


class MappedColumn(np.ndarray[tuple[int], np.dtype[np.unsignedinteger[Any]]]):
    """A column in the mapped file. Finding out the address each time takes longer than to read it.

    What numpy makes of it has no address.
    """

    address: int

    @classmethod
    def of(cls, column: Integers) -> "MappedColumn":
        """Return the same column."""
        mapped = column.view(cls)
        mapped.address = column.__array_interface__["data"][0]
        return mapped


@frozen(eq=False)
class Segment:
    """A segment; a merged one if it has members, a rollup if its header names a day."""

    website: int
    number: int
    header: SegmentHeader
    members: tuple["Segment", ...] = ()
    checked: set[tuple[bool, int]] = field(factory=set)
    """The columns (False) and counters (True) whose checksum was verified."""
    mapped: dict[int, "MappedColumn"] = field(factory=dict)
    """The columns that are in the mapped file as they are."""
    counted: dict[int, Integers] = field(factory=dict)
    """The codes of counters, by dimension, of those that were asked for."""

    @property
    def key(self) -> bytes:
        """The prefix of the keys of its columns and counters."""
        return segment_key(self.website, self.header, self.number)

    def leaves(self) -> Iterator["Segment"]:
        """Return the segments that a merged one consists of at the lowest level, else itself."""
        if not self.members:
            yield self
        for member in self.members:
            yield from member.leaves()


_CONSTANT, _PLAIN, _STEPS, _SPARSE, _EVEN = range(5)
_HEAD: Final = struct.Struct("<IBBBxI4xQ")
"""Checksum, encoding, width in bytes, whether it is deflated, length, base. The base of a SPARSE
column is how many of its numbers are not 0."""


def encode_column(
    key: bytes, values: Integers, *, deflate: bool = False, sparse: bool = False
) -> bytes:
    """Return non-negative numbers as stored, with a checksum over them and the key.

    With `deflate` they are compressed, with `sparse` zeros are left out, if that makes them
    shorter.
    """
    encoding, base, kept = _chosen(values)
    data = kept.tobytes()
    if sparse and encoding == _PLAIN:
        rows = np.flatnonzero(values)
        left = rows.astype(_row_dtype(len(values))).tobytes() + kept[rows].tobytes()
        if len(left) < len(data):
            encoding, base, data = _SPARSE, len(rows), left
    deflated = False
    if deflate:
        packed = zlib.compress(data, 6)
        deflated = len(packed) < len(data)
        data = packed if deflated else data
    header = _HEAD.pack(0, encoding, kept.itemsize, deflated, len(values), base)[_CRC.size :]
    return _CRC.pack(zlib.crc32(data, zlib.crc32(header, zlib.crc32(key)))) + header + data


def _chosen(values: Integers) -> tuple[int, int, Integers]:
    """Choose the encoding; return it, its base and the numbers to store."""
    if not len(values):
        return _CONSTANT, 0, np.zeros(0, np.uint8)
    least, greatest = int(values.min()), int(values.max())
    if least == greatest:
        return _CONSTANT, least, np.zeros(0, np.uint8)
    plain, above = _narrowest(greatest), _narrowest(greatest - least)
    # Numbers of one or two bytes are read in place; wider ones are worth a copy.
    if plain.itemsize > 2 and np.all(values[1:] >= values[:-1]):  # noqa: PLR2004 - as above
        steps = np.diff(values, prepend=values[:1])
        narrow = _narrowest(int(steps.max()))
        if np.all(steps[1:] == steps[1]):
            return _EVEN, least, steps[1:2].astype(narrow)
        if narrow.itemsize < above.itemsize:
            return _STEPS, least, steps.astype(narrow)
    if above.itemsize < plain.itemsize:
        return _PLAIN, least, (values - values.dtype.type(least)).astype(above)
    return _PLAIN, 0, values.astype(plain)


def _row_dtype(length: int) -> np.dtype[Any]:
    """Return the type of the numbers of rows in a SPARSE column."""
    return _narrowest(length - 1)


def _narrowest(greatest: int) -> np.dtype[Any]:
    return np.min_scalar_type(greatest).newbyteorder("<")


def decode_column(key: bytes, value: memoryview, dtype: DTypeLike, *, check: bool) -> Integers:
    """Decode a column: as `dtype` or, where that takes no copy, in the narrow type it is stored in.

    `check` verifies the checksum. Raises Damaged. What is not copied is valid as long as the
    transaction of `value`.
    """
    try:
        crc, encoding, width, deflated, length, base = _HEAD.unpack_from(value)
    except struct.error as error:
        raise Damaged("it is cut short") from error
    if check and zlib.crc32(value[_CRC.size :], zlib.crc32(key)) != crc:
        raise Damaged("its checksum does not match")
    if encoding == _CONSTANT:
        narrow = dtype if base > np.iinfo(np.uint32).max else _narrowest(base)
        return np.full(length, base, narrow)
    data: Any = value[_HEAD.size :]
    if deflated:
        data = zlib.decompress(data)
    if encoding == _SPARSE:
        rows = np.frombuffer(data, _row_dtype(length), base)
        numbers = np.zeros(length, f"<u{width}")
        # Fancy indexing takes twice as long with narrow numbers.
        numbers[rows.astype(np.intp)] = np.frombuffer(data, numbers.dtype, base, rows.nbytes)
        return numbers
    if encoding == _EVEN:
        step = int(np.frombuffer(data, f"<u{width}")[0])
        column: Integers = np.arange(length, dtype=dtype)
        column *= column.dtype.type(step)
        column += column.dtype.type(base)
        return column
    kept = np.frombuffer(data, f"<u{width}", length)
    if encoding == _STEPS:
        column = np.cumsum(kept, dtype=dtype)
        column += column.dtype.type(base)
        return column
    if base:
        column = kept.astype(dtype)
        column += column.dtype.type(base)
        return column
    return kept


VISITOR: Final = np.uint8(ViewFlag.FIRST_TODAY)
PAGE_VISITOR: Final = np.uint8(ViewFlag.FIRST_OF_PAGE)
HOSTING: Final = np.uint8(ViewFlag.HOSTING)
TIMED: Final = np.uint8(4)
"""The duration of the view is known."""
BOUNCED: Final = np.uint8(8)
"""The duration is known, and at most BOUNCE_MS."""

BOUNCE_MS: Final = 5_000
FLAG_BITS: Final = 4
"""How many flags views are counted by, the lowest: all but HOSTING."""

_SET_BY_VIEW: Final = np.uint8(sum(ViewFlag))


def timed_flags(
    flags: NDArray[np.uint8], duration_ms: NDArray[np.unsignedinteger[Any]]
) -> NDArray[np.uint8]:
    """Return the flags of views with these durations: TIMED and BOUNCED are set accordingly."""
    timed = flags & _SET_BY_VIEW
    timed |= (duration_ms > 0) * TIMED
    timed |= ((duration_ms > 0) & (duration_ms <= BOUNCE_MS)) * BOUNCED
    return timed


def first_visit_of(
    sequence: NDArray[np.unsignedinteger[Any]], visit_offset: NDArray[np.unsignedinteger[Any]]
) -> int:
    """Return the least number of a visit of some views, 0 if none of them belongs to one."""
    offset = visit_offset.astype(np.uint64)
    numbers = (sequence + np.uint64(1) - offset)[offset > 0]
    return int(numbers.min()) if len(numbers) else 0
