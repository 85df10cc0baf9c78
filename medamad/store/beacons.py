"""The index from beacon ids to views, over all websites, for 24 hours.

A leaving names no website: this index finds its view. It also stops a load that is sent twice.
The latest beacons are in bounded memory; older ones are looked up in LMDB by hour, so that
forgetting is dropping a range of keys. The ids themselves are not kept, only a keyed hash.
"""

import secrets
import struct
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from hashlib import blake2b
from itertools import islice
from typing import Final

from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.store.environment import Database, Environment, Txn
from medamad.store.errors import Damaged
from medamad.store.sealed import sealed, unsealed

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
class Place:
    """Where a view is: its website, its time and its sequence number."""

    website: int
    time_ms: int
    sequence: int


@define(eq=False)
class Beacons:
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
        """Give the 64-bit keyed hash under which a beacon id is known."""
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

    def find(self, txn: Txn, digest: bytes, now_ms: int) -> Place | None:
        """Give the view with that beacon stored in the 24 hours before `now_ms`, if any."""
        value = self._recent.get(digest) or self._find_stored(txn, digest, now_ms)
        place = None if value is None else Place(*_VALUE.unpack(value))
        if place is None or now_ms - place.time_ms > DAY_MS:
            return None
        return place

    def write(self, txn: Txn, digest: bytes, place: Place) -> None:
        """Store a view's beacon. Call `remember` once the transaction is committed."""
        key = _KEY.pack(place.time_ms // _HOUR_MS, digest)
        txn.put(key, sealed(key, _stored(place)), db=self._database)

    def remember(self, digest: bytes, place: Place) -> None:
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
    """Give a place as it is kept in memory; None if it is damaged."""
    try:
        return unsealed(key, stored)
    except Damaged:
        return None


def _stored(place: Place) -> bytes:
    return _VALUE.pack(place.website, place.time_ms, place.sequence)


def _hour_of(value: bytes) -> int:
    hour: int = _VALUE.unpack(value)[1] // _HOUR_MS
    return hour


def secret_of(environment: Environment) -> bytes:
    """Give the key of the beacons' hashes, made once for a store."""
    with environment.lmdb.begin(write=True) as txn:
        meta = environment.databases.meta
        stored = txn.get(SECRET, db=meta)
        if stored is not None:
            try:
                return unsealed(SECRET, stored)
            except Damaged as error:
                lost = "views of the last 24 hours are not found any more"
                _log.error(
                    "the key of the beacons is damaged, {lost}: {error}", lost=lost, error=error
                )
        secret = secrets.token_bytes(16)
        txn.put(SECRET, sealed(SECRET, secret), db=meta)
        return secret
