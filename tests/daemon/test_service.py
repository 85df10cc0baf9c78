import os
import signal
import socket
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
import pytest_twisted
from attrs import evolve
from support.daemon import PATIENCE_S
from support.in_process_daemon import RecordedCalls, config_in, daemon_of
from support.log_failures import LoggedFailures
from support.storage.contents import idle
from support.storage.hits import DAY_MS, NOW_MS, a_view
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint, connectProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.logger import LogEvent, capturedLogs, formatEvent, globalLogPublisher
from twisted.python.failure import Failure

from medamad.accounts.credentials import digest, new_token
from medamad.admin.client import NotRunning, connect
from medamad.admin.protocol import DaemonState, Status
from medamad.build import VERSION, load_kernel
from medamad.daemon import runtime
from medamad.daemon.service import QUERY_THREADS, Started
from medamad.domain.accounts import Login
from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Definitions, Exclusion
from medamad.query.embedded.engine import EmbeddedEngine
from medamad.query.reader import Reader
from medamad.query.request import Cancellation, Gap, Query
from medamad.storage.dictionary.decode import WebsiteTexts
from medamad.storage.environment.environment import LOCK_NAME, open_environment
from medamad.storage.environment.trusted_clock import TrustedTime, write_trusted
from medamad.web.backend import Backend


class Sender(Protocol):
    """Fires `answered` when something came back, and `lost` when its connection has gone."""

    def __init__(self) -> None:
        self.answered: Deferred[None] = Deferred()
        self.lost: Deferred[None] = Deferred()

    def dataReceived(self, _data: bytes) -> None:
        if not self.answered.called:
            self.answered.callback(None)

    def connectionLost(self, _reason: Failure = connectionDone) -> None:
        self.lost.callback(None)


def is_free(folder: Path) -> bool:
    """Return whether the store can be opened, and so is closed."""
    assert (folder / LOCK_NAME).exists()
    open_environment(folder, 64 << 20).close()
    return True


@pytest_twisted.ensureDeferred
async def test_it_reports_its_addresses_and_closes_everything(tmp_path: Path) -> None:
    calls = RecordedCalls()
    place = "tcp:0:interface=127.0.0.1"
    daemon = daemon_of(config_in(tmp_path, place, f"unix:{tmp_path}/s", place), calls)
    daemon.startService()
    started = await calls.first
    assert isinstance(started, Started)
    assert len(started.urls) == 2
    assert all(url.startswith("http://localhost:") for url in started.urls)
    assert started.first_login is not None
    assert (started.first_login.username, started.first_login.file) == ("ada", None)
    assert (started.username, started.login_file) == ("ada", None)
    assert (tmp_path / "s").is_socket()
    await daemon.stopService()
    assert calls.all == [started]
    assert not (tmp_path / "s").exists()
    assert is_free(tmp_path)


@pytest_twisted.ensureDeferred
async def test_the_second_start_has_no_first_login(tmp_path: Path) -> None:
    for number in range(2):
        calls = RecordedCalls()
        daemon = daemon_of(config_in(tmp_path), calls)
        daemon.startService()
        started = await calls.first
        assert isinstance(started, Started)
        assert (started.first_login is None) == bool(number)
        await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_stop_cancels_the_start(tmp_path: Path) -> None:
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path), calls)
    daemon.startService()
    await daemon.stopService()
    assert calls.all == []
    assert is_free(tmp_path)
    daemon.startService()
    assert isinstance(await calls.first, Started)
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_stop_does_not_wait_for_preparations(tmp_path: Path) -> None:
    calls, begun = RecordedCalls(), Deferred[None]()

    async def prepare(_backend: Backend) -> None:
        reactor.callLater(0, begun.callback, None)
        await Deferred()

    daemon = daemon_of(config_in(tmp_path, f"unix:{tmp_path}/s"), calls, prepare=prepare)
    daemon.startService()
    await begun
    await daemon.stopService()
    assert calls.all == []
    assert not (tmp_path / "s").exists()
    assert is_free(tmp_path)


