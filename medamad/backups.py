"""Backups that the daemon has made by itself: when, and which of them are kept."""

import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Final

from attrs import define, frozen
from twisted.logger import Logger

from medamad.log_lines import reason_of
from medamad.model.backups import Backups
from medamad.store.backing_up import clear_unfinished, dated_names
from medamad.store.backup_file import SUFFIX

_BEGINNING: Final = "medamad-"
_NAME: Final = re.compile(
    rf"{_BEGINNING}(?P<made>[0-9]{{8}}-[0-9]{{6}}Z)(-[0-9]+)?{re.escape(SUFFIX)}\Z"
)
_AGAIN_S: Final = 3_600
"""When the next attempt is made after one that failed."""
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
        """Give the last moment up to now at which one was to be made."""
        today = datetime.fromtimestamp(now, self.zone).date()
        due = datetime.combine(today, self.at, self.zone).timestamp()
        if due > now:
            due = datetime.combine(today - _DAY, self.at, self.zone).timestamp()
        return due


@define(eq=False)
class Schedule:
    """Used in the reactor's thread. `plan` is None where no backups are made.

    `_make` writes a backup into a file, or raises BackupFailed. What has the name of a backup is
    whole and was read again, so a new one is there before an old one goes. `_trusted` gives the
    time up to which backups count for that, when the clock shows what it is given: those of a clock
    that has jumped ahead push out none, and stay until their time has come.
    """

    plan: Plan | None
    _backups: Backups
    _clock: Callable[[], float]
    _trusted: Callable[[float], float]
    _make: Callable[[Path], Awaitable[None]]
    _not_before: float = float("-inf")
    _log = Logger()

    def go_by(self, plan: Plan | None) -> None:
        """Take another plan, or the same one: what failed is tried again, and soon."""
        if plan != self.plan:
            self._backups.failure = ""
        if plan is None or (self.plan is not None and plan.folder != self.plan.folder):
            self._backups.made = None
        self.plan = plan
        self._not_before = float("-inf")

    async def look(self) -> None:
        """Make a backup if one is due, also one whose time passed while no daemon ran."""
        plan, now = self.plan, self._clock()
        if plan is None:
            return
        try:
            self._backups.made = _newest(plan.folder, now)
            made = self._backups.made
            # A clock that was set back does not put it off any further.
            waits = 0 < self._not_before - now <= _AGAIN_S
            if waits or (made is not None and made >= plan.last_due(now)):
                return
            await self._make_one(plan, now)
        except (BackupFailed, OSError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            self._backups.failures += 1
            # Meanwhile another may have been taken, of which nothing is known yet.
            if plan == self.plan:
                self._backups.failure = reason
                self._not_before = now + _AGAIN_S
            self._log.error("no backup was made: {reason}", reason=reason)

    async def _make_one(self, plan: Plan, now: float) -> None:
        plan.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        clear_unfinished(plan.folder, _BEGINNING)
        names = dated_names(_BEGINNING, SUFFIX, now)
        target = next(each for name in names if not (each := plan.folder / name).exists())
        await self._make(target)
        self._log.info("a backup was made: {file}", file=str(target))
        if plan != self.plan:
            return  # how many are kept, and where, may be another matter by now
        self._backups.made, self._backups.failure = int(now), ""
        trusted = self._trusted(self._clock())
        made = sorted(each for each in _made_in(plan.folder) if each[0] <= trusted)
        for _, old in made[: -plan.keep]:
            old.unlink()


def _newest(folder: Path, now: float) -> int | None:
    """Give when the newest backup was made; one of a time to come is none."""
    return max((made for made, _ in _made_in(folder) if made <= now), default=None)


def _made_in(folder: Path) -> Iterator[tuple[int, Path]]:
    if not folder.exists():
        return
    for file in folder.iterdir():
        named = _NAME.match(file.name)
        if named:
            try:
                made = datetime.strptime(named["made"], "%Y%m%d-%H%M%SZ").replace(tzinfo=UTC)
            except ValueError:  # no such day
                continue
            yield int(made.timestamp()), file
