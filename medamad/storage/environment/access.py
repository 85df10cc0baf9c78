"""Access to stored values: the transactions of queries and of the writer, leases on snapshots.

A query may run for longer than a read transaction should be open, because LMDB reuses no page that
was freed since the oldest one began. So a query replaces its transaction from time to time. What it
has borrowed stays valid nevertheless: the segments of its snapshot are not removed before its lease
ends, nothing in them is ever overwritten, and LMDB stores a value that is larger than a page on
pages of its own, which do not move. Smaller values are copied.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, Protocol, TypeAlias

import lmdb
from attrs import define, field
from twisted.internet.defer import Deferred

from medamad.storage.environment.environment import Database, Txn
from medamad.storage.environment.writer import CallsFromThread

_RENEWED_AFTER_S: Final = 0.25

Buffers: TypeAlias = "lmdb.Transaction[memoryview]"


def is_mapped(value: memoryview) -> bool:
    """Return whether a value is in the mapped file itself, where it is while it is stored."""
    return value.obj is None


class ReadAccess(Protocol):
    """Read access to stored values."""

    def value(self, key: bytes, database: Database) -> memoryview | None:
        """Return the value of a key. It is valid at least until the query ends."""

    def renew(self) -> None:
        """End a transaction that has been open for too long."""

    def release(self) -> None:
        """End the transaction, if one is open. Reading on begins another."""


@define(eq=False)
class QueryAccess:
    """The access of a query. One thread at a time uses it."""

    _lmdb: lmdb.Environment
    _page_bytes: int
    _now: Callable[[], float] = time.monotonic
    _txn: "Buffers | None" = None
    _begun: float = 0.0

    def value(self, key: bytes, database: Database) -> memoryview | None:
        """Return the value of a key; if it is large, from the mapped file itself."""
        if self._txn is None:
            self._txn = self._lmdb.begin(buffers=True)
            self._begun = self._now()
        value = self._txn.get(key, db=database)
        is_small = value is not None and len(value) < self._page_bytes
        return memoryview(bytes(value)) if value is not None and is_small else value

    def renew(self) -> None:
        """End the transaction if it is older than a quarter of a second."""
        if self._txn is not None and self._now() - self._begun > _RENEWED_AFTER_S:
            self.release()

    def release(self) -> None:
        """End the transaction, if one is open. Reading on begins another."""
        if self._txn is not None:
            self._txn.abort()
            self._txn = None


@define(eq=False)
class WriterAccess:
    """Access in the writer's current transaction, or any other that is open. Returns copies."""

    txn: Txn

    def value(self, key: bytes, database: Database) -> memoryview | None:
        """Return a copy of the value of a key."""
        value = self.txn.get(key, db=database)
        return None if value is None else memoryview(value)

    def renew(self) -> None:
        """Do nothing: the caller that began the transaction ends it."""

    def release(self) -> None:
        """Do nothing: the caller that began the transaction ends it."""


@define(eq=False)
class Leases:
    """The leases on snapshots, numbered in the order in which they began. For any thread.

    A lease is on the data of one website. Purging another website does not wait for it.
    """

    _reactor: CallsFromThread
    _lock: Lock = field(factory=Lock)
    _next: int = 0
    _held: dict[int, int] = field(factory=dict)
    """The website of each lease."""
    _waiting: list[tuple[int, int, Deferred[None]]] = field(factory=list)
    """A number and a website; each fires when all leases with lower numbers have ended."""

    @contextmanager
    def lease(self, website: int) -> Iterator[None]:
        """Keep every snapshot of a website, present or future, readable until the context ends."""
        with self._lock:
            number = self._next
            self._next += 1
            self._held[number] = website
        try:
            yield
        finally:
            with self._lock:
                del self._held[number]
                is_awaited = bool(self._waiting)
            if is_awaited:
                self._reactor.callFromThread(self._fire_ended)

    def next_number(self) -> int:
        """Return the number that the next lease will get.

        From it on, leases do not cover what has already been replaced.
        """
        with self._lock:
            return self._next

    def all_ended(self, before_number: int, website: int) -> bool:
        """Return whether every lease on a website with a lower number has ended."""
        with self._lock:
            return all(
                number >= before_number for number, of in self._held.items() if of == website
            )

    def ended(self, website: int) -> Deferred[None]:
        """Return a Deferred that fires when all present leases on a website have ended."""
        done: Deferred[None] = Deferred()
        with self._lock:
            self._waiting.append((self._next, website, done))
        self._fire_ended()
        return done

    def _fire_ended(self) -> None:
        waiting = self._waiting
        ready = [done for number, website, done in waiting if self.all_ended(number, website)]
        with self._lock:
            self._waiting = [each for each in waiting if each[2] not in ready]
        for done in ready:
            done.callback(None)
