"""Corrections: what becomes known of a hit after its flush, and how it is applied to a segment.

A correction is stored under the sequence number of the view or event, and so holds in whatever
segment that is rewritten to. After 25 hours, when no more can arrive, the segment is rewritten.
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
from medamad.storage.environment.meta import entries
from medamad.storage.segments.parts import (
    ViewColumns,
)


class Corrected(IntEnum):
    """What a correction sets. Part of the store's format."""

    DURATION = 1
    """The duration of a view, in milliseconds."""
    VIEW = 2
    """The sequence number of the view of an event."""


class Correction(NamedTuple):
    """`sequence` is the number of the view or event."""

    kind: Corrected
    sequence: int
    value: int


_KEY: Final = struct.Struct(">IBQ")
_VALUE: Final = struct.Struct("<QI")
_WEBSITE: Final = struct.Struct(">I")


@define(eq=False)
class Values:
    """Values by sequence number, which are found by ranges of numbers."""

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
        """Remove the values of some numbers. Its time grows with the number of values that stay."""
        for sequence in sequences:
            del self._values[sequence]
        self._ascending = [sequence for sequence in self._ascending if sequence in self._values]

    def within(self, low: int, high: int) -> list[tuple[int, int]]:
        """Return the numbers from one to another, both included, with their values."""
        begin, end = bisect_left(self._ascending, low), bisect_right(self._ascending, high)
        return [(sequence, self._values[sequence]) for sequence in self._ascending[begin:end]]

    def all(self) -> Sequence[int]:
        """Return the numbers that have a value, ascending."""
        return self._ascending


def write_correction(txn: Txn, database: Database, website: int, correction: Correction) -> None:
    """Store a correction; it replaces an earlier one."""
    key = _KEY.pack(website, correction.kind, correction.sequence)
    crc = crc32(correction.value.to_bytes(8, "little"), crc32(key))
    txn.put(key, _VALUE.pack(correction.value, crc), db=database)


def delete_correction(txn: Txn, database: Database, website: int, correction: Correction) -> None:
    """Delete a correction."""
    txn.delete(_KEY.pack(website, correction.kind, correction.sequence), db=database)


def read_corrections(txn: Txn, database: Database, website: int) -> Iterator[Correction | str]:
    """Return the corrections of a website; of a damaged one, its place."""
    prefix = _WEBSITE.pack(website)
    for key, value in entries(txn, database, prefix):
        yield _read(key, value)


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
    """The corrections of a segment, ready to be applied to its columns."""

    places: NDArray[np.intp]
    """Which views have another duration, ascending."""
    duration_ms: NDArray[np.uint32]
    events: NDArray[np.uint64]
    """The numbers of the events that have another view, ascending."""
    views: NDArray[np.uint64]
    """The sequence numbers of these views."""

    def __len__(self) -> int:
        return len(self.places) + len(self.events)

    def extended(self, later: "Overlay") -> "Overlay":
        """Return this overlay with later corrections, which replace earlier ones."""
        return Overlay(
            *_merged(self.places, self.duration_ms, later.places, later.duration_ms),
            *_merged(self.events, self.views, later.events, later.views),
        )


Overlays: TypeAlias = Mapping[int, Overlay]
"""By the number of the segment."""


def overlay_of(
    part: ViewColumns,
    durations: Sequence[tuple[int, int]],
    views_of_events: Sequence[tuple[int, int]],
) -> Overlay:
    """Return the overlay of a segment by durations of views and views of events.

    Both are by sequence number, ascending; those that the segment does not have are left out.
    """
    places, duration_ms = np.zeros(0, np.intp), np.zeros(0, np.uint32)
    if durations and len(part):
        views = np.array([view for view, _ in durations], np.uint64)
        sequence = part.sequence
        places = np.minimum(np.searchsorted(sequence, views), len(sequence) - 1)
        duration_ms = np.array([ms for _, ms in durations], np.uint32)
        applies = (sequence[places] == views) & (duration_ms > part.duration_ms[places])
        places, duration_ms = places[applies], duration_ms[applies]
    events = np.array([event for event, _ in views_of_events], np.uint64)
    views_of = np.array([view for _, view in views_of_events], np.uint64)
    if len(events):
        is_loose = np.isin(events, part.loose.event)
        events, views_of = events[is_loose], views_of[is_loose]
    return Overlay(places, duration_ms, events, views_of)


def _merged(
    keys: NDArray[Any], values: NDArray[Any], later_keys: NDArray[Any], later_values: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Merge two mappings of ascending keys to values; later values replace earlier ones."""
    at = np.searchsorted(keys, later_keys)
    is_new = np.searchsorted(keys, later_keys, side="right") == at
    values = values.copy()
    values[at[~is_new]] = later_values[~is_new]
    at = at[is_new]
    return np.insert(keys, at, later_keys[is_new]), np.insert(values, at, later_values[is_new])
