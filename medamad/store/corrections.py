"""What becomes known of a hit after it was sealed: how long a view was seen, whose an event was.

Kept under the sequence number of the view or event, so that it stays true whatever block that is
moved to; folded into the block after a day, when nothing more can come.
"""

import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple
from zlib import crc32

from attrs import define, field

from medamad.store.environment import Database, Txn


class Corrected(IntEnum):
    """What a correction says. Part of the store's format."""

    DURATION = 1
    """A view was seen for so many milliseconds."""
    VIEW = 2
    """An event belongs to the view with that sequence number."""


class Correction(NamedTuple):
    """`sequence` is of the view, or the number of the event."""

    kind: Corrected
    sequence: int
    value: int


_KEY: Final = struct.Struct(">IBQ")
_VALUE: Final = struct.Struct("<QI")
_WEBSITE: Final = struct.Struct(">I")


@define(eq=False)
class Values:
    """Values by sequence number, found by stretches of numbers."""

    _values: dict[int, int] = field(factory=dict)
    _ascending: list[int] = field(factory=list)

    def get(self, sequence: int) -> int:
        """Give the value of a number, 0 for none."""
        return self._values.get(sequence, 0)

    def put(self, sequence: int, value: int) -> None:
        """Set the value of a number."""
        if sequence not in self._values:
            insort(self._ascending, sequence)
        self._values[sequence] = value

    def remove(self, sequences: Iterable[int]) -> None:
        """Forget the values of numbers that have one; all at once, since each goes through many."""
        for sequence in sequences:
            del self._values[sequence]
        self._ascending = [sequence for sequence in self._ascending if sequence in self._values]

    def within(self, low: int, high: int) -> list[tuple[int, int]]:
        """Give the numbers between two, these included, with their values."""
        begin, end = bisect_left(self._ascending, low), bisect_right(self._ascending, high)
        return [(sequence, self._values[sequence]) for sequence in self._ascending[begin:end]]

    def all(self) -> Sequence[int]:
        """Give all numbers that have a value, ascending."""
        return self._ascending


def write_correction(txn: Txn, database: Database, website: int, correction: Correction) -> None:
    """Store a correction in the place of an earlier one."""
    key = _KEY.pack(website, correction.kind, correction.sequence)
    crc = crc32(correction.value.to_bytes(8, "little"), crc32(key))
    txn.put(key, _VALUE.pack(correction.value, crc), db=database)


def delete_correction(txn: Txn, database: Database, website: int, correction: Correction) -> None:
    """Remove what is stored of a hit."""
    txn.delete(_KEY.pack(website, correction.kind, correction.sequence), db=database)


def read_corrections(txn: Txn, database: Database, website: int) -> Iterator[Correction | str]:
    """Give the corrections of a website; of a damaged one, where it stands."""
    prefix = _WEBSITE.pack(website)
    with txn.cursor(db=database) as cursor:
        found = cursor.set_range(prefix)
        while found and cursor.key().startswith(prefix):
            yield _read(*cursor.item())
            found = cursor.next()


def _read(key: bytes, value: bytes) -> Correction | str:
    try:
        (_, kind, sequence), (number, crc) = _KEY.unpack(key), _VALUE.unpack(value)
        if crc32(value[:8], crc32(key)) == crc:
            return Correction(Corrected(kind), sequence, number)
    except (struct.error, ValueError):
        pass
    return f"website {int.from_bytes(key[:4], 'big')}, correction {key.hex()}"
