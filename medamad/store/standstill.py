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
    """The writer thread notes when it begins a change and when it has ended; any thread may ask."""

    _seconds: Callable[[], float] = time.monotonic
    _begun: float | None = None
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
        lasts_s = 0.0 if begun is None else self._seconds() - begun
        if lasts_s < MOST_S:
            return ""
        return (
            f"a write into the store has not ended for {lasts_s:.0f} s, as its disk does not"
            " answer or another process holds the lock of the store"
        )

    def tell(self) -> str:
        """Give `lack`, and log it: once when it begins, once when it is over. For one thread."""
        lack = self.lack
        if lack and not self._is_told:
            self._log.error("no hits are taken, reading goes on: {lack}", lack=lack)
        elif self._is_told and not lack:
            self._log.info("the store is written to again")
        self._is_told = bool(lack)
        return lack
