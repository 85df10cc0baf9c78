"""A power cut under load: every acknowledged hit survives.

Simulated is a disk with a cache of its own (volatile_disk.py). At a random moment its content is
taken as of that one instant: what was flushed, and of what was not all, nothing, or each sector by
chance. Nobody flushes anything for that, the system's page cache is left where it is, and the
daemon does not notice, so that one of them serves many cuts.
"""

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
import pytest_twisted
from attrs import frozen
from support.daemon import Daemon, until
from support.durability.disks import VolatileDisk, lack_of_volatile, mounts
from support.durability.load_clients import HOSTNAME, Sent, beacon_of, press
from support.forked_process import fork, running_script
from support.query.snapshots import answer
from support.storage.contents import Row, agrees, orphans, rows, settled
from support.storage.hits import a_view
from twisted.internet import reactor

from medamad.cli import main
from medamad.domain.websites import Website
from medamad.query.request import MAX_ROWS
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

LACK = lack_of_volatile()
pytestmark = [pytest.mark.daemon, pytest.mark.skipif(bool(LACK), reason=LACK)]

SLOW = (pytest.mark.slow, pytest.mark.timeout(1_800))
CUTS_OF_A_DISK = 10
"""What is stored grows, and with it what is to be compared after each cut."""
DISK_MIB = 96
CLIENTS = 4
PAUSE_S = 0.005
"""Between two hits of a client: what comes while a disk is checked has to be checked as well."""
FLUSHING = Path(__file__).parents[1] / "support/durability/flush_until_killed.py"
SIZES = Sizes(chunk_views=6, merged_members=3, counted_from=0)
"""Those of flushing.py."""
SETTINGS = StoreSettings(map_size=64 << 20, min_free_disk=0)
CONFIGURATION = """
[store]
map_size = "64 MiB"
min_free_disk = "1 MiB"
[limits]
new_paths = 1000000
"""
CHANCES = (0, 0.5, 0.9, 1)
"""How likely a sector is there that was not flushed."""


@frozen
class Load:
    """A source of hits: those acknowledged by now, and those that may be stored by now."""

    acknowledged: Callable[[], set[str]]
    possible: Callable[[], set[str]]


@contextmanager
def hits_by_http(disk: VolatileDisk) -> Iterator[Load]:
    """Start clients that post hits to a daemon on the disk."""
    daemon = Daemon(
        disk.where.parent,
        configuration=CONFIGURATION,
        before=disk.mounts.before,
    )
    daemon.start()
    stop = Event()
    try:
        daemon.client().add_website(HOSTNAME)
        by_client = {f"/{number}-": Sent() for number in range(CLIENTS)}
        with ThreadPoolExecutor(CLIENTS) as clients:
            running = [
                clients.submit(press, daemon.port, prefix, stop, sent, pause_s=PAUSE_S)
                for prefix, sent in by_client.items()
            ]
            load = Load(
                lambda: {path for sent in by_client.values() for path in sent.acknowledged},
                lambda: {
                    f"{prefix}{number}"
                    for prefix, sent in by_client.items()
                    for number in range(len(sent.acknowledged) + 1)
                },
            )
            try:
                while not load.acknowledged():
                    assert not any(client.done() for client in running)
                    time.sleep(0.01)
                yield load
            finally:
                stop.set()
            for client in running:
                client.result()
    finally:
        assert daemon.stop() == 0


@contextmanager
def hits_while_flushing(disk: VolatileDisk) -> Iterator[Load]:
    """Start a process that stores, flushes and compacts hits on the disk continuously."""
    acknowledged: list[str] = []

    def note() -> None:
        acknowledged.extend(line.strip() for line in output if line.endswith("\n"))

    before = disk.mounts.before + running_script(FLUSHING, disk.where, 0, 0)
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        process = fork((), (nothing, writing, sys.__stderr__), before=before)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as output, ThreadPoolExecutor(1) as reader:
        noting = reader.submit(note)
        while not acknowledged:
            assert not noting.done()
            time.sleep(0.01)
        try:
            yield Load(
                lambda: set(acknowledged),
                lambda: {f"/{turn}/{n}" for turn in range(len(acknowledged)) for n in range(3)},
            )
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()


