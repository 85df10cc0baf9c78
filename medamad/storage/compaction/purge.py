"""Purge: delete replaced segments and deleted websites in small steps, and find leftovers.

The values of a segment do not count before a header names it. So its key enters the purge queue
before anything is written, and leaves it in the transaction that publishes the segment. Whatever a
start finds in the queue was never published, or was replaced. Segments that queries may still read
wait until these have ended.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeVar

from attrs import define, field
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.environment.access import Leases
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.environment.meta import read_number, write_number
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.segments.format import header_key, number_of, website_of
from medamad.storage.websites import delete_some, tombstones

LAST_SEGMENT: Final = b"last-segment"
_KEY: Final = struct.Struct(">IQI")
_log: Final = Logger()


@define(eq=False)
class PurgeQueue:
    """The segments to delete. Also numbers new ones: no number is used twice."""

    _environment: Environment
    _leases: Leases
    _deletable: list[tuple[int, bytes]] = field(factory=list)
    """The key of each segment that no new query sees, and the number of the first lease since."""
    _last_number: int = 0
    """The greatest number in use."""

    def load(self, txn: Txn) -> None:
        """Read at start what the last run did not finish writing or deleting."""
        databases = self._environment.databases
        with txn.cursor(db=databases.purge_queue) as cursor:
            for key, _ in cursor:
                website, _, number = _KEY.unpack(key)
                self._last_number = max(self._last_number, number)
                if txn.get(header_key(website, number), db=databases.headers) is None:
                    self._deletable.append((0, key))
                else:
                    place = f"website {website}, segment {number}"
                    _log.error(
                        "a segment in use is queued for purge and kept: {place}", place=place
                    )
        with txn.cursor(db=databases.headers) as cursor:
            numbers = (number_of(key) for key, _ in cursor)
            self._last_number = max(self._last_number, max(numbers, default=0))

    def allow_deletion(self, keys: Iterable[bytes]) -> None:
        """Let queued segments be deleted once the present leases have ended. For any thread."""
        number = self._leases.next_number()
        self._deletable += [(number, key) for key in keys]

    def has_readers(self, website: int) -> bool:
        """Return whether a query may still read a segment that was replaced. For any thread."""
        numbers = (number for number, key in tuple(self._deletable) if website_of(key) == website)
        return not self._leases.all_ended(max(numbers, default=0), website)

    # In the writer thread

    def reserve(self, txn: Txn, website: int, time_ms: int) -> tuple[int, bytes]:
        """Return the number of a new segment and the prefix of its keys, which is queued."""
        meta = self._environment.databases.meta
        self._last_number = max(self._last_number, read_number(txn, meta, LAST_SEGMENT)) + 1
        number = self._last_number
        write_number(txn, meta, LAST_SEGMENT, number)
        key = _KEY.pack(website, time_ms, number)
        self.add(txn, key)
        return number, key

    def add(self, txn: Txn, key: bytes) -> None:
        """Queue a segment that no header names from now on."""
        txn.put(key, b"", db=self._environment.databases.purge_queue)

    def remove(self, txn: Txn, key: bytes) -> None:
        """Take a segment off the queue, which a header names from now on."""
        txn.delete(key, db=self._environment.databases.purge_queue)

    def purge_one(self, txn: Transaction) -> bool:
        """Delete one segment that no query reads any more; return whether there was one."""
        for number, key in self._deletable:
            if self._leases.all_ended(number, website_of(key)):
                databases = self._environment.databases
                # A commit that failed for its caller may have reached the disk: then the segment
                # is published, and not queued.
                if txn.lmdb.delete(key, db=databases.purge_queue):
                    for database in (databases.segments, databases.counters):
                        with txn.lmdb.cursor(db=database) as cursor:
                            while cursor.set_range(key) and cursor.key().startswith(key):
                                cursor.delete()
                txn.after_commit(partial(self._deletable.remove, (number, key)))
                return True
        return False


STEP_KEYS: Final = 500
"""How many keys of a deleted website one step deletes."""
_SHRINK: Final = 8
"""By how much the next step is smaller where there was no room for one."""

P = TypeVar("P")


async def in_shrinking_steps(
    submit: Submit, step: Callable[[P, int, Transaction], P | None], position: P, most: int
) -> None:
    """Repeat a step that deletes up to `most` keys and returns where to go on, None at the end.

    Deleting takes room as well, for more keys more of it: where that is short, a step is given
    fewer keys. Raises Unavailable when there is no room to delete a single one.
    """
    keys, following = most, position
    while True:
        try:
            result = await submit(partial(step, following, keys))
        except Unavailable:
            if keys == 1:
                raise
            keys = max(1, keys // _SHRINK)
            continue
        if result is None:
            return
        following, keys = result, min(2 * keys, most)


@define(eq=False)
class WebsitePurge:
    """Deletes the data of deleted websites, each of which has a tombstone until nothing is left."""

    _environment: Environment
    _submit: Submit
    _leases: Leases
    _under_way: set[int] = field(factory=set)

    async def purge(self, website: int) -> None:
        """Delete what a deleted website has left, once no query reads it any more.

        Raises Unavailable when there is no room even for a little of it; what was done stays done.
        """
        if website in self._under_way:
            return
        self._under_way.add(website)
        try:
            await self._leases.ended(website)
            await in_shrinking_steps(self._submit, self._delete_some, website, STEP_KEYS)
        finally:
            self._under_way.discard(website)

    async def resume(self, is_registered: Callable[[int], bool]) -> None:
        """Delete what could not be deleted before. Raises as `purge`."""
        with self._environment.reading() as txn:
            left = list(tombstones(txn, self._environment.databases.meta))
        for website in left:
            if not is_registered(website):
                await self.purge(website)

    def _delete_some(self, website: int, keys: int, txn: Transaction) -> int | None:
        is_gone = delete_some(txn.lmdb, self._environment.databases, website, keys)
        return None if is_gone else website


PER_WEBSITE: Final = (
    *("dictionary", "codes", "wal", "headers", "segments", "counters", "corrections"),
    *("purge_queue", "import_batches", "robots"),
)
"""The sub-databases whose keys begin with the number of a website."""
_NUMBER: Final = struct.Struct(">I")
_GREATEST: Final = 0xFFFF_FFFF


def leftovers(txn: Txn, databases: Databases) -> Iterator[str]:
    """Return what is stored under numbers of no website, by one look-up for each number.

    It belongs to a website, but its key is damaged.
    """
    with txn.cursor(db=databases.websites) as cursor:
        websites = {_number(key) for key in cursor.iternext(values=False)}
    websites.update(tombstones(txn, databases.meta))
    found: dict[int, list[str]] = {}
    for name in PER_WEBSITE:
        with txn.cursor(db=getattr(databases, name)) as cursor:
            has_key = cursor.first()
            while has_key:
                number = _number(cursor.key())
                if number not in websites:
                    found.setdefault(number, []).append(name)
                has_key = number < _GREATEST and cursor.set_range(_NUMBER.pack(number + 1))
    for number, names in sorted(found.items()):
        yield f"website {number}: {', '.join(names)}"


def _number(key: bytes) -> int:
    return int.from_bytes(key[: _NUMBER.size], "big")
