"""What is deleted in the cluster: websites, and visits past their retention."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import pytest_twisted
from support.clickhouse.collector import Collector, flush, start, stored
from support.clickhouse.servers import SHARDS, Server, sharded
from support.daemon import until
from support.storage.hits import DAY_MS, NOW_MS, a_view, event, views

from medamad.clickhouse import tables
from medamad.clickhouse.client import Client
from medamad.clickhouse.native import Values
from medamad.cluster.removal import Removal
from medamad.domain.dimensions import VIEW_DIMENSIONS
from medamad.domain.zones import day_at, start_of_day
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store


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
    collector = Collector(start(tmp_path), client, SHARDS)
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
    until(lambda: Removal(client, SHARDS).remove_websites(spool.marks.deleted))
    expected = {key: count for key, count in before.items() if key[1] == 2} | {("views", 2): 3}
    assert counts(client) == expected
    await collector.store.forget_deleted([1])
    assert spool.marks.deleted == ()
    await collector.store.close()


def times_in(store: Store) -> tuple[list[str], list[str]]:
    """Return the times of the views, and of the properties of events, that a store has."""
    views: list[int] = []
    events: list[int] = []

    def read(snapshot: Snapshot) -> None:
        for leaf in snapshot.leaves():
            views.extend(leaf.time_ms.tolist())
            events.extend((*leaf.own.time_ms.tolist(), *leaf.loose.time_ms.tolist()))
        for piece in snapshot.events:
            events.extend(piece.time_ms.tolist())

    for website in store.websites.all():
        store.partitions.read(website.number, read)
    return sorted(map(str, views)), sorted(map(str, events))


def mutations(server: Server, table: str) -> int:
    """Return how many statements a server had that delete rows of a table."""
    client = server.client("system")
    (found,) = client.query(
        "SELECT count() AS n FROM system.mutations WHERE table = {table:String}"
        " AND database = 'one_at_a_time'",
        parameters={"table": table},
    )["n"]
    return int(found)


def test_a_table_deletes_one_thing_after_the_other(shards: tuple[Server, Server]) -> None:
    client = sharded(shards, "one_at_a_time")
    rows: dict[str, Values] = {name: [1] * 20 for name in tables.VIEWS.types}
    rows |= {dimension.attribute: [""] * 20 for dimension in VIEW_DIMENSIONS}
    rows["visit"] = rows["view"] = list(range(1, 21))
    tables.insert(client, tables.VIEWS, rows)
    local = client.table("views_local")
    for each in shards:
        each.client("one_at_a_time").run(f"SYSTEM STOP MERGES {local}")
    removal = Removal(client, SHARDS)
    for _ in range(3):
        assert not removal.remove_websites([1])
        removal.remove_before({1: 1_000})
    assert [mutations(each, "views_local") for each in shards] == [1, 1]
    # Nothing is there to be deleted.
    assert [mutations(each, "events_local") for each in shards] == [0, 0]
    for each in shards:
        each.client("one_at_a_time").run(f"SYSTEM START MERGES {local}")
    until(lambda: removal.remove_websites([1]))
    assert counts(client) == {}


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Asia/Kolkata"])
@pytest_twisted.ensureDeferred
async def test_a_visit_goes_by_the_local_day_on_which_it_began_as_it_does_from_a_store(
    shards: tuple[Server, Server], tmp_path: Path, zone: str
) -> None:
    client = sharded(shards, f"expired in {zone}")
    rule = Retention(websites={"example.com": Keep(10, "nothing")}, zone=ZoneInfo(zone))
    store = start(tmp_path / "with", retention=rule)
    alone = start(tmp_path / "without", spool_hours=0, retention=rule)
    midnight_ms = start_of_day(ZoneInfo(zone), day_at(ZoneInfo(zone), NOW_MS // 1000)) * 1000
    here = {"identity": b"somebody", "width_px": 1000}
    again = {**here, "first_today": False, "from_page": "/"}
    hits = [
        a_view(path="/two days before", time_ms=midnight_ms - 2 * DAY_MS),
        a_view(beacon="b1", path="/", time_ms=midnight_ms - 60_000, **here),
        event("b1", midnight_ms - 30_000),
        event("b1", midnight_ms + 30_000),
        a_view(beacon="b2", path="/after", time_ms=midnight_ms + 60_000, **again),
        event("b2", midnight_ms + 70_000),
        a_view(path="/another", time_ms=midnight_ms + 60_000),
        # Its number is greater than that of one which began later.
        a_view(path="/late", time_ms=midnight_ms - 90_000),
        event("", midnight_ms - 60_000),
        event("", midnight_ms + 60_000),
        a_view(2, path="/kept", time_ms=midnight_ms - 60_000),
    ]
    for each in (store, alone):
        await each.add_website("example.com", 1)
        await each.add_website("kept.example", 1)
        await each.append(hits)
    collector = Collector(store, client, SHARDS)
    await collector.ship()
    due_ms = midnight_ms + 10 * DAY_MS + 3_600_000
    times_ms = store.maintenance.retained_since_ms(due_ms)
    assert times_ms == {1: midnight_ms}
    await alone.maintain(due_ms)
    removal = Removal(client, SHARDS)
    kept, due = removal.forecast(1, None), removal.forecast(1, midnight_ms)
    assert kept.earliest_ms == midnight_ms - 2 * DAY_MS
    assert (kept.views, kept.due_views, kept.due_events, kept.due_bytes) == (5, 0, 0, 0)
    assert (due.views, due.due_views, due.due_events) == (5, 4, 4)
    assert 0 < due.due_bytes < due.bytes == kept.bytes

    def left() -> tuple[list[str], list[str]]:
        removal.remove_before(times_ms)
        views = collector.rows_of("views", "time_ms", "time_ms")
        return views, collector.rows_of("events", "time_ms", "time_ms")

    # The event has two properties.
    after = str(midnight_ms + 60_000)
    expected = [str(midnight_ms - 60_000), after], [after, after]
    assert times_in(alone) == expected
    until(lambda: left() == expected)
    assert collector.rows_of("views", "path", "path") == ["/another", "/kept"]
    assert removal.forecast(1, midnight_ms).due_views == 0
    for each in (store, alone):
        await each.close()


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
