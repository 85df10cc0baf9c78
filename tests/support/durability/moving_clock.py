"""The clock of a daemon, moved from outside."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path

from attrs import define
from support.daemon import Daemon, until

_A_WHILE_S = 60
_SETTABLE = """
from pathlib import Path
from support.durability import settable_clock
settable_clock.use(Path({!r}))
"""


@define
class Clock:
    """The clock of a daemon."""

    daemon: Daemon
    file: Path
    ahead_s: int = 0

    def set_by(self, seconds: int) -> None:
        """Move the clock, and wait until the daemon uses the new time."""
        self.ahead_s += seconds
        with self.file.open("a", encoding="ascii") as file:
            file.write(f"{seconds}\n")
        os.kill(self.daemon.pid, signal.SIGUSR1)
        until(lambda: abs(self._dated() - time.time() - self.ahead_s) < _A_WHILE_S)

    def set_to(self, time_s: float) -> None:
        """Set the clock to a time in Unix seconds."""
        self.set_by(round(time_s - time.time()) - self.ahead_s)

    def _dated(self) -> float:
        answer = self.daemon.client().request("GET", "/api/event/ping")
        return parsedate_to_datetime(answer.headers["date"]).timestamp()


@contextmanager
def with_settable_clock(folder: Path, configuration: str = "") -> Iterator[Clock]:
    """Start a daemon whose clock can be set, and stop it in the end."""
    file = folder / "clock"
    file.write_text("")
    before = _SETTABLE.format(str(file))
    daemon = Daemon(folder, configuration=configuration, before=before)
    daemon.start()
    try:
        yield Clock(daemon, file)
    finally:
        if daemon.is_running:
            daemon.stop()
