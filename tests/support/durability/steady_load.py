"""Sends hits at even distances, over connections that come back when the daemon does.

    python steady_load.py PORT PER_SECOND SEED

As many a second as are answered where PER_SECOND is 0. Says "ready" when there are as many answers
as connections; the rate is taken from then on. Ends once every hit that was begun is
acknowledged, after the standard input has ended; then says as JSON what was. A hit that was not
answered, or refused with 503, is sent again as it was, so that each is to be counted once.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

from attrs import define, field, frozen

HOSTNAMES = tuple(f"site{number}.example" for number in range(1))
CONNECTIONS = 24
_AGAIN_S = 0.1
_PATHS = 500
_BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/{}.0.0.0 Safari/537.36"


@frozen
class Hit:
    """A hit as it is sent, and what it is counted as once it is acknowledged."""

    body: dict[str, Any]
    hostname: str
    agent: str

    @property
    def request(self) -> bytes:
        text = json.dumps(self.body, separators=(",", ":"))
        return (
            "POST /api/event/hit HTTP/1.1\r\nHost: stats.example\r\nContent-Type: text/plain\r\n"
            f"User-Agent: {self.agent}\r\nAccept-Language: de-DE,de;q=0.9\r\n"
            f"Content-Length: {len(text)}\r\n\r\n{text}"
        ).encode()

    @property
    def counts_as(self) -> Iterator[str]:
        yield f"{self.body['e']} {self.hostname}"
        if self.body.get("p"):
            yield f"visitor {self.hostname}"


def hits(prefix: str, first: int) -> Iterator[Hit]:
    """Return the hits of many visits: of each view the load, of most the end, of some an event."""
    for number in count(first):
        hostname = HOSTNAMES[number % len(HOSTNAMES)]
        agent = _BROWSER.format(100 + number % 30)
        beacon = f"{prefix}-{number}"
        is_first = number % 3 == 0
        load: dict[str, Any] = {
            "e": "load",
            "b": beacon,
            "u": f"https://{hostname}/{number * number % _PATHS}?utm_source=s{number % 7}",
            "r": f"https://r{number % 40}.example/",
            "t": "Europe/Berlin",
            "p": is_first,
            "q": is_first,
        }
        if number % 8 == 0:
            load["d"] = {"plan": f"p{number % 5}"}
        yield Hit(load, hostname, agent)
        if number % 10:
            yield Hit({"e": "unload", "b": beacon, "m": number % 60_000 + 1}, hostname, agent)
        if number % 20 == 0:
            custom = {"e": "custom", "b": beacon, "g": hostname, "d": {"bought": number % 9}}
            yield Hit(custom, hostname, agent)


@define(eq=False)
class Steady:
    """All the connections together. `every_s` is the time between two hits of a connection."""

    port: int
    every_s: float
    ended: bool = False
    counted: Counter[str] = field(factory=Counter)
    answers: int = 0
    again: int = 0
    statuses: Counter[int] = field(factory=Counter)
    ready_at: float = 0.0

    async def keep_sending(self, waiting: Iterator[Hit], offset_s: float) -> None:
        """Send hits sequentially until the end."""
        loop = asyncio.get_running_loop()
        due = loop.time() + offset_s
        hit: Hit | None = None
        while not self.ended or hit is not None:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(_AGAIN_S)
                continue
            try:
                while not self.ended or hit is not None:
                    if hit is None:
                        due = max(due + self.every_s, loop.time())
                        if (left_s := due - loop.time()) > 0:
                            await asyncio.sleep(left_s)
                        hit = next(waiting)
                    if not await self.send(hit, reader, writer):
                        break
                    hit = None
            except (OSError, asyncio.IncompleteReadError):
                self.again += 1
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
            await asyncio.sleep(_AGAIN_S)

    async def send(
        self, hit: Hit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Return whether a hit was acknowledged."""
        writer.write(hit.request)
        status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1])
        self.answers += 1
        if self.answers == CONNECTIONS:
            self.ready_at = time.monotonic()
            sys.stdout.write("ready\n")
            sys.stdout.flush()
        self.statuses[status] += 1
        if status != 204:
            self.again += 1
            return False
        self.counted.update(hit.counts_as)
        return True

    async def run(self, seed: str) -> dict[str, Any]:
        """Send hits until standard input ends; return what was acknowledged."""
        loop = asyncio.get_running_loop()
        sending = [
            asyncio.ensure_future(
                self.keep_sending(
                    hits(f"{seed}-{number}", number), self.every_s * number / CONNECTIONS
                )
            )
            for number in range(CONNECTIONS)
        ]
        await loop.run_in_executor(None, sys.stdin.read)
        self.ended = True
        per_second = (self.answers - CONNECTIONS) / (time.monotonic() - self.ready_at)
        await asyncio.gather(*sending)
        return {
            "counted": self.counted,
            "per_second": per_second,
            "again": self.again,
            "statuses": self.statuses,
        }


if __name__ == "__main__":
    _, to_port, per_second, named = sys.argv
    every = CONNECTIONS / float(per_second) if float(per_second) else 0.0
    sys.stdout.write(json.dumps(asyncio.run(Steady(int(to_port), every).run(named))) + "\n")