@pytest_twisted.ensureDeferred
async def test_a_cancelled_start_ends_it(tmp_path: Path, logged_failures: LoggedFailures) -> None:
    calls = RecordedCalls()

    async def prepare(_backend: Backend) -> None:
        raise CancelledError

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.startService()
    assert await calls.first == 1
    assert len(logged_failures.take(CancelledError)) == 1
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_hangup_during_the_start_does_no_harm(tmp_path: Path) -> None:
    calls = RecordedCalls()
    before = signal.getsignal(signal.SIGHUP)
    daemon = daemon_of(config_in(tmp_path), calls)
    daemon.startService()
    assert signal.getsignal(signal.SIGHUP) is not before
    os.kill(os.getpid(), signal.SIGHUP)
    assert isinstance(await calls.first, Started)
    await daemon.stopService()
    assert signal.getsignal(signal.SIGHUP) is before


@pytest_twisted.ensureDeferred
async def test_preparations_end_before_it_listens(tmp_path: Path) -> None:
    calls = RecordedCalls()
    seen: list[int] = []

    async def prepare(backend: Backend) -> None:
        await backend.store.add_website("example.com", 1)
        seen.append(len(calls.all))

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.startService()
    await calls.first
    assert seen == [0]
    await daemon.stopService()


@pytest.mark.parametrize(
    ("place", "status"), [("unix:/absent/folder/socket", 1), ("carrier:pigeon", 78)]
)
@pytest_twisted.ensureDeferred
async def test_an_unusable_endpoint_ends_it(tmp_path: Path, place: str, status: int) -> None:
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path, place), calls)
    daemon.startService()
    assert await calls.first == status
    await daemon.stopService()
    assert not (tmp_path / LOCK_NAME).exists() or is_free(tmp_path)


@pytest_twisted.ensureDeferred
async def test_an_unexpected_error_in_the_start_ends_it(
    tmp_path: Path, logged_failures: LoggedFailures
) -> None:
    calls = RecordedCalls()

    async def prepare(_backend: Backend) -> None:
        raise LookupError("nothing to prepare")

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.startService()
    assert await calls.first == 1
    assert [str(error) for error in logged_failures.take(LookupError)] == ["nothing to prepare"]
    await daemon.stopService()
    assert is_free(tmp_path)


@pytest_twisted.ensureDeferred
async def test_an_unread_response_does_not_delay_the_stop(tmp_path: Path) -> None:
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path), calls)
    daemon.drain_s = 0.05
    daemon.startService()
    started = await calls.first
    assert isinstance(started, Started)
    client = HostnameEndpoint(reactor, b"127.0.0.1", int(started.urls[0].rpartition(":")[2]))
    sender = await connectProtocol(client, Sender())
    sender.transport.write(b"GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n" * 300)
    await sender.answered
    sender.transport.pauseProducing()
    await daemon.stopService()
    assert is_free(tmp_path)
    sender.transport.resumeProducing()
    await sender.lost


@pytest_twisted.ensureDeferred
async def test_what_is_found_for_first_requests_does_not_delay_the_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), []

    def load(_engine: EmbeddedEngine, cancellation: Cancellation) -> None:
        begun.set()
        try:
            while True:
                cancellation.check()
                time.sleep(0.001)
        finally:
            ended.append(True)

    monkeypatch.setattr(EmbeddedEngine, "load", load)
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path), calls)
    daemon.startService()
    await calls.first
    assert await deferToThread(begun.wait, PATIENCE_S)
    await daemon.stopService()
    assert ended == [True]
    assert is_free(tmp_path)


