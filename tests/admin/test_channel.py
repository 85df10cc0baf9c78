"""The two sides together: the client in a thread, the server in the reactor."""

import os
import socket
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import pytest
import pytest_twisted
from attrs import define, field
from msgspec import Struct
from support.log_failures import LoggedFailures
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from medamad.admin import server as server_module
from medamad.admin.client import AdminConnection, NotRunning, RequestFailed, connect
from medamad.admin.protocol import (
    MAX_FRAME_BYTES,
    SOCKET_NAME,
    AdminRequest,
    AdminResponse,
    Progress,
    reachable,
)
from medamad.admin.server import AdminServer, ReportProgress
from medamad.domain.errors import BadRequest
from medamad.storage.errors import NoStore

T = TypeVar("T")


class Add(AdminRequest, frozen=True):
    """Asks for a sum."""

    numbers: list[int]


class Sum(Struct):
    sum: int


class Fail(AdminRequest, frozen=True):
    """Asks for what goes wrong."""

    how: str


class Wait(AdminRequest, frozen=True):
    """Asks for what takes until it is let go."""

    number: int


class Fill(AdminRequest, frozen=True):
    """Asks for as many bytes."""

    count: int


class Unknown(AdminRequest, frozen=True):
    """Is in no table."""


@define
class Work:
    """What the requests of a test do."""

    begun: list[int] = field(factory=list)
    gone: list[int] = field(factory=list)
    let_go: "Deferred[None]" = field(factory=Deferred)
    first: "Deferred[None]" = field(factory=Deferred)
    all_gone: "Deferred[None]" = field(factory=Deferred)

    async def add(self, request: Add, report: ReportProgress) -> Sum:
        total = len(request.numbers)
        for done in range(total):
            report(Progress("adding", done, total))
        return Sum(sum(request.numbers))

    async def fail(self, request: Fail, _report: ReportProgress) -> Sum:
        match request.how:
            case "request":
                raise BadRequest("how: expected something better")
            case "store":
                raise NoStore("there is no store")
        raise LookupError(request.how)

    async def wait(self, request: Wait, report: ReportProgress) -> Sum:
        self.begun.append(request.number)
        report(Progress("waiting"))
        if not self.first.called:
            self.first.callback(None)
        released: Deferred[None] = Deferred()
        self.let_go.chainDeferred(released) if not self.let_go.called else released.callback(None)
        try:
            await released
        except BaseException:
            self.gone.append(request.number)
            self.all_gone.callback(None)
            raise
        return Sum(request.number)

    async def fill(self, request: Fill, _report: ReportProgress) -> bytes:
        return bytes(request.count)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[AdminServer, Work]]:
    work = Work()
    handlers = {Add: work.add, Fail: work.fail, Wait: work.wait, Fill: work.fill}
    server = AdminServer.start(folder, handlers, reactor)
    yield server, work
    await server.stop()


