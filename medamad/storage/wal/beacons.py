"""The beacon index: finds the view of a beacon for 24 hours. And what arrives before its page load.

An unload names no website: this index finds its view. It also detects a page load that is sent
twice, and counts the views of the visitors that a server names. The latest beacons are in bounded
memory; older ones are looked up in LMDB by hour, so that expiring them deletes a range of keys. The
ids themselves are not stored, only a keyed hash.

Requests of one page can overtake each other. What arrives early waits for 60 seconds, in bounded
memory, and is dropped an hour later: the clock may be set back by as much meanwhile. A beacon is
unknown after 24 hours, so that a later unload is lost.
"""

import secrets
import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from hashlib import blake2b
from itertools import islice
from typing import Final, NamedTuple, Self, TypeVar

from attrs import define, field
from twisted.logger import Logger

from medamad.domain.zones import DAY_MS
from medamad.storage.environment.environment import Database, Environment, Txn
from medamad.storage.environment.meta import verified, with_checksum
from medamad.storage.environment.trusted_clock import JUMP_MS
from medamad.storage.errors import Damaged

SECRET: Final = b"beacon-secret"
"""The name in meta of the key that ids are hashed with."""
_HOUR_MS: Final = 3_600_000
_KEY: Final = struct.Struct(">I8s")
_HOUR: Final = struct.Struct(">I")
_VALUE: Final = struct.Struct(">IQQI")
_NUMBER: Final = slice(12, 20)
"""Where a value has its sequence number or count, which can be compared as bytes."""
_MAX_DISTANCE: Final = (1 << 32) - 1
"""The greatest distance of a view from the first of its visit that fits."""
_AFTER_ANY: Final = b"\xff" * (_KEY.size - _HOUR.size + 1)
"""After the bytes of an hour, this is greater than all its keys."""
_log: Final = Logger()


class ViewLocation(NamedTuple):
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
        """Return the value that is stored."""
        distance = self.sequence - self.visit + 1 if self.visit else 0
        # After four billion hits a visit is over.
        return _VALUE.pack(*self[:3], distance if distance <= _MAX_DISTANCE else 0)


class ViewCount(NamedTuple):
    """How many views a visitor has had of a website, or of a page, and when the last one was."""

    website: int
    time_ms: int
    views: int

    @classmethod
    def unpack(cls, value: bytes) -> Self:
        """Return what `pack` has packed."""
        return cls(*_VALUE.unpack(value)[:3])

    def pack(self) -> bytes:
        """Return the value that is stored."""
        return _VALUE.pack(*self, 0)


T = TypeVar("T", ViewLocation, ViewCount)


@define(eq=False)
class BeaconIndex:
    """Used by the writer thread alone."""

    _database: Database
    _secret: bytes
    _capacity: int
    _recent: OrderedDict[bytes, bytes] = field(factory=OrderedDict)
    """Values as stored, without their checksum, by digest."""
    _complete_since_hour: int = 0
    """Every beacon stored from this hour on is in memory."""
    _hours: list[int] = field(factory=list)
    """The hours that may have stored beacons, in order. Some are ahead if the clock once was."""

    def digest(self, beacon: str) -> bytes:
        """Return the 64-bit keyed hash that a beacon id is stored under."""
        return blake2b(beacon.encode(), digest_size=8, key=self._secret).digest()

    def load(self, txn: Txn) -> None:
        """Load the latest beacons into memory, newest hours first."""
        with txn.cursor(db=self._database) as cursor:
            has_hour = cursor.first()
            while has_hour:
                self._hours.append(_HOUR.unpack_from(cursor.key())[0])
                has_hour = cursor.set_range(cursor.key()[: _HOUR.size] + _AFTER_ANY)
            latest = list(islice(cursor.iterprev(), self._capacity + 1)) if cursor.last() else []
        newest = [(key, value) for key, stored in latest if (value := _verified(key, stored))]
        if len(newest) < len(latest):
            count = len(latest) - len(newest)
            _log.error("damaged beacons ({count}) are ignored", count=count)
        if len(latest) > self._capacity:
            # The oldest hour may be loaded only in part.
            self._complete_since_hour = _HOUR.unpack_from(latest[-1][0])[0] + 1
            newest = newest[: self._capacity]
        recent = self._recent
        for key, value in reversed(newest):
            digest = key[_HOUR.size :]
            # Even where a clock was ahead, what was stored last has the greatest number.
            if value[_NUMBER] >= recent.get(digest, value)[_NUMBER]:
                recent[digest] = value

    def find(self, txn: Txn, digest: bytes, now_ms: int, of: type[T]) -> T | None:
        """Return what was stored under a digest in the 24 hours before `now_ms`, if anything.

        That is a view's location or a visitor's count, as the caller knows by what is digested.
        """
        value = self._recent.get(digest) or self._find_stored(txn, digest, now_ms)
        found = None if value is None else of.unpack(value)
        return None if found is None or now_ms - found.time_ms > DAY_MS else found

    def write(self, txn: Txn, digest: bytes, value: ViewLocation | ViewCount) -> None:
        """Store a value. Call `remember` once the transaction is committed."""
        key = _KEY.pack(value.time_ms // _HOUR_MS, digest)
        txn.put(key, with_checksum(key, value.pack()), db=self._database)

    def remember(self, digest: bytes, value: ViewLocation | ViewCount) -> None:
        """Keep a committed value in memory; the one kept longest makes room."""
        self._recent[digest] = value.pack()
        hour = value.time_ms // _HOUR_MS
        at = bisect_left(self._hours, hour)
        if self._hours[at : at + 1] != [hour]:
            self._hours.insert(at, hour)
        if len(self._recent) > self._capacity:
            # A plain dict would skip over its removed entries, more of them each time.
            hour = _hour_of(self._recent.popitem(last=False)[1])
            self._complete_since_hour = max(self._complete_since_hour, hour + 1)

    def expire_before(self, txn: Txn, time_ms: int, most: int) -> int:
        """Delete at most `most` beacons of the hours that ended before a time.

        Returns how many were deleted: fewer than `most` when none is left.
        """
        end_hour = max(0, time_ms) // _HOUR_MS
        deleted = 0
        with txn.cursor(db=self._database) as cursor:
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
        return deleted

    def _find_stored(self, txn: Txn, digest: bytes, now_ms: int) -> bytes | None:
        # Hours from `_complete_since_hour` on are in memory. Future hours come last, stored
        # before the clock was set back.
        begin = bisect_left(self._hours, max(0, now_ms - DAY_MS) // _HOUR_MS)
        ahead = bisect_right(self._hours, now_ms // _HOUR_MS)
        end = bisect_left(self._hours, self._complete_since_hour)
        for hour in self._hours[begin : min(ahead, end)][::-1] + self._hours[ahead:end]:
            key = _KEY.pack(hour, digest)
            value = txn.get(key, db=self._database)
            if value is not None:
                return _verified(key, value)
        return None


def _verified(key: bytes, stored: bytes) -> bytes | None:
    """Return a value without its checksum; None if it is damaged."""
    try:
        return verified(key, stored)
    except Damaged:
        return None


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

    def drop(self, digest: bytes) -> None:
        """Drop what waited for a page load that is stored now."""
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