@pytest_twisted.ensureDeferred
async def test_queries_do_not_delay_the_stop(tmp_path: Path) -> None:
    calls, backends, token = RecordedCalls(), [], new_token()
    begun, seen = [], []

    async def prepare(backend: Backend) -> None:
        backends.append(backend)
        await backend.store.add_website("example.com", 1)
        now = int(backend.clock())
        await backend.store.account.add_login(digest(token), Login(since=now, last_seen=now))

    async def ask(asker: str) -> None:
        given_up = threading.Event()

        def work() -> None:
            begun.append(asker)
            seen.append(given_up.wait(PATIENCE_S))

        try:
            await backends[0].run_query(work, client=(asker,))
        finally:
            given_up.set()

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.drain_s = 0.05
    daemon.startService()
    started = await calls.first
    assert isinstance(started, Started)
    asked = [Deferred.fromCoroutine(ask(str(number))) for number in range(QUERY_THREADS + 2)]
    client = HostnameEndpoint(reactor, b"127.0.0.1", int(started.urls[0].rpartition(":")[2]))
    sender = await connectProtocol(client, Sender())
    head = f"GET /website/example.com/pages HTTP/1.1\r\nHost: localhost\r\nCookie: _me_sess={token}"
    sender.transport.write(f"{head}\r\n\r\n".encode())
    while backends[0].run_query.size <= len(asked) or len(begun) < QUERY_THREADS:
        await deferLater(reactor, 0.01)
    await daemon.stopService()
    assert seen == [True] * QUERY_THREADS, "they were given up, and others not begun"
    await sender.lost
    assert not sender.answered.called
    for one in asked:
        with pytest.raises(CancelledError):
            await one
    assert is_free(tmp_path)


@pytest_twisted.ensureDeferred
async def test_a_failed_store_ends_it(tmp_path: Path) -> None:
    calls = RecordedCalls()
    backends: list[Backend] = []

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.startService()
    started = await calls.first
    backends[0].store.broken.callback("the disk is gone")
    assert calls.all == [started, 1]
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_maintenance_ends_silently_with_the_daemon(tmp_path: Path) -> None:
    calls, is_released = RecordedCalls(), threading.Event()
    backends: list[Backend] = []

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.tidy_s = 0.01
    daemon.startService()
    await calls.first
    held = backends[0].store.writer.submit(lambda _txn: is_released.wait(PATIENCE_S))
    await deferLater(reactor, 0.05)
    threading.Timer(0.1, is_released.set).start()
    await daemon.stopService()
    assert await held
    # What was queued when the daemon stopped has been written, and its callers are notified now.
    await deferLater(reactor, 0.01)


@pytest.mark.parametrize(
    ("trusted_ms", "kept"), [(0, 2), (NOW_MS - 365 * DAY_MS, 2), (NOW_MS - 60_000, 1)]
)
@pytest_twisted.ensureDeferred
async def test_expired_views_are_removed_once_the_clock_is_trusted(
    tmp_path: Path, trusted_ms: int, kept: int
) -> None:
    environment = open_environment(tmp_path, 64 << 20)
    with environment.lmdb.begin(write=True) as txn:
        write_trusted(txn, environment, TrustedTime(trusted_ms))
    environment.close()
    calls, backends = RecordedCalls(), list[Backend]()

    async def prepare(backend: Backend) -> None:
        backends.append(backend)
        website = await backend.store.add_website("example.com", 1)
        for days in (100, 80):
            view = a_view(website.number, time_ms=NOW_MS - days * DAY_MS)
            await backend.store.append([view])

    config = config_in(tmp_path)
    retention = msgspec.structs.replace(config.retention, raw_days=90, after="nothing")
    daemon = daemon_of(evolve(config, retention=retention), calls, prepare=prepare)
    daemon.clock = lambda: NOW_MS / 1000
    daemon.tidy_s = 0.01
    daemon.startService()
    await calls.first
    store = backends[0].store
    while store.figures().memtable_views:
        await deferLater(reactor, 0.01)
    # What was flushed because of its age is searched for what has expired, too.
    await idle(store)
    [website] = store.websites.all()
    left = store.read(website, lambda snapshot: sum(len(part) for part in snapshot.parts))
    await daemon.stopService()
    assert left == kept


