"""Backups that the daemon has made by itself: when."""

from collections.abc import Callable
from datetime import datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Final

from attrs import define, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from medamad.domain.backups import Backups, Done, Task

_AGAIN_S: Final = 3_600
"""When the next attempt is made after one that failed."""
_ENDING_S: Final = 10
"""When the next is made after one that was given up for another plan, and has to end first."""
_DAY: Final = timedelta(days=1)


class BackupFailed(Exception):
    """No backup was made. `str(error)` says why."""


@frozen
class Plan:
    """When backups are made, each day at the same time, where they are, and how many are kept."""

    folder: Path
    at: time
    zone: tzinfo
    keep: int

    def last_due(self, now: float) -> float:
        """Return the last moment up to now at which one was to be made."""
        today = datetime.fromtimestamp(now, self.zone).date()
        due = datetime.combine(today, self.at, self.zone).timestamp()
        if due > now:
            due = datetime.combine(today - _DAY, self.at, self.zone).timestamp()
        return due


@define(eq=False)
class Schedule:
    """Used in the reactor's thread. `plan` is None where no backups are made.

    `_do` does a task in the folder of the plan, or fails with BackupFailed; cancelled, it ends it.
    `_trusted` gives the time up to which backups push out others when the clock shows what it is
    given: those of a clock that has jumped ahead push out none, and stay until their time has come.
    """

    plan: Plan | None
    _backups: Backups
    _clock: Callable[[], float]
    _trusted: Callable[[float], float]
    _do: "Callable[[Task], Deferred[Done]]"
    _under_way: "Deferred[Done] | None" = None
    _not_before: float = float("-inf")
    _log = Logger()

    def go_by(self, plan: Plan | None) -> None:
        """Take another plan, or the same one: what failed is tried again, and soon.

        What is under way by another plan ends: how many are kept, and where, is another matter.
        """
        before, self.plan = self.plan, plan
        self._not_before = float("-inf")
        if plan is None or (before is not None and plan.folder != before.folder):
            self._backups.made = None
        if plan != before:
            self._backups.failure = ""
            if self._under_way is not None:
                self._not_before = self._clock() + _ENDING_S
                self._under_way.cancel()

    async def look(self) -> None:
        """Make a backup if one is due, also one whose time passed while no daemon ran."""
        plan, now = self.plan, self._clock()
        if plan is None or not self._is_due(plan, now):
            return
        task = Task(
            folder=str(plan.folder),
            now=now,
            due=plan.last_due(now),
            trusted=self._trusted(now),
            keep=plan.keep,
        )
        try:
            self._under_way = self._do(task)
            done = await self._under_way
        except CancelledError:
            if plan == self.plan:
                raise
        except BackupFailed as error:
            self._backups.failures += 1
            self._backups.failure = str(error)
            self._not_before = now + _AGAIN_S
            self._log.error("no backup was made: {reason}", reason=str(error))
        else:
            self._backups.made, self._backups.failure = done.newest, ""
            if done.made:
                self._log.info("a backup was made: {file}", file=done.made)
            if done.stays:
                self._log.error("an old backup stays: {reason}", reason=done.stays)
        finally:
            self._under_way = None

    def _is_due(self, plan: Plan, now: float) -> bool:
        """Return whether one is due by what is known of the folder, or nothing is."""
        # A clock that was set back does not put it off any further.
        if 0 < self._not_before - now <= _AGAIN_S:
            return False
        made = self._backups.made
        return made is None or not plan.last_due(now) <= made <= now
