"""kill -9 under load: what was acknowledged is there, and nothing is there twice."""

import json
import random
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from attrs import define, field
from daemon import Client, Daemon

pytestmark = pytest.mark.daemon

HOSTNAME = "example.com"
MANY = pytest.param(500, marks=(pytest.mark.slow, pytest.mark.timeout(1_800)))
CLIENTS = 6
CONFIGURATION = """
[store]
map_size = "256 MiB"
min_free_disk = "1 MiB"
[limits]
new_paths = 1000000
"""


@define
class Sent:
    """What one client sent in one round, by path; each hit has a path and a beacon of its own."""

    acknowledged: list[str] = field(factory=list)
    unanswered: list[str] = field(factory=list)


class Connection:
    """A keep-alive connection that posts loads as fast as they are answered."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)

    def close(self) -> None:
        self._socket.close()

    def load(self, path: str) -> bytes:
        """Post a load; returns the head of the answer, whole or cut off. Raises OSError."""
        body = json.dumps(
            {
                "e": "load",
                "b": path.replace("/", "-"),
                "u": f"https://{HOSTNAME}{path}",
                "p": True,
                "q": True,
            }
        )
        self._socket.sendall(
            b"POST /api/event/hit HTTP/1.1\r\nHost: stats.example\r\n"
            b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Firefox/133.0\r\n"
            b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body.encode())
        )
        head = b""
        while b"\r\n\r\n" not in head:
            received = self._socket.recv(4096)
            if not received:
                raise ConnectionResetError
            head += received
        return head


def press(port: int, prefix: str, stop: Event) -> Sent:
    """Post loads until the daemon dies, or until told to stop."""
    sent = Sent()
    connection = Connection(port)
    try:
        while not stop.is_set():
            path = f"{prefix}{len(sent.acknowledged)}"
            try:
                head = connection.load(path)
            except OSError:
                sent.unanswered.append(path)
                break
            assert head.startswith(b"HTTP/1.1 204 "), head
            sent.acknowledged.append(path)
    finally:
        connection.close()
    return sent


def stored(owner: Client, prefix: str) -> Counter[str]:
    """Give how many views there are of each path that begins with `prefix`."""
    rows = owner.get(
        f"/api/website/{HOSTNAME}/pages", **{"path[starts_with]": prefix, "limit": "5000"}
    )
    return Counter({row["path"]: row["pageviews"] for row in rows})


def kill_under_load(daemon: Daemon, prefix: str, after_s: float) -> Sent:
    """Let several clients post, kill the daemon meanwhile; returns what they sent."""
    stop = Event()
    with ThreadPoolExecutor(CLIENTS) as clients:
        running = [
            clients.submit(press, daemon.port, f"{prefix}{number}-", stop)
            for number in range(CLIENTS)
        ]
        time.sleep(after_s)
        daemon.kill()
        stop.set()
        total = Sent()
        for sent in (client.result() for client in running):
            total.acknowledged += sent.acknowledged
            total.unanswered += sent.unanswered
    return total


@pytest.mark.parametrize("rounds", [50, MANY])
def test_no_acknowledged_hit_is_lost_or_doubled(tmp_path: Path, rounds: int) -> None:
    daemon = Daemon(tmp_path, configuration=CONFIGURATION)
    daemon.start()
    try:
        owner = daemon.client()
        owner.add_website(HOSTNAME)
        chance = random.Random(1)  # noqa: S311 - no secret
        expected: dict[str, set[str]] = {}
        for round_number in range(rounds):
            prefix = f"/round{round_number}/"
            sent = kill_under_load(daemon, prefix, after_s=chance.uniform(0.02, 0.12))
            daemon.start()
            found = stored(owner, prefix)
            assert set(found) >= set(sent.acknowledged), "an acknowledged hit is missing"
            assert set(found) <= {*sent.acknowledged, *sent.unanswered}
            assert set(found.values()) <= {1}, "a hit is there twice"

            again = Connection(daemon.port)
            for path in sent.unanswered + sent.acknowledged[-20:]:
                assert again.load(path).startswith(b"HTTP/1.1 204 ")
            again.close()
            expected[prefix] = {*sent.acknowledged, *sent.unanswered}
            assert stored(owner, prefix) == Counter(expected[prefix]), "sent again, stored twice"

        for prefix, paths in expected.items():
            assert stored(owner, prefix) == Counter(paths)
        total = sum(map(len, expected.values()))
        summary = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]
        assert (summary["pageviews"], summary["visitors"]) == (total, total)
        assert total > rounds * CLIENTS, "the daemon was killed before it had taken anything"
    finally:
        if daemon.is_running:
            daemon.stop()
