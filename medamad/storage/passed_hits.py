"""Hits that wait for another collector, which may have their view, and those that came from others.

An unload or event whose view is not known here belongs to the collector that has it. While that one
cannot be asked, the hit waits on disk, under each of the collectors that may have the view.
"""

import struct
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace
from twisted.logger import Logger

from medamad.domain.hits import Event, Unload
from medamad.domain.zones import DAY_MS
from medamad.storage.environment.environment import RECEIVED_HIT, WAITING_HIT, Databases, Txn
from medamad.storage.environment.meta import decoded, entries, verified, with_checksum
from medamad.storage.errors import Damaged

WAITS_MS: Final = DAY_MS
"""For how long a hit waits: after that, its view would not be found any more."""
_KEPT_MS: Final = 2 * DAY_MS
"""For how long a hit that came from another collector is recognised."""
_COLLECTOR: Final = struct.Struct(">H")
_SINCE: Final = struct.Struct(">Q")
_log: Final = Logger()


class WaitingHit(msgspec.Struct, frozen=True, array_like=True):
    """An unload or event, when it arrived, and the collectors that may have its view."""

    id: bytes
    """By which it is recognised if it is sent twice."""
    since_ms: int
    collectors: tuple[int, ...]
    unload: Unload | None = None
    event: Event | None = None

    def key_of(self, collector: int) -> bytes:
        """Return the name under which it waits for a collector: the oldest comes first."""
        place = _COLLECTOR.pack(collector) + _SINCE.pack(self.since_ms)
        return WAITING_HIT + place + self.id


def write_waiting(txn: Txn, databases: Databases, hits: Sequence[WaitingHit]) -> None:
    """Store hits that wait."""
    for hit in hits:
        value = msgspec.msgpack.encode(hit)
        for collector in hit.collectors:
            key = hit.key_of(collector)
            txn.put(key, with_checksum(key, value), db=databases.meta)


def read_waiting(txn: Txn, databases: Databases, collector: int, most: int) -> list[WaitingHit]:
    """Return the oldest hits that wait for a collector."""
    prefix = WAITING_HIT + _COLLECTOR.pack(collector)
    return list(islice(_sound(entries(txn, databases.meta, prefix)), most))


def _sound(stored: Iterator[tuple[bytes, bytes]]) -> Iterator[WaitingHit]:
    for key, value in stored:
        try:
            yield decoded(key, value, WaitingHit, msgspec.msgpack.decode)
        except Damaged as error:
            _log.error("a hit that waits for another collector is damaged: {why}", why=str(error))


def count_waiting(txn: Txn, databases: Databases) -> dict[int, int]:
    """Return how many hits wait for each collector."""
    found: dict[int, int] = {}
    for key, _ in entries(txn, databases.meta, WAITING_HIT):
        (collector,) = _COLLECTOR.unpack_from(key, len(WAITING_HIT))
        found[collector] = found.get(collector, 0) + 1
    return found


def settle(
    txn: Txn,
    databases: Databases,
    collector: int,
    answered: Sequence[tuple[WaitingHit, bool]],
    now_ms: int,
) -> tuple[list[Event], int]:
    """Delete hits that need not wait for a collector any more: with each, whether it took it.

    Return the events that no collector has taken, which count without their view; and how many
    entries were deleted.
    """
    left, deleted = [], 0
    for hit, is_taken in answered:
        others = [each for each in hit.collectors if each != collector]
        if not txn.delete(hit.key_of(collector), db=databases.meta):
            # Another one has taken it meanwhile.
            continue
        deleted += 1
        if is_taken:
            deleted += sum(txn.delete(hit.key_of(each), db=databases.meta) for each in others)
        elif hit.event is not None and not any(
            txn.get(hit.key_of(each), db=databases.meta) is not None for each in others
        ):
            happened_ms = hit.event.happened_ms or hit.since_ms
            left.append(
                replace(hit.event, time_ms=now_ms, happened_ms=happened_ms, needs_view=False)
            )
    return left, deleted


def is_received(txn: Txn, databases: Databases, hit_id: bytes, now_ms: int) -> bool:
    """Take note of a hit from another collector; return whether it came before."""
    key = RECEIVED_HIT + hit_id
    value = with_checksum(key, _SINCE.pack(max(now_ms, 0)))
    return not txn.put(key, value, db=databases.meta, overwrite=False)


def forget_received(txn: Txn, databases: Databases, now_ms: int) -> None:
    """Forget hits from other collectors that are not sent again."""
    for key, stored in list(entries(txn, databases.meta, RECEIVED_HIT)):
        try:
            (since_ms,) = _SINCE.unpack(verified(key, stored))
        except (Damaged, struct.error):
            since_ms = 0
        if now_ms - since_ms > _KEPT_MS:
            txn.delete(key, db=databases.meta)
