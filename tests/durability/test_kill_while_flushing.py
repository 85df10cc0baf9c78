"""kill -9 of a process that constantly flushes and merges small segments."""

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import pytest_twisted
from support.durability.flush_until_killed import settings
from support.forked_process import fork, running_script
from support.storage.contents import agrees, orphans, segments_and_merged, settled, stored_rows
from twisted.internet import reactor

from medamad.domain.dimensions import Dimension, split_property
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

SEEDS = [(1, 4), *(pytest.param(seed, 12, marks=pytest.mark.slow) for seed in range(1, 12))]
"""With how many rounds each has."""
PROGRAM = Path(__file__).parents[1] / "support/durability/flush_until_killed.py"
SIZES = Sizes(chunk_views=6, merged_members=3, counted_from=0)
NOW_MS, HOUR_MS = 1_790_000_000_000, 3_600_000


def run_and_kill(folder: Path, turn: int, chance: random.Random, raw_days: int = 0) -> list[str]:
    """Kill the program somewhere between two hits; returns what it acknowledged.

    It is killed by what it has done: a time would be a lot for one machine and nothing for another.
    """
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        files = (nothing, writing, sys.__stderr__)
        process = fork((), files, before=running_script(PROGRAM, folder, turn, raw_days))
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        output = "".join(pipe.readline() for _ in range(chance.randint(10, 100)))
        time.sleep(chance.uniform(0, 0.02))
        process.kill()
        process.wait()
        output += pipe.read()
    *whole, cut_off = output.split("\n")
    assert not cut_off or cut_off.startswith("/")
    return whole


@pytest.mark.parametrize(("seed", "rounds"), SEEDS)
@pytest_twisted.ensureDeferred
async def test_no_acknowledged_hit_is_lost_or_doubled_while_flushing(
    tmp_path: Path, seed: int, rounds: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    acknowledged: list[str] = []
    turn = 0
    for _ in range(rounds):
        acknowledged += run_and_kill(tmp_path / "data", turn, chance)
        store = start_store(
            tmp_path / "data", StoreSettings(map_size=64 << 20, min_free_disk=0), reactor, SIZES
        )
        (website,) = store.websites.all()
        for _ in range(2):
            views, events = stored_rows(store, website)
            paths = Counter(row["path"] for row in views)
            assert set(paths) >= set(acknowledged), "an acknowledged hit is missing"
            assert len(set(paths) - set(acknowledged)) <= rounds, "more than was under way"
            assert set(paths.values()) == {1}, "a hit is there twice"
            # The event of each view came, and was acknowledged, before it.
            of_views = Counter(event["view"][0] for event in events if event["view"])
            assert of_views == Counter(paths)
            of_properties = Counter(value for event in events for _, value in event["properties"])
            assert set(of_properties.values()) == {1}
            store.read(website, agrees)
            # An event may have been stored, and the process killed before its view was.
            turn = max(int(path.split("/")[1]) for path in {*paths, *of_properties}) + 1
            await settled(store, NOW_MS + turn * HOUR_MS)
        lasted = {row["path"] for row in views if row["duration_ms"]}
        assert lasted >= {
            path for path in acknowledged if f"/{int(path.split('/')[1]) + 7}/2" in acknowledged
        }
        assert orphans(store.environment) == []
        await store.close()
    assert turn > rounds
    store = start_store(
        tmp_path / "data", StoreSettings(map_size=64 << 20, min_free_disk=0), reactor, SIZES
    )
    assert min(segments_and_merged(store.environment)) > rounds // 4
    await store.close()


def counted(snapshot: Snapshot) -> tuple[Counter[str], Counter[str], int]:
    """Return how many views, by path, and events, by value, the sums of days have; and the days."""
    views: Counter[str] = Counter()
    events: Counter[str] = Counter()
    days = list(snapshot.rollups)
    for day in days:
        counters, sums = day.counters(Dimension.PATH), day.event_sums()
        paths, texts = snapshot.texts(Dimension.PATH), snapshot.texts(Dimension.PROPERTY)
        for code, count in zip(counters.codes.tolist(), counters.sums[0].tolist(), strict=True):
            views[paths[code]] += count
        for code, count in zip(sums.codes.tolist(), sums.events.tolist(), strict=True):
            events[split_property(texts[code])[1]] += count
    return views, events, len(days)


@pytest.mark.parametrize(("seed", "rounds"), SEEDS)
@pytest_twisted.ensureDeferred
async def test_no_hit_is_lost_or_doubled_when_its_day_is_rolled_up(
    tmp_path: Path, seed: int, rounds: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    acknowledged: list[str] = []
    turn = days = 0
    for _ in range(rounds):
        acknowledged += run_and_kill(tmp_path / "data", turn, chance, 1)
        store = start_store(tmp_path / "data", settings(1), reactor, SIZES)
        (website,) = store.websites.all()
        for _ in range(2):
            views, events = stored_rows(store, website)
            summed, of_events, days = store.read(website, counted)
            paths = summed + Counter(row["path"] for row in views)
            of_properties = of_events + Counter(
                v for event in events for _, v in event["properties"]
            )
            assert set(paths) >= set(acknowledged), "an acknowledged hit is missing"
            assert set(paths.values()) == {1}, "a hit is there twice"
            assert set(of_properties.values()) == {1}, "an event is there twice"
            assert set(of_properties) >= set(paths)
            turn = max(int(path.split("/")[1]) for path in {*paths, *of_properties}) + 1
            await settled(store, NOW_MS + turn * HOUR_MS)
        assert orphans(store.environment) == []
        await store.close()
        turn += 24  # so that each round has something to remove
    assert days > rounds // 4
