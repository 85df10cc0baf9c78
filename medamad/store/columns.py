"""How a column of a block is stored: in as few bytes as its numbers need, with a checksum.

Three encodings. CONSTANT: one number for all. PLAIN: what each is above the least of them, or the
number itself, in the narrowest unsigned type; read without a copy. STEPS: for numbers that
ascend, what each is above the one before.
"""

import struct
import zlib
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from medamad.store.errors import Damaged

Whole: TypeAlias = NDArray[np.integer[Any]]

_CONSTANT, _PLAIN, _STEPS = range(3)
_HEAD: Final = struct.Struct("<IBBBxI4xQ")
"""Checksum, encoding, width in bytes, whether it is deflated, length, base."""
_CRC: Final = struct.Struct("<I")


def encode_column(key: bytes, values: Whole, *, deflate: bool = False) -> bytes:
    """Give the stored form of numbers from 0, with a checksum over it and its key.

    `deflate` is for columns that are seldom read: compressed, if that makes them shorter.
    """
    encoding, base, kept = _chosen(values)
    data = kept.tobytes()
    deflated = False
    if deflate:
        packed = zlib.compress(data, 6)
        deflated = len(packed) < len(data)
        data = packed if deflated else data
    head = _HEAD.pack(0, encoding, kept.itemsize, deflated, len(values), base)[_CRC.size :]
    return _CRC.pack(zlib.crc32(data, zlib.crc32(head, zlib.crc32(key)))) + head + data


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
