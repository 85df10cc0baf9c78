"""The records of the write-ahead log: keys, values, their rows as columns, and the flush watermark.

A record has rows of one website and one kind that were committed together. There are four kinds of
rows:

- a view, its texts as dictionary codes, and the hash of its beacon;
- the duration of a view, from an unload;
- a property of an event; the rows of one event share the number of the first;
- a binding: an event belongs to a view that was stored after it.

A record's key is the website, the sequence number of its last row, and the time of its first row.
Its value has, each as a byte, the kind and the number of rows; the hashes of views; of each row the
numbers that `varints` encodes; and a CRC-32 over key and value. Numbers are stored as distances
where that makes them small: a sequence number from the record's last one, a time from its first
one, a view or event from the row that refers to it.

The watermark is a sequence number: rows up to it are flushed. It is stored among the headers of the
segments, before all of them.
"""

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from itertools import chain, compress, product, starmap
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, ViewFlag, ViewNumber
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.errors import Damaged
from medamad.storage.segments.format import header_key
from medamad.storage.varints import (
    MORE,
    decode_numbers,
    encode_numbers,
    encoding_of,
    signed,
    zigzag,
)
from medamad.storage.wal.beacons import DIGEST_BYTES

Record: TypeAlias = tuple[bytes, bytes]
"""Key and value as stored."""

Row: TypeAlias = tuple[Any, ...]
"""The fields of a row in the order of its dtype."""

Rows: TypeAlias = NDArray[Any]
"""Rows of one kind; the dtype is that of the kind."""


class RecordKind(IntEnum):
    """What the rows of a record are. Part of the store's format."""

    VIEW = 1
    DURATION = 2
    PROPERTY = 3
    BINDING = 4

    __hash__ = int.__hash__  # that of an enum is a function in Python


_KEY: Final = struct.Struct(">IQQ")
_KEY_BEGIN: Final = struct.Struct(">IQ")
_CRC: Final = struct.Struct("<I")
_CRC_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of anything that ends in its own CRC-32, least byte first."""
_HEAD_BYTES: Final = 2
"""Kind and number of rows."""
_MOST_ROWS: Final = 255
_MOST_BYTES: Final = 980
"""The size of a value beyond which rows go to the next record: four fill a page of LMDB."""
_DECODED_AT_ONCE: Final = 100
"""How many records are decoded together: arrays beyond a megabyte would be new memory for each."""

_PLACE: Final = (("sequence", "<u8"), ("time_ms", "<u8"))
_DTYPES: Final = {
    RecordKind.VIEW: np.dtype(
        [
            *_PLACE,
            ("beacon", f"V{DIGEST_BYTES}"),
            ("arrived_ms", "<u8"),
            ("flags", "u1"),
            *((number.attribute, f"<u{number.bytes}") for number in ViewNumber),
            ("codes", "<u4", (len(VIEW_DIMENSIONS),)),
        ]
    ),
    RecordKind.DURATION: np.dtype([*_PLACE, ("view", "<u8"), ("duration_ms", "<u4")]),
    RecordKind.PROPERTY: np.dtype(
        [*_PLACE, ("event", "<u8"), ("view", "<u8"), ("property", "<u4")]
    ),
    RecordKind.BINDING: np.dtype([*_PLACE, ("event", "<u8"), ("view", "<u8")]),
}
_LETTERS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}


def _packed(dtype: np.dtype[Any]) -> struct.Struct:
    """Return what packs a row of a dtype, from numbers and the hash of a beacon."""
    fields = [dtype[name] for name in dtype.names or ()]
    letters = (
        f"{each.itemsize}s"
        if each.kind == "V" and not each.shape
        else f"{math.prod(each.shape)}{_LETTERS[each.base.itemsize]}"
        for each in fields
    )
    return struct.Struct("<" + "".join(letters))


_PACKED: Final = {kind: _packed(dtype) for kind, dtype in _DTYPES.items()}
_PLACE_FIELDS: Final = len(_PLACE)
_REFERENCES: Final = {RecordKind.DURATION: 1, RecordKind.PROPERTY: 2, RecordKind.BINDING: 2}
"""How many of the fields after the place are sequence numbers of earlier rows, 0 for none."""
_FIELDS: Final = {
    kind: sum(isinstance(each, int) for each in packed.unpack(bytes(packed.size)))
    for kind, packed in _PACKED.items()
}
"""How many numbers a row has: the hash of a beacon is none."""
_AFTER_ARRIVAL: Final = ("flags", *(number.attribute for number in ViewNumber))
_FLAGS: Final = {
    are_set: int(sum(compress(ViewFlag, are_set)))
    for are_set in product((False, True), repeat=len(ViewFlag))
}


def wal_key(website: int, sequence: int, time_ms: int) -> bytes:
    """Return the key of a record, by its last sequence number and its first time."""
    return _KEY.pack(website, sequence, time_ms)


def wal_key_from(website: int, sequence: int) -> bytes:
    """Return a key before the records of a website whose last row is this one or a later one."""
    return _KEY_BEGIN.pack(website, sequence)


def website_of(key: bytes) -> int:
    """Return the website in a record's key, which may be damaged."""
    return int.from_bytes(key[:4], "big")


