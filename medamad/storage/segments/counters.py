"""Counters: views, visitors, bounces and durations by the code of a dimension, or by slot of time.

A segment, or a full chunk of a memtable, has them for each dimension and for quarters of an hour. A
merged segment has those of its members, added up.
"""

import struct
from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.storage.errors import Damaged
from medamad.storage.segments.format import (
    BOUNCED,
    FLAG_BITS,
    PAGE_VISITOR,
    TIMED,
    VISITOR,
    Integers,
)

SLOT_MS: Final = 900_000
"""Views are counted by quarters of an hour: slot n begins n * SLOT_MS after the epoch."""

VIEWS, VISITORS, PAGE_VISITORS, TIMED_VISITORS, BOUNCES, DURATION_MS = range(6)
SUMS: Final = 6

_HEAD: Final = struct.Struct("<IIB")
"""Checksum, number of codes and of sums. The width of each column in bytes follows."""
_ROWS: Final[tuple[tuple[int, np.uint8], ...]] = (
    (VISITORS, VISITOR),
    (PAGE_VISITORS, PAGE_VISITOR),
    (TIMED_VISITORS, VISITOR | TIMED),
    (BOUNCES, VISITOR | BOUNCED),
)
_FLAGS_WITH: Final = {
    row: [flags for flags in range(1 << FLAG_BITS) if flags & wanted == wanted]
    for row, wanted in _ROWS
}
"""The combinations of flags that each sum counts."""
_COUNTED_FLAGS: Final = np.uint8((1 << FLAG_BITS) - 1)
_SPARSE: Final = 4
_WIDEST: Final = 8


@frozen(eq=False)
class Counters:
    """Sums by code, shape (k,) each, of any integer dtype. `codes` are strictly ascending.

    `sums` of views are in the order VIEWS to DURATION_MS, those of the visits of a day in the order
    of `medamad.storage.segments.visit_counters`.
    """

    codes: Integers
    sums: tuple[Integers, ...]

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return sum(column.nbytes for column in (self.codes, *self.sums))

    def take(self, which: NDArray[Any]) -> "Counters":
        """Return the sums of some codes, by their places or a mask."""
        return Counters(self.codes[which], tuple(row[which] for row in self.sums))

    def __len__(self) -> int:
        return len(self.codes)


def keys_of(numbers: Integers, flags: NDArray[np.uint8]) -> Integers:
    """Return the number and the flags of each view as one key, in a narrow type."""
    keys: NDArray[Any] = numbers.astype(np.uint16 if numbers.dtype == np.uint8 else np.uint32)
    keys <<= keys.dtype.type(FLAG_BITS)
    keys |= flags & _COUNTED_FLAGS
    return keys


def sums_of(keys: Integers, duration_ms: Integers | None, size: int) -> NDArray[np.int64]:
    """Add up views by their numbers, from 0 to size - 1, given as keys of `keys_of`.

    Shape (SUMS, size). Without durations DURATION_MS is 0.
    """
    sums = sums_by_flags(_by_flags(np.bincount(keys, minlength=size << FLAG_BITS)))
    if duration_ms is not None:
        # Weights are floats; they are exact, as the total stays far below 2**53 ms.
        total_ms = np.bincount(keys, duration_ms, size << FLAG_BITS)
        sums[DURATION_MS] = _by_flags(total_ms).sum(axis=0)
    return sums


