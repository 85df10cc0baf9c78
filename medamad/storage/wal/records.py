"""The records of the write-ahead log: keys, values, columns, and the flush watermark.

A record's key is (website, time, sequence number); its value ends in a CRC-32 over key and value.
There are four kinds, each of a fixed width:

- a view, its texts as dictionary codes;
- the duration of a view, from an unload;
- a property of an event; the records of one event share the number of the first;
- a binding: an event belongs to a view that was stored after it.

The watermark is a sequence number: records up to it are flushed. It is stored among the headers of
the segments, before all of them.
"""

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import compress, product
from typing import Any, Final, TypeAlias
from zlib import crc32

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, ViewNumber
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.errors import Damaged
from medamad.storage.segments.format import FLAG_OF, header_key

Record: TypeAlias = tuple[bytes, bytes]
"""Key and value as stored."""


class RecordKind(IntEnum):
    """The first byte of a record. Part of the store's format."""

    VIEW = 1
    DURATION = 2
    PROPERTY = 3
    BINDING = 4


_KEY: Final = struct.Struct(">IQQ")
KEY_SIZE: Final = _KEY.size
_CRC: Final = struct.Struct("<I")
_CRC_RESIDUE: Final = 0x2144DF1C
"""The CRC-32 of anything that ends in its own CRC-32, least byte first."""
_LETTERS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_NUMBERS: Final = "".join(_LETTERS[number.bytes] for number in ViewNumber)
_VIEW: Final = struct.Struct(f"<BB{_NUMBERS}{len(VIEW_DIMENSIONS)}I")
_DURATION: Final = struct.Struct("<BQI")
_PROPERTY: Final = struct.Struct("<BQQI")
_BINDING: Final = struct.Struct("<BQQ")

KEY_DTYPE: Final = np.dtype([("website", ">u4"), ("time_ms", ">u8"), ("sequence", ">u8")])
VIEW_DTYPE: Final = np.dtype(
    [
        ("kind", "u1"),
        ("flags", "u1"),
        *((number.attribute, f"<u{number.bytes}") for number in ViewNumber),
        ("codes", "<u4", (len(VIEW_DIMENSIONS),)),
        ("crc", "<u4"),
    ]
)
DURATION_DTYPE: Final = np.dtype(
    [("kind", "u1"), ("view", "<u8"), ("duration_ms", "<u4"), ("crc", "<u4")]
)
PROPERTY_DTYPE: Final = np.dtype(
    [("kind", "u1"), ("event", "<u8"), ("view", "<u8"), ("property", "<u4"), ("crc", "<u4")]
)
BINDING_DTYPE: Final = np.dtype([("kind", "u1"), ("event", "<u8"), ("view", "<u8"), ("crc", "<u4")])

_DTYPES: Final = {
    RecordKind.VIEW: VIEW_DTYPE,
    RecordKind.DURATION: DURATION_DTYPE,
    RecordKind.PROPERTY: PROPERTY_DTYPE,
    RecordKind.BINDING: BINDING_DTYPE,
}
_FLAGS: Final = {
    are_set: sum(int(flag) for flag in compress(FLAG_OF.values(), are_set))
    for are_set in product((False, True), repeat=len(FLAG_OF))
}


def wal_key(website: int, time_ms: int, sequence: int) -> bytes:
    """Return the key of a record."""
    return _KEY.pack(website, time_ms, sequence)


def sequence_of(key: bytes) -> int:
    """Return the sequence number in a record's key."""
    return int.from_bytes(key[-8:], "big")


def describe_record(key: bytes) -> str:
    """Return which record this is, in words."""
    if len(key) != _KEY.size:
        return f"website {int.from_bytes(key[:4], 'big')}, key {key.hex()}"
    website, time_ms, sequence = _KEY.unpack(key)
    return f"website {website}, time {time_ms} ms, sequence {sequence}"


def view_record(
    key: bytes, flags: tuple[bool, ...], numbers: Sequence[int], codes: Sequence[int]
) -> Record:
    """Return the record of a view, in the order of FLAG_OF, ViewNumber and VIEW_DIMENSIONS."""
    return _with_crc(key, _VIEW.pack(RecordKind.VIEW, _FLAGS[flags], *numbers, *codes))


def duration_record(key: bytes, view: int, duration_ms: int) -> Record:
    """Return the record of the duration of the view with that sequence number."""
    return _with_crc(key, _DURATION.pack(RecordKind.DURATION, view, duration_ms))


def property_record(key: bytes, event: int, view: int, code: int) -> Record:
    """Return the record of one property of an event; `view` is 0 for none."""
    return _with_crc(key, _PROPERTY.pack(RecordKind.PROPERTY, event, view, code))


def binding_record(key: bytes, event: int, view: int) -> Record:
    """Return the record that binds an event to its view."""
    return _with_crc(key, _BINDING.pack(RecordKind.BINDING, event, view))


def _with_crc(key: bytes, value: bytes) -> Record:
    return key, value + _CRC.pack(crc32(value, crc32(key)))


@frozen(eq=False)
class RecordRows:
    """Records of one kind as structured arrays of equal length."""

    keys: NDArray[Any]
    """dtype KEY_DTYPE."""
    values: NDArray[Any]
    """dtype by kind."""

    def __len__(self) -> int:
        return len(self.keys)


def rows_by_kind(records: Iterable[Record]) -> dict[RecordKind, RecordRows]:
    """Return records that are known to be undamaged as columns, by kind and in the order given."""
    keys = {kind.value: bytearray() for kind in RecordKind}
    values = {kind.value: bytearray() for kind in RecordKind}
    for key, value in records:
        keys[value[0]] += key
        values[value[0]] += value
    return {
        kind: RecordRows(
            np.frombuffer(keys[kind], KEY_DTYPE), np.frombuffer(values[kind], _DTYPES[kind])
        )
        for kind in RecordKind
        if keys[kind]
    }


def sound_rows(records: Iterable[Record]) -> tuple[dict[RecordKind, RecordRows], list[bytes]]:
    """Return stored records as columns by kind, and the keys of the damaged ones.

    A record is sound if its kind is known, its width is that of its kind and its checksum matches.
    """
    whole = list(records)
    keys_of = [key for key, _ in whole]
    values_of = [value for _, value in whole]
    widths = np.fromiter(map(len, values_of), np.intp, len(whole))
    may_be_sound = np.fromiter(map(len, keys_of), np.intp, len(whole)) == KEY_SIZE
    crcs = np.fromiter(map(crc32, values_of, map(crc32, keys_of)), np.uint32, len(whole))
    may_be_sound &= crcs == _CRC_RESIDUE
    is_sound = np.zeros(len(whole), np.bool_)
    rows: dict[RecordKind, RecordRows] = {}
    for kind, dtype in _DTYPES.items():
        # The kinds differ in width.
        places = np.flatnonzero(may_be_sound & (widths == dtype.itemsize))
        if not len(places):
            continue
        keys = np.frombuffer(b"".join([keys_of[place] for place in places.tolist()]), KEY_DTYPE)
        values = np.frombuffer(b"".join([values_of[place] for place in places.tolist()]), dtype)
        sound = values["kind"] == kind
        is_sound[places] = sound
        if sound.all():
            rows[kind] = RecordRows(keys, values)
        elif sound.any():
            rows[kind] = RecordRows(keys[sound], values[sound])
    damaged = [keys_of[place] for place in np.flatnonzero(~is_sound).tolist()]
    return rows, damaged


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


def _checksum(key: bytes, watermark: int) -> int:
    return crc32(watermark.to_bytes(8, "big"), crc32(key))
