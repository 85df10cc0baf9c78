"""Access to stored values: transactions of queries and of the writer, leases on snapshots.

A question may run for longer than a read transaction should be held: it renews its transaction
now and then. What it has borrowed stays as it is nevertheless. The segments that its snapshot names
are not removed before its lease ends, nothing in them is ever overwritten, and LMDB keeps a value
that is larger than a page on pages of its own, which do not move; smaller ones are copied.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, Protocol, TypeAlias

import lmdb
from attrs import define, field
from twisted.internet.defer import Deferred

from medamad.storage.environment.environment import Database, Environment, Txn
from medamad.storage.environment.writer import CallsFromThread

_RENEWED_AFTER_S: Final = 0.25

Buffers: TypeAlias = "lmdb.Transaction[memoryview]"


class Reading(Protocol):
    """Access to what is stored."""

    def value(self, key: bytes, database: Database) -> memoryview | None:
        """Return what is stored under a key, valid for the question at least."""

    def renew(self) -> None:
        """Hold no transaction for too long."""


@define(eq=False)
class QueryAccess:
    """A question's access. Used by one thread."""

    _lmdb: lmdb.Environment
    _page: int
    _now: Callable[[], float] = time.monotonic
    _txn: Buffers = field(init=False)
    _since: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._begin()

    def value(self, key: bytes, database: Database) -> memoryview | None:
        """Return what is stored under a key: a large value out of the file itself."""
        value = self._txn.get(key, db=database)
        return memoryview(bytes(value)) if value is not None and len(value) < self._page else value

    def renew(self) -> None:
        """Begin another transaction if this one is old."""
        if self._now() - self._since > _RENEWED_AFTER_S:
            self.end()
            self._begin()

    def end(self) -> None:
        """Read no more."""
        self._txn.abort()

    def _begin(self) -> None:
        self._txn = self._lmdb.begin(buffers=True)
        self._since = self._now()


@contextmanager
def asking(environment: Environment) -> Iterator[QueryAccess]:
    """Read for as long as the context lasts."""
    reading = QueryAccess(environment.lmdb, environment.page_bytes)
    try:
        yield reading
    finally:
        reading.end()


@define(eq=False)
class WriterAccess:
    """The writer's access: in whatever write transaction it is at. Gives copies."""

    txn: Txn

    def value(self, key: bytes, database: Database) -> memoryview | None:
        """Return a copy of what is stored under a key."""
        value = self.txn.get(key, db=database)
        return None if value is None else memoryview(value)

    def renew(self) -> None:
        """Do nothing: the transactions are short."""


@define(eq=False)
class Leases:
    """The questions under way, in the order in which they began. `lease` is for any thread.

    Each is one of a website: what goes of another does not wait for it.
    """

    _reactor: CallsFromThread
    _lock: Lock = field(factory=Lock)
    _next: int = 0
    _held: dict[int, int] = field(factory=dict)
    """The website of each."""
    _waiting: list[tuple[int, int, Deferred[None]]] = field(factory=list)
    """Until which moment, and of which website, each wants all to have ended."""

    @contextmanager
    def lease(self, website: int) -> Iterator[None]:
        """Hold what is published of a website now, and whatever is later, in the context."""
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
                self._reactor.callFromThread(self._tell)

    def now(self) -> int:
        """Return the moment: questions that begin later do not see what has been replaced by now."""
        with self._lock:
            return self._next

    def all_ended(self, moment: int, website: int) -> bool:
        """Return whether every question of a website that began before a moment has ended."""
        with self._lock:
            return all(number >= moment for number, of in self._held.items() if of == website)

    def ended(self, website: int) -> Deferred[None]:
        """Fire, in the reactor's thread, once what a website is asked by now has ended."""
        done: Deferred[None] = Deferred()
        with self._lock:
            self._waiting.append((self._next, website, done))
        self._tell()
        return done

    def _tell(self) -> None:
        waiting = self._waiting
        ready = [done for moment, website, done in waiting if self.all_ended(moment, website)]
        with self._lock:
            self._waiting = [each for each in waiting if each[2] not in ready]
        for done in ready:
            done.callback(None)
