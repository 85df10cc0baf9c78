"""How many hits a second one core stores, beside what a bare twisted.web answers on it.

    python benchmarks/ingest.py [--hits 60000] [--connections 32]

The server is bound to one core and the client to the others. Every answer has to be 204, and
afterwards every hit has to be in the statistics.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from attrs import frozen
from daemon import Daemon, free_port
from visits import HOSTNAME, requests

CONFIGURATION = """
[limits]
new_paths = 1000000
"""
BARE = Path(__file__).with_name("bare.py")


@frozen
class Measured:
    """The answers of one run: how many a second, and each one's time in milliseconds."""

    per_second: float
    times_ms: Sequence[float]

    def __str__(self) -> str:
        centiles = quantiles(self.times_ms, n=1000, method="inclusive")
        parts = (("p50", centiles[499]), ("p95", centiles[949]), ("p99", centiles[989]))
        shown = "  ".join(f"{name} {value:6.2f} ms" for name, value in parts)
        return f"{self.per_second:8,.0f} a second   {shown}  worst {max(self.times_ms):6.2f} ms"


class Sender(asyncio.Protocol):
    """A keep-alive connection: sends the next request when the one before is answered."""

    def __init__(self, waiting: Iterator[bytes], times_ms: list[float]) -> None:
        self._waiting = waiting
        self._times_ms = times_ms
        self._received = b""
        self._sent_at = 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Note an answer and send the next request."""
        self._received += data
        if not self._received.endswith(b"\r\n\r\n"):
            return
        self._times_ms.append((time.perf_counter() - self._sent_at) * 1000)
        if not self._received.startswith(b"HTTP/1.1 204 "):
            self.done.set_exception(AssertionError(self._received[:500]))
            self._transport.close()
            return
        self._received = b""
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail, unless all was done."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionResetError())

    def _send(self) -> None:
        request = next(self._waiting, None)
        if request is None:
            self.done.set_result(None)
            self._transport.close()
            return
        self._sent_at = time.perf_counter()
        self._transport.write(request)


async def drive(port: int, sent: Sequence[bytes], connections: int) -> Measured:
    """Send all requests over that many connections."""
    waiting = iter(sent)
    times_ms: list[float] = []
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    senders = [
        (await loop.create_connection(lambda: Sender(waiting, times_ms), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(sender.done for sender in senders))
    return Measured(len(sent) / (time.perf_counter() - began), times_ms)


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Let what is started meanwhile run on one core, and ourselves on the others afterwards."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores - {core} or cores)


@contextmanager
def bare_server(core: int) -> Iterator[int]:
    """Run a twisted.web server that reads a request and answers 204, nothing else."""
    port = free_port()
    with on_core(core):
        process = subprocess.Popen([sys.executable, BARE, str(port)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield port
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Measure and print."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--hits", type=int, default=60_000)
    parser.add_argument("--connections", type=int, default=32)
    arguments = parser.parse_args()
    sent = list(requests(arguments.hits))
    warm = list(requests(2_000, seed=2))
    core = min(os.sched_getaffinity(0))

    with bare_server(core) as port:
        asyncio.run(drive(port, warm, arguments.connections))
        bare = asyncio.run(drive(port, sent, arguments.connections))
    print(f"bare twisted.web  {bare}")

    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), configuration=CONFIGURATION)
        with on_core(core):
            daemon.start()
        try:
            owner = daemon.client()
            owner.add_website(HOSTNAME)
            asyncio.run(drive(daemon.port, warm, arguments.connections))
            stored = asyncio.run(drive(daemon.port, sent, arguments.connections))
            summary = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]
            assert summary["pageviews"] == len(sent) + len(warm), summary
        finally:
            daemon.stop()
    print(f"medamad           {stored}")
    print(f"medamad stores {stored.per_second / bare.per_second:.0%} of what is merely answered")


if __name__ == "__main__":
    main()
