"""Which days are settled. What is answered of them is compared with the oracle elsewhere."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from support.clickhouse.collector import Collector, start
from support.clickhouse.daemon import initialized
from support.clickhouse.servers import Server
from support.daemon import HIT, Daemon, until
from support.daemon import Client as Asking
from support.query.snapshots import SOURCES, answer, query_from
from support.storage.hits import DAY_MS, NOW_MS, a_view, event, unload

from medamad.clickhouse.client import Client
from medamad.clickhouse.native import Columns
from medamad.clickhouse.tables import Layout, create_tables, day_of, settled_days
from medamad.cluster.settling import Settling
from medamad.query.clickhouse import left_out
from medamad.query.clickhouse import reader as clickhouse_reader
from medamad.query.clickhouse.engine import ClickHouseEngine
from medamad.query.request import Cancellation

TODAY = day_of(NOW_MS)
HERE = {"identity": b"somebody", "width_px": 1000}


@pytest_twisted.async_yield_fixture
async def collector(server: Server, tmp_path: Path) -> AsyncIterator[Collector]:
    client = server.client(f"settling_{tmp_path.name}")
    create_tables(client, Layout())
    made = Collector(start(tmp_path), client)
    await made.store.add_website("example.com", 1)
    yield made
    await made.store.close()


def visits(collector: Collector) -> list[tuple[str, ...]]:
    return collector.rows_of(
        "visits", "visit", "path", "exit_path", "views", "visible_ms", "engaged"
    )


@pytest_twisted.ensureDeferred
async def test_a_day_is_settled_once_nothing_more_of_it_can_arrive(collector: Collector) -> None:
    for days in range(8):
        await collector.append(a_view(time_ms=NOW_MS - days * DAY_MS))
    await collector.ship()
    settling = Settling(collector.client)
    assert settling.due(TODAY) == [TODAY - days for days in (7, 6, 5, 4)]
    settling.settle(TODAY - 5)
    assert [*settled_days(collector.client)] == [TODAY - 5]
    assert settling.due(TODAY) == [TODAY - days for days in (7, 6, 4)]


@pytest_twisted.ensureDeferred
async def test_a_settled_visit_has_the_sums_of_its_views(collector: Collector) -> None:
    then_ms = NOW_MS - 10 * DAY_MS
    await collector.append(
        a_view(beacon="b1", path="/in", time_ms=then_ms, **HERE),
        a_view(
            beacon="b2",
            path="/out",
            time_ms=then_ms + 60_000,
            first_today=False,
            from_page="/in",
            **HERE,
        ),
        unload(1, 5_000, then_ms + 60_000),
        unload(2, 2_000, then_ms + 70_000),
        a_view(path="/alone", time_ms=then_ms, identity=b"another", width_px=1000),
    )
    await collector.ship()
    Settling(collector.client).settle(day_of(then_ms))
    expected = [("/in", "/out", "2", "7000", "0"), ("/alone", "/alone", "1", "0", "0")]
    assert visits(collector) == expected


@pytest_twisted.ensureDeferred
async def test_a_day_that_hits_are_sent_of_is_settled_anew(collector: Collector) -> None:
    then_ms = NOW_MS - 10 * DAY_MS
    day, settling = day_of(then_ms), Settling(collector.client)
    await collector.append(a_view(beacon="b1", path="/a", time_ms=then_ms, **HERE))
    await collector.ship()
    settling.settle(day)
    assert settling.due(TODAY) == []
    # It waited somewhere.
    await collector.append(unload(1, 3_000, then_ms + 10_000), event("b1", then_ms + 5_000))
    await collector.ship()
    assert [*settled_days(collector.client)] == []
    assert visits(collector) == [("/a", "/a", "1", "0", "0")]
    assert settling.due(TODAY) == [day]
    settling.settle(day)
    assert visits(collector) == [("/a", "/a", "1", "3000", "1")]
    assert [*settled_days(collector.client)] == [day]


@pytest_twisted.ensureDeferred
async def test_what_is_sent_while_a_day_is_settled_is_not_forgotten(collector: Collector) -> None:
    then_ms = NOW_MS - 10 * DAY_MS
    day, settling = day_of(then_ms), Settling(collector.client)
    await collector.append(a_view(time_ms=then_ms))
    await collector.ship()
    seen = settling.times_touched(day)
    await collector.append(a_view(time_ms=then_ms))
    await collector.ship()
    settling.say_settled(day, seen)
    assert [*settled_days(collector.client)] == []
    assert settling.due(TODAY) == [day]


@pytest_twisted.ensureDeferred
async def test_what_rules_leave_out_of_settled_days_is_kept(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    then_ms, names = NOW_MS - 10 * DAY_MS, count()
    day, settling = day_of(then_ms), Settling(collector.client)
    looked = []
    query = Client.query

    def asked(client: Client, statement: str, **more: Any) -> Columns:
        looked.append(statement.startswith("SELECT DISTINCT visit_day"))
        return query(client, statement, **more)

    async def visit(browser: str) -> None:
        identity = b"%d" % next(names)
        await collector.append(a_view(time_ms=then_ms, browser=browser, identity=identity))
        await collector.ship()

    def browsers(engine: ClickHouseEngine, rule: str) -> tuple[dict[str, int], bool]:
        """Return the views by browser, and whether it was looked for what is left out."""
        looked.clear()
        rules = [query_from([("browser", rule)])]
        reader = engine.reader(1, SOURCES, Cancellation(), rules)
        rows = answer(reader, "browsers", [], now_ms=NOW_MS)
        return {row["browser"]: row["visitors"] for row in rows}, any(looked)

    monkeypatch.setattr(Client, "query", asked)
    engine = ClickHouseEngine(collector.client)
    for browser in ("Chrome", "Firefox", "Firefox"):
        await visit(browser)
    settling.settle(day)
    assert browsers(engine, "Chrome") == ({"Firefox": 2}, True)
    assert browsers(engine, "Chrome") == ({"Firefox": 2}, False)
    assert browsers(engine, "Firefox") == ({"Chrome": 1}, True)
    assert browsers(engine, "Chrome") == ({"Firefox": 2}, True)
    # What is late is left out before and after the day is settled again.
    await visit("Chrome")
    assert browsers(engine, "Chrome") == ({"Firefox": 2}, False)
    settling.settle(day)
    assert browsers(engine, "Chrome") == ({"Firefox": 2}, True)
    assert browsers(engine, "Chrome") == ({"Firefox": 2}, False)
    for module in (left_out, clickhouse_reader):
        monkeypatch.setattr(module, "MOST_VISITS", 1)
    engine = ClickHouseEngine(collector.client)
    assert browsers(engine, "Firefox") == ({"Chrome": 2}, True)
    assert browsers(engine, "Firefox") == ({"Chrome": 2}, False)


def test_a_daemon_settles_days_by_itself(server: Server, tmp_path: Path) -> None:
    cluster = f'[cluster]\nurls = ["{server.url}"]\ndatabase = "settles"\n'
    earlier = "import medamad.daemon.shipping as s; s.SETTLE_S = 0.2; s.day_of = lambda _: 60_000"
    daemon = Daemon(tmp_path, configuration=cluster, before=earlier)
    initialized(daemon)
    daemon.start()
    try:
        daemon.client().add_website("example.com")
        assert Asking(daemon.port).request("POST", "/api/event/hit", HIT).status == 204
        until(lambda: len(settled_days(server.client("settles"))) == 1)
    finally:
        daemon.stop()
