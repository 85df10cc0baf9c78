"""Corrections: what becomes known of a hit after its flush, and how a segment shows it.

Kept under the sequence number of the view or event, so that it stays true whatever segment that is
moved to; folded into the segment after a day, when nothing more can come.
"""

import struct
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.storage.environment.environment import Database, Txn
from medamad.storage.segments.parts import (
    ViewColumns,
)


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
        """Return the value of a number, 0 for none."""
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
        """Return the numbers between two, these included, with their values."""
        begin, end = bisect_left(self._ascending, low), bisect_right(self._ascending, high)
        return [(sequence, self._values[sequence]) for sequence in self._ascending[begin:end]]

    def all(self) -> Sequence[int]:
        """Return all numbers that have a value, ascending."""
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
    """Return the corrections of a website; of a damaged one, where it stands."""
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


@frozen(eq=False)
class Overlay:
    """What became known of a segment's hits after it was flushed.

    `places` of views, ascending, and how long each was seen; `events` by number, ascending, and
    the sequence numbers of their views.
    """

    places: NDArray[np.intp]
    duration_ms: NDArray[np.uint32]
    events: NDArray[np.uint64]
    views: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.places) + len(self.events)

    def extended(self, later: "Overlay") -> "Overlay":
        """Return this with what became known later, which counts where both tell of a hit."""
        return Overlay(
            *_together(self.places, self.duration_ms, later.places, later.duration_ms),
            *_together(self.events, self.views, later.events, later.views),
        )


Overlays: TypeAlias = Mapping[int, Overlay]
"""By the number of the segment."""


def overlay_of(
    part: ViewColumns, raised: Sequence[tuple[int, int]], bound: Sequence[tuple[int, int]]
) -> Overlay:
    """Return what changes of a segment by durations of views and views of events, if they are its own.

    Both by sequence number, ascending.
    """
    places, duration_ms = np.zeros(0, np.intp), np.zeros(0, np.uint32)
    if raised and len(part):
        views = np.array([view for view, _ in raised], np.uint64)
        sequence = part.sequence
        places = np.minimum(np.searchsorted(sequence, views), len(sequence) - 1)
        duration_ms = np.array([ms for _, ms in raised], np.uint32)
        counts = (sequence[places] == views) & (duration_ms > part.duration_ms[places])
        places, duration_ms = places[counts], duration_ms[counts]
    events = np.array([event for event, _ in bound], np.uint64)
    views_of = np.array([view for _, view in bound], np.uint64)
    if len(events):
        known = np.isin(events, part.loose.event)
        events, views_of = events[known], views_of[known]
    return Overlay(places, duration_ms, events, views_of)


def _together(
    keys: NDArray[Any], values: NDArray[Any], later_keys: NDArray[Any], later_values: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Put two lots of ascending keys, each with its value, into one."""
    at = np.searchsorted(keys, later_keys)
    is_new = np.searchsorted(keys, later_keys, side="right") == at
    values = values.copy()
    values[at[~is_new]] = later_values[~is_new]
    at = at[is_new]
    return np.insert(keys, at, later_keys[is_new]), np.insert(values, at, later_values[is_new])
