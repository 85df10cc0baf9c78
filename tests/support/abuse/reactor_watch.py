"""The daemon with a watch over its reactor, and a watch over each core to compare with.

    python reactor_watch.py FILE run ...     the daemon; writes to FILE what was late in its reactor
    python reactor_watch.py FILE core CORE   nothing, on that core; writes, until stdin ends,
                                       what was late on it at all

Every 2 ms each notes the time. What comes late is written as JSON, by the clock that all processes
share: when it was due, by how many ms it was late, and how many ms of processor time the process,
and in it the thread that was to note it, have used since the time before.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from attrs import define, field

EVERY_S = 0.002
_LATE_MS = 4.0


@define(eq=False)
class Watch:
    """What came late, and how often nothing did."""

    turn_count: int = 0
    late: list[tuple[float, float, float, float]] = field(factory=list)
    _due: float = 0.0
    _process_s: float = 0.0
    _thread_s: float = 0.0

    def note(self) -> None:
        """Note that it is now; the next time is due in EVERY_S."""
        now, process_s, thread_s = time.monotonic(), time.process_time(), time.thread_time()
        late_ms = (now - self._due) * 1_000
        if self.turn_count and late_ms > _LATE_MS:
            used = ((process_s - self._process_s) * 1_000, (thread_s - self._thread_s) * 1_000)
            self.late.append((self._due, late_ms, *used))
        self.turn_count += 1
        self._due, self._process_s, self._thread_s = now + EVERY_S, process_s, thread_s

    def write(self, file: Path) -> None:
        """Write what was counted."""
        file.write_text(json.dumps({"turn_count": self.turn_count, "late": self.late}), "ascii")


def watch_daemon(watch: Watch, file: Path) -> None:
    """Run the daemon, and have its reactor note the time."""
    from twisted.internet import reactor as installed  # noqa: PLC0415 - importing it installs it

    from medamad.cli import main  # noqa: PLC0415

    reactor: Any = installed

    def note() -> None:
        watch.note()
        reactor.callLater(EVERY_S, note)

    reactor.callWhenRunning(note)
    reactor.addSystemEventTrigger("after", "shutdown", watch.write, file)
    main()


def watch_core(watch: Watch, file: Path, core: int) -> None:
    """Note the time on a core, and do nothing else."""
    os.sched_setaffinity(0, {core})
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        watch.note()
        time.sleep(EVERY_S)
    watch.write(file)


if __name__ == "__main__":
    to_file = Path(sys.argv.pop(1))
    if sys.argv[1] == "core":
        watch_core(Watch(), to_file, int(sys.argv[2]))
    else:
        watch_daemon(Watch(), to_file)
