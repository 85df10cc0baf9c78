"""Live visits: the table in memory that assigns each new view to its visit.

A visit is the views and events of one browser on one website, with no gap longer than the timeout,
and ends 24 hours after it began. On disk a view carries the number of its visit, which is the
sequence number of the visit's first view. Who made it is known to this table alone: its keys are
hashes of the website and the visitor's identity, under a hash key that is never written and is
replaced at midnight.
"""

import struct
from array import array
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from itertools import starmap
from typing import Final

from attrs import define, field, frozen
from msgspec.structs import astuple, replace

from medamad.domain.dimensions import VISIT_MS
from medamad.domain.hits import View
from medamad.storage.wal.visit_keys import HashKeys, VisitSettings
from medamad.storage.wal.visit_rules import LiveVisit, begin, find, shows_sharing

_VISIT: Final = struct.Struct("<QQQQQIIIHHH")
_NUMBER: Final = struct.Struct(f"<Q{_VISIT.size - 8}x")
_SLOT: Final = struct.Struct("<H")
_SLOTS: Final = 1 << 16
_WEBSITE: Final = struct.Struct(">I")
_DIGEST_SIZE: Final = 16
MAX_PER_KEY: Final = 256
"""The most live visits of one key; the one that has been idle longest makes room."""
_FLAGS: Final = 1 << 20
_HEAVY_SHARE: Final = 50
"""A network with more than this fraction of the capacity gives way first."""
_STEP: Final = 1_000
"""How many keys a batch expires at most."""


def _slot_of(record: bytes) -> int:
    slot: int = _SLOT.unpack_from(record)[0]
    return slot


def _count_of(record: bytes) -> int:
    """Return how many visits are in the record of a key."""
    return len(record) // _VISIT.size


def _visits_of(record: bytes) -> Iterator[LiveVisit]:
    """Return the visits in the record of a key."""
    return starmap(LiveVisit, _VISIT.iter_unpack(memoryview(record)[_SLOT.size :]))


def _packed(visit: LiveVisit) -> bytes:
    """Return a visit as it is in the record of a key."""
    return _VISIT.pack(*astuple(visit))


def _numbers_of(record: bytes) -> list[int]:
    """Return the numbers of the visits in the record of a key."""
    return [number for (number,) in _NUMBER.iter_unpack(memoryview(record)[_SLOT.size :])]


def _arrived_ms(record: bytes) -> int:
    """Return when something of a key last arrived."""
    return max(visit.arrived_ms for visit in _visits_of(record))


def _slot_of_network(network: bytes) -> int:
    """Return where visits of a network are counted: 0 if no limit of networks applies."""
    # The hash is salted, so that nobody can choose a network that shares the slot of another.
    return 1 + hash(network) % (_SLOTS - 1) if network else 0


@frozen
class _IdleKeys:
    """Keys of one network, the longest idle first, as they were at a time."""

    collected_ms: int
    keys: deque[bytes]


@define(eq=False)
class _NetworkCounts:
    """How many visits each network has, and which of the heavy ones give way first.

    Networks share slots, by a hash: of 200,000 networks, about three share one.
    """

    _counts: "array[int]" = field(factory=lambda: array("I", [0]) * _SLOTS)
    _heavy: set[int] = field(factory=set)
    _idle: dict[int, _IdleKeys] = field(factory=dict)
    """By slot, what was collected in one scan of the table, which is slow."""

    def add(self, slot: int, change: int, most: int) -> None:
        """Count visits of a slot, of which more than `most` are many."""
        if not slot:
            return
        count = self._counts[slot] + change
        self._counts[slot] = count
        if count > most:
            self._heavy.add(slot)
        elif self._heavy:
            self._heavy.discard(slot)
        if count < most // 2 and self._idle:
            self._idle.pop(slot, None)

    def longest_idle(self, records: OrderedDict[bytes, bytes]) -> bytes | None:
        """Return the longest idle key of the network that has most, None if none has many."""
        if not self._heavy:
            return None
        slot = max(self._heavy, key=self._counts.__getitem__)
        while True:
            idle = self._idle.get(slot)
            if idle is None or not idle.keys:
                packed = _SLOT.pack(slot)
                keys = deque(key for key, record in records.items() if record.startswith(packed))
                idle = _IdleKeys(_arrived_ms(next(reversed(records.values()))), keys)
                self._idle[slot] = idle
                return idle.keys.popleft()
            key = idle.keys.popleft()
            record = records.get(key)
            if record is not None and _arrived_ms(record) <= idle.collected_ms:
                return key


