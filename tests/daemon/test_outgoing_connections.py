"""The daemon opens no outgoing connection and looks up no name."""

import socket
import sys
import time
from pathlib import Path

import pytest
from support import outgoing_calls as noting_calls
from support.daemon import Client, Daemon, configure, until

pytestmark = pytest.mark.daemon


@pytest.mark.parametrize(
    "seconds",
    [
        0,
        # What is done from time to time is done once a minute.
        pytest.param(70, marks=[pytest.mark.slow, pytest.mark.timeout(240)]),
    ],
)
def test_nothing_is_contacted_except_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    notes, supervisor = tmp_path / "calls.txt", str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", supervisor)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(supervisor)
        command = (sys.executable, noting_calls.__file__, str(notes), "run")
        daemon = Daemon(tmp_path, command=command)
        daemon.start()
        try:
            use(daemon)
            time.sleep(seconds)
        finally:
            assert daemon.stop() == 0
    calls = notes.read_text("utf-8").splitlines()
    assert calls
    assert {call for call in calls if "AF_UNIX" not in call or supervisor not in call} == set()


def use(daemon: Daemon) -> None:
    """Act as visitors and owners do, and make the daemon reload its files."""
    client = daemon.client()
    client.add_website("example.com")
    refused = {"username": "admin", "password": "wrong"}
    assert Client(daemon.port).request("POST", "/api/auth/login", refused).status == 401
    for number in range(5):
        hit = {
            "e": "load",
            "b": f"b{number}",
            "u": f"https://example.com/{number}?utm_source=news",
            "r": "https://www.example.org/page",
            "t": "Europe/Berlin",
            "p": True,
            "q": True,
        }
        assert client.request("POST", "/api/event/hit", hit).status == 204
    assert client.get("/api/website/example.com/summary")["current"]["pageviews"] == 5
    assert client.get("/api/website/example.com/referrers")
    assert client.get("/api/user/usage")
    assert client.request("GET", "/dashboard/").status == 200
    assert client.request("GET", "/metrics").status == 200
    configure(daemon, "")
    until(lambda: "was reloaded" in daemon.log)
