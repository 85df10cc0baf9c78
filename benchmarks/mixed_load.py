"""A mixed load: how long hits and statistics take while 2,000 hits a second arrive.

    python benchmarks/mixed_load.py [--rate 2000] [--seconds 30] [--views 10000000] [--data DIR]

Into a website of so many views, hits are sent at an even pace over many connections, while
another process asks the fourteen requests of a dashboard over 30 days, one after the other.
The time of a hit counts from when it was due.
"""

import asyncio
import multiprocessing
import shutil
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle
from pathlib import Path

from content import HOSTNAME
from daemon_setup import address, daemon_on, filled, folder_or_temporary, login
from fill import add_plan, plan_of
from hit_requests import requests
from hit_sender import Sent, pace
from measurements import OUT, Times, command, keep, machine
from queries import dashboard
from query_client import QueryClient

_CONNECTIONS = 128


def ask_on(
    port: int, headers: dict[str, str], addresses: Sequence[str], seconds: float
) -> list[float]:
    """Request the addresses in turn for some time. Return the milliseconds of each request."""
    times_ms: list[float] = []
    until = time.monotonic() + seconds
    with QueryClient(port, headers) as our:
        for address in cycle(addresses):
            if time.monotonic() > until:
                return times_ms
            times_ms.append(our.ask(address)[1])
    return times_ms


def measure(folder: Path, until_ms: int, rate: float, seconds: float) -> tuple[Sent, Times]:
    """Return the times of the hits and of the statistics."""
    addresses = [address(query) for query in dashboard(until_ms)]
    sent = list(requests(int(rate * seconds)))
    warm = list(requests(int(rate), seed=2))
    spawned = multiprocessing.get_context("spawn")
    with (
        daemon_on(folder) as (daemon, _),
        ProcessPoolExecutor(1, mp_context=spawned) as other,
    ):
        owner = daemon.client()
        headers = login(daemon)
        asyncio.run(pace(daemon.port, warm, _CONNECTIONS, rate))
        before = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]["pageviews"]
        other.submit(ask_on, daemon.port, headers, addresses, 1).result()
        asking = other.submit(ask_on, daemon.port, headers, addresses, seconds)
        hits = asyncio.run(pace(daemon.port, sent, _CONNECTIONS, rate))
        times = Times(asking.result())
        after = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]["pageviews"]
        assert after - before == len(sent), (before, after)
    return hits, times


def main() -> None:
    """Fill, measure, print and write."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=2_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--data", type=Path, help="a folder to keep what was filled")
    parser.add_argument("--out", type=Path, default=OUT)
    add_plan(parser)
    arguments = parser.parse_args()
    plan = plan_of(arguments, arguments.views)
    is_fixed = arguments.until is not None
    with folder_or_temporary(arguments.data) as kept, tempfile.TemporaryDirectory() as name:
        place = filled(kept / str(plan.views), plan, is_fixed=is_fixed)
        # A copy, since the hits of this run belong to no plan.
        shutil.copytree(place.folder / "data", Path(name) / "data")
        hits, statistics = measure(
            Path(name), place.plan.until_ms, arguments.rate, arguments.seconds
        )
    print(f"hits        {hits}")
    print(f"statistics  {len(statistics.times_ms):,} queries {statistics}")
    result = {
        "machine": machine(),
        "command": command(),
        "views": plan.views,
        "hits_per_second": round(hits.per_second),
        "hits": hits.times.figures,
        "statistics": statistics.figures,
    }
    keep(arguments.out, "both", result)


if __name__ == "__main__":
    main()