def sequence_of(key: bytes) -> int:
    """Return the sequence number in a record's key."""
    return int(_KEY_BEGIN.unpack_from(key)[1])


def time_of(key: bytes) -> int:
    """Return the time in a record's key."""
    return int(_KEY.unpack(key)[2])


def count_rows(value: bytes) -> int:
    """Return the number of rows in a record's value, which may be damaged."""
    return value[1] if len(value) >= _HEAD_BYTES else 0


def describe_record(key: bytes) -> str:
    """Return which record this is, in words."""
    if len(key) != _KEY.size:
        return f"website {website_of(key)}, key {key.hex()}"
    website, sequence, time_ms = _KEY.unpack(key)
    return f"website {website}, time {time_ms} ms, sequence {sequence}"


def view_row(
    arrival: tuple[int, int, bytes, int],
    flags: tuple[bool, ...],
    numbers: Sequence[int],
    codes: Sequence[int],
) -> Row:
    """Return the row of a view, in the order of ViewFlag, ViewNumber and VIEW_DIMENSIONS.

    `arrival` is its sequence number, its time, the hash of its beacon and when it arrived.
    """
    return *arrival, _FLAGS[flags], *numbers, *codes


def rows_of(kind: RecordKind, rows: Iterable[Row]) -> Rows:
    """Return rows as an array."""
    packed = _PACKED[kind]
    return np.frombuffer(b"".join(starmap(packed.pack, rows)), _DTYPES[kind])


def records_of(website: int, kind: RecordKind, rows: Sequence[Row]) -> Iterator[Record]:
    """Return the records of rows that are in order of their sequence numbers."""
    encode = _view_numbers if kind is RecordKind.VIEW else _numbers
    of_beacon = DIGEST_BYTES if kind is RecordKind.VIEW else 0
    begin = size = 0
    encoded: list[bytes] = []
    for place, row in enumerate(rows):
        numbers = encode(kind, row, rows[begin][1])
        # A distance from the last row, which is not known yet, is about as long as this one.
        added = len(numbers) + of_beacon + (1 if row[0] - rows[begin][0] < MORE else 2)
        if size + added > _MOST_BYTES or place - begin == _MOST_ROWS:
            yield _record(website, kind, rows[begin:place], encoded)
            begin, size, encoded = place, 0, []
            numbers = encode(kind, row, row[1])
        size += added
        encoded.append(numbers)
    yield _record(website, kind, rows[begin:], encoded)


def _view_numbers(_kind: RecordKind, row: Row, first_ms: int) -> bytes:
    time_ms = row[1]
    return encode_numbers((zigzag(time_ms - first_ms), zigzag(row[3] - time_ms), *row[4:]))


def _numbers(kind: RecordKind, row: Row, first_ms: int) -> bytes:
    """Return the numbers of a row after its sequence number."""
    after = _PLACE_FIELDS + _REFERENCES[kind]
    next_sequence = row[0] + 1
    distances = [number and next_sequence - number for number in row[_PLACE_FIELDS:after]]
    return encode_numbers((zigzag(row[1] - first_ms), *distances, *row[after:]))


