"""The beacon index: finds the view of a beacon for 24 hours. And what arrives before its page load.

An unload names no website: this index finds its view. It also detects a page load that is sent
twice. The ids themselves are not stored, only a keyed hash.

The latest beacons are in bounded memory. They get there with their views, from the write-ahead log
at start, and are written to disk in groups: when memory is full, and before their views are
flushed. A number in meta says up to which view that was done; later beacons are in the log alone.
On disk they are looked up by hour, so that expiring them deletes a range of keys. What is on disk
alone is also in a filter, so that most beacons, which are new, are not looked up there at all.

Requests of one page can overtake each other. What arrives early waits for 60 seconds, in bounded
memory, and is dropped an hour later: the clock may be set back by as much meanwhile. A beacon is
unknown after 24 hours, so that a later unload is lost.
"""

import secrets
import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Any, Final, Self

import msgspec
import numpy as np
from attrs import define, field
from numpy.typing import NDArray
from twisted.logger import Logger

from medamad.domain.zones import DAY_MS
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.environment.meta import (
    INDEXED_BEACONS,
    is_verified,
    read_number,
    verified,
    with_checksum,
    without_checksum,
    write_number,
)
from medamad.storage.environment.trusted_clock import JUMP_MS
from medamad.storage.errors import Damaged
from medamad.storage.varints import decode_numbers, encode_numbers
from medamad.storage.wal.digest_filter import DigestFilter

SECRET: Final = b"beacon-secret"
"""The name in meta of the key that ids are hashed with."""
DIGEST_BYTES: Final = 8
_HOUR_MS: Final = 3_600_000
_KEY: Final = struct.Struct(">I8s")
_HOUR: Final = struct.Struct(">I")
_VALUE: Final = struct.Struct(">IQQI")
_VALUE_DTYPE: Final = np.dtype(
    [("website", ">u4"), ("time_ms", ">u8"), ("number", ">u8"), ("distance", ">u4")]
)
_NUMBER: Final = slice(12, 20)
"""Where a value in memory has its sequence number, which can be compared as bytes."""
_WRITTEN_AT_ONCE: Final = 500
"""How many beacons are written together when memory is full, or twice the hits of the batch."""
_MAX_DISTANCE: Final = (1 << 32) - 1
"""The greatest distance of a view from the first of its visit that fits."""
_AFTER_ANY: Final = b"\xff" * (_KEY.size - _HOUR.size + 1)
"""After the bytes of an hour, this is greater than all its keys."""
_log: Final = Logger()


class ViewLocation(msgspec.Struct, frozen=True):
    """Where a view is found: its website, time and sequence number, and the number of its visit.

    The last is stored as the view's distance from the first of the visit plus 1, 0 for no visit.
    """

    website: int
    time_ms: int
    sequence: int
    visit: int = 0

    @classmethod
    def unpack(cls, value: bytes) -> Self:
        """Return what `pack` has packed."""
        website, time_ms, sequence, distance = _VALUE.unpack(value)
        return cls(website, time_ms, sequence, sequence + 1 - distance if distance else 0)

    def pack(self) -> bytes:
        """Return the value that is kept in memory."""
        distance = self.sequence - self.visit + 1 if self.visit else 0
        # After four billion hits a visit is over.
        distance = distance if distance <= _MAX_DISTANCE else 0
        return _VALUE.pack(self.website, self.time_ms, self.sequence, distance)


