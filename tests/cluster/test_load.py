"""Hits from before there was a cluster are moved to it, once, however often that is cut off."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_twisted
from support.clickhouse.collector import Collector, start
from support.clickhouse.servers import Server
from support.storage.hits import NOW_MS, a_view, event

from medamad.clickhouse import tables
from medamad.cluster import shipper as shippers

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


@pytest_twisted.ensureDeferred
async def test_earlier_hits_are_loaded_once(moved: Collector) -> None:
    for _ in range(2):
        assert sum(moved.shipper.load()) > 0
        assert moved.views("path") == [*EARLIER, "/new"]
        assert len(moved.events("name")) == 2 * len(EARLIER)


@pytest_twisted.ensureDeferred
async def test_a_load_that_was_cut_off_goes_on(
    moved: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shippers, "MOST_NUMBERS", 4)
    first = list(moved.shipper.load())
    assert len(first) > 5
    moved.client.run(f"TRUNCATE TABLE {moved.client.table('views')}")
    moved.client.run(f"TRUNCATE TABLE {moved.client.table('events')}")
    cut_off = moved.shipper.load()
    for _ in range(5):
        next(cut_off)
    cut_off.close()
    moved.begin()
    rest = list(moved.shipper.load())
    assert len(rest) < len(first)
    assert moved.views("path") == EARLIER
    assert len(moved.events("name")) == 2 * len(EARLIER)
