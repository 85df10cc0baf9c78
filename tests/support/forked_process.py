"""Processes of medamad, forked from one that has already imported all of its modules.

To import them takes most of the CPU of a command, and of the start of a daemon. So where a test is
about neither the start nor the memory of a process, its process is forked instead of started.
"""

import argparse
import atexit
import codecs
import ctypes
import fcntl
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from threading import Lock
from types import ModuleType
from typing import IO, Any, Final

from attrs import define
from support.fast_routes import make_routes_fast
from twisted.internet.interfaces import IStreamServerEndpointStringParser
from twisted.plugin import getPlugins

_TESTS: Final = Path(__file__).parents[1]
_PROGRAM: Final = "import sys; from support.forked_process import serve; serve(int(sys.argv[1]))"
_REACTOR: Final = "twisted.internet.reactor"
_MAX_REQUEST: Final = 1 << 18
_MAX_FILES: Final = 1_024
_MAX_PASSED: Final = 4
_PR_SET_CHILD_SUBREAPER: Final = 36
_lock: Final = Lock()


@define
class ForkedProcess:
    """A child of this process, with the part of the interface of `subprocess.Popen` that we use."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit status, or None while the process runs."""
        if self.returncode is None:
            self._reap(os.WNOHANG)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit status. Raises TimeoutExpired."""
        if self.returncode is None:
            end = os.pidfd_open(self.pid)
            try:
                if not select.select([end], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("medamad", timeout or 0)
            finally:
                os.close(end)
            self._reap(0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _reap(self, options: int) -> None:
        pid, status = os.waitpid(self.pid, options)
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)


def running_script(script: Path, *arguments: object) -> str:
    """Return what a process runs, before a command, to be a Python program instead."""
    given = [str(argument) for argument in (script, *arguments)]
    return (
        f"import runpy, sys; sys.argv = {given!r};"
        f" runpy.run_path({str(script)!r}, run_name='__main__'); sys.exit()"
    )


def fork(
    arguments: Sequence[str],
    files: Sequence[IO[Any] | socket.socket | int],
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    before: str = "",
) -> ForkedProcess:
    """Run `medamad ARGUMENTS…`; `files` are its standard input, output and error, and what follows.

    `before` is Python that its process runs before the command; it may end the process.
    """
    request = {
        "arguments": list(arguments),
        "folder": str(folder or Path.cwd()),
        "environ": dict(environ if environ is not None else os.environ),
        "before": before,
    }
    with _lock:
        server = _server()
        # The server forks twice: who has lost the parent becomes a child of this process.
        _adopt_orphans(adopt=True)
        try:
            numbers = [file if isinstance(file, int) else file.fileno() for file in files]
            socket.send_fds(server, [json.dumps(request).encode()], numbers)
            answer = server.recv(32)
        finally:
            _adopt_orphans(adopt=False)
    assert answer, "the process to fork from has ended"
    return ForkedProcess(int(answer))


def _adopt_orphans(*, adopt: bool) -> None:
    failed = ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt), 0, 0, 0)
    if failed:
        raise OSError(ctypes.get_errno(), "prctl")


@cache
def _server() -> socket.socket:
    """Start the process to fork from, for as long as this one runs."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": str(_TESTS), "PYTHONUNBUFFERED": ""},
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


class _NoReactor(ModuleType):
    """Stands in for the reactor while modules are imported: each process needs its own."""

    def __getattr__(self, name: str) -> object:
        raise AttributeError(f"{name} of a reactor, while modules are imported")


def serve(descriptor: int) -> None:
    """Fork a process for each request until the connection closes."""
    statuses: list[int] = []
    # Registered first, it runs last.
    atexit.register(_exit_now, statuses)
    _import_everything()
    with socket.socket(fileno=descriptor) as server:
        while True:
            request, files, _, _ = socket.recv_fds(server, _MAX_REQUEST, _MAX_PASSED)
            if not request:
                return
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                pid = os.fork()
                if pid == 0:
                    break
                os.write(writing, str(pid).encode())
                os._exit(0)
            os.waitpid(child, 0)
            server.send(os.read(reading, 32))
            for number in (reading, writing, *files):
                os.close(number)
        # Above those that they become: with none of them a file that is still wanted is replaced.
        copies = [fcntl.fcntl(file, fcntl.F_DUPFD, _MAX_FILES) for file in files]
        for number, copy in enumerate(copies):
            os.dup2(copy, number)
    os.closerange(len(copies), 2 * _MAX_FILES)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    _run(statuses, **json.loads(request))


def _exit_now(statuses: list[int]) -> None:
    """Skip the interpreter's taking apart of all modules, most of the CPU of a short command."""
    for status in statuses:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _import_everything() -> None:
    sys.modules[_REACTOR] = _NoReactor(_REACTOR)
    package = import_module("medamad")
    for module in walk_packages(package.__path__, "medamad."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    # What a daemon imports when it starts.
    for encoding in ("ascii", "idna", "latin-1", "punycode"):
        codecs.lookup(encoding)
    # Another user than root may not be able to import what finds files of packages.
    import_module("importlib.readers")
    import_module("twisted.internet.default")
    files = import_module("medamad.web.routes.files")
    files.read_dashboard()
    import_module("medamad.lookup.referrers").Sources.shipped()
    import_module("medamad.ingest.pipeline").load_tables()
    endpoints = import_module("twisted.internet.endpoints")
    plugins = list(getPlugins(IStreamServerEndpointStringParser))
    endpoints.getPlugins = lambda _: plugins
    # It looks for a translation of every text, whenever one is needed.
    argparse._ = str
    _hash_fast()
    del sys.modules[_REACTOR]
    make_routes_fast(setattr)
    gc.collect()
    gc.freeze()


def _hash_fast() -> None:
    """Hash passwords with the least work, as `fast_hashing` does in this process."""
    hasher = import_module("argon2").PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    import_module("medamad.accounts.credentials")._HASHER = hasher
    import_module("medamad.accounts.accounts").DUMMY_HASH = hasher.hash("nobody's")


def _run(
    statuses: list[int], arguments: list[str], folder: str, environ: dict[str, str], before: str
) -> None:
    """Become the process that was asked for."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    sys.argv = ["-c", *arguments]
    try:
        exec(before, {})  # noqa: S102 - a test's own
        statuses.append(import_module("medamad.cli").main())
    except SystemExit as ended:
        statuses.append(ended.code or 0)
