"""Whether there is space for more hits, and which long readers keep freed pages from reuse.

LMDB reuses a freed page only when no reader is left that began before it was freed (lmdb.h, "Avoid
long-lived transactions"). The list of freed pages cannot be read through the library, so what a
reader keeps is inferred: the file grows while an old reader is open.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.files import free_bytes

_LONG_S: Final = 5.0
"""None of the daemon's own readers lasts that long."""
_LOGGED_AFTER_S: Final = 60.0
_GROWTH_SHARE: Final = 100
_MOST_GROWTH: Final = 16 << 20
"""Smaller growth may have other causes: a value of many pages may fit into no freed ones."""


@frozen
class Reader:
    """A reader of an older state than the latest commit."""

    process: int
    transaction: int
    """The transaction whose state it reads."""


@frozen
class _Oldest:
    """The oldest reader, and the state of things when it was first seen as that."""

    reader: Reader
    since: float
    file_bytes: int


@define(eq=False)
class LongReaders:
    """Readers that keep freed pages from being reused. For any thread."""

    _environment: Environment
    _seconds: Callable[[], float] = time.monotonic
    _oldest_seen: _Oldest | None = None
    _logged: Reader | None = None
    _lock: Lock = field(factory=Lock)
    _log = Logger()

    def kept_bytes(self, used_bytes: int, map_bytes: int) -> int:
        """Return the bytes of freed pages that readers keep from reuse, 0 if others are reused."""
        oldest, age = self._observe()
        if oldest is None or age < _LONG_S:
            return 0
        # A reader whose process has died keeps nothing once LMDB has noticed.
        if self._environment.lmdb.reader_check():
            return self.kept_bytes(used_bytes, map_bytes)
        file_bytes = self._environment.file_bytes()
        if file_bytes - oldest.file_bytes <= min(map_bytes // _GROWTH_SHARE, _MOST_GROWTH):
            return 0
        return max(0, file_bytes - used_bytes)

    def log_long_ones(self) -> None:
        """Log a reader that has lasted for more than a minute, once."""
        oldest, age = self._observe()
        if oldest is None or age < _LOGGED_AFTER_S or oldest.reader == self._logged:
            return
        self._logged = oldest.reader
        self._log.warn(
            "process {process} has been reading the store for {age:.0f} s: "
            "room that is freed cannot be used again meanwhile, and the file may grow",
            process=oldest.reader.process,
            age=age,
        )

    def _observe(self) -> tuple[_Oldest | None, float]:
        """Return the oldest reader and its age in seconds."""
        reader = self._oldest()
        now = self._seconds()
        with self._lock:
            before = self._oldest_seen
            if reader is None:
                self._oldest_seen = None
                return None, 0.0
            if before is None or before.reader != reader:
                before = self._oldest_seen = _Oldest(reader, now, self._environment.file_bytes())
            return before, now - before.since

    def _oldest(self) -> Reader | None:
        latest: int = self._environment.lmdb.info()["last_txnid"]
        found = []
        # Lines of process, thread and transaction (a dash for none), below a heading.
        for line in self._environment.lmdb.readers().splitlines()[1:]:
            process, _, transaction = line.split()
            if transaction != "-" and int(transaction) < latest:
                found.append(Reader(int(process), int(transaction)))
        return min(found, key=lambda reader: reader.transaction, default=None)


_FULL_MAP: Final = 0.8
"""The share of the map above which hits are refused: deletion needs space as well."""
_RETRY_AFTER_S: Final = 30
_MIB: Final = 1 << 20
_ENOUGH_WITHIN: Final = 4 * _MIB
"""Freed space in the file that is enough to accept hits on a nearly full disk."""


@frozen
class MapUsage:
    """Bytes of the store in use, and the bytes that it can grow to.

    Freed pages that a reader keeps from reuse count as in use.
    """

    used: int
    total: int


@define(eq=False)
class FreeSpace:
    """The space for hits, for the writer thread. Logs when refusing begins and ends."""

    _environment: Environment
    min_free_disk: int
    long_readers: LongReaders = field()
    _refuses: bool = False
    _log = Logger()

    @long_readers.default
    def _none_yet(self) -> LongReaders:
        return LongReaders(self._environment)

    def usage(self, txn: Txn) -> MapUsage:
        """Return how much of the store is in use."""
        map_bytes, used = self._map_bytes(), self._environment.used_bytes(txn)
        return MapUsage(used + self.long_readers.kept_bytes(used, map_bytes), map_bytes)

    def _map_bytes(self) -> int:
        size: int = self._environment.lmdb.info()["map_size"]
        return size

    def free_disk(self) -> int:
        """Return the free bytes of the disk. Raises OSError if the folder is missing."""
        return free_bytes(self._environment.path.parent)

    def check(self, txn: Txn) -> None:
        """Raise Unavailable if hits are to be refused, OSError if the folder is missing."""
        reason = self.unavailable_reason(txn)
        if reason and not self._refuses:
            self._log.warn("hits are rejected, queries still work: {reason}", reason=reason)
        elif self._refuses and not reason:
            self._log.info("hits are taken again")
        self._refuses = bool(reason)
        if reason:
            raise Unavailable(f"no hits are taken: {reason}", retry_after=_RETRY_AFTER_S)

    def unavailable_reason(self, txn: Txn) -> str:
        """Return why there is too little space for hits, "" if there is enough."""
        free, file_bytes = self.free_disk(), self._environment.file_bytes()
        if free >= self.min_free_disk and file_bytes <= _FULL_MAP * self._map_bytes():
            # No more can be in use, and adding up what is takes longer.
            return ""
        usage = self.usage(txn)
        within = file_bytes - usage.used
        if free < self.min_free_disk and within < _ENOUGH_WITHIN:
            return (
                f"{free // _MIB} MiB of the disk are free, "
                f"store.min_free_disk asks for {self.min_free_disk // _MIB} MiB"
            )
        if usage.used > _FULL_MAP * usage.total:
            return (
                f"{usage.used // _MIB} MiB of the {usage.total // _MIB} MiB "
                "that store.map_size allows are in use"
            )
        return ""
