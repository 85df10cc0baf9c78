"""The daemon with a stalled store, as on an unresponsive disk."""

import http.client
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest_twisted
from support.daemon import HIT, PATIENCE_S, Answer, Daemon, first_headers, running, until
from support.in_process_daemon import RecordedCalls, config_in, daemon_of
from support.storage.log_lines import logged_warnings
from support.storage.stalled_write import StalledWrite
from support.storage.visible_hits import paths, seen
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from medamad.daemon.service import Started
from medamad.ingest.pipeline import CAPACITY
from medamad.storage.environment.environment import open_as_guest, open_environment
from medamad.storage.environment.writer import MOST_S, StallWatch
from medamad.web.backend import Backend


def asked(port: int, path: str, body: Mapping[str, object] | None = None) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET" if body is None else "POST", path, body and json.dumps(body))
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return Answer(answer.status, first_headers(answer), content)


@pytest_twisted.ensureDeferred
async def test_hits_are_rejected_while_the_store_is_stalled(
    tmp_path: Path,
) -> None:
    calls, backends, now = RecordedCalls(), [], [0.0]

    async def prepare(backend: Backend) -> None:
        backends.append(backend)
        await backend.store.add_website("example.com", 1)

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare)
    daemon.stall_check_s = 0.01
    daemon.startService()
    started = await calls.first
    assert isinstance(started, Started)
    port = int(started.urls[0].rpartition(":")[2])

    def answered(path: str, beacon: str = "") -> "Deferred[Answer]":
        return deferToThread(asked, port, path, HIT | {"b": beacon} if beacon else None)

    pipeline, store = backends[0].pipeline, backends[0].store
    store.writer.stall_watch = StallWatch(lambda: now[0])
    stuck = StalledWrite.in_writer(store)
    with logged_warnings() as lines:
        early = answered("/event/hit", "a")
        while not len(pipeline.queue):
            await deferLater(reactor, 0.01)
        assert (await answered("/health")).status == 200
        now[0] += MOST_S
        refused = [await answered("/event/hit", name) for name in "bc"]
        assert [(one.status, one.headers["retry-after"]) for one in refused] == [(503, "10")] * 2
        health = await answered("/health")
        assert (health.status, "has not ended for 10 s" in str(health.json)) == (503, True)
        assert pipeline.uncounted.totals() == {CAPACITY: 2}
        stuck.is_released.set()
        assert await stuck.done
        # Whether that one will be stored is unknown.
        assert (await early).status == 204
        assert [(await answered("/event/hit", name)).status for name in "abc"] == [204] * 3
    assert [line.partition(":")[0] for line in lines] == ["hits are rejected, queries still work"]
    assert (await answered("/health")).status == 200
    website = store.websites.all()[0]
    assert len(paths(seen(store, website))) == 3, "none that was sent again counts twice"
    await daemon.stopService()
    open_environment(tmp_path, 64 << 20).close()


def sent(daemon: Daemon, beacon: str) -> tuple[threading.Thread, list[Answer]]:
    """Send a hit and append its response to a list."""
    answers: list[Answer] = []

    def send() -> None:
        with suppress(ConnectionError):
            answers.append(asked(daemon.port, "/api/event/hit", HIT | {"b": beacon}))

    thread = threading.Thread(target=send)
    thread.start()
    return thread, answers


def test_a_daemon_with_a_stalled_store_can_be_stopped(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        assert client.request("POST", "/api/event/hit", HIT).status == 204
        with open_as_guest(daemon.data).lmdb as environment:
            locked = environment.begin(write=True)
            thread, answers = sent(daemon, "2")
            until(lambda: "hits_waiting 1" in client.request("GET", "/metrics").body.decode())
            assert daemon.stop() == 0
            locked.abort()
        thread.join(PATIENCE_S)
        # It may still be stored.
        assert answers == []
        assert "is left open, as a write does not end" in daemon.log
        assert "1 connections were aborted" in daemon.log
        daemon.start()
        summary = daemon.client().get("/api/website/example.com/summary")
        assert summary["current"]["pageviews"] == 1
