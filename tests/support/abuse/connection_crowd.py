"""A crowd of connections in a process of its own, so that it costs those who measure nothing.

    python connection_crowd.py PORT COUNT slow SECONDS   sends, or receives, a byte a second on each
    python connection_crowd.py PORT COUNT idle           holds them until the standard input ends

Says "ready" once all are open. In the end, when slow, it says as JSON by kind after how many
seconds each was cut, None for never.
"""

import json
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from typing import Any

from attrs import define

HEAD = b"GET /api/event/ping HTTP/1.1\r\nHost: stats.example.com\r\n"
LARGE = b"GET /openapi.yaml HTTP/1.1\r\nHost: stats.example.com\r\n\r\n"
BODY = b"POST /api/event/hit HTTP/1.1\r\nHost: stats.example.com\r\nContent-Length: 9000\r\n\r\n"
CHUNKS = BODY.replace(b"Content-Length: 9000", b"Transfer-Encoding: chunked")
STARTS = {
    "head": b"G",
    "headers": HEAD,
    "body": BODY,
    "chunks": CHUNKS,
    "reading": LARGE,
    "reading many": LARGE * 1_000,
}
LITTLE = {"head": b"E", "headers": b"a", "body": b"{", "chunks": b"1\r\na\r\n"}
GONE = select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@define(eq=False)
class Connection:
    kind: str
    sock: socket.socket
    began: float
    cut_after: float | None = None

    @classmethod
    def open(cls, port: int, kind: str) -> "Connection":
        sock = socket.socket()
        if kind.startswith("reading"):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
        began = time.monotonic()
        sock.connect(("127.0.0.1", port))
        sock.setblocking(False)
        with suppress(BlockingIOError):
            sock.send(STARTS.get(kind, b""))
        return cls(kind, sock, began)

    def go_on(self) -> None:
        """Send or receive a little, or notice that the connection was closed."""
        with suppress(OSError):
            if self.kind.startswith("reading"):
                self.sock.recv(1)
            else:
                self.sock.send(LITTLE[self.kind])


def slow(port: int, count: int, seconds: float) -> dict[str, list[float | None]]:
    """Return after how many seconds each connection was cut."""
    watched = select.epoll()
    connections: dict[int, Connection] = {}

    def watch(for_seconds: float) -> None:
        for number, _ in watched.poll(for_seconds):
            connection = connections[number]
            connection.cut_after = time.monotonic() - connection.began
            watched.unregister(number)

    for kind in islice(cycle(STARTS), count):
        connection = Connection.open(port, kind)
        connections[connection.sock.fileno()] = connection
        watched.register(connection.sock, GONE)
        watch(0)
    say("ready")
    next_turn, until = time.monotonic() + 1, time.monotonic() + seconds
    while time.monotonic() < until and any(one.cut_after is None for one in connections.values()):
        watch(max(next_turn - time.monotonic(), 0))
        if time.monotonic() >= next_turn:
            next_turn += 1
            for connection in connections.values():
                if connection.cut_after is None:
                    connection.go_on()
    found: dict[str, list[float | None]] = {}
    for connection in connections.values():
        found.setdefault(connection.kind, []).append(connection.cut_after)
    return found


def idle(port: int, count: int) -> None:
    """Keep connections open, the first half with a request.

    The others, which may be idle for less long, are opened at once thereafter.
    """
    connections = []
    for number in range(count):
        connection = Connection.open(port, "idle")
        if number < count // 2:
            connection.sock.setblocking(True)
            connection.sock.sendall(HEAD + b"\r\n")
            assert connection.sock.recv(4_096).startswith(b"HTTP/1.1 200 ")
        connections.append(connection)
    say("ready")
    sys.stdin.read()


@contextmanager
def crowd(port: int, count: int, *kind: str) -> Iterator[Any]:
    """Start a crowd and wait until all are there; it ends with the block at the latest."""
    command = [sys.executable, __file__, str(port), str(count), *kind]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    _, to_port, how_many, mood, *rest = sys.argv
    if mood == "slow":
        say(json.dumps(slow(int(to_port), int(how_many), float(rest[0]))))
    else:
        idle(int(to_port), int(how_many))
