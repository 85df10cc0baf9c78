"""Readers of the store that last: what they keep from being used again, and a word about them.

LMDB uses a freed page again only when no reader is left that began before it was freed (lmdb.h,
"Avoid long-lived transactions"). The list of freed pages cannot be read through the library, so
what is kept is told by what it does: the file grows although a reader lags behind.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.store.environment import Environment

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
class Lagging:
    """For any thread."""

    _environment: Environment
    _seconds: Callable[[], float] = time.monotonic
    _lag: _Lag | None = None
    _told: Reader | None = None
    _lock: Lock = field(factory=Lock)
    _log = Logger()

    def kept_bytes(self, used_bytes: int, map_bytes: int, by: int | None = None) -> int:
        """Give the bytes of freed pages that cannot be used again, 0 as long as others are.

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
        """Give the lag of the oldest reader, and its age in seconds."""
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
