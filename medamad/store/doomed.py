"""The list of the doomed: blocks that are being written, or were replaced, and that go.

What a block has written counts for nothing until its head is there. So its key is put on the list
before it is written, and taken off with the transaction that shows it; what is still on it at a
start was not finished, or not removed. Blocks that questions may still read wait for them to end.
"""

import struct
from collections.abc import Iterable
from typing import Final

from attrs import define, field
from twisted.logger import Logger

from medamad.store.blocks import head_key, number_of, website_of
from medamad.store.environment import Environment, Txn
from medamad.store.numbers import read_number, write_number
from medamad.store.reading import Leases
from medamad.store.writer import Transaction

LAST_BLOCK: Final = b"last-block"
_KEY: Final = struct.Struct(">IQI")
_log: Final = Logger()


@define(eq=False)
class Doomed:
    """Gives blocks their numbers, too: one is never used again while anything has it."""

    _environment: Environment
    _leases: Leases
    _waiting: list[tuple[int, bytes]] = field(factory=list)
    """Since which moment no new question sees a block, and the key that all of it goes by."""
    _last_number: int = 0
    """The greatest number of a block that was found in use."""

    def load(self, txn: Txn) -> None:
        """Note at start what the last run was about to remove, or had not finished writing."""
        databases = self._environment.databases
        with txn.cursor(db=databases.doomed) as cursor:
            for key, _ in cursor:
                website, _, number = _KEY.unpack(key)
                self._last_number = max(self._last_number, number)
                if txn.get(head_key(website, number), db=databases.heads) is None:
                    self._waiting.append((0, key))
                else:
                    place = f"website {website}, block {number}"
                    _log.error("a block is in use and not removed: {place}", place=place)
        with txn.cursor(db=databases.heads) as cursor:
            numbers = (number_of(key) for key, _ in cursor)
            self._last_number = max(self._last_number, max(numbers, default=0))

    def may_go(self, keys: Iterable[bytes]) -> None:
        """Let what is listed go once the questions of now have ended. For any thread."""
        moment = self._leases.now()
        self._waiting += [(moment, key) for key in keys]

    def is_read(self, website: int) -> bool:
        """Tell whether a question may still see a block that has gone. For any thread."""
        gone = (moment for moment, key in tuple(self._waiting) if website_of(key) == website)
        return not self._leases.all_ended(max(gone, default=0), website)

    # In the writer thread

    def begin(self, txn: Transaction, website: int, time_ms: int) -> tuple[int, bytes]:
        """Give the number of a new block and the key that all of it goes by; it is listed."""
        meta = self._environment.databases.meta
        self._last_number = max(self._last_number, read_number(txn.lmdb, meta, LAST_BLOCK)) + 1
        number = self._last_number
        write_number(txn.lmdb, meta, LAST_BLOCK, number)
        key = _KEY.pack(website, time_ms, number)
        self.add(txn, key)
        return number, key

    def add(self, txn: Transaction, key: bytes) -> None:
        """List a block that nothing shows any more."""
        txn.lmdb.put(key, b"", db=self._environment.databases.doomed)

    def take_off(self, txn: Transaction, key: bytes) -> None:
        """Take a block off the list, which is shown from now on."""
        txn.lmdb.delete(key, db=self._environment.databases.doomed)

    def remove_one(self, txn: Transaction) -> bool:
        """Remove one block that no question sees any more; returns whether there was one."""
        for moment, key in self._waiting:
            if self._leases.all_ended(moment, website_of(key)):
                databases = self._environment.databases
                # One whose making was given up may be shown nevertheless; then it is not listed.
                if txn.lmdb.delete(key, db=databases.doomed):
                    for database in (databases.blocks, databases.counters):
                        with txn.lmdb.cursor(db=database) as cursor:
                            while cursor.set_range(key) and cursor.key().startswith(key):
                                cursor.delete()
                txn.after_commit(lambda: self._waiting.remove((moment, key)))  # noqa: B023 - it returns
                return True
        return False