@pytest_twisted.ensureDeferred
async def test_what_exclusions_leave_out_is_kept_apart_when_views_expire(tmp_path: Path) -> None:
    environment = open_environment(tmp_path, 64 << 20)
    with environment.lmdb.begin(write=True) as txn:
        write_trusted(txn, environment, TrustedTime(NOW_MS - 60_000))
    environment.close()
    calls, backends = RecordedCalls(), list[Backend]()
    exclusion = Exclusion(id="a", name="bots", filters=(("referrer", "Google"),), created=1)

    async def prepare(backend: Backend) -> None:
        backends.append(backend)
        website = await backend.store.add_website("example.com", 1)
        definitions = Definitions(exclusions=(exclusion,))
        await backend.store.goals.change(website.number, lambda _: definitions)
        for referrer in ("", "google.de"):
            view = a_view(website.number, time_ms=NOW_MS - 100 * DAY_MS, referrer=referrer)
            await backend.store.append([view])

    config = config_in(tmp_path)
    retention = msgspec.structs.replace(config.retention, raw_days=90)
    daemon = daemon_of(evolve(config, retention=retention), calls, prepare=prepare)
    daemon.clock = lambda: NOW_MS / 1000
    daemon.tidy_s = 0.01
    daemon.startService()
    await calls.first
    backend = backends[0]
    while not backend.store.partitions.days_with_rollups():
        await deferLater(reactor, 0.01)
    await idle(backend.store)
    [website] = backend.store.websites.all()

    def counted() -> tuple[int, Sequence[int]]:
        def ask(reader: Reader) -> tuple[int, Sequence[int]]:
            found = reader.select(Query())
            return int(found.series(None).tally.views[0]), found.left_out.days(Gap.EXCLUSIONS)

        sources = backend.settings.sources
        return backend.engine.read(website, sources, Cancellation(), ask)

    assert counted() == (1, [])
    await backend.store.goals.change(website.number, lambda _: Definitions())
    assert counted() == (2, [])
    later = evolve(exclusion, filters=(("path", "/"),))
    await backend.store.goals.change(website.number, lambda _: Definitions(exclusions=(later,)))
    assert counted() == (2, [(NOW_MS - 100 * DAY_MS) // DAY_MS])
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_it_releases_memory_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_back = threading.Event()
    monkeypatch.setattr(runtime, "return_free_memory", given_back.set)
    calls = RecordedCalls()
    backends: list[Backend] = []

    async def prepare(backend: Backend) -> None:
        backends.append(backend)
        backend.store.settings = evolve(backend.store.settings, text_bytes=0)
        website = await backend.store.add_website("example.com", 1)
        await backend.store.append([a_view(website.number)])

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.return_s = 0.01
    daemon.startService()
    await calls.first
    assert await deferToThread(given_back.wait, PATIENCE_S)
    store = backends[0].store
    (website,) = store.websites.all()
    texts = store.read(website, lambda seen: seen.texts)
    assert isinstance(texts, WebsiteTexts)
    assert list(texts(Dimension.PATH)) == ["/"]
    # Unused entries are evicted when the cache is full.
    while texts.size():
        await deferLater(reactor, 0.02)
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_commands_reach_it_while_it_runs(tmp_path: Path) -> None:
    def ask() -> DaemonState:
        with connect(tmp_path) as connection:
            return connection.request(Status(), DaemonState)

    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path), calls)
    daemon.startService()
    await calls.first
    state = await deferToThread(ask)
    assert (state.pid, state.version) == (os.getpid(), VERSION)
    assert state.listening == ("tcp:0:interface=127.0.0.1",)
    assert state.websites == 0
    await daemon.stopService()
    with pytest.raises(NotRunning):
        connect(tmp_path)


