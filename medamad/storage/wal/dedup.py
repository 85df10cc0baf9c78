"""The beacon index: from beacon id to view for 24 hours, and what arrived before its page load.

A leaving names no website: this index finds its view. It also stops a load that is sent twice.
The latest beacons are in bounded memory; older ones are looked up in LMDB by hour, so that
forgetting is dropping a range of keys. The ids themselves are not kept, only a keyed hash.

Requests of one page can overtake each other. What came waits for 60 seconds, in bounded memory, and
is let go of an hour later: the clock may be set back by as much meanwhile.
"""

import secrets
import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from hashlib import blake2b
from itertools import islice
from typing import Final

from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.storage.environment.checksums import verified, with_checksum
from medamad.storage.environment.environment import Database, Environment, Txn
from medamad.storage.environment.trusted_clock import JUMP_MS
from medamad.storage.errors import Damaged

SECRET: Final = b"beacon-secret"
"""The name in meta of what the ids are hashed with."""
DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_KEY: Final = struct.Struct(">I8s")
_HOUR: Final = struct.Struct(">I")
_VALUE: Final = struct.Struct(">IQQ")
_NUMBER: Final = slice(12, None)
"""Of a value: its sequence number, which can be compared as it is."""
_AFTER_ANY: Final = b"\xff" * (_KEY.size - _HOUR.size + 1)
"""What after an hour is greater than all its keys."""
_log: Final = Logger()


@frozen
class ViewLocation:
    """Where a view is: its website, its time and its sequence number."""

    website: int
    time_ms: int
    sequence: int


