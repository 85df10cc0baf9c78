"""Two shards of two replicas, of which some are killed: all of them get every hit, once."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.clickhouse.collector import Collector, start
from support.clickhouse.replicas import ARE_THERE, WHERE, Node, Replicas, replicas
from support.daemon import until
from support.storage.hits import NOW_MS, a_view, unload

from medamad.clickhouse.client import Unavailable

pytestmark = [pytest.mark.daemon, pytest.mark.skipif(not ARE_THERE, reason=WHERE)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Replicas]:
    folder = tmp_path / "replicas"
    folder.mkdir()
    with replicas(folder) as started:
        yield started


def durations_on(cluster: Replicas, replica: int) -> dict[str, int]:
    """Return the durations that one replica of each shard has, by path; fails if one is twice."""
    found: dict[str, int] = {}
    for node in cluster.nodes[replica::2]:
        client = cluster.client(node)
        rows = client.query(
            "SELECT CAST(path AS String) AS name, duration_ms AS ms"
            f" FROM {client.table('views_local')} FINAL"
        )
        client.close()
        for path, ms in zip(rows.get("name", ()), rows.get("ms", ()), strict=True):
            assert path not in found
            found[path] = int(ms)
    return found


async def ship(collector: Collector) -> bool:
    """Ship what is there; return whether all of it is safe."""
    try:
        progress = await collector.ship()
    except Unavailable:
        return False
    return not progress.lacking and progress.marks.safe == collector.store.wal.last_sequence


async def play(cluster: Replicas, folder: Path, rounds: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    collector = Collector(start(folder / "data"), cluster.client())
    collector.begin(quorum=2)
    await collector.store.add_website("example.com", NOW_MS // 1000)
    expected: dict[str, int] = {}
    for _ in range(rounds):
        match chance.choice(["replica", "replica", "keeper", "collector", "heal"]):
            case "replica":
                chance.choice(cluster.nodes).kill()
            case "keeper":
                cluster.kill_keeper()
            case "collector":
                await collector.restart()
                collector.begin(quorum=2)
            case "heal":
                cluster.start()
        first = len(expected) + 1
        for number in range(first, first + chance.randrange(1, 200)):
            await collector.append(a_view(beacon=f"b{number}", path=f"/{number}"))
            expected[f"/{number}"] = 0
        for _ in range(chance.randrange(50)):
            number, duration_ms = chance.randrange(1, len(expected) + 1), chance.randrange(1, 9_000)
            await collector.append(unload(number, duration_ms))
            expected[f"/{number}"] = max(expected[f"/{number}"], duration_ms)
        await ship(collector)
    cluster.start()
    while not await ship(collector):
        pass
    for replica in range(2):
        until(lambda of=replica: durations_on(cluster, of) == expected)  # type: ignore[misc]
    collector.client.close()
    await collector.store.close()


@pytest_twisted.ensureDeferred
async def test_every_replica_gets_every_view_once(cluster: Replicas, tmp_path: Path) -> None:
    await play(cluster, tmp_path, 10, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest_twisted.ensureDeferred
async def test_every_replica_gets_every_view_once_in_many_rounds(
    cluster: Replicas, tmp_path: Path, seed: int
) -> None:
    await play(cluster, tmp_path, 10, seed)


@pytest_twisted.ensureDeferred
async def test_one_replica_is_enough_to_go_on_but_not_to_be_safe(
    cluster: Replicas, tmp_path: Path
) -> None:
    collector = Collector(start(tmp_path / "data"), cluster.client())
    collector.begin(quorum=2)
    await collector.store.add_website("example.com", NOW_MS // 1000)
    await collector.append(a_view(path="/1"))
    assert await ship(collector)
    down: list[Node] = cluster.nodes[1::2]
    for node in down:
        node.kill()
    await collector.append(a_view(path="/2"), a_view(path="/3"))
    until(lambda: _is_sent(collector))
    progress = collector.shipper.step()
    assert progress.lacking
    assert progress.marks.safe < progress.marks.sent == collector.store.wal.last_sequence
    assert durations_on(cluster, 0) == {"/1": 0, "/2": 0, "/3": 0}
    cluster.start()
    while not await ship(collector):
        pass
    until(lambda: durations_on(cluster, 1) == {"/1": 0, "/2": 0, "/3": 0})
    collector.client.close()
    await collector.store.close()


def _is_sent(collector: Collector) -> bool:
    try:
        return not collector.shipper.step().left
    except Unavailable:
        return False
