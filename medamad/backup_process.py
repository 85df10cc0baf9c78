"""Makes a backup by a process of its own: that takes neither the daemon's memory nor its time."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from medamad.backups import BackupFailed

_MAX_TOLD_BYTES: Final = 4_096


@define(eq=False)
class _Backup(ProcessProtocol):
    """Fires when the process has ended; one that nobody waits for any more is ended."""

    ended: "Deferred[None]" = field(init=False)
    _told: bytes = b""
    transport: Any = None

    def __attrs_post_init__(self) -> None:
        self.ended = Deferred(lambda _: self._end())

    def errReceived(self, data: bytes) -> None:
        """Take what it says is wrong."""
        self._told = (self._told + data)[-_MAX_TOLD_BYTES:]

    def processEnded(self, reason: Failure) -> None:
        """Tell how it went."""
        if self.ended.called:
            return
        status: Any = reason.value
        if status.exitCode == 0:
            self.ended.callback(None)
            return
        told = self._told.decode("utf-8", "replace").strip().removeprefix("medamad: ")
        self.ended.errback(BackupFailed(told or str(status)))

    def _end(self) -> None:
        try:
            self.transport.signalProcess("TERM")
        except ProcessExitedAlready:
            return


def backup_by_process(
    target: Path, data_dir: Path, min_free_disk: int, environ: Mapping[str, str], reactor: Any
) -> "Deferred[None]":
    """Write a backup of a store beside this process; fails with BackupFailed."""
    # By no file: what the daemon goes by may not stand there any more.
    given = ["--data", str(data_dir), "--config", os.devnull, f"--min-free-disk={min_free_disk}"]
    backup = _Backup()
    # -P: what lies where the daemon was started is no module of ours.
    program = [sys.executable, "-P", "-m", "medamad"]
    command = [*program, "backup", "--nice", "--json", *given, str(target)]
    reactor.spawnProcess(backup, command[0], command, env=dict(environ))
    return backup.ended
