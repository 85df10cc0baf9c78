"""Many connections that do little, beside those who send hits."""

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest
from attrs import frozen
from crowd import crowd
from daemon import PATIENCE_S, Daemon, running, until
from measuring import anonymous_bytes

pytestmark = pytest.mark.daemon

Tell: TypeAlias = Callable[[str], None]

BYTES_UNREAD = 262_144
"""What an answer that nobody receives may take."""
ROOM = "[limits]\nmax_connections = 12000\n"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with running(tmp_path, configuration=ROOM) as daemon:
        daemon.client().add_website("example.com")
        yield daemon
        assert "Traceback" not in daemon.log


@frozen
class Waits:
    """How long hits waited, in ascending order."""

    ms: list[float]

    def part(self, share: float) -> float:
        return self.ms[min(int(len(self.ms) * share), len(self.ms) - 1)]

    def __str__(self) -> str:
        return f"{len(self.ms)} hits: {self.part(0.5):.1f} ms, 99 % {self.part(0.99):.1f} ms"


@pytest.fixture
def tell(capsys: Any) -> Tell:
    """Say a figure to whoever runs the long forms."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return say


def send_hits(daemon: Daemon, goes_on: Callable[[], bool], *, new_each: int = 10) -> Waits:
    """Send a hit every 10 ms, each tenth over a new connection; gives how long they waited."""
    body = '{"e":"load","b":"%s","u":"https://example.com/","p":true,"q":true}'
    found = []
    sock: socket.socket | None = None
    number = 0
    while number == 0 or goes_on():
        number += 1
        text = body % f"{time.time_ns()}"
        request = (
            f"POST /event/hit HTTP/1.1\r\nHost: a\r\nContent-Length: {len(text)}\r\n\r\n{text}"
        )
        began = time.perf_counter()
        if sock is None or number % new_each == 0:
            if sock is not None:
                sock.close()
            sock = socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(request.encode())
        assert sock.recv(4_096).startswith(b"HTTP/1.1 204 ")
        found.append((time.perf_counter() - began) * 1_000)
        time.sleep(0.01)
    assert sock is not None
    sock.close()
    return Waits(sorted(found))


def for_seconds(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() < until


def slow_connections(daemon: Daemon, count: int) -> tuple[Waits, dict[str, list[float | None]]]:
    send_hits(daemon, for_seconds(0.5))
    before = greatest = anonymous_bytes(daemon.pid)

    def goes_on() -> bool:
        nonlocal greatest
        greatest = max(greatest, anonymous_bytes(daemon.pid))
        return process.poll() is None

    with crowd(daemon.port, count, "slow", "60") as process:
        waits = send_hits(daemon, goes_on)
        found = json.loads(process.stdout.read())
    assert sum(map(len, found.values())) == count
    # A third of them asks for very much, and receives nothing of it.
    assert greatest - before < count * BYTES_UNREAD
    return waits, found


def cut_within_s(found: dict[str, list[float | None]]) -> float:
    """Give after how many seconds the last was cut."""
    assert set(found) == {"head", "headers", "body", "chunks", "reading", "reading many"}
    for kind, seconds in found.items():
        assert None not in seconds, kind
        # Not at once either: whoever is a little slow is served.
        assert min(seconds) > 10, kind
    return max(max(seconds) for seconds in found.values())


def holds_once(turn: Callable[[], bool]) -> bool:
    """Tell whether one of three turns is as it should be: other tests may be what holds some up.

    The long forms look at the worst of a single turn.
    """
    return any(turn() for _ in range(3))


def test_slow_connections_are_cut_and_hits_go_on(daemon: Daemon) -> None:
    def turn() -> bool:
        alone = send_hits(daemon, for_seconds(1))
        waits, found = slow_connections(daemon, 120)
        return cut_within_s(found) < 15 and waits.part(0.5) < max(100, 3 * alone.part(0.5))

    assert holds_once(turn)


@pytest.mark.slow
def test_2_000_slow_connections_are_cut_and_hits_go_on(daemon: Daemon, tell: Tell) -> None:
    waits, found = slow_connections(daemon, 2_000)
    tell(f"{waits}")
    assert cut_within_s(found) < 15
    assert waits.part(0.99) < 100


def idle_connections(daemon: Daemon, count: int) -> tuple[Waits, float]:
    """Give the waits of hits beside idle connections, and how many bytes each of those takes."""
    process = psutil.Process(daemon.pid)
    with crowd(daemon.port, 200, "idle"):
        send_hits(daemon, for_seconds(0.5))
    before = anonymous_bytes(daemon.pid)
    with crowd(daemon.port, count, "idle"):
        until(lambda: process.num_fds() > count)
        waits = send_hits(daemon, for_seconds(3))
        grown = anonymous_bytes(daemon.pid) - before
        assert process.num_fds() > count
    return waits, grown / count


def test_idle_connections_hold_nobody_up(daemon: Daemon) -> None:
    def turn() -> bool:
        alone = send_hits(daemon, for_seconds(1))
        waits, _ = idle_connections(daemon, 1_000)
        return waits.part(0.5) < max(50, 3 * alone.part(0.5))

    assert holds_once(turn)


@pytest.mark.slow
def test_10_000_idle_connections_hold_nobody_up_and_are_small(daemon: Daemon, tell: Tell) -> None:
    tell(f"alone {send_hits(daemon, for_seconds(3))}")
    waits, each = idle_connections(daemon, 10_000)
    tell(f"{waits}, {each:.0f} bytes each")
    assert waits.part(0.99) < 50
    assert each <= 4_096
