"""Memory while nothing new is stored: leaks of single requests add up."""

import http.client
import json
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from support.abuse.process_usage import anonymous_bytes
from support.daemon import RUN, Daemon, running

pytestmark = pytest.mark.daemon

LEAK_BYTES = 100
"""What each request leaves behind at most, on an average; whatever is left takes more."""
BEACONS = 50
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0"


def hit(number: int, hostname: str) -> tuple[str, str, bytes, int]:
    beacon = f"beacon {number % BEACONS}"
    url = f"https://{hostname}/{number % BEACONS}"
    fields = {"b": beacon, "e": "load", "u": url, "p": False, "q": False}
    status = 204 if hostname == "example.com" else 404
    return "POST", "/api/event/hit", json.dumps(fields).encode(), status


def asked(number: int) -> tuple[str, str, bytes, int]:
    """Return a request by its number, and its expected status; kinds alternate."""
    unload = {"b": f"beacon {number % BEACONS}", "e": "unload", "m": 5}
    return (
        hit(number, "example.com"),
        hit(number, f"unknown{number % BEACONS}.example"),
        ("POST", "/api/event/hit", json.dumps(unload).encode(), 204),
        ("GET", "/api/event/ping", b"", 200),
        ("GET", f"/nothing/{number}", b"", 404),
        ("POST", "/api/event/hit", b"{", 400),
    )[number % 6]


def ask(daemon: Daemon, first: int, count: int) -> int:
    """Send requests and return the daemon's memory afterwards, in bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=60)
    with closing(connection):
        for number in range(first, first + count):
            method, path, body, status = asked(number)
            connection.request(method, path, body, {"User-Agent": AGENT})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status, (path, body)
    return anonymous_bytes(daemon.pid)


@pytest.mark.parametrize(
    ("rounds", "at_once"), [(5, 600), pytest.param(4, 3_000, marks=pytest.mark.slow)]
)
def test_requests_leave_nothing_behind(tmp_path: Path, rounds: int, at_once: int) -> None:
    with running(tmp_path, command=RUN) as daemon:
        daemon.client().add_website("example.com")
        # At first tables and caches fill.
        sizes = [ask(daemon, turn * at_once, at_once) for turn in range(rounds + 3)][2:]
    growths = [after - before for before, after in pairwise(sizes)]
    # What comes and goes is in some of the rounds, what is left behind in nearly all.
    assert median(growths) < at_once * LEAK_BYTES, growths