class RawConnection:
    """A connection that sends any frame."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        with reachable(folder) as path:
            self.socket.connect(path)
        self.received = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.received.close()
        self.socket.close()

    def send(self, frame: bytes) -> None:
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive(self) -> AdminResponse:
        length = int.from_bytes(self.received.read(4), "big")
        return msgspec.msgpack.decode(self.received.read(length), type=AdminResponse)


async def as_command(folder: Path, do: Callable[[AdminConnection], T]) -> T:
    """Run a function in a thread, as a command does in its process."""

    def connected() -> T:
        with connect(folder) as connection:
            return do(connection)

    return await deferToThread(connected)


def why(connection: AdminConnection, request: AdminRequest) -> str:
    with pytest.raises(RequestFailed) as refused:
        connection.request(request, Sum)
    return str(refused.value)


@pytest_twisted.ensureDeferred
async def test_requests_are_answered_in_order_on_one_connection(tmp_path: Path) -> None:
    def ask(connection: AdminConnection) -> list[int]:
        return [connection.request(Add([1, number]), Sum).sum for number in range(100)]

    async with serving(tmp_path):
        assert await as_command(tmp_path, ask) == list(range(1, 101))


@pytest_twisted.ensureDeferred
async def test_progress_comes_before_the_result_and_not_too_often(tmp_path: Path) -> None:
    received: list[Progress] = []
    async with serving(tmp_path):
        given = await as_command(
            tmp_path, lambda connection: connection.request(Add([1] * 1000), Sum, received.append)
        )
    assert given == Sum(1000)
    assert received[0] == Progress("adding", 0, 1000)
    assert len(received) < 100


@pytest_twisted.ensureDeferred
async def test_a_failed_request_returns_its_reason(
    tmp_path: Path, logged_failures: LoggedFailures
) -> None:
    def ask(connection: AdminConnection) -> Iterator[str]:
        yield why(connection, Fail("request"))
        yield why(connection, Fail("store"))
        yield why(connection, Fail("otherwise"))
        yield why(connection, Unknown())
        yield why(connection, Add(["text"]))  # type: ignore[list-item]
        yield why(connection, Fill(MAX_FRAME_BYTES))
        with pytest.raises(RequestFailed, match="the daemon may have another version"):
            connection.request(Fill(7), Sum)
        assert connection.request(Add([2, 3]), Sum) == Sum(5)
        assert connection.request(Fill(MAX_FRAME_BYTES - 100), bytes)

    async with serving(tmp_path):
        replies = await as_command(tmp_path, lambda connection: list(ask(connection)))
    assert replies[:2] == ["how: expected something better", "there is no store"]
    assert replies[2] == replies[5] == "internal error; the daemon's log has the details"
    assert replies[3].startswith("not understood by this daemon, version ")
    assert replies[3].endswith("Invalid value 'Unknown' - at `$.type`")
    assert replies[4].endswith("Expected `int`, got `str` - at `$.numbers[0]`")
    assert [str(error) for error in logged_failures.take(LookupError)] == ["otherwise"]
    assert len(logged_failures.take(ValueError)) == 1


@pytest.mark.parametrize("frame", [b"", b"\xc1", b"\x91" * 100_000, b"\x80", b"\xa3abc"])
@pytest_twisted.ensureDeferred
async def test_malformed_requests_are_rejected(tmp_path: Path, frame: bytes) -> None:
    def exchange() -> str:
        with RawConnection(tmp_path) as connection:
            connection.send(frame)
            return str(connection.receive())

    async with serving(tmp_path):
        assert "not understood by this daemon" in await deferToThread(exchange)


@pytest_twisted.ensureDeferred
async def test_a_frame_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    def exchange() -> str:
        with RawConnection(tmp_path) as connection:
            connection.socket.sendall((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
            response = str(connection.receive())
            assert connection.received.read(1) == b""
            return response

    async with serving(tmp_path):
        assert f"a request of {MAX_FRAME_BYTES + 1} bytes" in await deferToThread(exchange)


@pytest_twisted.ensureDeferred
async def test_pipelined_requests_wait(tmp_path: Path) -> None:
    def exchange() -> list[str]:
        with RawConnection(tmp_path) as connection:
            for number in range(5):
                connection.send(msgspec.msgpack.encode(Wait(number)))
            return [str(connection.receive()) for _ in range(10)]

    async with serving(tmp_path) as (_, work):
        asked = deferToThread(exchange)
        await work.first
        assert work.begun == [0]
        work.let_go.callback(None)
        replies = await asked
    assert work.begun == [0, 1, 2, 3, 4]
    assert [line.startswith("Done") for line in replies] == [False, True] * 5


@pytest_twisted.ensureDeferred
async def test_work_is_cancelled_if_the_client_disconnects(tmp_path: Path) -> None:
    async with serving(tmp_path) as (_, work):
        with RawConnection(tmp_path) as leaving:
            leaving.send(msgspec.msgpack.encode(Wait(1)))
            await work.first
        await work.all_gone
        assert work.gone == [1]
        assert await as_command(tmp_path, lambda one: one.request(Add([1]), Sum)) == Sum(1)


@pytest_twisted.ensureDeferred
async def test_a_stop_cancels_the_work_and_reports_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, work):
        asked = Deferred.fromCoroutine(as_command(tmp_path, lambda one: why(one, Wait(1))))
        await work.first
        await server.stop()
        assert work.gone == [1]
        assert await asked == "the daemon is stopping"
        assert not (tmp_path / SOCKET_NAME).exists()
        with pytest.raises(NotRunning, match="no daemon runs on it"):
            connect(tmp_path)


@pytest_twisted.ensureDeferred
async def test_only_the_owner_may_use_the_socket(tmp_path: Path) -> None:
    async with serving(tmp_path):
        mode = (tmp_path / SOCKET_NAME).stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)


@pytest_twisted.ensureDeferred
async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / SOCKET_NAME))
    with pytest.raises(NotRunning, match=f"{tmp_path}: no daemon runs on it"):
        connect(tmp_path)
    async with serving(tmp_path):
        assert await as_command(tmp_path, lambda one: one.request(Add([1]), Sum)) == Sum(1)


@pytest_twisted.ensureDeferred
async def test_a_long_path_works(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 150)
    folder.mkdir()
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - it is no path
    async with serving(folder):
        assert await as_command(folder, lambda one: one.request(Add([1]), Sum)) == Sum(1)
    assert not (folder / SOCKET_NAME).exists()
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2  # noqa: PTH208 - the reactor's


@pytest_twisted.ensureDeferred
async def test_a_removed_socket_does_not_delay_the_stop(tmp_path: Path) -> None:
    async with serving(tmp_path):
        (tmp_path / SOCKET_NAME).unlink()


@pytest_twisted.ensureDeferred
async def test_the_daemon_runs_without_a_socket_if_it_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / SOCKET_NAME).mkdir()
    async with serving(tmp_path):
        with pytest.raises(NotRunning, match="no daemon"):
            connect(tmp_path)
    assert (tmp_path / SOCKET_NAME).is_dir()


def test_a_missing_folder_has_no_daemon(tmp_path: Path) -> None:
    for folder in (tmp_path / "absent", tmp_path / ("x" * 200)):
        with pytest.raises(NotRunning, match="no daemon runs on it"):
            connect(folder)


def test_a_daemon_that_is_silent_is_not_waited_for(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / SOCKET_NAME))
        silent.listen()
        with connect(tmp_path, timeout_s=0.05) as connection:
            assert why(connection, Add([1])) == "the daemon is not responding"


def test_a_disconnect_is_reported(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as going:
        going.bind(str(tmp_path / SOCKET_NAME))
        going.listen()
        with connect(tmp_path) as connection:
            going.accept()[0].close()
            assert why(connection, Add([1])).startswith("the connection to the daemon was lost: ")


def test_the_package_docstring_lists_every_request() -> None:
    text = str(__import__("medamad.admin").admin.__doc__)
    for name in ("Request", "ReportProgress", "handlers", "connect", "MAX_FRAME_BYTES"):
        assert name in text
    assert hasattr(server_module, "ReportProgress")