def _record(
    website: int, kind: RecordKind, rows: Sequence[Row], encoded: Sequence[bytes]
) -> Record:
    last, first_ms = rows[-1][0], rows[0][1]
    parts = [bytes((kind, len(rows)))]
    if kind is RecordKind.VIEW:
        parts += [row[2] for row in rows]
    distances = map(encoding_of, [last - row[0] for row in rows])
    parts += chain.from_iterable(zip(distances, encoded, strict=True))
    key, value = wal_key(website, last, first_ms), b"".join(parts)
    return key, value + _CRC.pack(crc32(value, crc32(key)))


def sound_rows(records: Iterable[Record]) -> tuple[dict[RecordKind, Rows], list[bytes]]:
    """Return the rows of stored records by kind, in order, and the keys of the damaged records.

    A record is sound if its checksum matches and its value is what its first bytes say.
    """
    found, damaged = _sound(records)
    return {kind: rows for kind, (_, rows) in found.items()}, damaged


def sound_rows_of_websites(
    records: Iterable[Record],
) -> tuple[dict[int, dict[RecordKind, Rows]], list[bytes]]:
    """Return what `sound_rows` does, of records in the order of their websites, by website."""
    found, damaged = _sound(records)
    by_website: dict[int, dict[RecordKind, Rows]] = {}
    for kind, (sources, rows) in found.items():
        firsts = np.flatnonzero(np.diff(sources.websites, prepend=0))
        begins = (np.cumsum(sources.counts) - sources.counts)[firsts].tolist()
        ends = [*begins[1:], len(rows)]
        for website, begin, end in zip(
            sources.websites[firsts].tolist(), begins, ends, strict=True
        ):
            by_website.setdefault(website, {})[kind] = rows[begin:end]
    return by_website, damaged


class _Sources(NamedTuple):
    """Of each of some records, its website and its number of rows."""

    websites: NDArray[np.int64]
    counts: NDArray[np.intp]


def _sound(
    records: Iterable[Record],
) -> tuple[dict[RecordKind, tuple[_Sources, Rows]], list[bytes]]:
    """Return where the rows come from and the rows, by kind, and the keys of damaged records."""
    by_kind: dict[int, list[Record]] = {kind: [] for kind in RecordKind}
    damaged = []
    for key, value in records:
        if (
            len(key) != _KEY.size
            or crc32(value, crc32(key)) != _CRC_RESIDUE
            or value[0] not in by_kind
        ):
            damaged.append(key)
        else:
            by_kind[value[0]].append((key, value))
    found = {}
    for kind in RecordKind:
        of_kind = by_kind[kind]
        rows = np.zeros(sum([value[1] for _, value in of_kind]), _DTYPES[kind])
        parts, length = [], 0
        for begin in range(0, len(of_kind), _DECODED_AT_ONCE):
            some = of_kind[begin : begin + _DECODED_AT_ONCE]
            sources, odd = _decode(kind, some, rows[length:])
            damaged += odd
            parts.append(sources)
            length += int(sources.counts.sum())
        if length:
            found[kind] = _Sources(*map(np.concatenate, zip(*parts, strict=True))), rows[:length]
    return found, damaged


