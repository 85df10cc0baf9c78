"""A client that queries the daemon over one persistent connection, at little cost of its own."""

import socket
import time
from types import TracebackType
from typing import Self

_READ: int = 1 << 20


class QueryClient:
    """Sends the requests of a logged-in client. Use it as a context manager."""

    def __init__(self, port: int, cookie: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._heads = f"Host: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nAccept: application/json\r\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def ask(self, address: str) -> tuple[bytes, float]:
        """Return the body of the response, and the milliseconds until it was complete.

        Raises AssertionError with the response if its status is not 200.
        """
        request = f"GET {address} HTTP/1.1\r\n{self._heads}\r\n".encode()
        began = time.perf_counter()
        self._socket.sendall(request)
        head, _, body = self._read_head().partition(b"\r\n\r\n")
        length = _length(head)
        parts = [body]
        missing = length - len(body)
        while missing > 0:
            part = self._received()
            parts.append(part)
            missing -= len(part)
        took_ms = (time.perf_counter() - began) * 1000
        body = b"".join(parts)
        assert head.startswith(b"HTTP/1.1 200 "), (address, head, body[:500])
        return body, took_ms

    def _read_head(self) -> bytes:
        answer = self._received()
        while b"\r\n\r\n" not in answer:
            answer += self._received()
        return answer

    def _received(self) -> bytes:
        part = self._socket.recv(_READ)
        if not part:
            raise ConnectionResetError("the daemon closed the connection")
        return part


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise AssertionError(head)
