"""Many slow or idle connections, while hits are sent."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest
from support.abuse.connection_crowd import crowd
from support.abuse.hit_latency import Waits, for_seconds, send_hits
from support.abuse.process_usage import anonymous_bytes
from support.daemon import RUN, Daemon, running, until

pytestmark = pytest.mark.daemon

Tell: TypeAlias = Callable[[str], None]

BYTES_UNREAD = 262_144
"""The bound for the memory of an unread response."""
ROOM = "[limits]\nmax_connections = 12000\n"


@pytest.fixture
def daemon(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Daemon]:
    # A process that was forked may use memory that was free before.
    command = RUN if request.node.get_closest_marker("slow") else None
    with running(tmp_path, configuration=ROOM, command=command) as daemon:
        daemon.client().add_website("example.com")
        yield daemon
        assert "Traceback" not in daemon.log


@pytest.fixture
def tell(capsys: Any) -> Tell:
    """Print a measurement."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}\n")

    return say


def slow_connections(
    daemon: Daemon, count: int, every_s: float = 0.01
) -> tuple[Waits, dict[str, list[float | None]]]:
    send_hits(daemon, for_seconds(0.5))
    before = greatest = anonymous_bytes(daemon.pid)

    def goes_on() -> bool:
        nonlocal greatest
        greatest = max(greatest, anonymous_bytes(daemon.pid))
        return process.poll() is None

    with crowd(daemon.port, count, "slow", "60") as process:
        waits = send_hits(daemon, goes_on, every_s)
        found = json.loads(process.stdout.read())
    assert sum(map(len, found.values())) == count
    # A third of them asks for very much, and receives nothing of it.
    assert greatest - before < count * BYTES_UNREAD
    return waits, found


def check_cut(found: dict[str, list[float | None]]) -> None:
    assert set(found) == {"head", "headers", "body", "chunks", "reading", "reading many"}
    for kind, seconds in found.items():
        assert None not in seconds, kind
        # Not immediately either: slightly slow clients are served.
        assert min(seconds) > 10, kind


def test_slow_connections_are_closed_and_hits_continue(daemon: Daemon) -> None:
    _, found = slow_connections(daemon, 120, every_s=0.1)
    check_cut(found)


@pytest.mark.slow
def test_2_000_slow_connections_are_closed_and_delay_nobody(daemon: Daemon, tell: Tell) -> None:
    waits, found = slow_connections(daemon, 2_000)
    tell(f"{waits}")
    check_cut(found)
    assert max(max(seconds) for seconds in found.values()) < 15
    assert waits.part(0.99) < 100


def idle_connections(daemon: Daemon, count: int, seconds: float) -> tuple[Waits, float]:
    """Return the latencies of hits during idle connections, and the bytes each of those needs."""
    process = psutil.Process(daemon.pid)
    with crowd(daemon.port, 200, "idle"):
        send_hits(daemon, for_seconds(0.5))
    before = anonymous_bytes(daemon.pid)
    with crowd(daemon.port, count, "idle"):
        until(lambda: process.num_fds() > count)
        waits = send_hits(daemon, for_seconds(seconds))
        grown = anonymous_bytes(daemon.pid) - before
        assert process.num_fds() > count
    return waits, grown / count


def test_hits_continue_during_idle_connections(daemon: Daemon) -> None:
    idle_connections(daemon, 1_000, 0.5)


@pytest.mark.slow
def test_10_000_idle_connections_delay_nobody_and_need_little_memory(
    daemon: Daemon, tell: Tell
) -> None:
    tell(f"alone {send_hits(daemon, for_seconds(3))}")
    waits, each = idle_connections(daemon, 10_000, 3)
    tell(f"{waits}, {each:.0f} bytes each")
    assert waits.part(0.99) < 50
    assert each <= 4_096
