"""Imports into a cluster: seen whole or not at all, each hit once, and undone there, too."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from support.clickhouse.collector import Collector, start
from support.clickhouse.daemon import initialized, send
from support.clickhouse.servers import CLUSTER, Server
from support.daemon import Client as HttpClient
from support.daemon import Daemon, finished, until
from support.storage.hits import DAY_MS, NOW_MS, views
from support.transfer.day_files import HOST, Plausible

from medamad.clickhouse import tables
from medamad.clickhouse.client import Client, Connecting
from medamad.cluster.removal import Removal
from medamad.cluster.settling import Settling
from medamad.domain.websites import Website
from medamad.lookup.referrers import Sources
from medamad.query.clickhouse.engine import ClickHouseEngine
from medamad.query.reports import STATISTICS
from medamad.query.request import Cancellation, Query
from medamad.storage.import_batches import ImportBatch
from medamad.storage.offline import open_reader
from medamad.storage.shared_settings import Epoch, Role, read_shared
from medamad.storage.store import Store
from medamad.transfer.import_rows import build_chunk
from medamad.transfer.rows import ViewRow

CONFIGURED = """
[cluster]
urls = [{urls}]
database = "{database}"
collector = 7
name = "{name}"
replicated = false
"""
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:{}.0) Gecko/20100101 Firefox/{}.0"
PAGES = ("/", "/a", "/b?utm_source=mail", "/docs/c")
REFERRERS = ("https://example.com/a", "https://search.example/", "-")
OLD_MS = NOW_MS - 100 * DAY_MS


def log_lines(count: int) -> list[str]:
    """Return lines of a log, of several days long ago."""
    chance = random.Random(2)  # noqa: S311 - not used for security
    lines, moment = [], datetime(2026, 3, 1, 12, tzinfo=UTC)
    for _ in range(count):
        moment += timedelta(seconds=chance.randrange(600))
        agent = FIREFOX.format(*[chance.randrange(100, 104)] * 2)
        lines.append(
            f"192.0.2.{chance.randrange(9)} - - [{moment:%d/%b/%Y:%H:%M:%S +0000}]"
            f' "GET {chance.choice(PAGES)} HTTP/1.1" 200 1 "{chance.choice(REFERRERS)}" "{agent}"\n'
        )
    return lines


@pytest.fixture
def both(
    shards: tuple[Server, Server], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[Daemon, Daemon]]:
    """Return a daemon with a cluster of two shards, and one without."""
    urls = ", ".join(f'"{server.url}"' for server in shards)
    text = CONFIGURED.format(urls=urls, database=request.node.name, name=CLUSTER)
    found = Daemon(tmp_path / "with", configuration=text), Daemon(tmp_path / "without")
    initialized(found[0])
    for daemon in found:
        daemon.start()
        daemon.client().add_website("example.com")
    yield found
    for daemon in found:
        if daemon.is_running:
            daemon.stop()


def imported(daemon: Daemon, *arguments: str, hostname: str = "example.com") -> tuple[int, str]:
    """Import into a website; return the status, and what was printed but for the progress."""
    done = finished("import", daemon.data, "--website", hostname, *arguments)
    return done.returncode, done.stdout + done.stderr.rpartition("\r")[2]


def exported(daemon: Daemon, folder: Path, *whats: str) -> list[str]:
    """Export the website into files; return their names."""
    folder.mkdir(exist_ok=True)
    files = [str(folder / what) for what in whats]
    for what, file in zip(whats, files, strict=True):
        done = finished("export", daemon.data, "example.com", "--what", what, "-o", file)
        assert done.returncode == 0, done
    return files


def answers(daemon: Daemon, hostname: str = "example.com") -> dict[str, Any]:
    client = daemon.client()
    names = ("summary", *(statistic.name for statistic in STATISTICS))
    return {name: answer(client, name, hostname, visits="true") for name in names}


def answer(client: HttpClient, name: str, hostname: str = "example.com", /, **query: str) -> Any:
    return client.get(f"/api/website/{hostname}/{name}", **query)


def views_of(daemon: Daemon) -> int:
    found: int = answer(daemon.client(), "summary")["current"]["pageviews"]
    return found


@pytest.mark.daemon
def test_an_import_gives_the_same_figures_with_a_cluster(
    both: tuple[Daemon, Daemon], tmp_path: Path
) -> None:
    log, lines = tmp_path / "access.log", log_lines(700)
    for count in (400, 700):
        log.write_text("".join(lines[:count]))
        found = [imported(daemon, str(log)) for daemon in both]
        assert found[0] == found[1]
        assert found[0][0] == 0
        assert views_of(both[0]) == count
        # What is there is left out, though no store has it any more.
        again = [imported(daemon, str(log)) for daemon in both]
        assert again[0] == again[1]
        assert again[0][0] == 1
    assert answers(both[0]) == answers(both[1])
    for daemon in both:
        for number in range(1, 4):
            send(daemon, number)
    until(lambda: views_of(both[0]) == 703)
    log.write_text("".join(lines[100:600]))
    found = [imported(daemon, str(log)) for daemon in both]
    assert found[0] == found[1]
    assert found[0][0] == 1
    assert "nothing" in found[0][1]
    for daemon in both:
        done = finished("import", daemon.data, "--undo", "1")
        assert done.returncode == 0, done
    assert answers(both[0]) == answers(both[1])
    assert views_of(both[0]) == 303


@pytest.mark.daemon
def test_an_export_is_imported_once(both: tuple[Daemon, Daemon], tmp_path: Path) -> None:
    with_cluster, without = both
    for number in range(1, 9):
        send(without, number)
    until(lambda: views_of(without) == 8)
    files = exported(without, tmp_path / "alone", "views", "events")
    header, *rows = Path(files[0]).read_text().splitlines(keepends=True)
    first = tmp_path / "first.csv"
    first.write_text("".join([header, *rows[:5]]))
    assert imported(with_cluster, str(first))[0] == 0
    assert views_of(with_cluster) == 5
    # With what is left out of figures, and back.
    rule = {"name": "Third", "filters": "path[eq]=/3"}
    path = "/api/websites/example.com/exclusions"
    assert without.client().request("POST", path, rule).status == 201
    (exclusions,) = exported(without, tmp_path / "alone", "exclusions")
    status, printed = imported(with_cluster, *files, exclusions)
    assert (status, "1 exclusion" in printed) == (0, True), printed
    pages = [answer(daemon.client(), "pages", visits="true") for daemon in both]
    assert pages[0] == pages[1]
    assert views_of(with_cluster) == 7
    (listed,) = with_cluster.client().get(path)
    assert (listed["name"], listed["filters"], listed["views"]) == ("Third", "path[eq]=/3", 1)
    files = exported(with_cluster, tmp_path / "cluster", "views", "events", "exclusions")
    assert Path(files[-1]).read_text() == Path(exclusions).read_text()
    without.client().add_website("back.example")
    assert imported(without, *files, hostname="back.example")[0] == 0
    pages.append(answer(without.client(), "pages", "back.example", visits="true"))
    assert pages[2] == pages[0]
    with_cluster.stop()
    # The configuration that names the cluster is not given.
    first.write_text("".join([header, *rows[:3]]))
    status, printed = imported(with_cluster, str(first), "--dry-run")
    assert (status, "the hits are in a cluster" in printed) == (1, True)


@pytest.mark.daemon
def test_daily_figures_are_refused_before_anything_is_loaded(
    both: tuple[Daemon, Daemon], tmp_path: Path
) -> None:
    daemon, _ = both
    daemon.client().add_website(HOST)
    file = Plausible().zip(tmp_path / "export.zip")
    done = finished("import", daemon.data, str(file), "--website", HOST)
    assert done.returncode == 1
    assert "a cluster has views and events alone, and cannot have daily totals" in done.stderr
    assert "import 1" not in daemon.log


async def begun(store: Store, website: Website, number: int) -> ImportBatch:
    return await store.imports.begin(
        website,
        source="log",
        digest=f"digest {number}",
        ranges=[("", 1, 60)],
        newest=number - 1,
        now=NOW_MS // 1000,
    )


async def load(store: Store, batch: ImportBatch) -> None:
    """Load sixty views, ten for each visit."""
    at = batch.spans[0].at
    rows = [
        ViewRow(
            path=f"/{place}",
            time_ms=OLD_MS + place * 60_000,
            first_today=place % 10 == 0,
            first_of_page=True,
        )
        for place in range(60)
    ]
    numbers = [at + place for place in range(60)]
    visits = [at + place // 10 * 10 for place in range(60)]
    for half in (slice(0, 25), slice(25, 60)):
        piece = build_chunk(numbers[half], visits[half], rows[half], [])
        await store.imports.load(batch, [piece])


def seen(collector: Collector, website: Website) -> tuple[int, int]:
    """Return how many views and visitors a query of the cluster finds."""
    engine = ClickHouseEngine(collector.client, hidden_batches=collector.store.hidden_batches)
    return engine.read(website, Sources({}), Cancellation(), _totals)


def _totals(reader: Any) -> tuple[int, int]:
    tally = reader.select(Query()).series(None).tally
    return int(tally.views[0]), int(tally.day_visitors[0])


def rows(client: Client, table: str = "views") -> int:
    found = client.query(f"SELECT count() AS n FROM {client.table(table)} FINAL")
    return int(found["n"][0])


async def send_all(collector: Collector, batch: ImportBatch) -> int:
    segments = await collector.store.imports.segments(batch)
    return sum(collector.shipper.send_import(batch.website, segments))


@pytest_twisted.ensureDeferred
async def test_an_import_is_seen_whole_or_not_at_all(server: Server, tmp_path: Path) -> None:
    client = server.client("whole_import")
    tables.create_tables(client, tables.Layout())
    collector = Collector(start(tmp_path), client)
    store = collector.store
    website = await store.add_website("example.com", 1)
    await collector.append(*views(1, 3))
    await collector.ship()
    batch = await begun(store, website, 1)
    await load(store, batch)
    await collector.append(*views(4, 5))
    await collector.ship()
    # It is old, and its numbers are before those that are safe, but the cluster does not have it.
    await store.maintain(NOW_MS + 90 * DAY_MS)
    assert rows(client) == 5
    assert await send_all(collector, batch) == 60
    assert rows(client) == 65
    assert seen(collector, website) == (5, 5)
    await store.imports.finish(batch)
    assert seen(collector, website) == (65, 11)
    # What is sent twice, before a failure and after it, is there once.
    assert await send_again(collector, batch) == 60
    assert seen(collector, website) == (65, 11)
    await store.maintain(NOW_MS + 90 * DAY_MS)
    partition = store.partitions.find(1)
    assert partition is not None
    assert partition.segments_of_batch(batch.number) == []
    assert seen(collector, website) == (65, 11)
    await store.close()


async def send_again(collector: Collector, batch: ImportBatch) -> int:
    partition = collector.store.partitions.find(batch.website)
    assert partition is not None
    segments = [each for each in partition.segments_of_batch(batch.number) if not each.members]
    collector.begin()
    return sum(collector.shipper.send_import(batch.website, segments))


@pytest.mark.parametrize("is_complete", [True, False])
@pytest_twisted.ensureDeferred
async def test_an_import_that_is_removed_is_gone_at_once_and_then_deleted(
    shards: tuple[Server, Server], tmp_path: Path, *, is_complete: bool
) -> None:
    layout = tables.Layout(CLUSTER, is_replicated=False)
    database = f"removed_import_{is_complete}".lower()
    for each in shards:
        tables.create_tables(each.client(database), layout)
    urls = [each.url for each in shards]
    client = shards[0].client_of(Connecting(urls=urls, database=database))
    collector = Collector(start(tmp_path), client, layout)
    website = await collector.store.add_website("example.com", 1)
    await collector.append(*views(1, 3))
    await collector.ship()
    batch = await begun(collector.store, website, 1)
    await load(collector.store, batch)
    await send_all(collector, batch)
    settling = Settling(client)
    for day in settling.due(tables.day_of(NOW_MS)):
        settling.settle(day)
    assert rows(client, "visits") == 6
    if is_complete:
        await collector.store.imports.finish(batch)
        assert seen(collector, website) == (63, 9)
        await collector.store.imports.undo(website, batch.number)
    assert seen(collector, website) == (3, 3)
    # An import that is under way ends with the process.
    await collector.restart()
    store = collector.store
    await store.imports.finish_removals()
    assert store.spool is not None
    assert store.spool.hidden == {(website.number, batch.number)}
    await collector.append(*views(4, 5))
    await collector.ship()
    await collector.restart()
    store = collector.store
    assert seen(collector, website) == (5, 5)
    assert store.spool is not None
    assert store.spool.hidden == {(website.number, batch.number)}
    pending = [*store.spool.hidden]
    removal = Removal(client, layout)
    assert rows(client) == 65
    assert removal.remove_batches(pending) == []
    until(lambda: (rows(client), rows(client, "visits")) == (5, 0))
    assert removal.remove_batches(pending) == pending
    await store.forget_removed(pending)
    assert store.hidden_batches(website.number) == frozenset()
    assert seen(collector, website) == (5, 5)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_other_collectors_hide_what_the_primary_hides(tmp_path: Path) -> None:
    primary, other = start(tmp_path / "primary"), start(tmp_path / "other")
    website = await primary.add_website("example.com", 1)

    async def follow() -> frozenset[int]:
        with primary.environment.reading() as txn:
            settings = read_shared(txn, primary.environment.databases)
        await other.take_shared(settings, Role(2, Epoch(primary=1)), lambda _: None)
        return other.hidden_batches(website.number)

    assert await follow() == frozenset()
    batch = await begun(primary, website, 1)
    await load(primary, batch)
    assert await follow() == {batch.number}
    await primary.imports.finish(batch)
    assert await follow() == frozenset()
    await primary.imports.undo(website, batch.number)
    assert await follow() == {batch.number}
    await primary.close()
    await other.close()
    # What was hidden when a process ended is hidden in the next one, and by commands.
    again = start(tmp_path / "other")
    assert again.hidden_batches(website.number) == {batch.number}
    await again.close()
    with open_reader(tmp_path / "other") as reader:
        assert reader.hidden_batches(website.number) == {batch.number}
