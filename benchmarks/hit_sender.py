"""Sending hits over many persistent connections, as fast as possible or at a fixed rate."""

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from attrs import frozen
from measurements import Times

_NO_CONTENT: Final = b"HTTP/1.1 204 "
Answered: TypeAlias = Callable[["Connection", float], None]
"""Called with a connection that received a response, and the milliseconds it took."""


@frozen
class Sent:
    """The result of one run: responses per second, and the time of each.

    At a fixed rate also when each was due, on the clock of `perf_counter`, in the same order.
    """

    per_second: float
    times: Times
    due_s: Sequence[float] = ()

    def __str__(self) -> str:
        return f"{self.per_second:8,.0f} a second   {self.times}"


class Connection(asyncio.Protocol):
    """Sends one request after the other; `failed` gets the error if a response is not a success.

    If the server closes the connection after a response, the next request opens another.
    """

    def __init__(
        self,
        port: int,
        answered: Answered,
        failed: "asyncio.Future[None]",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._port = port
        self._tls = tls
        self._answered = answered
        self._failed = failed
        self._request = self._received = b""
        self.began = 0.0
        self._is_closed = False
        self._opening: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open it, and send the request that waits for it."""
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: self,
                "127.0.0.1",
                self._port,
                ssl=self._tls,
                server_hostname="localhost" if self._tls else None,
            )
        except OSError as error:
            self._fail(error)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._is_closed = False
        if self._request:
            self._transport.write(self._request)

    def send(self, request: bytes, began: float) -> None:
        """Send a request, timed from `began` on the clock of `perf_counter`."""
        self.began = began
        if self._is_closed:
            self._request = request
            self._opening = asyncio.create_task(self.open())
        else:
            self._transport.write(request)

    def close(self) -> None:
        """Close it."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Receive a response, or the next part of it."""
        self._received += data
        if not _is_complete(self._received):
            return
        received, self._received = self._received, b""
        if not received.startswith((_NO_CONTENT, b"HTTP/1.1 200 ")):
            self._fail(AssertionError(received[:500]))
            return
        if b"\r\nConnection: close\r\n" in received:
            self._is_closed = True
            self._transport.close()
        self._answered(self, (time.perf_counter() - self.began) * 1000)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail, unless the run is complete or the server said that it would close."""
        if not self._is_closed:
            self._fail(exc or ConnectionResetError())

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)


def _is_complete(received: bytes) -> bool:
    if received.startswith(_NO_CONTENT):
        return received.endswith(b"\r\n\r\n")
    head, end, body = received.partition(b"\r\n\r\n")
    length = head.partition(b"\r\nContent-Length: ")[2].partition(b"\r\n")[0]
    return bool(end) and len(body) >= int(length or 0)


async def drive(
    port: int, requests: Sequence[bytes], connections: int, tls: ssl.SSLContext | None = None
) -> Sent:
    """Send all requests, the next on each connection once the last response has arrived."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = iter(requests)
    times_ms: list[float] = []

    def send_next(connection: Connection) -> None:
        request = next(waiting, None)
        if request is not None:
            connection.send(request, time.perf_counter())
        elif len(times_ms) == len(requests) and not done.done():
            done.set_result(None)

    def answered(connection: Connection, took_ms: float) -> None:
        times_ms.append(took_ms)
        send_next(connection)

    made = await _connect(port, connections, answered, done, tls)
    began = time.perf_counter()
    for connection in made:
        send_next(connection)
    await done
    took_s = time.perf_counter() - began
    for connection in made:
        connection.close()
    return Sent(len(requests) / took_s, Times(times_ms))


async def pace(port: int, requests: Sequence[bytes], connections: int, per_second: float) -> Sent:
    """Send requests at a fixed rate, however long the responses take.

    Each is timed from when it was due, so waiting for a free connection counts.
    """
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    due: deque[tuple[bytes, float]] = deque()
    times_ms: list[float] = []
    due_s: list[float] = []

    def answered(connection: Connection, took_ms: float) -> None:
        times_ms.append(took_ms)
        due_s.append(connection.began)
        idle.append(connection)
        send_due()
        if len(times_ms) == len(requests) and not done.done():
            done.set_result(None)

    def send_due() -> None:
        while due and idle:
            idle.popleft().send(*due.popleft())

    made = await _connect(port, connections, answered, done)
    idle = deque(made)
    began = time.perf_counter()
    for number, request in enumerate(requests):
        at = began + number / per_second
        left_s = at - time.perf_counter()
        if left_s > 0:
            await asyncio.sleep(left_s)
        due.append((request, at))
        send_due()
        if done.done():
            break
    await done
    took_s = time.perf_counter() - began
    for connection in made:
        connection.close()
    return Sent(len(requests) / took_s, Times(times_ms), due_s)


async def _connect(
    port: int,
    connections: int,
    answered: Answered,
    done: "asyncio.Future[None]",
    tls: ssl.SSLContext | None = None,
) -> list[Connection]:
    made = [Connection(port, answered, done, tls) for _ in range(connections)]
    for connection in made:
        await connection.open()
    return made
