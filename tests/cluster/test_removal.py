"""What is deleted in the cluster: websites, and visits past their retention."""

from pathlib import Path

import pytest_twisted
from support.clickhouse.collector import Collector, flush, start, stored
from support.clickhouse.servers import CLUSTER, Server
from support.daemon import until
from support.storage.hits import DAY_MS, NOW_MS, a_view, event, views

from medamad.clickhouse import tables
from medamad.clickhouse.client import Client, Connecting
from medamad.cluster.removal import Removal
from medamad.storage.settings import Keep, Retention

LAYOUT = tables.Layout(CLUSTER, is_replicated=False)


def sharded(shards: tuple[Server, Server], database: str) -> Client:
    for each in shards:
        tables.create_tables(each.client(database), LAYOUT)
    urls = [each.url for each in shards]
    return shards[0].client_of(Connecting(urls=urls, database=database))


def counts(client: Client) -> dict[tuple[str, int], int]:
    """Return how many rows each table has of each website."""
    found = {}
    for name in ("views", "events", "visits", "texts"):
        rows = client.query(f"SELECT website FROM {client.table(name)}").get("website", ())
        for website in map(int, rows):
            found[name, website] = found.get((name, website), 0) + 1
    return found


@pytest_twisted.ensureDeferred
async def test_a_deleted_website_is_gone_from_every_shard(
    shards: tuple[Server, Server], tmp_path: Path
) -> None:
    client = sharded(shards, "deleted_website")
    collector = Collector(start(tmp_path), client, LAYOUT)
    store = collector.store
    first = await store.add_website("example.com", 1)
    await store.add_website("other.example", 1)
    await collector.append(*views(1, 20), event(""), a_view(2), a_view(2))
    await collector.ship()
    before = counts(client)
    assert before["views", 1] == 20
    await store.delete_website(first)
    assert store.spool is not None
    assert store.spool.marks.deleted == (1,)
    await collector.append(a_view(2))
    # The marks of the shipper know nothing of it.
    await collector.ship()
    await collector.restart()
    spool = collector.store.spool
    assert spool is not None
    assert spool.marks.deleted == (1,)
    Removal(client, LAYOUT).remove_websites(spool.marks.deleted)
    await collector.store.forget_deleted([1])
    assert spool.marks.deleted == ()
    expected = {key: count for key, count in before.items() if key[1] == 2} | {("views", 2): 3}
    until(lambda: counts(client) == expected)
    await collector.store.close()


@pytest_twisted.ensureDeferred
async def test_visits_past_their_retention_go_as_a_whole(
    shards: tuple[Server, Server], tmp_path: Path
) -> None:
    client = sharded(shards, "expired_visits")
    collector = Collector(start(tmp_path), client, LAYOUT)
    await collector.store.add_website("example.com", 1)
    await collector.store.add_website("kept.example", 1)
    midnight_ms = NOW_MS // DAY_MS * DAY_MS
    here = {"identity": b"somebody", "width_px": 1000}
    old = a_view(beacon="old", time_ms=midnight_ms - 60_000, **here)
    later = a_view(beacon="later", time_ms=midnight_ms + 60_000, from_page="/", **here)
    other = a_view(beacon="other", time_ms=midnight_ms + 60_000)
    kept = a_view(2, time_ms=midnight_ms - 60_000)
    await collector.append(old, kept, later, event("later", midnight_ms + 70_000), other)
    await collector.ship()
    rules = {"example.com": Keep(10, "nothing")}
    store = collector.store
    store.maintenance.retention = Retention(websites=rules)
    due_ms = midnight_ms + 10 * DAY_MS + 3_600_000
    first_days = {
        website: tables.day_of(before_ms)
        for website, before_ms in store.maintenance.retained_since_ms(due_ms).items()
    }
    assert first_days == {1: midnight_ms // DAY_MS}
    Removal(client, LAYOUT).remove_days(first_days)
    until(lambda: len(collector.views("view")) == 2)
    until(lambda: collector.events("event") == [])
    assert sorted(collector.views("website")) == ["1", "2"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_no_cluster_has_goes_by_its_retention(server: Server, tmp_path: Path) -> None:
    store = start(tmp_path, spool_hours=0)
    await store.add_website("example.com", 1)
    await store.append(views(1, 250))
    await flush(store)
    await store.close()
    retention = Retention(others=Keep(30, "nothing"))
    client = server.client("retained_here")
    tables.create_tables(client, tables.Layout())
    collector = Collector(start(tmp_path, retention=retention), client)
    await collector.store.maintain(NOW_MS + 20 * DAY_MS)
    assert stored(collector.store) == 250
    await collector.store.maintain(NOW_MS + 40 * DAY_MS)
    assert stored(collector.store) == 0
    await collector.store.close()
