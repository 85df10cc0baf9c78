"""What is known to be damaged of a website: snapshots leave it out, and the operator is warned."""

from collections.abc import Container
from threading import Lock
from typing import Final

import numpy as np
from attrs import define, field
from twisted.logger import Logger

from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.errors import Damaged, DamagedSegment
from medamad.storage.segments.counters import decode_counters
from medamad.storage.segments.format import SLOTS, Column, decode_column, header_key

WAYS_OUT: Final = (
    "`medamad check --drop-damaged` removes what is damaged, `medamad restore` puts a backup in the"
    " place of the store"
)
_LEFT_OUT: Final = "damaged data is left out of results: {place} ({ways_out})"


@define(eq=False)
class Damage:
    """What is known to be damaged of one website. For any thread."""

    numbers: frozenset[int] = frozenset()
    """The segments, merged segments and rollups that have a damaged value."""
    lost_ms: tuple[tuple[int, int], ...] = ()
    """The first and the last millisecond of segments whose header is damaged."""
    _places: dict[str, int] = field(factory=dict)
    """The number of the segment that each damaged place is in; 0 if it is in none."""
    _lock: Lock = field(factory=Lock)
    _log = Logger()

    def add_segment(self, error: DamagedSegment) -> None:
        """Add a segment whose value was found to be damaged."""
        with self._lock:
            is_new = error.number not in self.numbers
            self.numbers |= {error.number}
            if is_new:
                self._places[str(error)] = error.number
        if is_new:
            self._log.error(_LEFT_OUT, place=str(error), ways_out=WAYS_OUT)

    def add_lost(self, place: str, span_ms: tuple[int, int] | None = None) -> None:
        """Add what is not loaded at all, and the times of its views if it is a segment."""
        with self._lock:
            self._places[place] = 0
            if span_ms is not None:
                self.lost_ms += (span_ms,)
        self._log.error(_LEFT_OUT, place=place, ways_out=WAYS_OUT)

    def places(self, present: Container[int]) -> list[str]:
        """Return what is damaged, apart from segments that are no longer present."""
        with self._lock:
            return [
                place for place, number in self._places.items() if not number or number in present
            ]


def span_without_header(
    txn: Txn, databases: Databases, website: int, number: int
) -> tuple[int, int] | None:
    """Return the first and the last time of a segment whose header is damaged, as far as known.

    Of a rollup, both are the beginning of its day. None for a merged segment, which is no loss.
    """
    prefix = header_key(website, 0)[:4]
    for database, kind in ((databases.segments, Column.TIME), (databases.counters, SLOTS)):
        with txn.cursor(db=database) as cursor:
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                key = cursor.key()
                if int.from_bytes(key[12:16], "big") == number and key[-1] == kind:
                    return _span(key, memoryview(cursor.value()))
                found = cursor.next()
    return None


def _span(key: bytes, value: memoryview) -> tuple[int, int] | None:
    begin_ms = int.from_bytes(key[4:12], "big")
    try:
        if key[-1] == Column.TIME:
            time_ms = decode_column(key, value, np.int64, check=True)
            return begin_ms, max(begin_ms, int(time_ms.max(initial=0)))
        # The counters of a rollup have the code 0 in place of slots.
        is_merged = bool(decode_counters(key, value, check=True).codes.any())
    except Damaged:
        return begin_ms, begin_ms
    return None if is_merged else (begin_ms, begin_ms)
