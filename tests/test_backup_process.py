"""The work in the folder of backups, done by processes as the daemon has it done."""

import os
from collections.abc import Callable
from pathlib import Path
from time import time

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.process import reapProcessHandlers
from twisted.internet.task import Clock, deferLater

from medamad.daemon.backup_process import END_S, LOOK_S, BackupProcesses
from medamad.daemon.backup_schedule import BackupFailed
from medamad.domain.backups import Done, Task
from medamad.storage.backup import read_note
from medamad.storage.environment.environment import open_environment

STANDS_STILL = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
WORKS = "while True: pass"


def task_in(folder: Path, due: float = 0.0) -> Task:
    return Task(folder=str(folder), now=time(), due=due, trusted=time(), keep=1)


def processes_of(
    folder: Path,
    clock: Clock,
    program: str = "",
    keeps_too_much: Callable[[int], bool] = lambda _: False,
) -> BackupProcesses:
    """Return what has work done on a store in `folder`, each time by `program` first."""
    open_environment(folder / "data", 16 << 20).close()
    (folder / "path").mkdir()
    (folder / "path" / "sitecustomize.py").write_text(program, "utf-8")
    # An empty one would be the folder where the daemon was started.
    found = filter(None, (str(folder / "path"), os.environ.get("PYTHONPATH")))
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
    return BackupProcesses(folder / "data", environ, reactor, clock, keeps_too_much)


def stat_of(processes: BackupProcesses) -> tuple[str, list[str]]:
    """Return the state of the one process that there is, and for how long it has worked."""
    (process,) = processes._there
    fields = Path(f"/proc/{process.transport.pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[11:13]


async def stopped(processes: BackupProcesses) -> None:
    """Wait until the one process that there is stands still."""
    while stat_of(processes)[0] != "T":
        await deferLater(reactor, 0.01)


async def all_gone() -> None:
    while reapProcessHandlers:
        await deferLater(reactor, 0.01)


def backups_in(folder: Path) -> list[str]:
    return [str(file) for file in folder.iterdir()]


def bytes_in(backup: Path) -> int:
    with backup.open("rb") as file:
        return read_note(file).bytes


@pytest_twisted.ensureDeferred
async def test_a_backup_is_made_of_a_store_that_is_in_use_if_it_is_due(tmp_path: Path) -> None:
    processes = processes_of(tmp_path, Clock())
    environment = open_environment(tmp_path / "data", 16 << 20)
    task = task_in(tmp_path / "backups")
    done = await processes.do(task, 1)
    environment.close()
    assert done.newest == int(task.now)
    assert [done.made] == backups_in(tmp_path / "backups")
    assert bytes_in(Path(done.made)) > 0
    again = await processes.do(task_in(tmp_path / "backups", done.newest), 1)
    assert again == Done(newest=done.newest)
    assert [done.made] == backups_in(tmp_path / "backups")


@pytest_twisted.ensureDeferred
async def test_what_lies_where_the_daemon_was_started_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('it was run')\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    processes = processes_of(tmp_path, Clock())
    assert (await processes.do(task_in(tmp_path / "backups"), 1)).made


@pytest_twisted.ensureDeferred
async def test_why_none_was_made_is_told(tmp_path: Path) -> None:
    processes = processes_of(tmp_path, Clock())
    with pytest.raises(BackupFailed, match=r"of the disk are free, a backup of this store needs"):
        await processes.do(task_in(tmp_path / "backups"), 1 << 60)
    with pytest.raises(BackupFailed, match=rf"^{tmp_path}/data/store.mdb/b: Not a directory$"):
        await processes.do(task_in(tmp_path / "data" / "store.mdb" / "b"), 1)
    none = BackupProcesses(tmp_path / "no", os.environ, reactor, Clock(), lambda _: False)
    with pytest.raises(BackupFailed, match=f"^{tmp_path}/no: there is no store here$"):
        await none.do(task_in(tmp_path / "backups"), 1)
    assert backups_in(tmp_path / "backups") == []


@pytest_twisted.ensureDeferred
async def test_one_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    processes = processes_of(tmp_path, Clock(), WORKS)
    making = processes.do(task_in(tmp_path / "backups"), 1)
    making.cancel()
    with pytest.raises(CancelledError):
        await making
    await all_gone()
    assert not processes._there


@pytest_twisted.ensureDeferred
async def test_one_that_stands_still_is_given_up_and_the_only_one_in_its_folder(
    tmp_path: Path,
) -> None:
    clock = Clock()
    processes = processes_of(tmp_path, clock, STANDS_STILL)
    making = processes.do(task_in(tmp_path / "backups"), 1)
    await stopped(processes)
    while not making.called:
        clock.advance(LOOK_S)
    with pytest.raises(BackupFailed, match="given up, as nothing went on for 10 minutes"):
        await making
    with pytest.raises(BackupFailed, match=r"process [0-9]+, which was given up there, has not"):
        await processes.do(task_in(tmp_path / "backups"), 1)
    elsewhere = processes.do(task_in(tmp_path / "elsewhere"), 1)
    assert len(processes._there) == 2
    clock.advance(END_S)
    elsewhere.cancel()
    clock.advance(END_S)
    with pytest.raises(CancelledError):
        await elsewhere
    await all_gone()
    assert not processes._there


@pytest_twisted.ensureDeferred
async def test_one_that_works_may_take_its_time(tmp_path: Path) -> None:
    clock = Clock()
    processes = processes_of(tmp_path, clock, WORKS)
    making = processes.do(task_in(tmp_path / "backups"), 1)
    while clock.seconds() < 1_200:
        before = stat_of(processes)[1]
        while stat_of(processes)[1] == before:
            await deferLater(reactor, 0.001)
        clock.advance(100)
    assert not making.called
    making.cancel()
    with pytest.raises(CancelledError):
        await making
    await all_gone()


@pytest_twisted.ensureDeferred
async def test_one_is_given_up_when_room_runs_out_that_it_keeps(tmp_path: Path) -> None:
    clock, keeping = Clock(), set[int]()
    processes = processes_of(tmp_path, clock, STANDS_STILL, keeping.__contains__)
    first = processes.do(task_in(tmp_path / "one"), 1)
    keeping.update(process.transport.pid for process in processes._there)
    second = processes.do(task_in(tmp_path / "two"), 1)
    clock.advance(LOOK_S)
    with pytest.raises(BackupFailed, match="given up, as the store was running out of room"):
        await first
    assert not second.called
    second.cancel()
    with pytest.raises(CancelledError):
        await second
    clock.advance(END_S)
    await all_gone()


@pytest_twisted.ensureDeferred
async def test_a_stop_waits_for_none_that_stands_still(tmp_path: Path) -> None:
    clock = Clock()
    processes = processes_of(tmp_path, clock, STANDS_STILL)
    making = processes.do(task_in(tmp_path / "backups"), 1)
    await stopped(processes)
    making.cancel()
    with pytest.raises(CancelledError):
        await making
    stopping = Deferred.fromCoroutine(processes.stop())
    assert not stopping.called, "it may clean up"
    clock.advance(END_S)
    assert stopping.called
    await all_gone()
    await processes.stop()
