"""Failing writes and syncs: no 204 without the hit, whichever of them fails.

A full disk, or quota, is no reason to stop; after any other failure the daemon ends and says so.
"""

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from attrs import define, field
from support.daemon import Client, Daemon, finished, until
from support.durability.fault_injection import Fault, has_struck, why_not
from support.durability.load_clients import HOSTNAME, Connection

pytestmark = pytest.mark.daemon

CALLS = ("pwrite64", "writev", "fdatasync")
"""What LMDB writes pages with, and syncs them; the first writes the first two pages also."""
CLIENTS = 2
SHORT = (1, 30)
LONG = pytest.param(tuple(range(1, 201)), marks=(pytest.mark.slow, pytest.mark.timeout(3_600)))
LASTS = 3
"""How many calls fail while the disk is full."""
CONFIGURATION = """
[store]
map_size = "256 MiB"
min_free_disk = "1 MiB"
commit_interval_ms = 1
[limits]
new_paths = 1000000
"""


@pytest.fixture(scope="module", autouse=True)
def tracing() -> None:
    reason = why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, configuration=CONFIGURATION)
    daemon.start()
    yield daemon
    if daemon.is_running:
        daemon.stop()


@define
class Came:
    """What came of loads, by path; each has a path and a beacon of its own."""

    acknowledged: list[str] = field(factory=list)
    refused: list[str] = field(factory=list)
    unanswered: list[str] = field(factory=list)

    def post(self, connection: Connection, path: str) -> bool:
        """Post a load; returns whether it was acknowledged."""
        try:
            header = connection.load(path)
        except OSError:
            self.unanswered.append(path)
            return False
        status = header.split(b" ", 2)[1]
        assert status in {b"204", b"503"}, header
        (self.acknowledged if status == b"204" else self.refused).append(path)
        return status == b"204"


def press(port: int, prefix: str, most: int, stop: Event) -> Came:
    """Post loads until one of anybody's is not acknowledged."""
    came = Came()
    try:
        connection = Connection(port)
    except ConnectionError:
        return came  # another's load has struck already
    number = 0
    while number < most and not stop.is_set() and came.post(connection, f"{prefix}{number}"):
        number += 1
    stop.set()
    connection.close()
    return came


def struck(daemon: Daemon, fault: Fault, prefix: str) -> Came:
    """Post loads until a fault strikes, and then until it is over or the daemon has ended."""
    log = daemon.folder / "trace.txt"
    stop = Event()
    total = Came()
    with fault.injected(daemon.pid, log), ThreadPoolExecutor(CLIENTS) as clients:
        running = [
            clients.submit(press, daemon.port, f"{prefix}{client}-", 5 * fault.nth + 20, stop)
            for client in range(CLIENTS)
        ]
        for came in (client.result() for client in running):
            total.acknowledged += came.acknowledged
            total.refused += came.refused
            total.unanswered += came.unanswered
        for number in range(fault.times + 1):
            try:
                again = Connection(daemon.port)
            except ConnectionError:
                break
            is_over = total.post(again, f"{prefix}again-{number}")
            again.close()
            if is_over:
                break
    assert has_struck(log)
    return total


def stored(owner: Client, prefix: str) -> dict[str, int]:
    """Return how many views there are of each path that begins with `prefix`."""
    rows = owner.get(
        f"/api/website/{HOSTNAME}/pages", **{"path[starts_with]": prefix, "limit": "5000"}
    )
    return {row["path"]: row["pageviews"] for row in rows}


def check(owner: Client, prefix: str, came: Came) -> int:
    """Compare stored loads with what queries return; return how many there are."""
    found = stored(owner, prefix)
    assert set(found) >= set(came.acknowledged), "an acknowledged hit is missing"
    assert set(found) <= {*came.acknowledged, *came.unanswered}, "a refused hit is there"
    assert set(found.values()) <= {1}, "a hit is there twice"
    return len(found)


def check_all(daemon: Daemon, owner: Client, total: int) -> None:
    """What is counted agrees with what is there, and all of it is sound."""
    summary = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]
    assert (summary["pageviews"], summary["visitors"]) == (total, total)
    assert daemon.stop() == 0
    checked = finished("check", daemon.data)
    assert checked.returncode == 0, checked.stderr
    assert f"1 website, {total} views" in checked.stdout


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("places", [SHORT, LONG], ids=["short", "long"])
def test_an_io_error_ends_the_daemon_and_loses_nothing(
    daemon: Daemon, call: str, places: tuple[int, ...]
) -> None:
    owner = daemon.client()
    owner.add_website(HOSTNAME)
    total = 0
    for nth in places:
        prefix = f"/{nth}/"
        logged_before = len(daemon.log)
        came = struck(daemon, Fault(call, "EIO", nth), prefix)
        assert daemon.ended() == 1
        logged = daemon.log[logged_before:]
        assert "the store cannot continue: the store has failed: " in logged
        assert "Traceback" not in logged
        daemon.start()
        total += check(owner, prefix, came)
    check_all(daemon, owner, total)


@pytest.mark.parametrize(
    ("call", "error", "lack"),
    [
        *((call, "ENOSPC", "the disk is full") for call in CALLS),
        ("fdatasync", "EDQUOT", "the quota of the disk is used up"),
        *(
            pytest.param(call, "EDQUOT", "the quota of the disk is used up", marks=pytest.mark.slow)
            for call in ("pwrite64", "writev")
        ),
    ],
)
@pytest.mark.parametrize("places", [SHORT, LONG], ids=["short", "long"])
def test_a_full_disk_is_reported_while_it_lasts_and_loses_nothing(
    daemon: Daemon, call: str, places: tuple[int, ...], error: str, lack: str
) -> None:
    owner = daemon.client()
    owner.add_website(HOSTNAME)
    went_on = 0
    all_that_came = {}
    for nth in places:
        prefix = f"/{nth}/"
        logged_before = len(daemon.log)
        came = struck(daemon, Fault(call, error, nth, LASTS), prefix)
        is_over = "".join(came.acknowledged[-1:]).startswith(f"{prefix}again-")
        if is_over:
            went_on += 1
            assert came.refused
            # A response may arrive before the log line.
            until(lambda: f"changes are not stored: {lack}" in daemon.log)
        else:
            # LMDB's metadata has not been written: the store must be reopened.
            assert daemon.ended() == 1
            assert "the store cannot continue" in daemon.log[logged_before:]
            assert os.strerror(getattr(errno, error)) in daemon.log[logged_before:]
        assert "Traceback" not in daemon.log[logged_before:]
        if not is_over:
            daemon.start()
        check(owner, prefix, came)
        all_that_came[prefix] = came
    # Only what LMDB says of a store is written by a call that another one shares.
    assert went_on == len(places) or (went_on and call == "pwrite64")
    assert daemon.stop() == 0
    daemon.start()
    check_all(daemon, owner, sum(check(owner, *held) for held in all_that_came.items()))