@define(eq=False)
class LiveVisits:
    """The visits that may go on, by key, in the order of last activity.

    Used by the writer thread alone; `settings` may be replaced at any time, and any thread may read
    the length and `evicted`.
    """

    settings: VisitSettings = field(factory=VisitSettings)
    evicted: int = 0
    """How many visits have made room for others since the start."""
    keys: HashKeys = field(factory=HashKeys, init=False)
    _records: OrderedDict[bytes, bytes] = field(factory=OrderedDict, init=False)
    """By key: the slot of its network, then its visits."""
    _records_of: list[int] = field(factory=lambda: [0, 0], init=False)
    """How many records have keys of each parity."""
    _key_of: dict[int, bytes] = field(factory=dict, init=False)
    """The key of each visit. Its length is the number of visits."""
    _shared: bytearray = field(factory=lambda: bytearray(_FLAGS), init=False)
    """Today's keys that several people share, by a few bits of the key."""
    _networks: _NetworkCounts = field(factory=_NetworkCounts, init=False)

    def __len__(self) -> int:
        """Return how many visits are live."""
        return len(self._key_of)

    def batch(self) -> "VisitBatch":
        """Return what assigns the views of one transaction."""
        self._clear_if_off()
        return VisitBatch(self)

    def hash_keys(self, now_ms: int) -> HashKeys:
        """Return the keys that identities are hashed with now."""
        if self.keys.advance(now_ms, self.settings):
            self._shared = bytearray(_FLAGS)
            if self._records_of[self.keys.parity]:
                # No view can continue what began two days ago, and was kept alive by events.
                for key in [key for key in self._records if key[0] == self.keys.parity]:
                    self.remove(key)
        return self.keys

    def _clear_if_off(self) -> None:
        """Forget all visits and the hash keys if visits have been switched off."""
        if not self.settings.is_on and self._records:
            self._records.clear()
            self._records_of = [0, 0]
            self._key_of.clear()
            self._networks = _NetworkCounts()
            self._shared = bytearray(_FLAGS)
            self.keys = HashKeys()

    def record(self, key: bytes) -> bytes:
        """Return the record of a key, b"" if it has no live visits."""
        return self._records.get(key, b"")

    def is_shared(self, key: bytes) -> bool:
        """Return whether several people seem to share a key today."""
        return bool(self._shared[_flag_of(key)])

    def share(self, key: bytes) -> None:
        """Record that several people share a key."""
        self._shared[_flag_of(key)] = 1

    def key_of(self, visit: int) -> bytes | None:
        """Return the key of a live visit."""
        return self._key_of.get(visit)

    def put(self, key: bytes, record: bytes) -> None:
        """Replace the record of a key, which becomes the latest; b"" removes it."""
        before = self._records.pop(key, b"")
        if record:
            self._records[key] = record
        self._records_of[key[0]] += bool(record) - bool(before)
        change = _count_of(record) - _count_of(before)
        if change:
            slot = _slot_of(record or before)
            self._networks.add(slot, change, self.settings.capacity // _HEAVY_SHARE)

    def rekey(self, key_of: Mapping[int, bytes], ended: Iterable[int]) -> None:
        """Record the keys of visits that have begun or moved, and forget those that have ended."""
        self._key_of.update(key_of)
        for number in ended:
            self._key_of.pop(number, None)

    def remove(self, key: bytes) -> None:
        """Remove the visits of a key."""
        self.rekey({}, _numbers_of(self._records[key]))
        self.put(key, b"")

    def make_room(self) -> None:
        """Remove visits while there are too many: first those of networks that have many."""
        while len(self) > self.settings.capacity:
            before = len(self)
            key = self._networks.longest_idle(self._records)
            self.remove(next(iter(self._records)) if key is None else key)
            self.evicted += before - len(self)

    def expire(self, now_ms: int, most: int) -> int:
        """Remove at most `most` keys for which nothing has arrived for one timeout.

        Hash keys are replaced and forgotten here too, since no view may arrive after midnight.
        Returns how many keys were removed: fewer than `most` when none is left.
        """
        self._clear_if_off()
        if self.settings.is_on:
            self.hash_keys(now_ms)
        removed = 0
        while removed < most and self._records:
            key, record = next(iter(self._records.items()))
            if abs(now_ms - _arrived_ms(record)) <= self.settings.timeout_ms:
                break
            self.remove(key)
            removed += 1
        if not self._records_of[1 - self.keys.parity]:
            self.keys.old = b""
        return removed


@define(eq=False)
class VisitBatch:
    """The visits of one transaction's views. They enter the table by `remember` alone."""

    _live: LiveVisits
    _records: dict[bytes, bytes] = field(factory=dict)
    """What this batch changes, by key, in the order of last activity; b"" is removed."""
    _key_of: dict[int, bytes] = field(factory=dict)
    """The keys of the visits that this batch has moved or begun."""
    _ended: set[int] = field(factory=set)
    """The visits that this batch has removed from records."""
    _shared: set[bytes] = field(factory=set)
    """The keys that several people were found to share."""
    _now_ms: int = 0

    def assign(self, view: View, sequence: int) -> int:
        """Return the number of the visit of a view that gets a sequence number; 0 for none."""
        settings = self._live.settings
        if not settings.is_on or not view.identity:
            return 0
        self._now_ms = view.time_ms
        key, record = self._find(view)
        visits, before = self._live_visits(record), None
        if visits:
            happened_ms = view.happened_ms or view.time_ms
            latest_ms = max(visit.last_ms for visit in visits)
            if happened_ms < latest_ms - settings.timeout_ms:
                return 0
            before = self._continued(key, visits, view)
        if before is None:
            visit = begin(view, sequence)
        else:
            midnight_ms = self._live.keys.midnight_ms(view.happened_ms or view.time_ms)
            visit = before.with_view(view, midnight_ms)
        record = record or _SLOT.pack(_slot_of_network(view.network))
        self._put_visit(key, record, visits, before, visit)
        return visit.number

    def keep_alive(self, number: int, time_ms: int, arrived_ms: int) -> None:
        """Let a visit go on after an unload or event that happened and arrived at these times."""
        key = self._key_of.get(number) or self._live.key_of(number)
        if key is None:
            return
        timeout_ms = self._live.settings.timeout_ms
        self._now_ms = arrived_ms
        record = self._record(key)
        visits = self._live_visits(record)
        for before in visits:
            if before.number == number and abs(time_ms - before.last_ms) <= timeout_ms:
                visit = replace(
                    before,
                    last_ms=max(before.last_ms, time_ms),
                    arrived_ms=max(before.arrived_ms, arrived_ms),
                )
                self._put_visit(key, record, visits, before, visit)
                return

    def remember(self) -> None:
        """Take what was committed into the table."""
        live = self._live
        live.rekey(self._key_of, self._ended)
        for key, record in self._records.items():
            live.put(key, record)
        for key in self._shared:
            live.share(key)
        if self._records:
            live.make_room()
            live.expire(self._now_ms, _STEP)

    def _continued(self, key: bytes, visits: list[LiveVisit], view: View) -> LiveVisit | None:
        """Return which visit of a key a view continues, None if it begins a new one."""
        live, happened_ms = self._live, view.happened_ms or view.time_ms
        timeout_ms = live.settings.timeout_ms
        near = [
            visit
            for visit in visits
            if abs(happened_ms - visit.last_ms) <= timeout_ms
            and happened_ms - visit.began_ms < VISIT_MS
        ]
        if not near:
            return None
        midnight_ms = live.keys.midnight_ms(happened_ms)
        is_shared = key in self._shared or live.is_shared(key)
        found = find(near, view, midnight_ms, is_shared=is_shared)
        if found is None and shows_sharing(near, view, midnight_ms):
            self._shared.add(key)
        return found

    def _find(self, view: View) -> tuple[bytes, bytes]:
        """Return the key of a view and its record; that of the day before moves to the new key."""
        keys = self._live.hash_keys(view.time_ms)
        key = _digest(keys.current, keys.parity, view)
        record = self._record(key)
        if not record and keys.old:
            old_key = _digest(keys.old, 1 - keys.parity, view)
            record = self._record(old_key)
            if record:
                self._put(old_key, b"")
                self._put(key, record)
                self._key_of.update((visit.number, key) for visit in _visits_of(record))
        return key, record

    def _record(self, key: bytes) -> bytes:
        record = self._records.get(key)
        return self._live.record(key) if record is None else record

    def _live_visits(self, record: bytes) -> list[LiveVisit]:
        """Return the visits of a record that may go on, or get a view that arrives late."""
        if not record:
            return []
        timeout_ms, visits = self._live.settings.timeout_ms, list(_visits_of(record))
        latest_ms = max(visit.last_ms for visit in visits)
        return [
            visit
            for visit in visits
            if abs(self._now_ms - visit.arrived_ms) <= timeout_ms
            and visit.last_ms >= latest_ms - 2 * timeout_ms
        ]

    def _put_visit(
        self,
        key: bytes,
        record: bytes,
        visits: list[LiveVisit],
        before: LiveVisit | None,
        visit: LiveVisit,
    ) -> None:
        """Put a visit in place of another, or a new one, into the record of a key.

        `visits` are those of the record that stay.
        """
        packed = _packed(visit)
        all_stay = len(visits) == _count_of(record)
        if before is None:
            self._key_of[visit.number] = key
        # Packing many visits takes long.
        if all_stay and before is not None:
            start = _SLOT.size + visits.index(before) * _VISIT.size
            changed = record[:start] + packed + record[start + _VISIT.size :]
        elif all_stay and len(visits) < MAX_PER_KEY:
            changed = record + packed
        else:
            kept = [each for each in visits if each is not before]
            if len(kept) >= MAX_PER_KEY:
                kept.remove(min(kept, key=lambda each: each.arrived_ms))
            changed = record[: _SLOT.size] + b"".join(map(_packed, kept)) + packed
            self._ended.update({*_numbers_of(record)} - {*_numbers_of(changed)})
        self._put(key, changed)

    def _put(self, key: bytes, record: bytes) -> None:
        self._records.pop(key, None)
        self._records[key] = record


def _digest(hash_key: bytes, parity: int, view: View) -> bytes:
    """Return the key of a view: the parity of the day, then who made it, on which website."""
    text = _WEBSITE.pack(view.website) + view.identity
    return b"%c%b" % (parity, blake2b(text, digest_size=_DIGEST_SIZE, key=hash_key).digest())


def _flag_of(key: bytes) -> int:
    """Return where it is recorded whether several people share a key."""
    number: int = _WEBSITE.unpack_from(key, 1)[0]
    return number % _FLAGS
