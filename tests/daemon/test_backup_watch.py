import os
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import pytest_twisted
from attrs import define, field
from support.daemon import PATIENCE_S
from support.log_failures import LoggedFailures
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater

from medamad.daemon.backup_watch import READ_S, BackupWatch
from medamad.daemon.thread_pool import Pool
from medamad.domain.backups import BackupPlan, BackupState
from medamad.storage.backup import newest_backup

MADE = 1_772_595_000
"""2026-03-04 03:30:00 UTC."""
NAME = "medamad-20260304-033000Z.mdb.zst"
HOUR_S = 3_600


@define
class Watched:
    """A watch on a folder, with a clock that the test sets."""

    folder: Path
    is_expected: bool = False
    max_age_s: int = 48 * HOUR_S
    now: float = MADE
    newest_backup: Callable[[Path, float], int | None] = newest_backup
    reactor: Clock = field(factory=Clock)
    """The reactor of timeouts."""
    state: BackupState = field(factory=BackupState)
    watch: BackupWatch = field(init=False)

    def __attrs_post_init__(self) -> None:
        plan = BackupPlan(self.folder, self.max_age_s, self.is_expected)
        self.watch = BackupWatch(
            plan,
            self.state,
            Pool.start("backup folder", 1, reactor),
            self.reactor,
            lambda: self.now,
            self.newest_backup,
        )

    async def look(self, until: Callable[[BackupState], Any]) -> None:
        while not until(self.state):
            await self.watch.look()
            await deferLater(reactor, 0.01)


@pytest_twisted.ensureDeferred
async def test_an_old_backup_fails_until_there_is_a_newer_one(
    tmp_path: Path,
) -> None:
    (tmp_path / NAME).touch()
    assert newest_backup(tmp_path, MADE) == MADE
    watched = Watched(tmp_path)
    await watched.look(lambda state: state.newest == MADE)
    assert (watched.state.failure, watched.state.failures) == ("", 0)
    watched.now += 49 * HOUR_S
    await watched.look(lambda state: state.failure)
    for _ in range(3):
        await watched.watch.look()
        await deferLater(reactor, 0.01)
    assert watched.state.failures == 1
    assert watched.state.failure == (
        f"{tmp_path}: the newest backup is 49 hours old, backup.max_age_hours allows 48"
    )
    (tmp_path / NAME.replace("0304", "0306")).touch()
    await watched.look(lambda state: not state.failure)
    assert watched.state.newest == MADE + 48 * HOUR_S


@pytest.mark.parametrize("is_expected", [True, False])
@pytest_twisted.ensureDeferred
async def test_a_missing_backup_fails_if_one_is_expected(
    tmp_path: Path, *, is_expected: bool
) -> None:
    watched = Watched(tmp_path / "no", is_expected=is_expected)
    for _ in range(5):
        await watched.watch.look()
        await deferLater(reactor, 0.02)
    assert bool(watched.state.failure) == is_expected
    if is_expected:
        assert "medamad-backup.timer" in watched.state.failure


@pytest_twisted.ensureDeferred
async def test_without_a_limit_nothing_is_too_old(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    watched = Watched(tmp_path, max_age_s=0, now=MADE + 10_000 * HOUR_S)
    await watched.look(lambda state: state.newest == MADE)
    assert watched.state.failure == ""


@pytest_twisted.ensureDeferred
async def test_an_unreadable_folder_fails(tmp_path: Path, logged_failures: LoggedFailures) -> None:
    (tmp_path / "file").touch()
    watched = Watched(tmp_path / "file")
    await watched.look(lambda state: state.failure)
    assert watched.state.failure == f"{tmp_path}/file: Not a directory"
    assert logged_failures.texts() == []


@pytest_twisted.ensureDeferred
async def test_a_folder_that_does_not_respond_blocks_nothing_else(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    fifo = tmp_path / "fifo"

    begun = Event()

    def read(folder: Path, now: float) -> int | None:
        if not fifo.exists():
            return newest_backup(folder, now)
        begun.set()
        return len(fifo.read_text())

    watched = Watched(tmp_path, newest_backup=read)
    await watched.look(lambda state: state.newest == MADE)
    os.mkfifo(fifo)
    for age_h in (0, 50):
        watched.now = MADE + age_h * HOUR_S
        looking = Deferred.fromCoroutine(watched.watch.look())
        begun.wait(PATIENCE_S)
        watched.reactor.advance(READ_S)
        await looking
        assert bool(watched.state.failure) == (age_h > 0)
    assert watched.state.failure.startswith(
        f"{tmp_path} is not responding; the newest backup is 50"
    )
    fifo.write_text("")
    fifo.unlink()
    (tmp_path / NAME.replace("0304", "0306")).touch()
    await watched.look(lambda state: not state.failure)


@pytest_twisted.ensureDeferred
async def test_a_changed_folder_is_read_again(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    watched = Watched(tmp_path, now=MADE + 100 * HOUR_S)
    await watched.look(lambda state: state.failure)
    plan = BackupPlan(tmp_path / "other", 48 * HOUR_S, is_expected=False)
    watched.watch.follow(plan)
    assert (watched.state.newest, watched.state.failure) == (None, "")
    watched.watch.follow(plan)
    await watched.watch.look()
    await deferLater(reactor, 0.05)
    assert (watched.state.newest, watched.state.failure) == (None, "")
