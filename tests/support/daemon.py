"""The real daemon as a process of its own, and a client that reads its interface."""

import array
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final
from urllib.parse import urlencode

from attrs import define, field, frozen
from support.forked_process import ForkedProcess, fork

USERNAME = "ada"
PASSWORD = "a long enough password"
MEDAMAD = (sys.executable, "-c", "import sys; from medamad.cli import main; sys.exit(main())")
RUN = (*MEDAMAD, "run")
"""The command of a daemon that is started, not forked: where its start or its memory is tested."""
HIT = {"e": "load", "b": "1", "u": "https://example.com/a", "p": True, "q": True}
PATIENCE_S = 120.0
"""How long is waited for what comes at once, unless the machine has much else to do."""
_PORTS: Final = range(20_000, 32_000)
_OWN_PORTS: Final = 1_000


def finished(
    command: str, data: Path, *arguments: str, given: str = "", before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command on a folder of data to its end; the rest is as in `finished_fork`."""
    return finished_fork((command, *arguments, "--data", str(data)), given=given, before=before)


def finished_fork(
    arguments: Sequence[str],
    folder: Path | None = None,
    *,
    given: str = "",
    before: str = "",
    **environ: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end in a folder; `given` is what it reads.

    `before` is Python that its process runs first, `environ` are environment variables besides
    those of this process.
    """
    with (
        TemporaryFile("w+") as put_in,
        TemporaryFile("w+", newline="") as out,
        TemporaryFile("w+") as error,
    ):
        put_in.write(given)
        put_in.seek(0)
        files = (put_in, out, error)
        process = fork(arguments, files, folder, os.environ | environ, before)
        try:
            status = process.wait(PATIENCE_S)
        finally:
            process.kill()
        out.seek(0)
        error.seek(0)
        command = [*MEDAMAD, *arguments]
        return subprocess.CompletedProcess(command, status, out.read(), error.read())


def free_port() -> int:
    """Return a port of the loopback interface that nobody listens on, nor will until it is used.

    Tests run beside each other, and a daemon takes a while to start. So each of their processes has
    ports of its own, below those that the system gives out.
    """
    ports = _own_ports()
    while True:
        ports.append(port := ports.pop(0))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


_locks: Final[list[IO[bytes]]] = []


@cache
def _own_ports() -> list[int]:
    """Return the ports of this process, for as long as it runs."""
    for first in range(_PORTS.start, _PORTS.stop, _OWN_PORTS):
        # Not in TMPDIR: runs with another one have the same ports.
        lock = Path("/tmp", f"medamad-tests-{first}.lock")  # noqa: S108
        # One that cannot be opened is another user's.
        with suppress(OSError):
            _locks.append(lock.open("ab"))
            fcntl.flock(_locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            return list(range(first, first + _OWN_PORTS))
    raise AssertionError("too many tests run beside each other")


@frozen
class Answer:
    """What the daemon answered; `json` is the decoded body, None where there is none."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


def pinged(connection: http.client.HTTPConnection) -> int:
    """Send a ping and close the connection; return the status."""
    connection.request("GET", "/api/event/ping")
    status = connection.getresponse().status
    connection.close()
    return status


def first_headers(answer: http.client.HTTPResponse) -> dict[str, str]:
    """Return the headers of an answer by their names; of one that is repeated, the first."""
    return {name.lower(): value for name, value in reversed(answer.getheaders())}


@define
class Client:
    """Speaks to the daemon over one connection at a time, with the login's cookie if it has one."""

    port: int
    cookie: str | None = None

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        sent = {"Cookie": self.cookie} if self.cookie else {}
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                sent | dict(headers or {}),
            )
            answer = connection.getresponse()
            return Answer(answer.status, first_headers(answer), answer.read())
        finally:
            connection.close()

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON of a successful answer."""
        answer = self.request("GET", f"{path}?{urlencode(parameters)}" if parameters else path)
        assert answer.status == http.client.OK, answer
        return answer.json

    def log_in(self, username: str = USERNAME, password: str = PASSWORD) -> None:
        answer = self.request(
            "POST", "/api/auth/login", {"username": username, "password": password}
        )
        assert answer.status == http.client.OK, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def add_website(self, hostname: str) -> None:
        answer = self.request("POST", "/api/websites", {"hostname": hostname})
        assert answer.status == http.client.CREATED, answer


@define
class Daemon:
    """A daemon on a data directory and a port of its own; it can be killed and started again.

    It is forked, and `before` is Python that its process runs first, unless there is a command to
    start it with.
    """

    folder: Path
    arguments: Sequence[str] = ()
    configuration: str = ""
    command: Sequence[str] | None = None
    before: str = ""
    port: int = field(factory=free_port)
    _process: ForkedProcess | subprocess.Popen[bytes] | None = None

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> str:
        """Everything it has written so far."""
        return (self.folder / "output.txt").read_text("utf-8", "replace")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, status: int = http.client.OK) -> None:
        """Start it and wait until it answers a ping with a status."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "medamad.toml"
        file.write_text(self.configuration + "\n", "utf-8")
        where = ["--data", str(self.data), "--listen", f"tcp:{self.port}:interface=127.0.0.1"]
        arguments = ["--config", str(file), *where, *self.arguments]
        folder = Path(__file__).parents[2]
        environ = os.environ | {
            "MEDAMAD_USERNAME": USERNAME,
            "MEDAMAD_PASSWORD": PASSWORD,
            # As where it is installed: pip compiles what it installs.
            "PYTHONDONTWRITEBYTECODE": "",
        }
        with (
            Path(os.devnull).open("rb") as nothing,
            (self.folder / "output.txt").open("ab") as output,
        ):
            if self.command is None:
                files = (nothing, output, output)
                self._process = fork(["run", *arguments], files, folder, environ, self.before)
            else:
                self._process = subprocess.Popen(
                    [*self.command, *arguments],
                    stdin=nothing,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=environ,
                )
        deadline = time.monotonic() + PATIENCE_S
        while not self._answers(status):
            assert self._process.poll() is None, f"the daemon stopped:\n{self.log}"
            assert time.monotonic() < deadline, f"the daemon does not answer:\n{self.log}"
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power cut would: kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop it and return its exit status."""
        return self._end(signal.SIGTERM)

    def ended(self) -> int:
        """Wait until it ends by itself; returns its exit status."""
        assert self._process is not None
        status = self._process.wait(PATIENCE_S)
        self._process = None
        return status

    def client(self) -> Client:
        """Return a client that is logged in."""
        client = Client(self.port)
        client.log_in()
        return client

    def _answers(self, status: int) -> bool:
        try:
            return Client(self.port).request("GET", "/api/event/ping").status == status
        except (OSError, http.client.HTTPException):
            return False

    def _end(self, by: signal.Signals) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        process.send_signal(by)
        try:
            return process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise

    @property
    def is_running(self) -> bool:
        return self._process is not None


@contextmanager
def running(
    folder: Path, *arguments: str, configuration: str = "", command: Sequence[str] | None = None
) -> Iterator[Daemon]:
    """Start a daemon on `folder` and stop it in the end."""
    daemon = Daemon(folder, arguments, configuration, command)
    daemon.start()
    try:
        yield daemon
    finally:
        if daemon.is_running:
            daemon.stop()


def until(holds: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
    """Wait for something to hold, and fail if it does not come to it."""
    began = time.monotonic()
    while not holds():
        waited = time.monotonic() - began
        assert waited < seconds, "it did not come to it"
        # Asking takes processor time, which others need for what is waited for.
        time.sleep(min(max(0.01, waited / 10), 0.5))


def unread(end: socket.socket | int) -> int:
    """Return the bytes that have arrived at a socket or a pipe and were not read."""
    count = array.array("i", [0])
    fcntl.ioctl(end, termios.FIONREAD, count)
    return count[0]


def configure(daemon: Daemon, text: str) -> None:
    """Change the configuration file and have the daemon read it."""
    (daemon.folder / "medamad.toml").write_text(f"{text}\n", "utf-8")
    os.kill(daemon.pid, signal.SIGHUP)
