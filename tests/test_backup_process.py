"""Backups by a process of their own, as the daemon has them made."""

import os
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.process import reapProcessHandlers
from twisted.internet.task import deferLater

from medamad.backup_process import backup_by_process
from medamad.backups import BackupFailed
from medamad.store.backup_file import read_note
from medamad.store.environment import open_environment


def backup(target: Path, data_dir: Path, min_free_disk: int = 1) -> "Deferred[None]":
    return backup_by_process(target, data_dir, min_free_disk, os.environ, reactor)


def written(target: Path) -> int:
    with target.open("rb") as file:
        return read_note(file).bytes


@pytest_twisted.ensureDeferred
async def test_a_backup_is_made_of_a_store_that_is_in_use(tmp_path: Path) -> None:
    environment = open_environment(tmp_path / "data", 16 << 20)
    await backup(tmp_path / "backup.mdb.zst", tmp_path / "data")
    environment.close()
    assert written(tmp_path / "backup.mdb.zst") > 0


@pytest_twisted.ensureDeferred
async def test_what_lies_where_the_daemon_was_started_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_environment(tmp_path / "data", 16 << 20).close()
    (tmp_path / "json.py").write_text("raise SystemExit('it was run')\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    await backup(tmp_path / "backup.mdb.zst", tmp_path / "data")
    assert written(tmp_path / "backup.mdb.zst") > 0


@pytest_twisted.ensureDeferred
async def test_why_none_was_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(BackupFailed, match=f"^{tmp_path}/data: there is no store here$"):
        await backup(tmp_path / "backup.mdb.zst", tmp_path / "data")
    open_environment(tmp_path / "data", 16 << 20).close()
    with pytest.raises(BackupFailed, match=r"of the disk are free, a backup of this store needs"):
        await backup(tmp_path / "backup.mdb.zst", tmp_path / "data", 1 << 60)


@pytest_twisted.ensureDeferred
async def test_one_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    open_environment(tmp_path / "data", 16 << 20).close()
    making = backup(tmp_path / "backup.mdb.zst", tmp_path / "data")
    making.cancel()
    with pytest.raises(CancelledError):
        await making
    while reapProcessHandlers:
        await deferLater(reactor, 0.01)
    assert not (tmp_path / "backup.mdb.zst").exists()
