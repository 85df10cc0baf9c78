"""Hits from before there was a cluster are moved to it, once, however often that is cut off."""

from collections.abc import AsyncIterator
from datetime import UTC
from pathlib import Path

import pytest
import pytest_twisted
from support.clickhouse.collector import Collector, flush, start, stored
from support.clickhouse.servers import Server
from support.storage.hits import DAY_MS, NOW_MS, a_view, event, unload

from medamad.clickhouse import tables
from medamad.cluster import shipper as shippers
from medamad.storage.compaction.retention import cutoff_of
from medamad.storage.settings import Keep

EARLIER = [f"/{number}" for number in range(25)]


@pytest_twisted.async_yield_fixture()
async def moved(
    server: Server, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Collector]:
    """A collector whose store has hits from before it was one."""
    client = server.client(request.node.name)
    tables.create_tables(client, tables.Layout())
    store = start(tmp_path / "data", spool_hours=0)
    await store.add_website("example.com", NOW_MS // 1000)
    for number, path in enumerate(EARLIER):
        at_ms = NOW_MS + number
        view = a_view(beacon=f"b{number}", time_ms=at_ms, path=path)
        await store.append([view, event(f"b{number}", at_ms + 5)])
    await store.close()
    collector = Collector(start(tmp_path / "data"), client)
    await collector.append(a_view(beacon="new", time_ms=NOW_MS + 100, path="/new"))
    await collector.ship()
    assert collector.views("path") == ["/new"]
    yield collector
    await collector.store.close()


async def load(collector: Collector, blocks: int | None = None) -> int:
    """Load as the daemon does, until it is cut off after some blocks; return how many there were.

    The mark of the last one is not stored then.
    """
    found = 0
    for loaded in collector.shipper.load():
        found += 1
        if found == blocks:
            return found
        await collector.store.mark_loaded(loaded.website, loaded.up_to)
    await collector.store.mark_all_loaded()
    return found


@pytest_twisted.ensureDeferred
async def test_earlier_hits_are_loaded_once(moved: Collector) -> None:
    assert await load(moved) == 1
    assert moved.views("path") == [*EARLIER, "/new"]
    assert len(moved.events("name")) == 2 * len(EARLIER)
    assert await load(moved) == 0


@pytest_twisted.ensureDeferred
async def test_a_load_that_was_cut_off_goes_on(
    moved: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shippers, "MOST_NUMBERS", 4)
    await load(moved, 6)
    assert len(moved.views("path")) == 13
    # What comes meanwhile is none of it, and may have greater numbers.
    await moved.append(unload(24, 700), a_view(path="/newer"))
    await moved.ship()
    await moved.restart()
    await load(moved, 3)
    await moved.restart()
    assert await load(moved) == 13 - 5 - 2
    assert moved.views("path") == [*EARLIER, "/new", "/newer"]
    assert moved.views("duration_ms")[24] == "700"
    assert len(moved.events("name")) == 2 * len(EARLIER)


@pytest_twisted.ensureDeferred
async def test_a_correction_of_an_earlier_view_does_not_hide_others(
    moved: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shippers, "MOST_NUMBERS", 4)
    await moved.append(unload(24, 700))
    await moved.ship()
    assert moved.views("path") == ["/24", "/new"]
    await load(moved)
    assert moved.views("path") == [*EARLIER, "/new"]


@pytest_twisted.ensureDeferred
async def test_hits_that_were_never_loaded_are_after_another_start(moved: Collector) -> None:
    """Those from before a first cluster, during it, and between it and a second one."""
    await moved.restart(spool_hours=0)
    await moved.append(a_view(path="/between"))
    await moved.restart()
    await load(moved)
    assert moved.views("path") == [*EARLIER, "/new", "/between"]


@pytest_twisted.ensureDeferred
async def test_websites_are_loaded_one_after_the_other(
    moved: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shippers, "MOST_NUMBERS", 4)
    await moved.restart(spool_hours=0)
    other = await moved.store.add_website("other.example", NOW_MS // 1000)
    await moved.append(*(a_view(other.number, path=f"/o{number}") for number in range(9)))
    await moved.restart()
    await load(moved, 15)
    await moved.restart()
    await load(moved)
    assert moved.views("path") == [*EARLIER, "/new", *(f"/o{number}" for number in range(9))]


@pytest_twisted.ensureDeferred
async def test_a_visit_is_there_once_if_its_beginning_expires_while_it_is_loaded(
    server: Server, tmp_path: Path
) -> None:
    """Its first view is in a segment of its own, which is the first to expire."""
    client = server.client("expires_meanwhile")
    tables.create_tables(client, tables.Layout())
    store = start(tmp_path, 1, spool_hours=0)
    await store.add_website("example.com", NOW_MS // 1000)
    midnight_ms = NOW_MS // DAY_MS * DAY_MS
    here = {"identity": b"somebody", "width_px": 1000}
    first = a_view(beacon="b1", time_ms=midnight_ms - 60_000, **here)
    second = a_view(beacon="b2", time_ms=midnight_ms + 60_000, from_page="/", **here)
    await store.append([first])
    await flush(store)
    await store.append([second, event("b2", midnight_ms + 90_000)])
    await flush(store)
    await store.close()
    collector = Collector(start(tmp_path, 1), client)
    await load(collector, 1)
    sent = collector.views("visit", "visit_day"), collector.events("visit", "visit_day")
    (partition,), now_ms = collector.store.partitions.all(), midnight_ms + 10 * DAY_MS
    bound = cutoff_of(Keep(10, "nothing"), UTC, now_ms)
    await collector.store.maintenance._compactor.run_next(partition, now_ms, bound)
    assert stored(collector.store) == 1
    await collector.restart()
    assert await load(collector) == 1
    found = collector.views("visit", "visit_day"), collector.events("visit", "visit_day")
    assert found == sent
    await collector.store.close()