@define(eq=False)
class BeaconIndex:
    """Used by the writer thread alone."""

    _database: Database
    _secret: bytes
    _capacity: int
    _recent: OrderedDict[bytes, bytes] = field(factory=OrderedDict)
    """Places as stored, without their checksum."""
    _complete_since_hour: int = 0
    """Every beacon stored from this hour on is in memory."""
    _hours: list[int] = field(factory=list)
    """The hours of which beacons may be stored, in order: some to come, where a clock was ahead."""

    def digest(self, beacon: str) -> bytes:
        """Return the 64-bit keyed hash under which a beacon id is known."""
        return blake2b(beacon.encode(), digest_size=8, key=self._secret).digest()

    def load(self, txn: Txn) -> None:
        """Fill the memory with the latest beacons, newest hours first."""
        with txn.cursor(db=self._database) as cursor:
            is_more = cursor.first()
            while is_more:
                self._hours.append(_HOUR.unpack_from(cursor.key())[0])
                is_more = cursor.set_range(cursor.key()[: _HOUR.size] + _AFTER_ANY)
            latest = list(islice(cursor.iterprev(), self._capacity + 1)) if cursor.last() else []
        newest = [(key, value) for key, stored in latest if (value := _sound(key, stored))]
        if len(newest) < len(latest):
            count = len(latest) - len(newest)
            _log.error("{count} damaged beacons are left out", count=count)
        if len(latest) > self._capacity:
            # The oldest hour may be there in part only.
            self._complete_since_hour = _HOUR.unpack_from(latest[-1][0])[0] + 1
            newest = newest[: self._capacity]
        recent = self._recent
        for key, value in reversed(newest):
            digest = key[_HOUR.size :]
            # Where a clock was ahead, what was stored last has the greatest number all the same.
            if value[_NUMBER] >= recent.get(digest, value)[_NUMBER]:
                recent[digest] = value

    def find(self, txn: Txn, digest: bytes, now_ms: int) -> ViewLocation | None:
        """Return the view with that beacon stored in the 24 hours before `now_ms`, if any."""
        value = self._recent.get(digest) or self._find_stored(txn, digest, now_ms)
        place = None if value is None else ViewLocation(*_VALUE.unpack(value))
        if place is None or now_ms - place.time_ms > DAY_MS:
            return None
        return place

    def write(self, txn: Txn, digest: bytes, place: ViewLocation) -> None:
        """Store a view's beacon. Call `remember` once the transaction is committed."""
        key = _KEY.pack(place.time_ms // _HOUR_MS, digest)
        txn.put(key, with_checksum(key, _stored(place)), db=self._database)

    def remember(self, digest: bytes, place: ViewLocation) -> None:
        """Keep a committed beacon in memory, at the cost of the one remembered longest."""
        self._recent[digest] = _stored(place)
        hour = place.time_ms // _HOUR_MS
        at = bisect_left(self._hours, hour)
        if self._hours[at : at + 1] != [hour]:
            self._hours.insert(at, hour)
        if len(self._recent) > self._capacity:
            # A plain dict would be gone through from its removed entries on, each time longer.
            hour = _hour_of(self._recent.popitem(last=False)[1])
            self._complete_since_hour = max(self._complete_since_hour, hour + 1)

    def forget_before(self, txn: Txn, time_ms: int, most: int) -> int:
        """Delete at most `most` stored beacons of hours that ended before `time_ms`.

        Returns how many were deleted: fewer than `most` when no more are left.
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
        # Hours from `_complete_since_hour` on are in memory. Those to come are for last: what was
        # stored in them was so before the clock was set back.
        begin = bisect_left(self._hours, max(0, now_ms - DAY_MS) // _HOUR_MS)
        come = bisect_right(self._hours, now_ms // _HOUR_MS)
        end = bisect_left(self._hours, self._complete_since_hour)
        for hour in self._hours[begin : min(come, end)][::-1] + self._hours[come:end]:
            key = _KEY.pack(hour, digest)
            value = txn.get(key, db=self._database)
            if value is not None:
                return _sound(key, value)
        return None


def _sound(key: bytes, stored: bytes) -> bytes | None:
    """Return a place as it is kept in memory; None if it is damaged."""
    try:
        return verified(key, stored)
    except Damaged:
        return None


def _stored(place: ViewLocation) -> bytes:
    return _VALUE.pack(place.website, place.time_ms, place.sequence)


def _hour_of(value: bytes) -> int:
    hour: int = _VALUE.unpack(value)[1] // _HOUR_MS
    return hour


def secret_of(environment: Environment) -> bytes:
    """Return the key of the beacons' hashes, made once for a store."""
    with environment.lmdb.begin(write=True) as txn:
        meta = environment.databases.meta
        stored = txn.get(SECRET, db=meta)
        if stored is not None:
            try:
                return verified(SECRET, stored)
            except Damaged as error:
                lost = "views of the last 24 hours are not found any more"
                _log.error(
                    "the key of the beacons is damaged, {lost}: {error}", lost=lost, error=error
                )
        secret = secrets.token_bytes(16)
        txn.put(SECRET, with_checksum(SECRET, secret), db=meta)
        return secret


KEPT_MS: Final = 60_000
_MOST_OF_EACH: Final = 30


@define(eq=False)
class _Waiting:
    """What came for one beacon, the last of it at `came_ms`.

    Leavings by time, duration and the websites that the page may be of (None for any); events by
    time, website and number.
    """

    came_ms: int = 0
    leavings: deque[tuple[int, int, frozenset[int] | None]] = field(
        factory=lambda: deque(maxlen=_MOST_OF_EACH)
    )
    events: deque[tuple[int, int, int]] = field(factory=lambda: deque(maxlen=_MOST_OF_EACH))


@define(eq=False)
class UnmatchedBeacons:
    """Used by the writer thread alone.

    Holds `capacity` beacons at most, those that something came for last, and 30 of each kind.
    """

    _capacity: int
    _waiting: OrderedDict[bytes, _Waiting] = field(factory=OrderedDict)

    def leave(
        self,
        digest: bytes,
        now_ms: int,
        duration_ms: int,
        websites: frozenset[int] | None = None,
    ) -> None:
        """Keep a leaving, of a page of these websites (None for any)."""
        self._of(digest, now_ms).leavings.append((now_ms, duration_ms, websites))

    def happen(self, digest: bytes, now_ms: int, website: int, event: int) -> None:
        """Keep that an event, stored without a view, names this beacon."""
        self._of(digest, now_ms).events.append((now_ms, website, event))

    def duration_ms(self, digest: bytes, website: int, now_ms: int) -> int:
        """Return the longest duration that waits for a website's load that has come now, else 0."""
        waiting = self._waiting.get(digest)
        if waiting is None:
            return 0
        return max(
            (
                ms
                for came_ms, ms, of in waiting.leavings
                if (of is None or website in of) and _is_kept(came_ms, now_ms)
            ),
            default=0,
        )

    def events(self, digest: bytes, website: int, now_ms: int) -> list[int]:
        """Return the numbers of a website's events that wait for a load that has come now."""
        waiting = self._waiting.get(digest)
        if waiting is None:
            return []
        return [
            event
            for came_ms, of, event in waiting.events
            if of == website and _is_kept(came_ms, now_ms)
        ]

    def forget(self, digest: bytes) -> None:
        """Forget what waited for a load that is stored now."""
        self._waiting.pop(digest, None)

    def let_go(self, now_ms: int, most: int) -> int:
        """Let go of what has waited in vain, of at most `most` beacons.

        Returns of how many: fewer than `most` when no more are left.
        """
        gone = 0
        while gone < most and self._waiting:
            earliest = next(iter(self._waiting.values()))
            if now_ms - earliest.came_ms <= KEPT_MS + JUMP_MS:
                break
            self._waiting.popitem(last=False)
            gone += 1
        return gone

    def __len__(self) -> int:
        """Return for how many beacons something waits."""
        return len(self._waiting)

    def _of(self, digest: bytes, now_ms: int) -> _Waiting:
        """Return what waits for a beacon, as the latest of all; the earliest makes room."""
        waiting = self._waiting.pop(digest, None) or _Waiting()
        waiting.came_ms = now_ms
        self._waiting[digest] = waiting
        if len(self._waiting) > self._capacity:
            self._waiting.popitem(last=False)
        return waiting


def _is_kept(came_ms: int, now_ms: int) -> bool:
    # The clock may have been set back meanwhile, a little or far.
    return abs(now_ms - came_ms) <= KEPT_MS