def questioned(snapshot: Snapshot) -> list[Row]:
    """Return all views, after comparing queries and counters with them."""
    agrees(snapshot)
    views, _ = rows(snapshot)
    there = Counter(row["path"] for row in views)
    whole = answer(snapshot, "summary", [])["current"]
    assert whole["pageviews"] == len(views)
    assert whole["visitors"] == sum(row["p"] for row in views)
    counted = {row["path"]: row["pageviews"] for row in answer(snapshot, "pages", [])}
    assert counted == {path: there[path] for path in counted}
    assert len(counted) == min(MAX_ROWS, len(there))
    return views


@frozen
class Recovered:
    """What is there after a cut; `acknowledged` are the hits that had been before it."""

    store: Store
    website: Website
    acknowledged: set[str]


@contextmanager
def recovered(disk: VolatileDisk, load: Load, rng: random.Random) -> Iterator[Recovered]:
    """Cut the power at a random moment, open the store, and compare it with what was acknowledged.

    Something is stored before each cut, however slow the disk is.
    """
    before = load.acknowledged()
    until(lambda: load.acknowledged() > before)
    time.sleep(rng.uniform(0.02, 0.3))
    acknowledged = load.acknowledged()
    with disk.after_a_cut(rng.choice(CHANCES)) as folder:
        possible = load.possible()
        assert main(["check", "--data", str(folder)]) == 0
        store = start_store(folder, SETTINGS, reactor, SIZES)
        (website,) = store.websites.all()
        there = Counter(row["path"] for row in store.read(website, questioned))
        assert set(there) >= acknowledged, "an acknowledged hit is missing"
        assert set(there) <= possible
        assert set(there.values()) <= {1}, "a hit is there twice"
        yield Recovered(store, website, acknowledged)


def disks(folder: Path, cuts: int) -> Iterator[tuple[VolatileDisk, range]]:
    """Return a new disk every few cuts."""
    for first in range(0, cuts, CUTS_OF_A_DISK):
        where = folder / str(first) / "data"
        with mounts() as held, VolatileDisk(where, held).mounted(DISK_MIB) as disk:
            yield disk, range(first, min(cuts, first + CUTS_OF_A_DISK))


@pytest.mark.parametrize("cuts", [2, pytest.param(200, marks=SLOW)])
@pytest_twisted.ensureDeferred
async def test_no_acknowledged_hit_is_lost_or_doubled(tmp_path: Path, cuts: int) -> None:
    rng = random.Random(1)  # noqa: S311 - the same each time
    for disk, of_it in disks(tmp_path, cuts):
        with hits_by_http(disk) as load:
            for _ in of_it:
                with recovered(disk, load, rng) as there:
                    known = sorted(there.acknowledged)
                    again = [
                        a_view(
                            there.website.number,
                            beacon=beacon_of(path),
                            time_ms=time.time_ns() // 1_000_000,
                        )
                        for path in rng.sample(known, min(20, len(known)))
                    ]
                    outcomes = await there.store.append(again)
                    assert set(outcomes) <= {Outcome.REPEATED}, "sent again, stored twice"
                    await there.store.close()


@pytest.mark.parametrize("cuts", [1, pytest.param(200, marks=SLOW)])
@pytest_twisted.ensureDeferred
async def test_nothing_is_lost_while_flushing(tmp_path: Path, cuts: int) -> None:
    rng = random.Random(1)  # noqa: S311 - the same each time
    for disk, of_it in disks(tmp_path, cuts):
        with hits_while_flushing(disk) as load:
            for _ in of_it:
                with recovered(disk, load, rng) as there:
                    before = there.store.read(there.website, questioned)
                    await settled(there.store, max(row["time_ms"] for row in before))
                    assert there.store.read(there.website, questioned) == before
                    assert orphans(there.store.environment) == []
                    await there.store.close()
