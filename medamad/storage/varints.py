"""Unsigned numbers as bytes, small ones in few: LEB128, seven bits in each byte, the lowest first.

All bytes of a number but its last have their highest bit set.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

MORE: Final = 0x80
"""The bit that is set in all bytes of a number but the last."""
_SEVEN_BITS: Final = 0x7F
_CACHED: Final = 1 << 14
"""The encodings of numbers below this are cached once they were used."""


class _Encodings(dict[int, bytes]):
    def __missing__(self, number: int) -> bytes:
        rest, encoded = number, bytearray()
        while rest >= MORE:
            encoded.append(rest & _SEVEN_BITS | MORE)
            rest >>= 7
        encoded.append(rest)
        if number < _CACHED:
            self[number] = bytes(encoded)
        return bytes(encoded)


encoding_of: Final = _Encodings().__getitem__
"""Returns the bytes of a number. Raises ValueError for a negative one."""


def encode_numbers(numbers: Iterable[int]) -> bytes:
    """Return the bytes of numbers, one after the other. Raises ValueError for a negative one."""
    return b"".join(map(encoding_of, numbers))


def decode_numbers(encoded: bytes | bytearray) -> NDArray[np.uint64]:
    """Return the numbers of the bytes of any number of calls of `encode_numbers`."""
    octets = np.frombuffer(encoded, np.uint8)
    ends = np.flatnonzero(octets < MORE)
    begins = np.concatenate((ends[:1] * 0, ends[:-1] + 1))
    firsts = octets[begins]
    numbers: NDArray[np.uint64] = (firsts & _SEVEN_BITS).astype(np.uint64)
    # The numbers that have another byte, and where the last byte read of each is.
    longer = np.flatnonzero(firsts >= MORE)
    at = begins[longer]
    shift = 0
    while len(longer):
        shift += 7
        at += 1
        further = octets[at]
        numbers[longer] |= (further & _SEVEN_BITS).astype(np.uint64) << np.uint64(shift)
        unfinished = np.flatnonzero(further >= MORE)
        longer, at = longer[unfinished], at[unfinished]
    return numbers


def zigzag(number: int) -> int:
    """Return a number, which may be negative, as an unsigned one that is about twice as large."""
    return number << 1 if number >= 0 else (-number << 1) - 1


def signed(zigzags: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the numbers that `zigzag` has made these of."""
    one = np.uint64(1)
    numbers: NDArray[np.int64] = (zigzags >> one).view(np.int64) ^ -(zigzags & one).view(np.int64)
    return numbers
