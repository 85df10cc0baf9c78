"""How many hits per second one core stores, compared to DuckDB and a bare twisted.web server.

    python benchmarks/ingest.py [--hits 60000] [--connections 32] [--out DIR]

The server runs on one core and the client on the others. Every response has to be 204, and every
hit has to be in the statistics afterwards. DuckDB gets the views in-process, without HTTP, and
commits each: on the same core, and on all. The best of 1, 4 and 16 connections counts.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import duckdb_ingest
from daemon_setup import CONFIGURATION
from hit_requests import HOSTNAME, requests, views
from hit_sender import Sent, drive
from measurements import machine
from results import OUT, command, keep
from support.daemon import Daemon, free_port

BARE = Path(__file__).with_name("bare_server.py")
_DUCK_CONNECTIONS = (1, 4, 16)


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


def stored(core: int, warm: Sequence[bytes], sent: Sequence[bytes], connections: int) -> Sent:
    """Measure the daemon."""
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), configuration=CONFIGURATION)
        with on_core(core):
            daemon.start()
        try:
            owner = daemon.client()
            owner.add_website(HOSTNAME)
            asyncio.run(drive(daemon.port, warm, connections))
            found = asyncio.run(drive(daemon.port, sent, connections))
            summary = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]
            assert summary["pageviews"] == len(sent) + len(warm), summary
        finally:
            daemon.stop()
    return found


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
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    sent = list(requests(arguments.hits))
    warm = list(requests(2_000, seed=2))
    cores = os.sched_getaffinity(0)
    core = min(cores)

    bare = answered(core, warm, sent, arguments.connections)
    print(f"bare twisted.web  {bare}")
    ours = stored(core, warm, sent, arguments.connections)
    print(f"medamad           {ours}")
    theirs = committed({core}, arguments.duck_hits)
    theirs_on_all = committed(cores, arguments.duck_hits)
    print(f"DuckDB            {theirs:8,.0f} a second   {theirs_on_all:,.0f} on {len(cores)} cores")
    print(f"medamad stores {ours.per_second / bare.per_second:.0%} of what is merely answered")
    print(f"medamad stores {ours.per_second / theirs:.1f} times as many as DuckDB commits")
    result: dict[str, Any] = {
        "machine": machine(),
        "command": command(),
        "bare_per_second": round(bare.per_second),
        "ours_per_second": round(ours.per_second),
        "ours": ours.times.figures,
        "theirs_per_second": round(theirs),
        "theirs_on_all_cores_per_second": round(theirs_on_all),
    }
    keep(arguments.out, "ingest", result)


if __name__ == "__main__":
    main()
