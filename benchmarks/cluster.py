"""A dashboard over one ClickHouse server, and what shipping there costs the hits.

    python benchmarks/cluster.py [--views 10000000] [--repeat 5] [--data DIR] [--out DIR]

The store is filled, loaded into the server by `medamad cluster load`, and a dashboard's requests of
thirty days are asked over six connections: of views, and of visits, without exclusions and with
three. Then hits are sent to a daemon alone and to one that ships them, by turns: the processor time
of a hit, how many are stored in a second, and how many of them reach the server meanwhile.
"""

import asyncio
import shutil
import subprocess
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from statistics import median
from typing import Any, Final

from daemon_setup import CONFIGURATION, address, filled, folder_or_temporary, login
from exclude import EXCLUSIONS, MOST_TIMES, remove_all, rules
from fill import add_plan, plan_of
from hit_requests import HOSTNAME, requests_with_unloads
from hit_sender import drive
from measurements import OUT, command, keep, machine, processor_s
from queries import dashboard
from query_client import SixConnections
from support.clickhouse.daemon import initialized
from support.clickhouse.servers import Server, await_answer, server_config, server_in
from support.daemon import MEDAMAD, RUN, Daemon, free_port

from medamad.clickhouse.tables import day_of
from medamad.cluster.settling import Settling

_DASHBOARD_MS: Final = 4_000.0
_MOST_US: Final = 1.15
_LEAST_SHIPPED: Final = 0.8
_LOADED: Final = "loaded"


@contextmanager
def server_on(folder: Path) -> Iterator[Server]:
    """Run a server whose data is in a folder."""
    folder.mkdir(exist_ok=True)
    ports = free_port(), free_port()
    (folder / "config.xml").write_text(server_config(ports[1:]), "utf-8")
    with server_in(folder, *ports) as server:
        await_answer(server)
        yield server


def configured(folder: Path, server: Server, database: str) -> Daemon:
    """Return a daemon on a folder that ships to a server."""
    cluster = f'[cluster]\nurls = ["{server.url}"]\ndatabase = "{database}"\nquorum = 1\n'
    return Daemon(folder, configuration=CONFIGURATION + cluster, command=RUN)


@contextmanager
def loaded(place: Path, source: Path) -> Iterator[tuple[Daemon, float]]:
    """Run a daemon on a copy of a store that is loaded into a server.

    Yield it with the seconds that it took to load, 0 if that was done before.
    """
    place.mkdir(exist_ok=True)
    marker = place / _LOADED
    if not marker.exists():
        shutil.rmtree(place)
        shutil.copytree(source, place / "daemon" / "data")
    with server_on(place / "clickhouse") as server:
        daemon = configured(place / "daemon", server, "dashboard")
        initialized(daemon)
        daemon.start()
        try:
            took_s = 0.0
            if not marker.exists():
                began = time.perf_counter()
                load = [*MEDAMAD, "cluster", "load", "--data", str(daemon.data)]
                subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
                settling = Settling(server.client("dashboard"))
                for day in settling.due(day_of(int(time.time() * 1000))):
                    settling.settle(day)
                took_s = time.perf_counter() - began
                marker.touch()
            yield daemon, took_s
        finally:
            daemon.stop()


