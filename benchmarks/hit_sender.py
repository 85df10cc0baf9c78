"""Sending hits over many persistent connections, as fast as possible or at a fixed rate."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

from attrs import frozen
from measurements import Times

Answered: TypeAlias = Callable[["Connection", float], None]
"""Called with a connection that received a response, and the milliseconds it took."""


@frozen
class Sent:
    """The result of one run: responses per second, and the time of each."""

    per_second: float
    times: Times

    def __str__(self) -> str:
        return f"{self.per_second:8,.0f} a second   {self.times}"


class Connection(asyncio.Protocol):
    """Sends one request after the other; `failed` gets the error if a response is not 204."""

    def __init__(self, answered: Answered, failed: "asyncio.Future[None]") -> None:
        self._answered = answered
        self._failed = failed
        self._received = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self, request: bytes, began: float) -> None:
        """Send a request, timed from `began` on the clock of `perf_counter`."""
        self._began = began
        self._transport.write(request)

    def close(self) -> None:
        """Close it."""
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Receive a response, or the next part of it."""
        self._received += data
        if not self._received.endswith(b"\r\n\r\n"):
            return
        received, self._received = self._received, b""
        if not received.startswith(b"HTTP/1.1 204 "):
            self._fail(AssertionError(received[:500]))
            return
        self._answered(self, (time.perf_counter() - self._began) * 1000)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail, unless the run is complete."""
        self._fail(exc or ConnectionResetError())

    def _fail(self, error: Exception) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)


async def drive(port: int, requests: Sequence[bytes], connections: int) -> Sent:
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

    made = await _connect(port, connections, answered, done)
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

    def answered(connection: Connection, took_ms: float) -> None:
        times_ms.append(took_ms)
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
    return Sent(len(requests) / took_s, Times(times_ms))


async def _connect(
    port: int, connections: int, answered: Answered, done: "asyncio.Future[None]"
) -> list[Connection]:
    loop = asyncio.get_running_loop()
    return [
        (await loop.create_connection(lambda: Connection(answered, done), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
