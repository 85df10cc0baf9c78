"""Says how far a store of an earlier format has been taken over: in the log, and to systemd."""

import time
from collections.abc import Callable
from typing import Final

from attrs import define
from twisted.logger import Logger

from medamad.daemon.systemd import BUSY, Supervisor
from medamad.storage.environment.formats import FORMAT

_TOLD_EVERY_S: Final = 1.0
_LOGGED_EVERY_S: Final = 10.0


@define(eq=False)
class TakingOver:
    """What the store tells of it. Silent where there is nothing to take over."""

    _supervisor: Supervisor
    _now: Callable[[], float] = time.monotonic
    _what: str = ""
    _told_at: float = float("-inf")
    _logged_at: float = float("-inf")
    _log = Logger()

    def tell(self, what: str, done: int, total: int) -> None:
        """Return how much is done of a part of the work, once in a while."""
        now, is_new = self._now(), what != self._what
        share = f", {100 * done // total} %" if total else ""
        if not self._what:
            self._log.info("the store is of an earlier version, and taken over: a backup first")
        self._what = what
        if is_new or now - self._told_at >= _TOLD_EVERY_S:
            self._told_at = now
            self._supervisor.tell(f"STATUS=Taking over the store: {what}{share}", BUSY)
        if is_new or now - self._logged_at >= _LOGGED_EVERY_S:
            self._logged_at = now
            self._log.info("taking over the store: {what}{share}", what=what, share=share)

    def end(self) -> None:
        """Say that it is done, if there was anything to do."""
        if self._what:
            self._supervisor.tell("STATUS=")
            self._log.info("the store has been taken over into format {number}", number=FORMAT)
