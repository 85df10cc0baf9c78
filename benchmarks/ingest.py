"""How many hits per second one core stores, compared to DuckDB; what visits cost a hit.

Also with an unload for each view, and over TLS.

    python benchmarks/ingest.py [--hits 60000] [--connections 32] [--out DIR]

The server runs on one core and the client on the others. Every response has to be 204, and every
hit has to be in the statistics afterwards. DuckDB gets the views in-process, without HTTP, and
commits each: on the same core, and on all. The best of 1, 4 and 16 connections counts. A bare
twisted.web server shows what HTTP alone costs.

The daemon runs with visits and without them by turns, and the processor time of a hit is compared:
it depends less than hits per second on what else the machine does.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import duckdb_ingest
from daemon_setup import CONFIGURATION
from hit_requests import HOSTNAME, requests, requests_with_unloads, views
from hit_sender import Sent, drive
from measurements import OUT, command, keep, machine, processor_s
from support.certificates import Authority
from support.daemon import Daemon, free_port

BARE = Path(__file__).with_name("bare_server.py")
_DUCK_CONNECTIONS = (1, 4, 16)
_WITHOUT_VISITS = """
[events]
visits = false
"""


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Run child processes on one core; afterwards, restrict this process to the others."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores - {core} or cores)


@contextmanager
def bare_server(core: int) -> Iterator[int]:
    """Run a twisted.web server that only reads requests and returns 204."""
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


def answered(core: int, warm: Sequence[bytes], sent: Sequence[bytes], connections: int) -> Sent:
    """Measure the bare server."""
    with bare_server(core) as port:
        asyncio.run(drive(port, warm, connections))
        return asyncio.run(drive(port, sent, connections))


def stored(
    core: int,
    warm: Sequence[bytes],
    sent: Sequence[bytes],
    connections: int,
    configuration: str = CONFIGURATION,
    *,
    is_tls: bool = False,
) -> tuple[Sent, float]:
    """Measure the daemon; return also its processor time for each hit, in microseconds."""
    views = sum(b'"e":"load"' in request for request in (*warm, *sent))
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), configuration=configuration)
        port, tls = daemon.port, None
        if is_tls:
            authority, port = Authority(Path(folder, "tls")), free_port()
            daemon.arguments = ("--listen", authority.endpoint(port))
            tls = authority.context()
        with on_core(core):
            daemon.start()
        try:
            owner = daemon.client()
            owner.add_website(HOSTNAME)
            asyncio.run(drive(port, warm, connections, tls))
            before_s = processor_s(daemon.pid)
            found = asyncio.run(drive(port, sent, connections, tls))
            took_s = processor_s(daemon.pid) - before_s
            summary = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]
            assert summary["pageviews"] == views, summary
        finally:
            daemon.stop()
    return found, took_s / len(sent) * 1e6


def by_turns(
    core: int, warm: Sequence[bytes], sent: Sequence[bytes], connections: int, turns: int
) -> tuple[float, float]:
    """Return the median processor time of a hit with visits and without, in microseconds."""
    both: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for times_us, rest in zip(both, ("", _WITHOUT_VISITS), strict=True):
            _, hit_us = stored(core, warm, sent, connections, CONFIGURATION + rest)
            times_us.append(hit_us)
    return median(both[0]), median(both[1])


def committed(cores: set[int], hits: int) -> float:
    """Return the rows per second of DuckDB on some cores, with the best number of connections."""
    rows = duckdb_ingest.rows_of(list(views(hits)))
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return max(
                duckdb_ingest.per_second(Path(folder) / f"{connections}.duckdb", rows, connections)
                for connections in _DUCK_CONNECTIONS
            )
    finally:
        os.sched_setaffinity(0, own)


def main() -> None:
    """Measure, print and write."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--hits", type=int, default=60_000)
    parser.add_argument("--duck-hits", type=int, default=3_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--turn-hits", type=int, default=6_000)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    sent = list(requests(arguments.hits))
    warm = list(requests(2_000, seed=2))
    cores = os.sched_getaffinity(0)
    core = min(cores)

    bare = answered(core, warm, sent, arguments.connections)
    print(f"bare twisted.web  {bare}")
    ours, _ = stored(core, warm, sent, arguments.connections)
    print(f"medamad           {ours}")
    unloads = list(requests_with_unloads(arguments.hits))
    with_unloads, unload_us = stored(core, warm, unloads, arguments.connections)
    print(f"  with unloads    {with_unloads}")
    over_tls, tls_us = stored(core, warm, sent, arguments.connections, is_tls=True)
    print(f"  over TLS        {over_tls}")
    turn = list(requests(arguments.turn_hits))
    with_us, without_us = by_turns(core, warm, turn, arguments.connections, arguments.turns)
    print(
        f"a hit takes {with_us:.0f} µs of processor time, {without_us:.0f} without visits, "
        f"{unload_us:.0f} with as many unloads, {tls_us:.0f} over TLS"
    )
    theirs = committed({core}, arguments.duck_hits)
    theirs_on_all = committed(cores, arguments.duck_hits)
    print(f"DuckDB            {theirs:8,.0f} a second   {theirs_on_all:,.0f} on {len(cores)} cores")
    print(f"medamad stores {ours.per_second / bare.per_second:.0%} of what is merely answered")
    for title, other in (("with unloads", with_unloads), ("over TLS", over_tls)):
        print(f"{title}, {other.per_second / ours.per_second:.0%} of that")
    print(f"medamad stores {ours.per_second / theirs:.1f} times as many as DuckDB commits")
    result: dict[str, Any] = {
        "machine": machine(),
        "command": command(),
        "bare_per_second": round(bare.per_second),
        "ours_per_second": round(ours.per_second),
        "ours": ours.times.figures,
        "unload_per_second": round(with_unloads.per_second),
        "tls_per_second": round(over_tls.per_second),
        "hit_us": round(with_us),
        "hit_without_visits_us": round(without_us),
        "theirs_per_second": round(theirs),
        "theirs_on_all_cores_per_second": round(theirs_on_all),
    }
    keep(arguments.out, "ingest", result)


if __name__ == "__main__":
    main()