@define(eq=False)
class BeaconIndex:
    """Used by the writer thread alone."""

    _databases: Databases
    _secret: bytes
    _capacity: int
    _on_disk_alone: DigestFilter = field(factory=DigestFilter)
    _logged: OrderedDict[bytes, bytes] = field(factory=OrderedDict)
    """Values by digest that the log alone has, in order of their sequence numbers."""
    _recent: OrderedDict[bytes, bytes] = field(factory=OrderedDict)
    """Values by digest that are also on disk."""
    _complete_since_hour: int = 0
    """Every beacon on disk from this hour on is in memory."""
    _hours: list[int] = field(factory=list)
    """The hours that may have beacons on disk, in order. Some are ahead if the clock once was."""
    _indexed_up_to: int = 0
    """Beacons of views up to this sequence number are on disk."""

    def __len__(self) -> int:
        """Return how many beacons are in memory."""
        return len(self._logged) + len(self._recent)

    def digest(self, beacon: str) -> bytes:
        """Return the 64-bit keyed hash that a beacon id is stored under."""
        return blake2b(beacon.encode(), digest_size=DIGEST_BYTES, key=self._secret).digest()

    def load(self, txn: Txn, logged: Sequence[tuple[int, NDArray[Any]]] = ()) -> None:
        """Load the latest beacons: those of the log, and the newest hours of those on disk.

        `logged` has websites and the rows of their views in the log.
        """
        self._indexed_up_to = read_number(txn, self._databases.meta, INDEXED_BEACONS)
        self._load_logged(logged)
        room = max(0, self._capacity - len(self._logged))
        with txn.cursor(db=self._databases.beacons) as cursor:
            has_hour = cursor.first()
            while has_hour:
                self._hours.append(_HOUR.unpack_from(cursor.key())[0])
                has_hour = cursor.set_range(cursor.key()[: _HOUR.size] + _AFTER_ANY)
            latest = list(islice(cursor.iterprev(), room + 1)) if cursor.last() else []
            if len(latest) > room:
                # The oldest hour may be loaded only in part.
                self._complete_since_hour = _HOUR.unpack_from(latest.pop()[0])[0] + 1
                # From the last one on, which the cursor is at.
                older = cursor.iterprev(values=False)
                self._list_on_disk(list(islice(older, self._on_disk_alone.capacity + 1)))
        sound = [(key, stored) for key, stored in latest if is_verified(key, stored)]
        if len(sound) < len(latest):
            count = len(latest) - len(sound)
            _log.error("damaged beacons ({count}) are ignored", count=count)
        recent = self._recent
        for key, value in zip(
            [key for key, _ in reversed(sound)], _values_of(sound[::-1]), strict=True
        ):
            digest = key[_HOUR.size :]
            # Even where a clock was ahead, what was stored last has the greatest number.
            if value[_NUMBER] >= recent.get(digest, value)[_NUMBER]:
                recent[digest] = value

    def _list_on_disk(self, keys: list[bytes]) -> None:
        """Note the latest keys of what is on disk alone, in descending order."""
        if len(keys) > self._on_disk_alone.capacity:
            self._on_disk_alone.since_hour = _HOUR.unpack_from(keys.pop())[0] + 1
        digests = [key[_HOUR.size :] for key in keys]
        self._on_disk_alone.add_all(digests, self._complete_since_hour - 1)

    def _load_logged(self, logged: Sequence[tuple[int, NDArray[Any]]]) -> None:
        """Load the beacons that the log alone has."""
        unindexed = [
            (website, views[views["sequence"] > np.uint64(self._indexed_up_to)])
            for website, views in logged
        ]
        if not unindexed:
            return
        views = np.concatenate([views for _, views in unindexed])
        counts = [len(views) for _, views in unindexed]
        websites = np.repeat([website for website, _ in unindexed], counts)
        values = _packed(websites, views["arrived_ms"], views["sequence"], views["visit_offset"])
        digests = _slices(views["beacon"].tobytes(), DIGEST_BYTES)
        order = np.argsort(views["sequence"]).tolist()
        pairs = [(digests[place], values[place]) for place in order]
        self._logged.update(pairs)
        if len(self._logged) < len(pairs):
            # Of views with the same beacon, the last one counts, and its place.
            for digest, value in pairs:
                self._log(digest, value)

    def find(self, txn: Txn, digest: bytes, now_ms: int) -> ViewLocation | None:
        """Return the view whose beacon was stored in the 24 hours before `now_ms`, if any."""
        value = (
            self._logged.get(digest)
            or self._recent.get(digest)
            or self._find_stored(txn, digest, now_ms)
        )
        found = None if value is None else ViewLocation.unpack(value)
        return None if found is None or now_ms - found.time_ms > DAY_MS else found

    def remember_logged(self, locations: Mapping[bytes, ViewLocation]) -> None:
        """Keep the beacons of views whose log records are committed, by digest."""
        for digest, location in locations.items():
            self._log(digest, location.pack())
        self._evict()

    def write_surplus(self, txn: Txn, added: int) -> list[bytes]:
        """Write the oldest beacons of the log to disk if it has more than memory should hold.

        `added` is how many are about to come. Returns the digests of those that were written, for
        `mark_indexed` once the transaction is committed.
        """
        if len(self._logged) + added <= self._capacity:
            return []
        # At a start there may be far too many.
        most = max(_WRITTEN_AT_ONCE, 2 * added)
        return self._write_logged(txn, list(islice(self._logged, most)))

    def write_up_to(self, txn: Txn, sequence: int, most: int) -> list[bytes]:
        """Write at most `most` beacons of the log to disk, of views up to a sequence number.

        Returns as `write_surplus` does: fewer than `most` when none is left.
        """
        until = sequence.to_bytes(8, "big")
        oldest = takewhile(lambda item: item[1][_NUMBER] <= until, self._logged.items())
        return self._write_logged(txn, [digest for digest, _ in islice(oldest, most)])

    def mark_indexed(self, digests: Sequence[bytes]) -> None:
        """Take note that beacons of the log were committed to disk."""
        for digest in digests:
            value = self._logged.pop(digest)
            self._indexed_up_to = int.from_bytes(value[_NUMBER], "big")
            self._remember(digest, value)
        self._evict()

    def expire_before(self, txn: Txn, time_ms: int, most: int) -> int:
        """Delete at most `most` beacons of the hours that ended before a time.

        Returns how many were deleted: fewer than `most` when none is left.
        """
        end_hour = max(0, time_ms) // _HOUR_MS
        deleted = 0
        with txn.cursor(db=self._databases.beacons) as cursor:
            while deleted < most and cursor.first():
                hour, digest = _KEY.unpack(cursor.key())
                if hour >= end_hour:
                    break
                cursor.delete()
                value = self._recent.get(digest)
                if value is not None and _hour_of(value) == hour:
                    del self._recent[digest]
                deleted += 1
        if deleted < most:
            del self._hours[: bisect_left(self._hours, end_hour)]
        while deleted < most and self._logged:
            if _hour_of(next(iter(self._logged.values()))) >= end_hour:
                break
            self._logged.popitem(last=False)
            deleted += 1
        return deleted

    def _log(self, digest: bytes, value: bytes) -> None:
        # A view of more than a day ago may have had the same beacon.
        self._logged.pop(digest, None)
        self._logged[digest] = value

    def _write_logged(self, txn: Txn, digests: Sequence[bytes]) -> list[bytes]:
        """Write values of the log in the order of their keys."""
        values = [self._logged[digest] for digest in digests]
        for _, digest, value in sorted(
            (_hour_of(value), digest, value) for digest, value in zip(digests, values, strict=True)
        ):
            self._write(txn, digest, value)
        if values:
            last = int.from_bytes(values[-1][_NUMBER], "big")
            write_number(txn, self._databases.meta, INDEXED_BEACONS, last)
        return list(digests)

    def _write(self, txn: Txn, digest: bytes, value: bytes) -> None:
        website, time_ms, number, distance = _VALUE.unpack(value)
        hour, in_hour_ms = divmod(time_ms, _HOUR_MS)
        key = _KEY.pack(hour, digest)
        numbers = encode_numbers((website, in_hour_ms, number, distance))
        txn.put(key, with_checksum(key, numbers), db=self._databases.beacons)

    def _remember(self, digest: bytes, value: bytes) -> None:
        self._recent[digest] = value
        hour = _hour_of(value)
        at = bisect_left(self._hours, hour)
        if self._hours[at : at + 1] != [hour]:
            self._hours.insert(at, hour)

    def _evict(self) -> None:
        """Drop what was kept longest of what is on disk, until memory holds the rest."""
        while self._recent and len(self) > self._capacity:
            # A plain dict would skip over its removed entries, more of them each time.
            digest, value = self._recent.popitem(last=False)
            hour = _hour_of(value)
            self._on_disk_alone.add(digest, hour)
            self._complete_since_hour = max(self._complete_since_hour, hour + 1)

    def _find_stored(self, txn: Txn, digest: bytes, now_ms: int) -> bytes | None:
        # Hours from `end_hour` on are in memory, or known not to have it. Future hours come last,
        # stored before the clock was set back.
        first_hour = max(0, now_ms - DAY_MS) // _HOUR_MS
        end_hour = self._complete_since_hour
        if end_hour > first_hour and digest not in self._on_disk_alone:
            end_hour = min(end_hour, self._on_disk_alone.since_hour)
        if end_hour <= first_hour:
            return None
        begin = bisect_left(self._hours, first_hour)
        ahead = bisect_right(self._hours, now_ms // _HOUR_MS)
        end = bisect_left(self._hours, end_hour)
        for hour in self._hours[begin : min(ahead, end)][::-1] + self._hours[ahead:end]:
            key = _KEY.pack(hour, digest)
            stored = txn.get(key, db=self._databases.beacons)
            if stored is not None:
                return _values_of([(key, stored)])[0] if is_verified(key, stored) else None
        return None


def _values_of(stored: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Return verified values on disk as they are kept in memory, by their keys and stored forms."""
    hours = np.frombuffer(b"".join([key[: _HOUR.size] for key, _ in stored]), ">u4")
    numbers = decode_numbers(b"".join([without_checksum(form) for _, form in stored])).reshape(
        -1, 4
    )
    time_ms = hours * np.uint64(_HOUR_MS) + numbers[:, 1]
    return _packed(numbers[:, 0], time_ms, numbers[:, 2], numbers[:, 3])


def _packed(*columns: NDArray[Any]) -> list[bytes]:
    """Return the values of _VALUE with these columns."""
    rows = np.zeros(len(columns[0]), _VALUE_DTYPE)
    for name, column in zip(_VALUE_DTYPE.names or (), columns, strict=True):
        rows[name] = column
    return _slices(rows.tobytes(), _VALUE.size)


def _slices(joined: bytes, size: int) -> list[bytes]:
    return [joined[begin : begin + size] for begin in range(0, len(joined), size)]


def _hour_of(value: bytes) -> int:
    hour: int = _VALUE.unpack(value)[1] // _HOUR_MS
    return hour


def secret_of(environment: Environment) -> bytes:
    """Return the key that beacon ids are hashed with, which a store creates once."""
    with environment.lmdb.begin(write=True) as txn:
        meta = environment.databases.meta
        stored = txn.get(SECRET, db=meta)
        if stored is not None:
            try:
                return verified(SECRET, stored)
            except Damaged as error:
                _log.error(
                    "the key of the beacon index is damaged, so the views of the last 24 hours"
                    " cannot be found any more: {error}",
                    error=error,
                )
        secret = secrets.token_bytes(16)
        txn.put(SECRET, with_checksum(SECRET, secret), db=meta)
        return secret


KEPT_MS: Final = 60_000
_MAX_PER_BEACON: Final = 30


@define(eq=False)
class _Unmatched:
    """What arrived for one beacon before its page load."""

    latest_ms: int = 0
    unloads: deque[tuple[int, int, frozenset[int] | None]] = field(
        factory=lambda: deque(maxlen=_MAX_PER_BEACON)
    )
    """Time, duration, and the websites that the page may be of (None for any)."""
    events: deque[tuple[int, int, int]] = field(factory=lambda: deque(maxlen=_MAX_PER_BEACON))
    """Time, website and number."""


@define(eq=False)
class UnmatchedBeacons:
    """Unloads and events that wait for their page load. Used by the writer thread alone.

    Holds at most `capacity` beacons, the latest ones, and for each 30 unloads and 30 events.
    """

    _capacity: int
    _by_digest: OrderedDict[bytes, _Unmatched] = field(factory=OrderedDict)

    def add_unload(
        self,
        digest: bytes,
        now_ms: int,
        duration_ms: int,
        websites: frozenset[int] | None = None,
    ) -> None:
        """Keep the unload of a page of one of these websites (None for any)."""
        self._of(digest, now_ms).unloads.append((now_ms, duration_ms, websites))

    def add_event(self, digest: bytes, now_ms: int, website: int, event: int) -> None:
        """Keep the number of an event that names this beacon and was stored without a view."""
        self._of(digest, now_ms).events.append((now_ms, website, event))

    def __contains__(self, digest: bytes) -> bool:
        """Return whether something waits for a beacon."""
        return digest in self._by_digest

    def duration_ms(self, digest: bytes, website: int, now_ms: int) -> int:
        """Return the longest duration that waits for a page load of a website, else 0."""
        unmatched = self._by_digest.get(digest)
        if unmatched is None:
            return 0
        return max(
            (
                duration_ms
                for time_ms, duration_ms, websites in unmatched.unloads
                if (websites is None or website in websites) and _is_kept(time_ms, now_ms)
            ),
            default=0,
        )

    def events(self, digest: bytes, website: int, now_ms: int) -> list[int]:
        """Return the numbers of the events that wait for a page load of a website."""
        unmatched = self._by_digest.get(digest)
        if unmatched is None:
            return []
        return [
            event
            for time_ms, of_website, event in unmatched.events
            if of_website == website and _is_kept(time_ms, now_ms)
        ]

    def drop(self, digests: Iterable[bytes]) -> None:
        """Drop what waited for page loads that are stored now."""
        for digest in digests:
            self._by_digest.pop(digest, None)

    def expire(self, now_ms: int, most: int) -> int:
        """Drop what has waited in vain, of at most `most` beacons.

        Returns of how many: fewer than `most` when none is left.
        """
        dropped = 0
        while dropped < most and self._by_digest:
            earliest = next(iter(self._by_digest.values()))
            if now_ms - earliest.latest_ms <= KEPT_MS + JUMP_MS:
                break
            self._by_digest.popitem(last=False)
            dropped += 1
        return dropped

    def __len__(self) -> int:
        """Return how many beacons something waits for."""
        return len(self._by_digest)

    def _of(self, digest: bytes, now_ms: int) -> _Unmatched:
        """Return what waits for a beacon, which becomes the latest; the earliest makes room."""
        unmatched = self._by_digest.pop(digest, None) or _Unmatched()
        unmatched.latest_ms = now_ms
        self._by_digest[digest] = unmatched
        if len(self._by_digest) > self._capacity:
            self._by_digest.popitem(last=False)
        return unmatched


def _is_kept(arrived_ms: int, now_ms: int) -> bool:
    # The clock may have been set back meanwhile, a little or far.
    return abs(now_ms - arrived_ms) <= KEPT_MS
