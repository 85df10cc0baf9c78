"""Watch the folder of backups: report when the newest was made, and when it is too old."""

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, Final

from attrs import define
from twisted.logger import Logger

from medamad.daemon.messages import reason_of
from medamad.domain.backups import BackupPlan, BackupState
from medamad.storage.backup import newest_backup

_HOUR_S: Final = 3_600


@define(eq=False)
class BackupWatch:
    """Keeps a BackupState up to date. Used in the reactor's thread.

    The folder may be on a disk or network share that does not respond, and reading it then blocks.
    A separate thread reads it, so that neither requests nor the stop of the daemon wait for it.
    Until the thread returns, the last known backup grows older.
    """

    plan: BackupPlan
    _state: BackupState
    _reactor: Any
    _clock: Callable[[], float]
    _newest_backup: Callable[[Path, float], int | None] = newest_backup
    _is_reading: bool = False
    _log = Logger()

    async def look(self) -> None:
        """Begin to read the folder, unless the last attempt has not returned yet."""
        if self._is_reading:
            if self._is_late():
                self._fail(f"{self.plan.folder} is not responding; {self._age()}")
            return
        self._is_reading = True
        Thread(
            target=self._read, args=(self.plan, self._clock()), name="backup folder", daemon=True
        ).start()

    def follow(self, plan: BackupPlan) -> None:
        """Follow another plan from now on."""
        if plan != self.plan:
            self.plan = plan
            self._state.newest, self._state.failure = None, ""

    def _read(self, plan: BackupPlan, now: float) -> None:
        newest, failure = None, ""
        try:
            newest = self._newest_backup(plan.folder, now)
        except OSError as error:
            failure = reason_of(error)
        self._reactor.callFromThread(self._finish, plan, newest, failure)

    def _finish(self, plan: BackupPlan, newest: int | None, failure: str) -> None:
        self._is_reading = False
        if plan != self.plan:
            return
        if failure:
            self._fail(failure)
            return
        self._state.newest = newest
        if self._is_late():
            self._fail(f"{plan.folder}: {self._age()}")
        elif self._state.failure:
            self._state.failure = ""
            self._log.info("the backups are up to date again")

    def _is_late(self) -> bool:
        if not self.plan.max_age_s:
            return False
        if self._state.newest is None:
            return self.plan.is_expected
        return self._clock() - self._state.newest > self.plan.max_age_s

    def _age(self) -> str:
        if self._state.newest is None:
            return "no backup was found; medamad-backup.timer makes them"
        age_h = int(self._clock() - self._state.newest) // _HOUR_S
        max_h = self.plan.max_age_s // _HOUR_S
        return f"the newest backup is {age_h} hours old, backup.max_age_hours allows {max_h}"

    def _fail(self, reason: str) -> None:
        if not self._state.failure:
            self._state.failures += 1
            self._log.error("the backups need attention: {reason}", reason=reason)
        self._state.failure = reason
