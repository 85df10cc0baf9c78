"""The format Native: blocks of columns, as ClickHouse keeps them.

Numbers are arrays as they are in memory, and texts are preceded by their length, so that no text
ever needs to be escaped. A block is a number of columns and of rows, then of each column its name,
its type and its values.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray


@frozen(eq=False)
class CodedTexts:
    """Texts as codes: `encoded[code]` is that of a code, as `encode_text` makes it."""

    codes: NDArray[np.integer[Any]]
    encoded: Sequence[bytes]


Values: TypeAlias = NDArray[Any] | Sequence[int] | Sequence[str] | CodedTexts
"""The values of a column that is sent."""
Columns: TypeAlias = dict[str, Any]
"""Columns that were received, by name: an array of numbers, or a list of texts."""

NUMBERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "UInt8": "<u1",
        "UInt16": "<u2",
        "UInt32": "<u4",
        "UInt64": "<u8",
        "Int8": "<i1",
        "Int16": "<i2",
        "Int32": "<i4",
        "Int64": "<i8",
        "Date": "<u2",
        "DateTime": "<u4",
        "Bool": "<u1",
        "Float64": "<f8",
    }
)
"""The types of numbers, and how numpy names them. A date is a number of days, a time of seconds."""

_ONE_BYTE: Final = 128


class NotNative(Exception):
    """What was received ends too early, or has a type that is not read here."""


def encode_text(text: str) -> bytes:
    """Return a text with its length before it."""
    data = text.encode("utf-8", "surrogateescape")
    return _varint(len(data)) + data


def encode_block(types: Mapping[str, str], columns: Mapping[str, Values]) -> bytes:
    """Return a block of columns, all of equal length; `types` has the types of all of them."""
    (size,) = {len(_codes(columns[name])) for name in types} or {0}
    pieces = [_varint(len(types)), _varint(size)]
    for name, type_ in types.items():
        pieces += [encode_text(name), encode_text(type_), _encode_values(type_, columns[name])]
    return b"".join(pieces)


def _codes(values: Values) -> Any:
    return values.codes if isinstance(values, CodedTexts) else values


def _encode_values(type_: str, values: Any) -> bytes:
    if isinstance(values, CodedTexts):
        encoded = values.encoded
        return b"".join([encoded[code] for code in values.codes.tolist()])
    if type_ in NUMBERS:
        return np.asarray(values, NUMBERS[type_]).tobytes()
    known: dict[str, bytes] = {}
    pieces = []
    for text in values:
        piece = known.get(text)
        if piece is None:
            piece = known[text] = encode_text(text)
        pieces.append(piece)
    return b"".join(pieces)


def _varint(number: int) -> bytes:
    data = bytearray()
    while number >= _ONE_BYTE:
        data.append(number & _ONE_BYTE - 1 | _ONE_BYTE)
        number >>= 7
    data.append(number)
    return bytes(data)


def decode_blocks(data: bytes) -> Columns:
    """Return the columns of all blocks together. Raises NotNative.

    Without a block, nothing is known of the columns, and none is returned.
    """
    names: dict[str, list[Any]] = {}
    at = 0
    while at < len(data):
        width, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        for _ in range(width):
            name, at = _read_texts(data, at, 1)
            type_, at = _read_texts(data, at, 1)
            values, at = _decode_values(type_[0], data, at, size)
            names.setdefault(name[0], []).append(values)
    return {name: _joined(pieces) for name, pieces in names.items()}


def _joined(pieces: list[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    if isinstance(pieces[0], list):
        return [text for piece in pieces for text in piece]
    return np.concatenate(pieces)


def _decode_values(type_: str, data: bytes, at: int, size: int) -> tuple[Any, int]:
    if type_ == "String":
        return _read_texts(data, at, size)
    if type_ not in NUMBERS:
        raise NotNative(f"a column has the type {type_}")
    dtype = np.dtype(NUMBERS[type_])
    end = at + size * dtype.itemsize
    if end > len(data):
        raise NotNative("the result ends too early")
    return np.frombuffer(data, dtype, size, at), end


def _read_texts(data: bytes, at: int, count: int) -> tuple[list[str], int]:
    texts = []
    for _ in range(count):
        length, at = _read_varint(data, at)
        end = at + length
        texts.append(data[at:end].decode("utf-8", "surrogateescape"))
        at = end
    if at > len(data):
        raise NotNative("the result ends too early")
    return texts, at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        number |= (byte & _ONE_BYTE - 1) << shift
        if byte < _ONE_BYTE:
            return number, at
        shift += 7
    raise NotNative("the result ends too early")
