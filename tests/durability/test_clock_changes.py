"""The clock is set during load: back by a day, ahead by a year and back again."""

import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.daemon import PATIENCE_S, until
from support.durability.load_clients import HOSTNAME, Connection, Sent, press
from support.durability.moving_clock import Clock, with_settable_clock

from medamad.cli import main

pytestmark = pytest.mark.daemon

DAY_S = 86_400
YEAR_S = 365 * DAY_S
CLIENTS = 4


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    with with_settable_clock(tmp_path) as clock:
        yield clock


def test_hits_are_counted_wherever_the_clock_is_set(clock: Clock) -> None:
    daemon = clock.daemon
    daemon.client().add_website(HOSTNAME)
    stop = threading.Event()
    by_client = [Sent() for _ in range(CLIENTS)]

    def acknowledged() -> list[int]:
        return [len(sent.acknowledged) for sent in by_client]

    def all_go_on() -> None:
        before = acknowledged()
        until(lambda: all(now > was + 5 for now, was in zip(acknowledged(), before, strict=True)))

    with ThreadPoolExecutor(CLIENTS) as clients:
        running = [
            clients.submit(press, daemon.port, f"/{number}-", stop, sent)
            for number, sent in enumerate(by_client)
        ]
        try:
            all_go_on()
            for seconds in (-1, -DAY_S, DAY_S, YEAR_S, -YEAR_S, -YEAR_S):
                clock.set_by(seconds)
                all_go_on()
        finally:
            stop.set()
        for one in running:
            one.result()
    assert not any(sent.unanswered for sent in by_client)

    owner = daemon.client()
    total = sum(acknowledged())
    again = Connection(daemon.port)
    for sent in by_client:
        for path in sent.acknowledged[-3:]:
            assert again.load(path).startswith(b"HTTP/1.1 204 ")
    again.close()
    summary = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]
    assert (summary["pageviews"], summary["visitors"]) == (total, total), (
        "sent again, counted twice"
    )
    assert 0 <= owner.get(f"/api/website/{HOSTNAME}/live")["visitors"] <= total
    assert daemon.stop() == 0
    daemon.start()
    assert daemon.client().get(f"/api/website/{HOSTNAME}/summary")["current"] == summary
    assert "Traceback" not in daemon.log
    assert daemon.stop() == 0
    assert main(["check", "--data", str(daemon.data)]) == 0


def test_visitors_from_the_future_are_not_in_the_last_day(clock: Clock) -> None:
    daemon = clock.daemon
    daemon.client().add_website(HOSTNAME)

    def visitors() -> int:
        (website,) = daemon.client().get("/api/websites?summary=true")
        return int(website["summary"]["visitors"])

    def load(path: str) -> None:
        connection = Connection(daemon.port)
        assert connection.load(path).startswith(b"HTTP/1.1 204 ")
        connection.close()

    for path, seconds in (("/now", YEAR_S), ("/ahead", -YEAR_S), ("/back", 0)):
        load(path)
        clock.set_by(seconds)
    assert visitors() == 2
    daemon.stop()
    daemon.start()
    assert visitors() == 2
    clock.set_by(2 * DAY_S)
    assert visitors() == 0
    load("/later")
    assert visitors() == 1


def test_a_session_survives_a_clock_change_of_a_day(clock: Clock) -> None:
    owner = clock.daemon.client()
    for seconds in (-DAY_S, DAY_S, DAY_S):
        clock.set_by(seconds)
        assert owner.get("/api/user")["username"] == "ada"
    clock.set_by(YEAR_S)
    assert owner.request("GET", "/api/user").status == 401
    ahead = clock.daemon.client()
    clock.set_by(-YEAR_S)
    assert ahead.request("GET", "/api/user").status == 401, "a login of next year"
    assert clock.daemon.client().get("/api/user")["username"] == "ada"


def test_the_watchdog_is_still_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervising:
        supervising.bind(str(tmp_path / "notify"))
        supervising.settimeout(PATIENCE_S)
        monkeypatch.setenv("NOTIFY_SOCKET", supervising.getsockname())
        monkeypatch.setenv("WATCHDOG_USEC", "300000")
        with with_settable_clock(tmp_path) as clock:
            assert supervising.recv(1000).startswith(b"READY=1")
            clock.set_by(-DAY_S)
            # What is there was sent before; what comes now was not.
            while select.select([supervising], [], [], 0)[0]:
                supervising.recv(1000)
            assert [supervising.recv(1000) for _ in range(3)] == [b"WATCHDOG=1"] * 3
