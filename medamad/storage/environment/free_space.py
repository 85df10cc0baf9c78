"""Whether there is room for more hits, and which readers keep pages from being reused.

LMDB uses a freed page again only when no reader is left that began before it was freed (lmdb.h,
"Avoid long-lived transactions"). The list of freed pages cannot be read through the library, so
what is kept is told by what it does: the file grows although a reader lags behind.
"""

import os
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.environment.environment import Environment, Txn

_LAGS_AFTER_S: Final = 5.0
"""No reader of the daemon's own lasts as long."""
_TOLD_AFTER_S: Final = 60.0
_GROWTH_SHARE: Final = 100
_MOST_GROWTH: Final = 16 << 20
"""Growth that may have other reasons: a value of many pages finds no room among the freed ones."""


@frozen
class Reader:
    """A reader that is behind the latest commit."""

    process: int
    transaction: int
    """The commit that it sees."""


@frozen
class _Lag:
    """What was there when the reader that is the oldest now was seen first."""

    reader: Reader
    since: float
    file_bytes: int


@define(eq=False)
class LongReaders:
    """For any thread."""

    _environment: Environment
    _seconds: Callable[[], float] = time.monotonic
    _lag: _Lag | None = None
    _told: Reader | None = None
    _lock: Lock = field(factory=Lock)
    _log = Logger()

    def kept_bytes(self, used_bytes: int, map_bytes: int, by: int | None = None) -> int:
        """Return the bytes of freed pages that cannot be used again, 0 as long as others are.

        Where a process is named, those that can be once it ends: none beside an older reader.
        """
        lag, age = self._observe()
        if lag is None or age < _LAGS_AFTER_S:
            return 0
        # That of a process which has died keeps nothing any more, once LMDB knows of it.
        if self._environment.lmdb.reader_check():
            return self.kept_bytes(used_bytes, map_bytes, by)
        if by not in (None, lag.reader.process):
            return 0
        file_bytes = self._environment.file_bytes()
        if file_bytes - lag.file_bytes <= min(map_bytes // _GROWTH_SHARE, _MOST_GROWTH):
            return 0
        return max(0, file_bytes - used_bytes)

    def tell(self) -> None:
        """Log a reader that has lasted for more than a minute, once."""
        lag, age = self._observe()
        if lag is None or age < _TOLD_AFTER_S or lag.reader == self._told:
            return
        self._told = lag.reader
        self._log.warn(
            "process {process} has been reading the store for {age:.0f} s: "
            "room that is freed cannot be used again meanwhile, and the file may grow",
            process=lag.reader.process,
            age=age,
        )

    def _observe(self) -> tuple[_Lag | None, float]:
        """Return the lag of the oldest reader, and its age in seconds."""
        oldest = self._oldest()
        now = self._seconds()
        with self._lock:
            lag = self._lag
            if oldest is None:
                self._lag = None
            elif lag is None or lag.reader != oldest:
                self._lag = _Lag(oldest, now, self._environment.file_bytes())
            return self._lag, 0.0 if self._lag is None else now - self._lag.since

    def _oldest(self) -> Reader | None:
        latest: int = self._environment.lmdb.info()["last_txnid"]
        found = []
        # Below a heading: process, thread and transaction, a dash for none.
        for line in self._environment.lmdb.readers().splitlines()[1:]:
            process, _, transaction = line.split()
            if transaction != "-" and int(transaction) < latest:
                found.append(Reader(int(process), int(transaction)))
        return min(found, key=lambda reader: reader.transaction, default=None)


_FULL_MAP: Final = 0.8
"""The share of the map beyond which no hits are taken: deleting needs room as well."""
_RETRY_AFTER_S: Final = 30
_MIB: Final = 1 << 20
_ROOM_WITHIN: Final = 4 * _MIB
"""Freed room in the file that is enough to take hits, though the disk is nearly full."""


@frozen
class Usage:
    """Bytes of the store in use, and the bytes that it can grow to.

    In use are also freed pages that a reader keeps from being used again.
    """

    used: int
    total: int


@define(eq=False)
class Room:
    """Used by the writer thread. It is logged when refusing begins and when it ends."""

    _environment: Environment
    min_free_disk: int
    long_readers: LongReaders = field()
    _refuses: bool = False
    _log = Logger()

    @long_readers.default
    def _none_yet(self) -> LongReaders:
        return LongReaders(self._environment)

    def usage(self, txn: Txn) -> Usage:
        """Return how much of the store is in use."""
        map_size = self._environment.lmdb.info()["map_size"]
        used = self._environment.used_bytes(txn)
        return Usage(used + self.long_readers.kept_bytes(used, map_size), map_size)

    def free_disk(self) -> int:
        """Return the bytes of the disk that are free. Raises OSError when the folder is gone."""
        disk = os.statvfs(self._environment.path.parent)
        return disk.f_bavail * disk.f_frsize

    def check(self, txn: Txn) -> None:
        """Raise Unavailable when no hits are to be taken, OSError when the folder is gone."""
        lack = self.lack(txn)
        if lack and not self._refuses:
            self._log.warn("no hits are taken, reading goes on: {lack}", lack=lack)
        elif self._refuses and not lack:
            self._log.info("hits are taken again")
        self._refuses = bool(lack)
        if lack:
            raise Unavailable(f"no hits are taken: {lack}", retry_after=_RETRY_AFTER_S)

    def is_running_out(self, txn: Txn, process: int) -> bool:
        """Return whether a process keeps as much from being used again as is left for hits.

        Not where there would be nothing left without it either, or an older reader keeps it too.
        Raises OSError when the folder is gone.
        """
        map_size = self._environment.lmdb.info()["map_size"]
        used = self._environment.used_bytes(txn)
        kept = self.long_readers.kept_bytes(used, map_size, process)
        within = self._environment.file_bytes() - used - kept - _ROOM_WITHIN
        on_disk = max(self.free_disk() - self.min_free_disk, 0) + max(within, 0)
        left = min(on_disk, _FULL_MAP * map_size - used - kept)
        return -kept < left <= kept

    def lack(self, txn: Txn) -> str:
        """Return what there is too little of for hits to be taken, "" when there is enough."""
        free = self.free_disk()
        usage = self.usage(txn)
        within = self._environment.file_bytes() - usage.used
        if free < self.min_free_disk and within < _ROOM_WITHIN:
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