def dashboards(daemon: Daemon, until_ms: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Return the times of dashboards of views and of visits, without exclusions and with three."""
    asked = [address(query) for query in dashboard(until_ms)]
    targets = dict.fromkeys(("views", "visits"), _DASHBOARD_MS)
    remove_all(daemon)
    with SixConnections(daemon.port, login(daemon)) as client:
        for left_out in ("", ", with three exclusions"):
            for rule in rules(until_ms) if left_out else ():
                answer = daemon.client().request("POST", EXCLUSIONS, rule)
                assert answer.status == HTTPStatus.CREATED
            for name, option in (("views", ""), ("visits", "&visits=true")):
                addresses = [each + option for each in asked]
                times = [client.ask(addresses) for _ in range(1 + repeat)]
                median_ms = round(median(times[1:]))
                yield {
                    "name": f"{len(asked)} requests of a dashboard over {name}{left_out}",
                    "target_ms": targets[name],
                    "first_ms": round(times[0]),
                    "median_ms": median_ms,
                }
                targets[name] = median_ms * MOST_TIMES
    remove_all(daemon)


def stored(
    server: Server | None, hits: list[bytes], connections: int
) -> tuple[float, float, float]:
    """Send hits to a new daemon.

    Return how many it stores in a second, its processor time for each in microseconds, and how many
    reach the server in a second, 0 without a server.
    """
    with tempfile.TemporaryDirectory() as folder:
        if server is None:
            daemon = Daemon(Path(folder), configuration=CONFIGURATION, command=RUN)
        else:
            daemon = configured(Path(folder), server, Path(folder).name)
            initialized(daemon)
        daemon.start()
        try:
            daemon.client().add_website(HOSTNAME)
            before_s, began = processor_s(daemon.pid), time.perf_counter()
            sent = asyncio.run(drive(daemon.port, hits, connections))
            shipped_s = 0.0
            if server is not None:
                views = sum(b'"e":"load"' in hit for hit in hits)
                client = server.client(Path(folder).name)
                table = client.table("views")
                unloaded = f"SELECT count() AS n FROM {table} FINAL WHERE duration_ms > 0"  # noqa: S608
                while int(client.query(unloaded)["n"][0]) < views:
                    time.sleep(0.05)
                shipped_s = time.perf_counter() - began
            took_s = processor_s(daemon.pid) - before_s
        finally:
            daemon.stop()
    return sent.per_second, took_s / len(hits) * 1e6, len(hits) / shipped_s if shipped_s else 0.0


def shipping(folder: Path, count: int, connections: int, turns: int) -> dict[str, Any]:
    """Return what shipping costs."""
    hits = list(requests_with_unloads(count))
    rows: dict[str, list[tuple[float, float, float]]] = {"alone": [], "shipping": []}
    with server_on(folder) as server:
        for _ in range(turns):
            rows["alone"].append(stored(None, hits, connections))
            rows["shipping"].append(stored(server, hits, connections))
    names = ("hits_per_second", "hit_us", "shipped_per_second")
    return {
        kind: {
            name: round(median(column), 1)
            for name, column in zip(names, zip(*found, strict=True), strict=True)
        }
        for kind, found in rows.items()
    }


def main() -> None:
    """Fill, load, measure, print and write."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--hits", type=int, default=60_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--data", type=Path, help="a folder to keep what was filled and loaded")
    parser.add_argument("--out", type=Path, default=OUT)
    add_plan(parser)
    arguments = parser.parse_args()
    plan = plan_of(arguments, arguments.views)
    with folder_or_temporary(arguments.data) as kept:
        place = filled(kept / str(plan.views), plan, is_fixed=arguments.until is not None)
        with loaded(place.folder / "cluster", place.folder / "data") as (daemon, load_s):
            if load_s:
                print(f"loaded in {load_s:.0f} s", flush=True)
            rows = []
            for row in dashboards(daemon, place.plan.until_ms, arguments.repeat):
                rows.append(row)
                mark = " " if row["median_ms"] <= row["target_ms"] else "!"
                print(
                    f"{mark} {row['name']:72} {row['median_ms']:6} ms"
                    f" (target {row['target_ms']:.0f}, first {row['first_ms']})",
                    flush=True,
                )
        with tempfile.TemporaryDirectory() as folder:
            ships = shipping(
                Path(folder) / "clickhouse", arguments.hits, arguments.connections, arguments.turns
            )
    alone, both = ships["alone"], ships["shipping"]
    ratios = {
        "hit_us": round(both["hit_us"] / alone["hit_us"], 3),
        "shipped": round(both["shipped_per_second"] / alone["hits_per_second"], 3),
    }
    print(
        f"{' ' if ratios['hit_us'] <= _MOST_US else '!'} a hit:"
        f" {alone['hit_us']:.0f} µs alone, {both['hit_us']:.0f} µs with shipping"
        f" (target: at most {_MOST_US} times as many)"
    )
    print(
        f"{' ' if ratios['shipped'] >= _LEAST_SHIPPED else '!'} a second:"
        f" {alone['hits_per_second']:,.0f} hits stored alone,"
        f" {both['hits_per_second']:,.0f} with shipping, {both['shipped_per_second']:,.0f} shipped"
        f" (target: {_LEAST_SHIPPED:.0%} of those alone)"
    )
    result = {
        "machine": machine(),
        "command": command(),
        "views": plan.views,
        "load_s": round(load_s),
        "dashboards": rows,
        **ships,
        "ratios": ratios,
    }
    keep(arguments.out, "cluster", result)


if __name__ == "__main__":
    main()
