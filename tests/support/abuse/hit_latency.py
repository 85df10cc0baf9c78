"""How long hits wait for their response while something else is going on."""

import socket
import time
from collections.abc import Callable

from attrs import frozen
from support.daemon import PATIENCE_S, Daemon


@frozen
class Waits:
    """How long hits waited, in ascending order."""

    ms: list[float]

    def part(self, share: float) -> float:
        return self.ms[min(int(len(self.ms) * share), len(self.ms) - 1)]

    def __str__(self) -> str:
        return f"{len(self.ms)} hits: {self.part(0.5):.1f} ms, 99 % {self.part(0.99):.1f} ms"


def send_hits(daemon: Daemon, goes_on: Callable[[], bool], every_s: float = 0.01) -> Waits:
    """Send hits at even distances, each tenth over a new connection; return their latencies."""
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
        if sock is None or number % 10 == 0:
            if sock is not None:
                sock.close()
            sock = socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(request.encode())
        assert sock.recv(4_096).startswith(b"HTTP/1.1 204 ")
        found.append((time.perf_counter() - began) * 1_000)
        time.sleep(every_s)
    assert sock is not None
    sock.close()
    return Waits(sorted(found))


def for_seconds(seconds: float) -> Callable[[], bool]:
    until = time.monotonic() + seconds
    return lambda: time.monotonic() < until
