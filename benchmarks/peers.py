"""Hits and statistics of a running Medama and GoatCounter, and of this program alongside them.

    medama start …
    goatcounter serve -ratelimit count:1000000/1,api:1000000/1 …
    MEDAMA_LOGIN=NAME:PASSWORD GOATCOUNTER_TOKEN=… python benchmarks/peers.py
        [--medama PORT] [--goatcounter PORT] [--views 100000] [--turns 10] [--repeat 21]

Either or both, each on 127.0.0.1 with an empty store. Every server receives the same views at its
own hit endpoint, over the same number of persistent connections and by turns, and the acknowledged
hits per second of each turn are counted. Meanwhile the servers have the first core, and the client
has the others. Medama and this program acknowledge a hit once it is stored, GoatCounter before.

Then, on all cores, the same statistics are requested from each by turns, as far as its API has
them: visitors by page and dimension, time on page and totals. All views are of this hour, so every
period holds all of them. GoatCounter's API requires a period: it gets 90 days for all time.

The website and the token (with the permission to read statistics) have to exist in GoatCounter, and
languages have to be collected. Medama gets the website from here.
"""

import asyncio
import os
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import urlencode

import psutil
from attrs import evolve, frozen
from daemon_setup import CONFIGURATION
from hit_requests import HOSTNAME, Browser, post, query_string, referrer_url, request, views
from hit_sender import drive
from measurements import OUT, by_turns, command, keep, machine
from plan import DAY_MS
from queries import DIMENSIONS, Query
from query_client import QueryClient
from tables import milliseconds, table

from medamad.domain.hits import View

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.daemon import RUN, Client, Daemon

OURS: Final = "medamad"
_PAGES: Final = {
    "pages": "hits",
    "referrers": "toprefs",
    "browsers": "browsers",
    "os": "systems",
    "devices": "sizes",
    "countries": "locations",
    "languages": "languages",
    "campaigns": "campaigns",
    "summary": "total",
}
"""The statistics that GoatCounter's API has, by our names."""
_ROWS: Final = 100
"""The most that GoatCounter returns."""
_DAYS: Final = 90


@frozen
class Peer:
    """A server that is measured."""

    name: str
    port: int
    headers: Mapping[str, str]
    """Sent with its statistics' requests."""
    hit: Callable[[View], bytes]
    address: Callable[[Query], str | None]
    """Returns the path and query of a statistic, or None if the server does not have it."""
    wait_until_stored: Callable[[int], None]
    """Returns once so many views are in its statistics."""


def medama(name: str, client: Client) -> Peer:
    """Return a server with Medama's API, which is ours too, and register the website."""
    assert client.cookie is not None
    client.add_website(HOSTNAME)

    def check(count: int) -> None:
        found = client.get(f"/api/website/{HOSTNAME}/summary")["current"]["pageviews"]
        assert found == count, f"{name} acknowledged {count} views and has {found}"

    return Peer(
        name=name,
        port=client.port,
        headers={"Cookie": client.cookie},
        hit=request,
        address=lambda query: f"/api/website/{HOSTNAME}/{query.path_and_query}",
        wait_until_stored=check,
    )


def goatcounter(port: int, token: str, store_every_s: float) -> Peer:
    """Return a GoatCounter, which stores what it received every few seconds."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def wait(_: int) -> None:
        # Its totals are of visitors, by its own rules, so they do not say how many views it has.
        time.sleep(1.5 * store_every_s)
        with QueryClient(port, headers) as our:
            address = goatcounter_address(Query("summary"))
            assert address is not None
            assert our.ask(address)[0], "GoatCounter has no views"

    return Peer(
        name="GoatCounter",
        port=port,
        headers=headers,
        hit=goatcounter_hit,
        address=goatcounter_address,
        wait_until_stored=wait,
    )


def goatcounter_hit(view: View) -> bytes:
    """Return the request of GoatCounter's script for a page view."""
    parameters = {
        "p": view.path,
        "r": referrer_url(view),
        "q": query_string(view),
        "s": f"{view.width_px or 0},1080,1",
        "rnd": view.beacon,
    }
    return post(f"/count?{urlencode(parameters)}", view, Browser.of(view), "")


def goatcounter_address(query: Query) -> str | None:
    """Return the path and query of a statistic; None if there is none, or it is filtered."""
    if query.filters or query.previous or query.statistic not in _PAGES:
        return None
    now_ms = int(time.time() * 1000)
    start_ms = query.start_ms or now_ms - _DAYS * DAY_MS
    period = {"start": _hour(start_ms), "end": _hour(now_ms + 3_600_000)}
    limit = {} if query.statistic == "summary" else {"limit": _ROWS}
    return f"/api/v0/stats/{_PAGES[query.statistic]}?{urlencode(period | limit)}"


