"""Whether the writer stands still: since when it is at one change, and a word about that."""

import time
from collections.abc import Callable
from typing import Final

from attrs import define
from twisted.logger import Logger

MOST_S: Final = 10.0
"""How long a change may take: it is a short step, but a slow disk may need seconds to sync it."""


@define(eq=False)
class Standstill:
    """The writer thread notes when it begins a change and when it has ended; any thread may ask.

    It stands still when `tell` has found it at the same change twice for so long: once alone is how
    it looks after all of the process was halted.
    """

    _seconds: Callable[[], float] = time.monotonic
    _begun: float | None = None
    _seen: float | None = None
    """When the change began that has taken too long, as `tell` saw last."""
    _stuck: float | None = None
    """When the change began that it saw twice."""
    _is_told: bool = False
    _log = Logger()

    def begin(self) -> None:
        """Note that a change begins."""
        self._begun = self._seconds()

    def end(self) -> None:
        """Note that it has ended."""
        self._begun = None

    @property
    def lack(self) -> str:
        """Say that the change under way does not end, "" when none has taken too long."""
        begun = self._begun
        if begun is None or begun != self._stuck:
            return ""
        return (
            f"a write into the store has not ended for {self._seconds() - begun:.0f} s, as its disk"
            " does not answer or another process holds the lock of the store"
        )

    def tell(self) -> str:
        """Look, give `lack`, and log it: once when it begins, once when it is over.

        To be called every second or so, in one thread.
        """
        begun = self._begun
        is_long = begun is not None and self._seconds() - begun >= MOST_S
        self._stuck = begun if is_long and begun == self._seen else None
        self._seen = begun if is_long else None
        lack = self.lack
        if lack and not self._is_told:
            self._log.error("no hits are taken, reading goes on: {lack}", lack=lack)
        elif self._is_told and not lack:
            self._log.info("the store is written to again")
        self._is_told = bool(lack)
        return lack
