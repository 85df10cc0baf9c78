"""Watch the folder of backups: report when the newest was made, and when it is too old."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from attrs import define
from twisted.internet.defer import TimeoutError as TookTooLong
from twisted.logger import Logger

from medamad.daemon.messages import reason_of
from medamad.daemon.thread_pool import Pool
from medamad.domain.backups import BackupPlan, BackupState
from medamad.storage.backup import newest_backup

_HOUR_S: Final = 3_600
READ_S: Final = 10.0
"""How long the folder may take to respond."""


@define(eq=False)
class BackupWatch:
    """Keeps a BackupState up to date.

    The folder may be on a disk or network share that does not respond, so the pool is for nothing
    else. Until the folder responds, the last known backup grows older.
    """

    plan: BackupPlan
    _state: BackupState
    _in_thread: Pool
    _reactor: Any
    _clock: Callable[[], float]
    _newest_backup: Callable[[Path, float], int | None] = newest_backup
    _log = Logger()

    async def look(self) -> None:
        """Read the folder."""
        plan, state = self.plan, self._state
        newest = state.newest
        read = self._in_thread(partial(self._newest_backup, plan.folder, self._clock()))
        try:
            newest = await read.addTimeout(READ_S, self._reactor)
            failure = self._fault(newest, f"{plan.folder}:")
        except TookTooLong:
            failure = self._fault(newest, f"{plan.folder} is not responding;") or state.failure
        except OSError as error:
            failure = reason_of(error)
        if plan != self.plan:
            return
        if failure and not state.failure:
            state.failures += 1
            self._log.error("the backups need attention: {reason}", reason=failure)
        elif state.failure and not failure:
            self._log.info("the backups are up to date again")
        state.newest, state.failure = newest, failure

    def follow(self, plan: BackupPlan) -> None:
        """Follow another plan from now on."""
        if plan != self.plan:
            self.plan = plan
            self._state.newest, self._state.failure = None, ""

    def _fault(self, newest: int | None, place: str) -> str:
        """Return what is wrong if this is the newest backup, "" for nothing."""
        max_age_s = self.plan.max_age_s
        if newest is None and max_age_s and self.plan.is_expected:
            return f"{place} no backup was found; medamad-backup.timer makes them"
        if newest is None or not max_age_s or (age_s := self._clock() - newest) <= max_age_s:
            return ""
        age_h, max_h = int(age_s) // _HOUR_S, max_age_s // _HOUR_S
        return (
            f"{place} the newest backup is {age_h} hours old, backup.max_age_hours allows {max_h}"
        )
