"""Has the work in the folder of backups done by processes, and gives up one that stands still.

They take neither the daemon's memory nor its time. One that waits for a disk or a share that has
gone may outlive even SIGKILL, until that answers: nobody waits for it, and meanwhile no other one
is begun in its folder.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from attrs import define, field, frozen
from twisted.internet.defer import Deferred, fail, gatherResults
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.daemon.backup_schedule import BackupFailed
from medamad.daemon.logs import reason_of
from medamad.domain.backups import Done, Task

LOOK_S: Final = 1.0
STILL_S: Final = 600.0
"""For how long a process may do nothing: to hold what was written takes a slow disk its time."""
END_S: Final = 2.0
"""How long a process that is to end may take to clean up; the stop of the daemon waits for that."""
_MAX_TOLD_BYTES: Final = 4_096


@frozen(eq=False)
class BackupProcesses:
    """Used in the reactor's thread.

    `_keeps_too_much` tells of a process whether hits lack the room of the store that it keeps.
    """

    _data_dir: Path
    _environ: Mapping[str, str]
    _reactor: Any
    _clock: Any
    """The time that processes go by: the reactor, too."""
    _keeps_too_much: Callable[[int], bool]
    _there: "set[_Process]" = field(factory=set)

    def do(self, task: Task, spare_bytes: int) -> "Deferred[Done]":
        """Do a task in a process; fails with BackupFailed. Cancelled, it ends the process.

        `spare_bytes` of the disk of the store stay free.
        """
        for process in self._there:
            if process.folder == task.folder:
                return fail(BackupFailed(process.told_left()))
        process = _Process(task.folder, self._clock, self._keeps_too_much, self._there)
        # -P: what lies where the daemon was started is no module of ours.
        command = [sys.executable, "-P", "-m", "medamad.daemon.backup_folder"]
        command += [str(self._data_dir), str(spare_bytes), msgspec.json.encode(task).decode()]
        try:
            self._reactor.spawnProcess(process, command[0], command, env=dict(self._environ))
        except OSError as error:
            return fail(BackupFailed(reason_of(error)))
        return process.done

    async def stop(self) -> None:
        """End all of them; returns when they have ended or were killed, after END_S at most."""
        await gatherResults([process.end() for process in self._there])


@define(eq=False)
class _Process(ProcessProtocol):
    """Is ended when nobody waits for it, when it stands still, and when it keeps too much room."""

    folder: str
    _clock: Any
    _keeps_too_much: Callable[[int], bool]
    _there: "set[_Process]"
    """Has it from its begin to its end."""
    done: "Deferred[Done]" = field(init=False)
    transport: Any = None
    _watch: LoopingCall = field(init=False)
    _worked: str | None = None
    _worked_at: float = 0.0
    _said: bytes = b""
    _told: bytes = b""
    _killing: Any = None
    _released: "Deferred[None]" = field(factory=Deferred)
    """Fires when it has ended or was killed."""
    _log = Logger()

    def __attrs_post_init__(self) -> None:
        self.done = Deferred(lambda _: self._begin_end())
        self._watch = LoopingCall(self._look)
        self._watch.clock = self._clock

    def told_left(self) -> str:
        """Say that it is still there."""
        return (
            f"{self.folder}: process {self.transport.pid}, which was given up there, has not ended"
            " yet, as its disk or share does not answer"
        )

    def end(self) -> "Deferred[None]":
        """Have it end, by force if it has not within END_S; fires then."""
        self._begin_end()
        return self._released

    def connectionMade(self) -> None:
        """Look after it from now on."""
        self._there.add(self)
        self._watch.start(LOOK_S).addErrback(self._not_watched)

    def outReceived(self, data: bytes) -> None:
        """Take what it has done."""
        self._said += data

    def errReceived(self, data: bytes) -> None:
        """Take what it says is wrong."""
        self._told = (self._told + data)[-_MAX_TOLD_BYTES:]

    def processEnded(self, reason: Failure) -> None:
        """Return how it went."""
        self._there.discard(self)
        self._stop_watching()
        if self._killing is not None and self._killing.active():
            self._killing.cancel()
        self._release()
        if self.done.called:
            return
        status: Any = reason.value
        if status.exitCode == 0:
            self.done.callback(msgspec.json.decode(self._said, type=Done))
        else:
            told = self._told.decode("utf-8", "replace").strip()
            self.done.errback(BackupFailed(told or str(status)))

    def _look(self) -> None:
        worked, now = _work_of(self.transport.pid), self._clock.seconds()
        if worked is None or worked != self._worked:
            self._worked, self._worked_at = worked, now
        if now - self._worked_at >= STILL_S:
            minutes = int(STILL_S / 60)
            self._give_up(f"{self.folder}: given up, as nothing went on for {minutes} minutes")
        elif self._keeps_too_much(self.transport.pid):
            self._give_up(f"{self.folder}: given up, as the store was running out of room")

    def _give_up(self, reason: str) -> None:
        self.done.errback(BackupFailed(reason))
        self._begin_end()

    def _begin_end(self) -> None:
        if self._killing is None:
            self._stop_watching()
            self._signal("TERM")
            self._killing = self._clock.callLater(END_S, self._kill)

    def _kill(self) -> None:
        self._signal("KILL")
        self._release()

    def _signal(self, name: str) -> None:
        try:
            self.transport.signalProcess(name)
        except ProcessExitedAlready:
            return

    def _release(self) -> None:
        if not self._released.called:
            self._released.callback(None)

    def _stop_watching(self) -> None:
        if self._watch.running:
            self._watch.stop()

    def _not_watched(self, failure: Failure) -> None:
        self._log.failure("nobody looks after a backup any more", failure)


def _work_of(process: int) -> str | None:
    """Return what changes as long as a process works, its time of the processor; None if unknown.

    See proc_pid_stat(5): utime and stime.
    """
    try:
        told = Path(f"/proc/{process}/stat").read_text("ascii", "replace")
    except OSError:
        return None
    return " ".join(told.rpartition(")")[2].split()[11:13])
