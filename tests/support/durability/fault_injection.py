"""Failures of single system calls of a running process, made by strace."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen
from support.daemon import PATIENCE_S

STRACE: Final = shutil.which("strace")
_ATTACHED: Final = re.compile(rb"strace: Process \d+ attached")
_INJECTED: Final = "(INJECTED)"


def why_not() -> str:
    """Return why no failures can be made here; "" if they can."""
    if STRACE is None:
        return "strace is not installed"
    probe = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        tracer = _tracer(probe.pid, "-e", "trace=none")
        output = _first_output(tracer)
        _end(tracer)
        return (
            ""
            if _ATTACHED.search(output)
            else f"no process may be traced: {output.decode().strip()}"
        )
    finally:
        probe.kill()
        probe.communicate()


@frozen
class Fault:
    """From the n-th call on, counted from when it is injected, so many fail with that error."""

    call: str
    error: str
    nth: int
    times: int = 1

    @contextmanager
    def injected(self, pid: int, log: Path) -> Iterator[None]:
        """Inject the fault into a process and all its threads. The trace goes to `log`."""
        when = f"{self.nth}..{self.nth + self.times - 1}"
        inject = f"inject={self.call}:error={self.error}:when={when}"
        tracer = _tracer(pid, "-e", f"trace={self.call}", "-e", inject, "-o", str(log))
        try:
            output = _first_output(tracer)
            assert _ATTACHED.search(output), output
            yield
        finally:
            _end(tracer)


def has_struck(log: Path) -> bool:
    """Return whether the fault whose trace this is has come."""
    return _INJECTED in log.read_text("utf-8", "replace")


def _tracer(pid: int, *arguments: str) -> subprocess.Popen[bytes]:
    assert STRACE is not None
    return subprocess.Popen(
        [STRACE, "-f", *arguments, "-p", str(pid)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _first_output(tracer: subprocess.Popen[bytes]) -> bytes:
    """Wait until it traces, or says why not."""
    assert tracer.stderr is not None
    return tracer.stderr.readline()


def _end(tracer: subprocess.Popen[bytes]) -> None:
    """Detach from the process, unless it has ended."""
    tracer.terminate()
    tracer.communicate(timeout=PATIENCE_S)