@pytest_twisted.ensureDeferred
async def test_it_watches_for_silent_websites(tmp_path: Path) -> None:
    calls, seen = RecordedCalls(), Deferred[str]()
    now = [1_750_000_000.0]

    async def prepare(backend: Backend) -> None:
        website = await backend.store.add_website("example.com", 1)
        times = range(int(now[0]) - 8 * 86_400, int(now[0]), 450)
        await backend.store.append([a_view(website.number, time_ms=1000 * time) for time in times])

    def observe(event: LogEvent) -> None:
        if event["log_namespace"] == "medamad.daemon.silence.Watch" and not seen.called:
            seen.callback(formatEvent(event))

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.clock = lambda: now[0]
    daemon.look_s = 0.01
    globalLogPublisher.addObserver(observe)
    daemon.startService()
    await calls.first
    now[0] += 4 * 3_600
    seen.addTimeout(PATIENCE_S, reactor)
    assert await seen == "example.com has gone quiet: no view for 4 hours"
    await daemon.stopService()
    # A restart does not have it forgotten.
    seen, calls = Deferred(), RecordedCalls()
    again = daemon_of(config_in(tmp_path), calls)
    again.clock, again.look_s = daemon.clock, daemon.look_s
    now[0] += 60
    again.startService()
    await calls.first
    seen.addTimeout(PATIENCE_S, reactor)
    assert await seen == "example.com has gone quiet: no view for 4 hours"
    globalLogPublisher.removeObserver(observe)
    await again.stopService()


@pytest_twisted.ensureDeferred
async def test_what_requests_need_is_loaded_once_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr("medamad.web.app.Root.load", lambda _root: done.append("all"))
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path), calls)
    loaded: Deferred[object] = Deferred()
    daemon.loaded = loaded.callback
    daemon.startService()
    await calls.first
    assert not loaded.called
    await loaded.addTimeout(PATIENCE_S, reactor)
    assert done == ["all"]
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_it_runs_if_what_requests_need_cannot_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logged_failures: LoggedFailures
) -> None:
    def fail() -> None:
        raise LookupError("a table")

    monkeypatch.setattr("medamad.web.app.load_tables", fail)
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path), calls)
    loaded: Deferred[object] = Deferred()
    daemon.loaded = loaded.callback
    daemon.startService()
    await calls.first
    await loaded.addTimeout(PATIENCE_S, reactor)
    assert len(logged_failures.take(LookupError)) == 1
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_it_does_not_start_without_compiled_loops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "medamad.web.app.load_kernel", partial(load_kernel.__wrapped__, tmp_path / "kernel.so")
    )
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path / "data"), calls)
    with capturedLogs() as captured:
        daemon.startService()
        assert await calls.first == 1
    lines = [formatEvent(event) for event in captured]
    assert f"not started: medamad was installed without {tmp_path}/kernel.so" in lines
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_request_during_the_stop_is_answered(tmp_path: Path) -> None:
    calls = RecordedCalls()
    daemon = daemon_of(config_in(tmp_path), calls)
    daemon.startService()
    started = await calls.first
    assert isinstance(started, Started)
    port = int(started.urls[0].rpartition(":")[2].rstrip("/"))
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        # It is taken before the stop, and says something only after that has begun. A turn of the
        # reactor takes what has come, however late it is.
        for _ in range(3):
            await deferLater(reactor, 0)
        stopped = daemon.stopService()
        await deferLater(reactor, 0)
        connection.sendall(b"GET /api/event/ping HTTP/1.1\r\nHost: a\r\n\r\n")
        head = await deferToThread(connection.recv, 4_096)
    await stopped
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest_twisted.ensureDeferred
async def test_a_clock_before_1970_is_refused(tmp_path: Path) -> None:
    calls, lines = RecordedCalls(), list[str]()

    def observe(event: LogEvent) -> None:
        lines.append(formatEvent(event))

    daemon = daemon_of(config_in(tmp_path), calls)
    daemon.clock = lambda: -1.0
    globalLogPublisher.addObserver(observe)
    daemon.startService()
    assert await calls.first == 1
    globalLogPublisher.removeObserver(observe)
    assert "not started: the clock is before 1970: set it, then start again" in lines
    await daemon.stopService()