def _hour(moment_ms: int) -> str:
    return datetime.fromtimestamp(moment_ms // 1000, UTC).strftime("%Y-%m-%dT%H:00:00Z")


def statistics(until_ms: int) -> Iterator[Query]:
    """Yield the queries: for all time, for 30 days, and for all time with a filter."""
    lists = ("pages", "time", *DIMENSIONS)
    chosen = [
        *(Query(statistic, summary=True, limit=_ROWS) for statistic in lists),
        Query("summary"),
        Query("summary", by_day=True, previous=True),
    ]
    for case, days, filters in (
        ("all time", None, ()),
        ("30 days", 30, ()),
        ("one browser", None, (("browser", "eq", "Firefox"),)),
    ):
        for query in chosen:
            period = {}
            if days or query.previous:
                period = {
                    "start_ms": until_ms - (days or _DAYS) * DAY_MS,
                    "end_ms": until_ms - 1,
                }
            yield evolve(query, case=case, filters=filters, **period)


def listener(port: int) -> int:
    """Return the process that listens on a port. Raises AssertionError if it cannot be seen."""
    for connection in psutil.net_connections("tcp"):
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
            assert connection.pid, f"the process on port {port} belongs to another user"
            return connection.pid
    raise AssertionError(f"nothing listens on port {port}")


@contextmanager
def on_one_core(peers: Sequence[Peer]) -> Iterator[None]:
    """Restrict the servers to the first core, and this process to the others."""
    cores = os.sched_getaffinity(0)
    core = {min(cores)}
    servers = [listener(peer.port) for peer in peers]
    try:
        for pid in servers:
            _restrict(pid, core)
        _restrict(os.getpid(), cores - core or cores)
        yield
    finally:
        for pid in (*servers, os.getpid()):
            _restrict(pid, cores)


def _restrict(pid: int, cores: set[int]) -> None:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # It has ended meanwhile.
            os.sched_setaffinity(int(thread.name), cores)


def send(
    peers: Sequence[Peer], sent: Sequence[View], turns: int, connections: int
) -> dict[str, list[float]]:
    """Send the views to each server by turns; return the hits per second of each turn."""
    rates: dict[str, list[float]] = {peer.name: [] for peer in peers}
    size = -(-len(sent) // turns)
    for turn, start in enumerate(range(0, len(sent), size)):
        part = sent[start : start + size]
        for peer in peers if turn % 2 else reversed(peers):
            hits = [peer.hit(view) for view in part]
            rate = asyncio.run(drive(peer.port, hits, connections)).per_second
            rates[peer.name].append(round(rate, 1))
    for peer in peers:
        peer.wait_until_stored(len(sent))
    return rates


def ask(peers: Sequence[Peer], until_ms: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Return the times of each statistic on every server that has it."""
    with ExitStack() as opened:
        clients = {
            peer.name: opened.enter_context(QueryClient(peer.port, peer.headers)) for peer in peers
        }
        for query in statistics(until_ms):
            asks = {
                peer.name: partial(_ask, clients[peer.name], address)
                for peer in peers
                if (address := peer.address(query))
            }
            for once in asks.values():
                once()
            yield {"name": query.name, **by_turns(asks, repeat)}


def _ask(client: QueryClient, address: str) -> float:
    return client.ask(address)[1]


@contextmanager
def ourselves() -> Iterator[Peer]:
    """Run this program with an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), configuration=CONFIGURATION, command=RUN)
        daemon.start()
        try:
            yield medama(OURS, daemon.client())
        finally:
            daemon.stop()


def others(arguments: Namespace) -> Iterator[Peer]:
    """Yield the servers that the arguments name."""
    if arguments.medama:
        client = Client(arguments.medama)
        username, _, password = os.environ["MEDAMA_LOGIN"].partition(":")
        client.log_in(username, password)
        yield medama("Medama", client)
    if arguments.goatcounter:
        token = os.environ["GOATCOUNTER_TOKEN"]
        yield goatcounter(arguments.goatcounter, token, arguments.goatcounter_store_every)


def report(result: Mapping[str, Any]) -> str:
    """Return the results as Markdown: medians, and how many times better this program is."""
    peers = [name for name in result["hits"] if name != OURS]
    middle = {name: median(rates) for name, rates in result["hits"].items()}
    hits = table(
        ("", "acknowledged hits a second", "medamad, as a multiple"),
        [(name, f"{rate:,.0f}", f"{middle[OURS] / rate:.2f}") for name, rate in middle.items()],
    )
    rows = []
    for measured in result["queries"]:
        ours = measured[OURS]["median_ms"]
        cells = [measured["name"], milliseconds(ours)]
        for name in peers:
            theirs = measured[name]["median_ms"] if name in measured else None
            cells += (
                ["-", "-"] if theirs is None else [milliseconds(theirs), f"{theirs / ours:.1f}"]
            )
        rows.append(cells)
    heads = ["query", "medamad ms", *(head for name in peers for head in (f"{name} ms", "ratio"))]
    return f"{result['views']:,} views.\n\n{hits}\n\n{table(heads, rows)}\n"


def main() -> None:
    """Measure, print and write."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--medama", type=int, metavar="PORT")
    parser.add_argument("--goatcounter", type=int, metavar="PORT")
    parser.add_argument(
        "--goatcounter-store-every", type=float, metavar="SECONDS", default=10, help="as it has it"
    )
    parser.add_argument("--views", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    sent = list(islice(views(arguments.views), arguments.views))
    with ourselves() as us:
        peers = [us, *others(arguments)]
        with on_one_core(peers):
            rates = send(peers, sent, arguments.turns, arguments.connections)
        until_ms = int(time.time() * 1000) + 1
        queries = list(ask(peers, until_ms, arguments.repeat))
    result = {
        "machine": machine(),
        "command": command(),
        "views": len(sent),
        "hits": rates,
        "queries": queries,
    }
    keep(arguments.out, "peers", result)
    text = report(result)
    (arguments.out / "peers.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    main()