def sums_by_flags(counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Return sums from the counts of views by combination of flags.

    Shape (SUMS, n) from (flags, n). DURATION_MS is 0.
    """
    sums = np.zeros((SUMS, counts.shape[1]), np.int64)
    sums[VIEWS] = counts.sum(axis=0)
    for row, rows in _FLAGS_WITH.items():
        sums[row] = counts[rows].sum(axis=0)
    return sums


def _by_flags(counts: NDArray[Any]) -> NDArray[Any]:
    return counts.reshape(-1, 1 << FLAG_BITS).T


def count_views(numbers: Integers, flags: NDArray[np.uint8], duration_ms: Integers) -> Counters:
    """Return the counters of views by their numbers."""
    if not len(numbers):
        return Counters(np.zeros(0, np.uint32), (np.zeros(0, np.uint32),) * SUMS)
    least = int(numbers.min())
    size = int(numbers.max()) - least + 1
    if size > _SPARSE * len(numbers):
        codes, places = np.unique(numbers, return_inverse=True)
        sums = sums_of(keys_of(places, flags), duration_ms, len(codes))
        return Counters(codes, tuple(sums))
    keys = keys_of(numbers - numbers.dtype.type(least), flags)
    sums = sums_of(keys, duration_ms, size)
    used = np.flatnonzero(sums[VIEWS])
    return Counters(used + least, tuple(row[used] for row in sums))


def merge(parts: Sequence[Counters]) -> Counters:
    """Add counters up that have the same sums."""
    codes = np.concatenate([part.codes for part in parts]).astype(np.uint32)
    size = len(parts[0].sums)
    if not len(codes):
        return Counters(codes, (codes,) * size)
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    begins = np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
    sums = (
        np.concatenate([part.sums[row] for part in parts], dtype=np.int64)[order]
        for row in range(size)
    )
    return Counters(codes[begins], tuple(np.add.reduceat(row, begins) for row in sums))


def compact(sums: NDArray[np.int64]) -> Counters:
    """Return counters in narrow types from sums by code, shape (SUMS, n)."""
    codes = np.flatnonzero(sums[VIEWS])
    return narrow(Counters(codes, tuple(sums.take(codes, axis=1))))


def narrow(counters: Counters) -> Counters:
    """Return counters in narrow types."""
    return Counters(_narrow(counters.codes), tuple(map(_narrow, counters.sums)))


def _narrow(numbers: Integers) -> Integers:
    narrow = narrowed(numbers)
    if narrow is None:
        return np.zeros(len(numbers), np.uint8)
    # numpy adds unsigned and signed numbers of 64 bits as floats.
    return narrow.astype(np.int64) if narrow.itemsize == _WIDEST else narrow


@frozen(eq=False)
class Change:
    """Views whose duration was corrected: flags before and after, and the difference."""

    flags: NDArray[np.uint8]
    new_flags: NDArray[np.uint8]
    added_ms: NDArray[np.int64]


def changed(counters: Counters, numbers: Integers, change: Change) -> Counters:
    """Return counters after a change of views that have these numbers."""
    places = np.searchsorted(counters.codes, numbers)
    sums = list(counters.sums)
    for row, wanted in _ROWS:
        gained = ((change.new_flags & wanted) == wanted).astype(np.int64)
        gained -= (change.flags & wanted) == wanted
        if gained.any():
            sums[row] = sums[row].astype(np.int64)
            np.add.at(sums[row], places, gained)
    sums[DURATION_MS] = sums[DURATION_MS].astype(np.int64)
    np.add.at(sums[DURATION_MS], places, change.added_ms)
    return Counters(counters.codes, tuple(sums))


def encode_counters(key: bytes, counters: Counters) -> bytes:
    """Return counters as stored, with a checksum over them and their key."""
    narrow = [narrowed(column) for column in (counters.codes, *counters.sums)]
    widths = [column.itemsize if column is not None else 0 for column in narrow]
    header = _HEAD.pack(0, len(counters), len(counters.sums))[4:] + bytes(widths)
    data = b"".join(column.tobytes() for column in narrow if column is not None)
    crc = crc32(data, crc32(header, crc32(key)))
    return struct.pack("<I", crc) + header + data


def decode_counters(key: bytes, value: memoryview, *, check: bool) -> Counters:
    """Decode counters without a copy. `check` verifies the checksum. Raises Damaged."""
    try:
        crc, count_, sums = _HEAD.unpack_from(value)
    except struct.error as error:
        raise Damaged("it is cut short") from error
    if check and crc32(value[4:], crc32(key)) != crc:
        raise Damaged("its checksum does not match")
    columns: list[Integers] = []
    place = _HEAD.size + 1 + sums
    for width in value[_HEAD.size : place]:
        if width:
            # numpy adds unsigned and signed numbers of 64 bits as floats.
            dtype = "<i8" if width == _WIDEST else f"<u{width}"
            columns.append(np.frombuffer(value, dtype, count_, place))
        else:
            columns.append(np.zeros(count_, np.uint8))
        place += width * count_
    return Counters(columns[0], tuple(columns[1:]))


def narrowed(numbers: Integers) -> NDArray[np.unsignedinteger[Any]] | None:
    """Return non-negative numbers in the narrowest unsigned dtype; None if all are 0."""
    greatest = int(numbers.max()) if len(numbers) else 0
    return numbers.astype(np.min_scalar_type(greatest).newbyteorder("<")) if greatest else None
