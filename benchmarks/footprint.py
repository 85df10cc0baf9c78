"""What a daemon takes up that has little to do: disk and memory.

    python benchmarks/footprint.py [--out DIR]

An empty store and the daemon on it, and views that have been stored but not sealed into a segment:
what each adds to the pages in use, with its beacon but without properties or an unload, in commits
of a hundred and in commits of its own.
"""

import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

from attrs import evolve
from content import HOSTNAME
from daemon_setup import daemon_on, disk_bytes
from fill import hits_of
from measurements import OUT, command, keep, machine, private_bytes
from plan import Plan
from tables import footprint_table
from traffic import batches
from twisted.internet import task
from twisted.internet.defer import Deferred

from medamad.domain.hits import View
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store

_STARTS: Final = 5
_IDLE_S: Final = 5.0
_COMMITS: Final = {100: 300, 1: 5_000}
"""How many commits are measured, by the number of hits in each."""
_BEFORE: Final = 20_000
"""Views stored before those: their texts are in the dictionary already, as in any used store."""


def live_views(count: int, website: int) -> Iterator[View]:
    """Return the last views of a day's traffic, with the most common texts."""
    until_ms = int(time.time() * 1000)
    plan = Plan(until_ms=until_ms, views=count, days=1, memtable=count)
    for series, bulk in enumerate(batches(plan)):
        for hit in hits_of(bulk, website, series):
            if isinstance(hit, View):
                yield evolve(hit, properties=())


async def live_bytes(folder: Path, reactor: Any, size: int, commits: int) -> float:
    """Return what each view adds to a store, in commits of some size."""
    store = start_store(folder, StoreSettings(), reactor)
    try:
        website = await store.add_website(HOSTNAME, int(time.time()))
        views = list(live_views(_BEFORE + size * commits, website.number))
        for start in range(0, _BEFORE, 1_000):
            await store.append(views[start : start + 1_000])
        before = _used_bytes(store)
        for start in range(_BEFORE, len(views), size):
            await store.append(views[start : start + size])
        return (_used_bytes(store) - before) / (size * commits)
    finally:
        await store.close()


def _used_bytes(store: Store) -> int:
    with store.environment.reading() as txn:
        return store.environment.used_bytes(txn)


async def live(reactor: Any, folder: Path) -> dict[str, float]:
    """Return the bytes of a view, by the number of hits in a commit."""
    measured = {}
    for size, commits in _COMMITS.items():
        (place := folder / str(size)).mkdir()
        measured[str(size)] = await live_bytes(place, reactor, size, commits)
    return measured


def empty(folder: Path) -> dict[str, float]:
    """Return what a store without hits takes up on disk, and the idle daemon on it in memory."""
    starts_ms = []
    # The first start makes the store, and the bytecode of what has none yet.
    for _ in range(_STARTS):
        with daemon_on(folder) as (daemon, took_ms):
            starts_ms.append(took_ms)
            time.sleep(_IDLE_S)
            idle = private_bytes(daemon.pid)["anonymous"]
    return {
        "empty_store_bytes": disk_bytes(folder / "data"),
        "idle_bytes": idle,
        "start_ms": round(median(starts_ms)),
    }


async def measure(reactor: Any, out: Path) -> None:
    """Measure, print and write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = {
            "machine": machine(),
            "command": command(),
            **empty(folder / "empty"),
            "live_bytes": await live(reactor, folder),
        }
    keep(out, "footprint", result)
    print(footprint_table(result))


def main() -> None:
    """Read the arguments and run."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    task.react(lambda reactor: Deferred.fromCoroutine(measure(reactor, arguments.out)))


if __name__ == "__main__":
    main()
