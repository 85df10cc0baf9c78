"""Clients that query the daemon over persistent connections, at little cost of their own."""

import socket
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from selectors import EVENT_READ, DefaultSelector
from typing import Final, Self

_READ: Final = 1 << 20


class QueryClient:
    """Sends the requests of a logged-in client. Use it as a context manager."""

    def __init__(self, port: int, headers: Mapping[str, str]) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        named = {"Host": f"127.0.0.1:{port}", "Accept": "application/json", **headers}
        self._heads = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        self._address = ""
        self._received: list[bytes] = []
        self._missing = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._socket.close()

    def fileno(self) -> int:
        """Return the file descriptor, which is readable once a response comes."""
        return self._socket.fileno()

    def ask(self, address: str) -> tuple[bytes, float]:
        """Return the body of the response, and the milliseconds until it was complete.

        Raises AssertionError with the response if its status is not 200.
        """
        began = time.perf_counter()
        self.send(address)
        while not self.receive():
            pass
        took_ms = (time.perf_counter() - began) * 1000
        return self._body(), took_ms

    def send(self, address: str) -> None:
        """Send a request."""
        self._address = address
        self._received = []
        self._socket.sendall(f"GET {address} HTTP/1.1\r\n{self._heads}\r\n".encode())

    def receive(self) -> bool:
        """Receive a part of the response, and return whether that was the last."""
        part = self._socket.recv(_READ)
        if not part:
            raise ConnectionResetError("the daemon closed the connection")
        if self._received and self._missing:
            self._received.append(part)
            self._missing -= len(part)
            return not self._missing
        self._received = [b"".join(self._received) + part]
        head, end, body = self._received[0].partition(b"\r\n\r\n")
        if not end:
            return False
        length = _length(head)
        if length is None:
            return body.endswith(b"0\r\n\r\n")
        self._missing = length - len(body)
        return not self._missing

    def check(self) -> None:
        """Raise AssertionError with the response if its status is not 200."""
        response = self._received[0]
        assert response.startswith(b"HTTP/1.1 200 "), (self._address, response[:1000])

    def _body(self) -> bytes:
        self.check()
        return b"".join(self._received).partition(b"\r\n\r\n")[2]


class SixConnections:
    """Sends requests as a browser does: over six connections at once. Use it as a context manager.

    Each connection gets the next request once its last response is complete.
    """

    def __init__(self, port: int, headers: Mapping[str, str]) -> None:
        with ExitStack() as opened:
            self._selector = opened.enter_context(DefaultSelector())
            self._clients = [opened.enter_context(QueryClient(port, headers)) for _ in range(6)]
            self._opened = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._opened.close()

    def ask(self, addresses: Iterable[str]) -> float:
        """Return the milliseconds until every response was complete."""
        waiting = deque(addresses)
        began = time.perf_counter()
        for client in self._clients:
            if waiting:
                client.send(waiting.popleft())
                self._selector.register(client, EVENT_READ)
        while self._selector.get_map():
            for key, _ in self._selector.select():
                client = key.fileobj
                assert isinstance(client, QueryClient)
                if client.receive():
                    client.check()
                    if waiting:
                        client.send(waiting.popleft())
                    else:
                        self._selector.unregister(client)
        return (time.perf_counter() - began) * 1000


def _length(head: bytes) -> int | None:
    """Return the length of the body; None if it comes in chunks."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    assert b"chunked" in head, head
    return None
