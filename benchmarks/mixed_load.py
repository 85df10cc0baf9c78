"""A mixed load: how long hits and statistics take while 2,000 hits a second arrive.

    python benchmarks/mixed_load.py [--rate 2000] [--seconds 30] [--rounds 3] [--views 10000000]
        [--data DIR]

Into a website of so many views, hits are sent at an even pace over many connections, while
another process asks the fourteen requests of a dashboard over 30 days, one after the other.
The time of a hit counts from when it was due. In each round, hits and statistics also have the
daemon for themselves for a third of the time, so that the ratios say what each costs the other.
"""

import asyncio
import multiprocessing
import os
import shutil
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import cycle, islice
from pathlib import Path

from attrs import Factory, define
from content import HOSTNAME
from daemon_setup import address, daemon_on, filled, folder_or_temporary, login
from fill import add_plan, plan_of
from hit_requests import requests
from hit_sender import pace
from measurements import OUT, Times, command, keep, machine
from queries import dashboard
from query_client import QueryClient
from tables import milliseconds, table

_CONNECTIONS = 128
_TITLES = {
    "hits": "hit, while statistics are asked",
    "hits_alone": "hit, while none are asked",
    "statistics": "statistic, while hits arrive",
    "statistics_alone": "statistic, while none do",
}


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


@define
class Measured:
    """The milliseconds of hits and of statistics, while both are sent and while one of them is."""

    hits: list[float] = Factory(list)
    statistics: list[float] = Factory(list)
    hits_alone: list[float] = Factory(list)
    statistics_alone: list[float] = Factory(list)
    loads: list[float] = Factory(list)
    """The load average of the machine (man 3 getloadavg), before each round and after the last."""

    @property
    def times(self) -> dict[str, Times]:
        """The times by name."""
        return {name: Times(getattr(self, name)) for name in _TITLES}

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as long the 99th percentile is as alone."""
        times = self.times
        return {
            name: round(times[name].p99_ms / times[f"{name}_alone"].p99_ms, 2)
            for name in ("hits", "statistics")
        }

    def __str__(self) -> str:
        rows = [
            (_TITLES[name], f"{len(times.times_ms):,}", *map(milliseconds, times.centiles_ms))
            for name, times in self.times.items()
        ]
        shown = table(("", "times", "p50 ms", "p95 ms", "p99 ms", "worst ms"), rows)
        ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in self.ratios.items())
        loads = ", ".join(f"{load:.2f}" for load in self.loads)
        return f"{shown}\n\np99 both at once / alone: {ratios}; load average {loads}"


def measure(folder: Path, until_ms: int, rate: float, seconds: float, rounds: int) -> Measured:
    """Return the times of the hits and of the statistics."""
    addresses = [address(query) for query in dashboard(until_ms)]
    spans_s = {"hits_alone": seconds / 3, "statistics_alone": seconds / 3, "both": seconds}
    in_spans = [round(rate * spans_s[name] / rounds) for name in ("hits_alone", "both")]
    sent = requests(sum(in_spans) * rounds)
    warm = list(requests(int(rate), seed=2))
    measured = Measured()
    spawned = multiprocessing.get_context("spawn")
    with (
        daemon_on(folder) as (daemon, _),
        ProcessPoolExecutor(1, mp_context=spawned) as other,
    ):
        owner = daemon.client()
        headers = login(daemon)

        def views() -> int:
            found: int = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]["pageviews"]
            return found

        def hits(count: int) -> list[float]:
            some = list(islice(sent, count))
            return list(asyncio.run(pace(daemon.port, some, _CONNECTIONS, rate)).times.times_ms)

        def begin_asking(span_s: float) -> "Future[list[float]]":
            return other.submit(ask_on, daemon.port, headers, addresses, span_s / rounds)

        asyncio.run(pace(daemon.port, warm, _CONNECTIONS, rate))
        before = views()
        begin_asking(rounds).result()
        for _ in range(rounds):
            measured.loads.append(os.getloadavg()[0])
            measured.hits_alone += hits(in_spans[0])
            measured.statistics_alone += begin_asking(spans_s["statistics_alone"]).result()
            asking = begin_asking(spans_s["both"])
            measured.hits += hits(in_spans[1])
            measured.statistics += asking.result()
        measured.loads.append(os.getloadavg()[0])
        stored = views() - before
        assert stored == sum(in_spans) * rounds, (stored, in_spans)
    return measured


def main() -> None:
    """Fill, measure, print and write."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=2_000)
    parser.add_argument("--seconds", type=float, default=30, help="of both at once, in all rounds")
    parser.add_argument("--rounds", type=int, default=3)
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
        measured = measure(
            Path(name),
            place.plan.until_ms,
            arguments.rate,
            arguments.seconds,
            arguments.rounds,
        )
    print(measured)
    result = {
        "machine": machine(),
        "command": command(),
        "views": plan.views,
        "hits_per_second": round(arguments.rate),
        **{name: times.figures for name, times in measured.times.items()},
        "ratios": measured.ratios,
        "loads": [round(load, 2) for load in measured.loads],
    }
    keep(arguments.out, "both", result)


if __name__ == "__main__":
    main()
