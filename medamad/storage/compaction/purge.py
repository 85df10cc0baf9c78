"""Purge: delete replaced segments and deleted websites in small steps, and find leftovers.

What a segment has written counts for nothing until its head is there. So its key is put on the list
before it is written, and taken off with the transaction that shows it; what is still on it at a
start was not finished, or not removed. Segments that questions may still read wait for them to end.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from attrs import define, field
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.environment.access import Leases
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.environment.last_numbers import read_number, write_number
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.segments.format import header_key, number_of, website_of
from medamad.storage.websites import remove_some, tombstones

LAST_BLOCK: Final = b"last-block"
_KEY: Final = struct.Struct(">IQI")
_log: Final = Logger()


@define(eq=False)
class PurgeQueue:
    """Gives segments their numbers, too: one is never used again while anything has it."""

    _environment: Environment
    _leases: Leases
    _waiting: list[tuple[int, bytes]] = field(factory=list)
    """Since which moment no new question sees a segment, and the key that all of it goes by."""
    _last_number: int = 0
    """The greatest number of a segment that was found in use."""

    def load(self, txn: Txn) -> None:
        """Note at start what the last run was about to remove, or had not finished writing."""
        databases = self._environment.databases
        with txn.cursor(db=databases.purge_queue) as cursor:
            for key, _ in cursor:
                website, _, number = _KEY.unpack(key)
                self._last_number = max(self._last_number, number)
                if txn.get(header_key(website, number), db=databases.headers) is None:
                    self._waiting.append((0, key))
                else:
                    place = f"website {website}, block {number}"
                    _log.error("a block is in use and not removed: {place}", place=place)
        with txn.cursor(db=databases.headers) as cursor:
            numbers = (number_of(key) for key, _ in cursor)
            self._last_number = max(self._last_number, max(numbers, default=0))

    def may_go(self, keys: Iterable[bytes]) -> None:
        """Let what is listed go once the questions of now have ended. For any thread."""
        moment = self._leases.now()
        self._waiting += [(moment, key) for key in keys]

    def is_read(self, website: int) -> bool:
        """Return whether a question may still see a segment that has gone. For any thread."""
        gone = (moment for moment, key in tuple(self._waiting) if website_of(key) == website)
        return not self._leases.all_ended(max(gone, default=0), website)

    # In the writer thread

    def begin(self, txn: Transaction, website: int, time_ms: int) -> tuple[int, bytes]:
        """Return the number of a new segment and the key that all of it goes by; it is listed."""
        meta = self._environment.databases.meta
        self._last_number = max(self._last_number, read_number(txn.lmdb, meta, LAST_BLOCK)) + 1
        number = self._last_number
        write_number(txn.lmdb, meta, LAST_BLOCK, number)
        key = _KEY.pack(website, time_ms, number)
        self.add(txn, key)
        return number, key

    def add(self, txn: Transaction, key: bytes) -> None:
        """List a segment that nothing shows any more."""
        txn.lmdb.put(key, b"", db=self._environment.databases.purge_queue)

    def take_off(self, txn: Transaction, key: bytes) -> None:
        """Take a segment off the list, which is shown from now on."""
        txn.lmdb.delete(key, db=self._environment.databases.purge_queue)

    def remove_one(self, txn: Transaction) -> bool:
        """Remove one segment that no question sees any more; returns whether there was one."""
        for moment, key in self._waiting:
            if self._leases.all_ended(moment, website_of(key)):
                databases = self._environment.databases
                # One whose making was given up may be shown nevertheless; then it is not listed.
                if txn.lmdb.delete(key, db=databases.purge_queue):
                    for database in (databases.segments, databases.counters):
                        with txn.lmdb.cursor(db=database) as cursor:
                            while cursor.set_range(key) and cursor.key().startswith(key):
                                cursor.delete()
                txn.after_commit(lambda: self._waiting.remove((moment, key)))  # noqa: B023 - it returns
                return True
        return False


MOST_KEYS: Final = 500
"""How many keys go in one step."""
_SHORTER: Final = 8
"""How many times shorter a step is made where there is no room for it."""


@define(eq=False)
class WebsitePurge:
    """Used in the reactor's thread. A tombstone in the store says what is still to be removed."""

    _environment: Environment
    _submit: Submit
    _leases: Leases
    _under_way: set[int] = field(factory=set)

    async def remove(self, website: int) -> None:
        """Remove what a deleted website has left, once no question sees it any more.

        Raises Unavailable when the store cannot even do a little of it; what was done stays done.
        """
        if website in self._under_way:
            return
        self._under_way.add(website)
        try:
            await self._leases.ended(website)
            await self._remove(website)
        finally:
            self._under_way.discard(website)

    async def go_on(self, is_registered: Callable[[int], bool]) -> None:
        """Remove what could not be removed before. Raises as `remove`."""
        with self._environment.reading() as txn:
            left = list(tombstones(txn, self._environment.databases.meta))
        for website in left:
            if not is_registered(website):
                await self.remove(website)

    async def _remove(self, website: int) -> None:
        most, is_gone = MOST_KEYS, False
        while not is_gone:
            try:
                is_gone = await self._submit(partial(self._some, website, most))
            except Unavailable:
                # To remove takes room as well, the more the more keys it is at once.
                if most == 1:
                    raise
                most = max(1, most // _SHORTER)

    def _some(self, website: int, most: int, txn: Transaction) -> bool:
        return remove_some(txn.lmdb, self._environment.databases, website, most)


OF_WEBSITES: Final = (
    *("dictionary", "codes", "wal", "headers", "segments", "counters", "corrections"),
    *("purge_queue", "import_batches"),
)
"""The sub-databases whose keys begin with the number of a website."""
_NUMBER: Final = struct.Struct(">I")
_GREATEST: Final = 0xFFFF_FFFF


def left_over(txn: Txn, databases: Databases) -> Iterator[str]:
    """Say of which numbers something is there, and what, by one look for each; none if all is well.

    It is a website's, and its key is damaged; what is damaged of a website is not told again.
    """
    with txn.cursor(db=databases.websites) as cursor:
        known = {_number(key) for key in cursor.iternext(values=False)}
    known.update(tombstones(txn, databases.meta))
    found: dict[int, list[str]] = {}
    for name in OF_WEBSITES:
        with txn.cursor(db=getattr(databases, name)) as cursor:
            is_there = cursor.first()
            while is_there:
                number = _number(cursor.key())
                if number not in known:
                    found.setdefault(number, []).append(name)
                is_there = number < _GREATEST and cursor.set_range(_NUMBER.pack(number + 1))
    for number, names in sorted(found.items()):
        yield f"website {number}: {', '.join(names)}"


def _number(key: bytes) -> int:
    return int.from_bytes(key[: _NUMBER.size], "big")
