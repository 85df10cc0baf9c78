"""Expensive queries, while hits are sent."""

import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_twisted
from support.abuse import query_load as asking
from support.abuse.hit_latency import Waits, for_seconds, send_hits
from support.daemon import PATIENCE_S, Daemon
from twisted.internet import reactor

from medamad.demo.sites import SITES
from medamad.demo.traffic import TrafficPlan, fill
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

pytestmark = pytest.mark.daemon

Filled: TypeAlias = Callable[[int], Awaitable[Daemon]]


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Filled]:
    """Start a daemon on a store with a number of views."""
    daemon = Daemon(tmp_path)

    async def start(views: int) -> Daemon:
        store = start_store(daemon.data, StoreSettings(map_size=4 << 30, min_free_disk=0), reactor)
        await fill(store, TrafficPlan(until_ms=int(time.time() * 1_000), days=60, views=views))
        await store.add_website("example.com", int(time.time()))
        await store.close()
        daemon.start()
        return daemon

    yield start
    if daemon.is_running:
        daemon.stop()
        assert "Traceback" not in daemon.log


@contextmanager
def asked(daemon: Daemon, at_once: int) -> Iterator[Any]:
    """Start a process that runs expensive queries concurrently."""
    cookie = daemon.client().cookie
    assert cookie is not None
    command = [asking.__file__, str(daemon.port), cookie, SITES[0].hostname, str(at_once)]
    with subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def waits_beside(daemon: Daemon, at_once: int, seconds: float) -> Waits:
    """Return the latencies of hits during queries."""
    with asked(daemon, at_once) as process:
        waits = send_hits(daemon, for_seconds(seconds))
        output, _ = process.communicate(timeout=PATIENCE_S)
    # All of them, and they are many, got a response.
    assert output.startswith("{200: ")
    assert output.count(":") == 1
    assert int(output[6:-2]) > at_once
    return waits


@pytest_twisted.ensureDeferred
async def test_hits_are_accepted_during_expensive_queries(filled: Filled) -> None:
    waits_beside(await filled(3_000), 4, 0.5)


@pytest.mark.slow
@pytest_twisted.ensureDeferred
async def test_hits_are_accepted_quickly_during_expensive_queries(filled: Filled) -> None:
    daemon = await filled(12_000)
    alone = send_hits(daemon, for_seconds(2))
    waits = waits_beside(daemon, 4, 5)
    # The worst of them are test_reactor_latency's matter.
    assert waits.part(0.5) < max(50, 3 * alone.part(0.5))