def _decode(
    kind: RecordKind, records: Sequence[Record], room: Rows
) -> tuple[_Sources, list[bytes]]:
    """Write the rows of records of one kind to the start of `room`; return where they come from.

    And the keys of the records that have other rows.
    """
    counts = np.fromiter((value[1] for _, value in records), np.intp, len(records))
    hashed = DIGEST_BYTES if kind is RecordKind.VIEW else 0
    begins = (_HEAD_BYTES + hashed * counts).tolist()
    numbers = [value[begin : -_CRC.size] for (_, value), begin in zip(records, begins, strict=True)]
    ends_before = np.cumsum([0, *map(len, numbers)])
    stream = b"".join(numbers)
    is_last = np.frombuffer(stream, np.uint8) < MORE
    numbers_before = np.flatnonzero(is_last).searchsorted(ends_before)
    is_whole = (np.diff(numbers_before) == counts * _FIELDS[kind]) & (counts > 0)
    is_whole &= np.concatenate(([False], is_last))[ends_before[1:]]
    if not is_whole.all():
        odd = [key for (key, _), whole in zip(records, is_whole, strict=True) if not whole]
        return _decode(kind, list(compress(records, is_whole)), room)[0], odd
    keys = np.frombuffer(
        b"".join([key for key, _ in records]),
        np.dtype([("website", ">u4"), ("sequence", ">u8"), ("time_ms", ">u8")]),
    )
    sources = _Sources(keys["website"].astype(np.int64), counts)
    matrix = decode_numbers(stream).reshape(-1, _FIELDS[kind])
    rows = room[: len(matrix)]
    rows["sequence"] = np.repeat(keys["sequence"], counts) - matrix[:, 0]
    rows["time_ms"] = np.repeat(keys["time_ms"], counts) + signed(matrix[:, 1]).view(np.uint64)
    if kind is RecordKind.VIEW:
        beacons = b"".join(
            [value[_HEAD_BYTES:begin] for (_, value), begin in zip(records, begins, strict=True)]
        )
        rows["beacon"] = np.frombuffer(beacons, f"V{DIGEST_BYTES}")
        rows["arrived_ms"] = rows["time_ms"] + signed(matrix[:, 2]).view(np.uint64)
        for column, name in enumerate(_AFTER_ARRIVAL, 3):
            rows[name] = matrix[:, column]
        rows["codes"] = matrix[:, -len(VIEW_DIMENSIONS) :]
        return sources, []
    after = _PLACE_FIELDS + _REFERENCES[kind]
    names = _DTYPES[kind].names or ()
    for column, name in enumerate(names[_PLACE_FIELDS:], _PLACE_FIELDS):
        stored = matrix[:, column]
        if column < after:
            stored = np.where(stored, rows["sequence"] + np.uint64(1) - stored, stored)
        rows[name] = stored
    return sources, []


_STORED: Final = struct.Struct(">QI")
"""The sequence number and a checksum."""
_SEGMENT_NUMBER: Final = 0
"""The segment number in the watermark's key, which no segment has."""


def write_watermark(txn: Txn, environment: Environment, website: int, watermark: int) -> None:
    """Store the sequence number up to which a website's records are flushed."""
    key = header_key(website, _SEGMENT_NUMBER)
    value = _STORED.pack(watermark, _checksum(key, watermark))
    txn.put(key, value, db=environment.databases.headers)


def read_watermark(txn: Txn, environment: Environment, website: int) -> int:
    """Return the sequence number up to which a website's records are flushed. Raises Damaged."""
    key = header_key(website, _SEGMENT_NUMBER)
    stored = txn.get(key, db=environment.databases.headers)
    if stored is None:
        return 0
    try:
        watermark, crc = _STORED.unpack(stored)
    except struct.error as error:
        raise Damaged("it is cut short") from error
    if crc != _checksum(key, watermark):
        raise Damaged("its checksum does not match")
    return int(watermark)


def unflushed_records(txn: Txn, environment: Environment) -> Iterator[Record]:
    """Return the records of all websites after their watermarks, or all where that is damaged.

    While a cluster is down, there are many before.
    """
    with txn.cursor(db=environment.databases.wal) as cursor:
        found = cursor.first()
        while found:
            website = website_of(cursor.key())
            with suppress(Damaged):
                watermark = read_watermark(txn, environment, website)
                found = cursor.set_range(wal_key_from(website, watermark + 1))
            while found and website_of(cursor.key()) == website:
                yield cursor.item()
                found = cursor.next()


def records_between(
    txn: Txn, databases: Databases, website: int, numbers: tuple[int, int]
) -> Iterator[Record]:
    """Return a website's records whose last number is after one number and up to another."""
    low, high = numbers
    with txn.cursor(db=databases.wal) as cursor:
        found = cursor.set_range(wal_key_from(website, low + 1))
        end = wal_key_from(website, high + 1)
        while found and cursor.key() < end:
            yield cursor.item()
            found = cursor.next()


def _checksum(key: bytes, watermark: int) -> int:
    return crc32(watermark.to_bytes(8, "big"), crc32(key))
