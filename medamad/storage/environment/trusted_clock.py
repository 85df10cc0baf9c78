"""The trusted time: the time by which retention deletes data for good.

It is the system clock's, unless that has jumped ahead: what a wrong clock deletes is gone. Then it
advances by the monotonic clock until the system clock has been ahead for a day of running. It is
stored, since the daemon may be restarted meanwhile, and cannot tell a machine that was off for a
month from one with a wrong clock.
"""

import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from attrs import astuple, define, evolve, field, frozen
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.meta import TRUSTED_TIME, sound, verified, with_checksum
from medamad.storage.environment.writer import Submit

_HOUR_MS: Final = 3_600_000
JUMP_MS: Final = _HOUR_MS
"""How far the clock may be ahead. Beacons are kept for that much longer than needed."""
DOUBT_MS: Final = 86_400_000
"""How long the clock has to be further ahead, while the daemon runs, until it is trusted."""
_WRITTEN_EVERY_MS: Final = 600_000
_STORED: Final = struct.Struct(">QQQQ")
_log: Final = Logger()


@frozen
class TrustedTime:
    """The trusted time, and for how long the clock has differed from it. Milliseconds."""

    time_ms: int = 0
    """0 for none yet."""
    doubted_ms: int = 0
    """For how long a daemon has run since the clock has been ahead."""
    ahead_ms: int = 0
    """The least that the clock was ahead by since then; 0 if it is not in doubt."""
    behind_ms: int = 0
    """For how long a daemon has run since the clock has been behind."""

    @property
    def doubt_left_ms(self) -> int:
        """How much longer a daemon has to run until the clock is trusted; 0 if it is."""
        return DOUBT_MS - self.doubted_ms if self.ahead_ms else 0

    def after(self, passed_ms: int, now_ms: int) -> "TrustedTime":
        """Return the trusted time after `passed_ms`, when the clock shows `now_ms`.

        A clock that is behind, as on a machine that starts in 1970 until it has synchronized,
        changes nothing until it has been so for a day.
        """
        time_ms = self.time_ms + passed_ms
        ahead_ms = now_ms - time_ms
        behind_ms = self.behind_ms + passed_ms
        if abs(ahead_ms) <= JUMP_MS or (ahead_ms < 0 and behind_ms >= DOUBT_MS):
            return TrustedTime(max(0, now_ms))
        if ahead_ms < 0:
            return evolve(self, time_ms=time_ms, behind_ms=behind_ms)
        if not self.ahead_ms:
            return TrustedTime(time_ms, 0, ahead_ms)
        least_ms = min(self.ahead_ms, ahead_ms)
        doubted_ms = self.doubted_ms + passed_ms
        if doubted_ms < DOUBT_MS:
            return TrustedTime(time_ms, doubted_ms, least_ms)
        return TrustedTime(time_ms + least_ms).after(0, now_ms)


@define(eq=False)
class TrustedClock:
    """The trusted time of an open store, for the reactor's thread."""

    _environment: Environment
    _submit: Submit
    _seconds: Callable[[], float] = time.monotonic
    _trusted: TrustedTime = field(init=False)
    _kept: TrustedTime = field(init=False)
    _looked: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        with self._environment.reading() as txn:
            self._trusted = self._kept = read_trusted(txn, self._environment)
        self._looked = self._seconds()

    def trusted_ms(self, now_ms: int) -> int:
        """Return the trusted time when the clock shows `now_ms`."""
        seconds = self._seconds()
        passed_ms = int((seconds - self._looked) * 1000)
        self._looked += passed_ms / 1000
        before, self._trusted = self._trusted, self._trusted.after(passed_ms, now_ms)
        self._log_change(before)
        return max(0, min(self._trusted.time_ms, now_ms))

    def doubt_left_ms(self, now_ms: int) -> int:
        """Return how much longer the clock is not trusted; 0 if it is."""
        self.trusted_ms(now_ms)
        return self._trusted.doubt_left_ms

    async def keep(self) -> None:
        """Store the trusted time now and then, if the store can take it."""
        trusted = self._trusted
        if abs(trusted.time_ms - self._kept.time_ms) < _WRITTEN_EVERY_MS:
            return
        with suppress(Unavailable):  # deletion must not wait for it
            await self._submit(lambda txn: write_trusted(txn.lmdb, self._environment, trusted))
            self._kept = trusted

    def _log_change(self, before: TrustedTime) -> None:
        is_doubted = bool(self._trusted.ahead_ms)
        if not before.time_ms or is_doubted == bool(before.ahead_ms):
            return
        if is_doubted:
            _log.warn(
                "the clock is {hours} hours ahead of what it showed last: until it has been so for"
                " a day, nothing is removed because of its age",
                hours=self._trusted.ahead_ms // _HOUR_MS,
            )
        else:
            _log.info("the clock is trusted again: retention continues")


def doubt_warning(left_ms: int) -> str:
    """Return a message that retention waits, and until when."""
    return f"the clock is not trusted yet: [retention] removes nothing {until_trusted(left_ms)}"


def until_trusted(left_ms: int) -> str:
    """Return until when the clock is in doubt, in words."""
    hours = -(-left_ms // _HOUR_MS)
    return f"until the daemon has run for {hours} more hour{'s' * (hours != 1)}"


def read_trusted(txn: Txn, environment: Environment) -> TrustedTime:
    """Return the stored trusted time; a damaged one is logged and counts as none."""
    stored = txn.get(TRUSTED_TIME, db=environment.databases.meta)
    if stored is None:
        return TrustedTime()
    return sound(
        "the time that was trusted last",
        lambda: TrustedTime(*_STORED.unpack(verified(TRUSTED_TIME, stored))),
        TrustedTime(),
    )


def write_trusted(txn: Txn, environment: Environment, trusted: TrustedTime) -> None:
    """Store the trusted time."""
    value = with_checksum(TRUSTED_TIME, _STORED.pack(*astuple(trusted)))
    txn.put(TRUSTED_TIME, value, db=environment.databases.meta)
