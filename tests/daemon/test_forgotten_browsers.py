"""What remains of a visitor's browser and address in the memory of a daemon."""

import gc
import subprocess
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest_twisted
from attrs import evolve
from support.in_process_daemon import RecordedCalls, config_in, daemon_of
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from medamad.daemon.service import Started
from medamad.ingest.networks import address_of
from medamad.web.backend import Backend

# Backwards, so that this module does not have what it looks for.
USER_AGENT: Final = (
    "24.91/xoferiF 10100102/okceG )0.041:vr ;tnecsed-elgniS ;46_68x xuniL ;11X( 0.5/allizoM"
)
LANGUAGES: Final = "6.0=q;ed,7.0=q;TI-rf,HC-mr"
ADDRESS: Final = "77.311.0.302"
SEND: Final = """
import json, sys
from http.client import HTTPConnection
port, *texts = sys.argv[1:]
user_agent, languages, address = (text[::-1] for text in texts)
headers = {"User-Agent": user_agent, "Accept-Language": languages, "X-Forwarded-For": address}
load = {"e": "load", "u": "https://example.com/", "p": True, "q": True}
for number in range(3):
    connection = HTTPConnection("127.0.0.1", int(port))
    # Whole, so that it is taken in one step, and with a field for which it is parsed.
    for more in ({}, {"X-More": "1"}):
        body = json.dumps(load | {"b": f"b{number}{len(more)}"})
        connection.request("POST", "/event/hit", body, headers | more)
        response = connection.getresponse()
        response.read()
        assert response.status == 204, response.status
    connection.request("GET", "/event/ping?n=example.com", headers=headers)
    connection.getresponse().read()
    connection.close()
"""


def kept(*needles: bytes) -> list[object]:
    """Return the texts in reach of any object that contain one of some others."""
    found, seen, waiting = [], set(), gc.get_objects()
    seen.update(map(id, (waiting, needles, *needles, found)))
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, str | bytes | bytearray | memoryview):
            content = each.encode("utf-8", "replace") if isinstance(each, str) else bytes(each)
            if any(needle in content for needle in needles):
                found.append(each)
        else:
            waiting += gc.get_referents(each)
    return found


async def _while_running(folder: Path, check: Any) -> None:
    ahead_s = [0.0]
    config = config_in(folder)
    server = msgspec.structs.replace(config.server, trusted_proxies=("127.0.0.1",))
    calls = RecordedCalls()

    async def prepare(backend: Backend) -> None:
        await backend.store.add_website("example.com", 1)

    daemon = daemon_of(evolve(config, server=server), calls, prepare=prepare)
    daemon.clock = lambda: time.time() + ahead_s[0]
    daemon.tidy_s = 0.1
    daemon.startService()
    started = await calls.first
    assert isinstance(started, Started)
    await check(started, ahead_s)
    await daemon.stopService()


def _later(seconds: float) -> Awaitable[None]:
    waiting: Deferred[None] = deferLater(reactor, seconds, lambda: None)
    return waiting


@pytest_twisted.ensureDeferred
async def test_nothing_of_a_browser_is_kept_for_longer_than_a_visit(tmp_path: Path) -> None:
    async def check(started: Started, ahead_s: list[float]) -> None:
        port = started.urls[0].rpartition(":")[2].strip("/")
        command = [sys.executable, "-c", SEND, port, USER_AGENT, LANGUAGES, ADDRESS]
        await deferToThread(subprocess.run, command, check=True)
        ahead_s[0] = 31 * 60.0
        await _later(1)
        gc.collect()
        address = ADDRESS[::-1]
        needles = (USER_AGENT[::-1].encode(), LANGUAGES[::-1].encode(), address.encode())
        octets = address_of(address)
        assert octets is not None
        assert kept(*needles, octets) == []

    await _while_running(tmp_path, check)
