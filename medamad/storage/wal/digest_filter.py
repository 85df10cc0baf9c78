"""A Bloom filter of digests: it says of most that are not on disk that they are not.

Nearly every page load is new, and would be looked up in vain in each of the 24 hours before it. A
lookup takes little time, but releases the interpreter's lock: while a query runs, each is a wait.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from attrs import Factory, define, field

CAPACITY: Final = 2_000_000
"""How many digests a generation holds. Then it also takes 3 % of all others for its own."""
HOURS: Final = 24
"""For how long it is added to. Then the one before has nothing that is looked up any more."""
_POSITION: Final = (1 << 24) - 1
"""A generation has as many bits: 2 MiB."""
_SHIFTS: Final = (0, 20, 40)
"""Each digest has three bits. It is a keyed hash, so that its own bits say which."""


@define(eq=False)
class _Generation:
    first_hour: int
    """The hour of what was added first."""
    bits: bytearray = field(factory=lambda: bytearray((_POSITION + 1) // 8))
    count: int = 0
    latest_hour: int = -1
    """The latest hour of what was added."""


@define(eq=False)
class DigestFilter:
    """Digests of 64 bits in two generations.

    The older one is dropped once the other is full, or has been added to for HOURS.
    """

    capacity: int = CAPACITY
    """Of a generation."""
    since_hour: int = 0
    """Digests of earlier hours may be missing."""
    _generations: list[_Generation] = Factory(list)
    """The newer one is the last."""

    def __contains__(self, digest: bytes) -> bool:
        """Return False if the digest was not added, or dropped since."""
        number = int.from_bytes(digest, "big")
        for generation in self._generations:
            bits = generation.bits
            for shift in _SHIFTS:
                position = number >> shift & _POSITION
                if not bits[position >> 3] >> (position & 7) & 1:
                    break
            else:
                return True
        return False

    def add(self, digest: bytes, hour: int) -> None:
        """Add the digest of a beacon of an hour."""
        generation = self._with_room(1, hour)
        number = int.from_bytes(digest, "big")
        for shift in _SHIFTS:
            position = number >> shift & _POSITION
            generation.bits[position >> 3] |= 1 << (position & 7)
        generation.latest_hour = max(generation.latest_hour, hour)

    def add_all(self, digests: Sequence[bytes], latest_hour: int) -> None:
        """Add digests, of which the latest is of an hour."""
        if not digests:
            return
        generation = self._with_room(len(digests), latest_hour)
        numbers = np.frombuffer(b"".join(digests), ">u8").astype(np.uint64)
        bits = np.frombuffer(generation.bits, np.uint8)
        for shift in _SHIFTS:
            positions = numbers >> np.uint64(shift) & np.uint64(_POSITION)
            masks = np.uint8(1) << (positions & np.uint64(7)).astype(np.uint8)
            np.bitwise_or.at(bits, (positions >> np.uint64(3)).astype(np.intp), masks)
        generation.latest_hour = max(generation.latest_hour, latest_hour)

    def _with_room(self, count: int, hour: int) -> _Generation:
        """Return the newer generation, which takes in `count` of an hour."""
        generations = self._generations
        newer = generations[-1] if generations else None
        if newer is None or newer.count + count > self.capacity or hour - newer.first_hour >= HOURS:
            generations.append(_Generation(hour))
            if len(generations) > 2:  # noqa: PLR2004 - the two of the docstring
                self.since_hour = max(self.since_hour, generations.pop(0).latest_hour + 1)
        generations[-1].count += count
        return generations[-1]
