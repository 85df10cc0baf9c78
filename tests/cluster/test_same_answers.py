"""What the interface answers from the store and from ClickHouse: the same, byte for byte."""

import random
import re
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import pytest
import pytest_twisted
from attrs import frozen
from support.clickhouse.servers import SHARDS, Server
from support.recorded_requests import RECORDED
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, build_server
from support.web.daemon_in_memory import Server as Daemon
from twisted.internet.defer import Deferred

from medamad.alerts.conditions import Looked, look
from medamad.alerts.silence import quiet_since
from medamad.clickhouse.client import Client, Connecting
from medamad.clickhouse.tables import Layout, create_tables
from medamad.cluster.shipper import Shipper
from medamad.demo.sites import SITES
from medamad.demo.traffic import TrafficPlan, fill
from medamad.domain.alerts import Cause, Facts, Rule
from medamad.domain.goals import Definitions
from medamad.domain.hits import View
from medamad.lookup.referrers import Sources
from medamad.query.clickhouse.engine import ClickHouseEngine
from medamad.query.embedded.engine import EmbeddedEngine
from medamad.query.engine import Engine
from medamad.query.reader import Reader
from medamad.query.reports import STATISTICS
from medamad.query.request import Cancellation
from medamad.storage.spool import Spool
from medamad.transfer import cluster_export

COLLECTOR = 5
SITE = SITES[1]
FILTERS = (
    (),
    ("path[starts_with]=/shop", "browser[neq]=Firefox"),
    ("referrer[contains]=goo",),
    ("country=Germany", "visit_views[gte]=2"),
    ("entry_page=/", "visit_bounce=false"),
    ("prop_name[contains]=a",),
    ("duration[gte]=5000", "language[not_in]=German,French"),
    ("visitor=new",),
    ("goal=<goal>", "exit_page[neq]=/"),
    ("hosting=true", "country[neq]=Brazil"),
    ("hosting[eq]=false",),
    ("path=/nowhere",),
)
PERIODS = (
    (),
    ("start=2025-06-01T00:00:00%2B02:00", "end=2025-06-14T23:59:59%2B02:00"),
    ("start=2025-03-30T00:00:00%2B01:00", "end=2025-04-02T11:30:00%2B02:00"),
    ("end=2025-05-01T00:00:00Z",),
    ("start=2025-06-14T15:00:00.5Z",),
)
OPTIONS = ("limit=3", "offset=1", "visits=true", "views=true", "summary=true", "order=visits")
LISTS = tuple(each.name for each in STATISTICS)


def recorded() -> Iterator[str]:
    """Return the paths of recorded requests for statistics, of the only website."""
    for each in RECORDED.values():
        for ask in each.asked:
            asks = re.match(r"/api/website/[^/]+/(?!export|ignored)(.*)", ask.path)
            if ask.method == "GET" and asks is not None:
                yield f"/api/website/{SITE.hostname}/{asks[1]}"


@frozen(eq=False)
class Both:
    """A daemon, and the engines that it can ask."""

    daemon: Daemon
    owner: Browser
    engines: tuple[Engine, Engine]
    is_sharded: bool
    """Shards get half of what one server is asked at random, which takes twice as long there."""

    async def ask(self, path: str) -> Answer:
        """Return the answer from the cluster, which is that from the store."""
        answers = []
        for engine in self.engines:
            self.daemon.site.backend.engine = engine
            answers.append(await self.owner.ask("GET", path))
        stored, found = answers
        assert found.status == stored.status, path
        assert found.body == stored.body, path
        partial = "X-Medamad-Partial"
        assert found.header(partial) == stored.header(partial), path
        return found


def finish(of: Any) -> Any:
    return pytest_twisted.blockon(Deferred.fromCoroutine(of))


async def fill_store(daemon: Daemon) -> None:
    """Store traffic of months, views that belong to no visit, and a flood of an hour."""
    plan = TrafficPlan(until_ms=NOW * 1000, days=140, views=2_000)
    (website,) = await fill(daemon.store, plan, (SITE,))
    for number in range(20):
        view = View(
            website=website.number,
            time_ms=NOW * 1000 - number * 3_600_000,
            beacon=f"without a visit {number}",
            first_today=number % 2 == 0,
            first_of_page=True,
            path="/of no visit",
        )
        await daemon.store.append([view])
    await daemon.store.append(list(busy_hours(website.number)))
    flood = [
        View(
            website=website.number,
            time_ms=(NOW - NOW % 3_600 - 100 * 3_600) * 1000 + number * 10_000,
            beacon=f"flood {number}",
            first_today=True,
            path="/",
            browser="Chrome",
            os="Windows",
            device="Desktop",
            locale="en-GB",
            country=("SG", "BR")[number % 2],
            hosting=number % 3 > 0,
            identity=f"flood {number}".encode(),
        )
        for number in range(150)
    ]
    await daemon.store.append(flood)


@pytest.fixture(scope="module", params=["one server", "two shards"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    if request.param == "one server":
        server: Server = request.getfixturevalue("server")
        client = server.client("same_answers")
        create_tables(client, layout := Layout())
    else:
        shards: tuple[Server, Server] = request.getfixturevalue("shards")
        layout = SHARDS
        for each in shards:
            create_tables(each.client("same_answers"), layout)
        client = shards[0].client("same_answers")
    daemon = finish(build_server(tmp_path_factory.mktemp("daemon")))
    finish(fill_store(daemon))
    shipper = Shipper(
        store=daemon.store,
        spool=Spool(72),
        client=client,
        layout=layout,
        collector=COLLECTOR,
        now_ms=lambda: NOW * 1000,
    )
    assert sum(shipper.resend(0)) > 2_000
    engines = (EmbeddedEngine(daemon.store), ClickHouseEngine(client))
    yield Both(daemon, finish(daemon.owner()), engines, layout is SHARDS)
    finish(daemon.store.close())


@pytest_twisted.ensureDeferred
async def test_recorded_requests_have_the_same_answers(both: Both) -> None:
    goals = both.daemon.store.goals.of(1)
    filled = 0
    for path in dict.fromkeys(recorded()):
        asked = path.replace("<funnel>", goals.funnels[0].id)
        asked = re.sub("<(page|order)>", goals.goals[0].id, asked)
        asked = re.sub("<day-[0-9]>", "2025-06-12", asked)
        found = await both.ask(asked)
        filled += found.status == 200 and len(found.body) > 2
    assert filled > 50


def random_path(rng: random.Random, goal: str) -> str:
    """Return the path of a request for a statistic."""
    kind = rng.random()
    asked = [*rng.choice(PERIODS), *rng.choice(FILTERS)]
    if kind < 0.2:
        asked += rng.sample(("visits=true", "interval=day", "timezone=Europe/Berlin"), 2)
        if asked[0].startswith("start") and asked[1].startswith("end"):
            asked.append("previous=true")
        name = "summary"
    elif kind < 0.3:
        asked += rng.sample(("interval=week", "timezone=America/New_York"), rng.randint(0, 2))
        name = "goals"
    elif kind < 0.35:
        name = "changes"
    elif kind < 0.4:
        name, asked = rng.choice(("next", "previous")), [*asked, "of=/"]
    else:
        name = rng.choice(LISTS)
        asked += rng.sample(OPTIONS, rng.randint(0, 3))
        if rng.random() < 0.3:
            asked.append(f"conversions={goal}")
    query = "&".join(asked).replace("<goal>", goal)
    return f"/api/website/{SITE.hostname}/{name}?{query}"


HOUR = 3_600_000
BUSY_MS = NOW * 1000 // HOUR * HOUR - 24 * HOUR
"""When an hour began that had more views than the same hour of the weeks before."""


def busy_hours(website: int) -> Iterator[View]:
    """Return views of an hour, fewer of it in earlier weeks, and views of the next one in these."""
    for week in range(9):
        for hour, count in enumerate((50, 50) if week else (150, 0)):
            begun_ms = BUSY_MS - week * 7 * 24 * HOUR + hour * HOUR
            for number in range(count):
                yield View(
                    website=website,
                    time_ms=begun_ms + number * HOUR // count,
                    beacon=f"busy {week} {hour} {number}",
                    first_today=True,
                    first_of_page=True,
                    path="/busy",
                )


@pytest_twisted.ensureDeferred
async def test_alerts_find_the_same(both: Both) -> None:
    (website,) = both.daemon.store.websites.all()

    def found(now_ms: int) -> list[dict[str, Facts]]:
        """Return what the rules of hours and of silence find, by kind."""

        def ask(reader: Reader) -> dict[str, Facts]:
            quiet_ms = quiet_since(reader, now_ms, 0)
            looked = Looked(
                now_ms=now_ms,
                listening_since_ms=0,
                quiet_since=None if quiet_ms is None else quiet_ms // 1000,
                zone=UTC,
                definitions=Definitions(),
                keeps_visits=True,
            )
            rules = [
                Rule(id=kind, kind=kind, threshold=threshold, causes=causes)
                for kind, threshold, causes in (
                    ("spike", 50, ()),
                    ("drop", 50, ()),
                    ("quiet", None, (Cause("", 0, {"last": NOW - 3_600}),)),
                )
            ]
            return {kind: findings.facts for kind, findings in look(reader, rules, looked).items()}

        return [engine.read(website, Sources({}), Cancellation(), ask) for engine in both.engines]

    stored, shipped = found(BUSY_MS + HOUR)
    assert stored == shipped
    assert stored["spike"][""]["views"] >= 150
    assert stored["drop"] == stored["quiet"] == {}
    stored, shipped = found(BUSY_MS + 2 * HOUR)
    assert stored == shipped
    assert stored["drop"][""]["percent"] > 90
    stored, shipped = found(BUSY_MS + 7 * 24 * HOUR)
    assert stored == shipped
    assert NOW - 3_600 <= stored["quiet"][""]["last"] <= NOW


@pytest.mark.parametrize("count", [60, pytest.param(3_000, marks=pytest.mark.slow)])
@pytest_twisted.ensureDeferred
async def test_random_requests_have_the_same_answers(both: Both, count: int) -> None:
    rng = random.Random(count)  # noqa: S311 - the same each time
    goals = both.daemon.store.goals.of(1).goals
    for _ in range(count // 2 if both.is_sharded else count):
        await both.ask(random_path(rng, rng.choice(goals).id))


@pytest_twisted.ensureDeferred
async def test_a_flood_is_suggested_by_both(both: Both) -> None:
    found = await both.ask(f"/api/websites/{SITE.hostname}/suggestions")
    (flood,) = found.json
    assert flood["filters"] == "country[in]=Brazil%2CSingapore"
    assert (flood["visits"], flood["views"]) == (150, 150)


@pytest_twisted.ensureDeferred
async def test_the_list_of_websites_has_the_same_visitors(both: Both) -> None:
    found = await both.ask("/api/websites?summary=true")
    assert found.json[0]["summary"]["visitors"] > 0  # type: ignore[index]


@pytest_twisted.ensureDeferred
async def test_a_server_that_is_down_is_an_error_for_now(both: Both) -> None:
    client = Client(Connecting(urls=["http://127.0.0.1:1"]))
    both.daemon.site.backend.engine = ClickHouseEngine(client)
    found = await both.owner.ask("GET", f"/api/website/{SITE.hostname}/pages")
    assert found.status == 503
    assert found.header("Retry-After") == "10"
    assert found.error == "the cluster does not answer at the moment"


@pytest.mark.parametrize("what", ["views", "events", "statistics"])
@pytest_twisted.ensureDeferred
async def test_an_export_from_a_server_that_is_down_is_an_error_for_now(
    both: Both, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(both.daemon.store, "spool", Spool(72))
    client = Client(Connecting(urls=["http://127.0.0.1:1"]))
    both.daemon.site.backend.engine = ClickHouseEngine(client)
    found = await both.owner.ask("GET", f"/api/website/{SITE.hostname}/export?what={what}")
    assert (found.status, found.header("Retry-After")) == (503, "10")


@pytest.mark.parametrize("what", ["views", "events", "statistics"])
@pytest.mark.parametrize("period", ["", "&start=2025-03-01T00:00:00Z&end=2025-04-30T23:59:59Z"])
@pytest_twisted.ensureDeferred
async def test_an_export_has_the_same_rows(
    both: Both, monkeypatch: pytest.MonkeyPatch, what: str, period: str
) -> None:
    # The pieces of an export are many here.
    monkeypatch.setattr(cluster_export, "STEP_ROWS", 300)
    path = f"/api/website/{SITE.hostname}/export?what={what}{period}"
    files = []
    for engine, spool in zip(both.engines, (None, Spool(72)), strict=True):
        monkeypatch.setattr(both.daemon.store, "spool", spool)
        both.daemon.site.backend.engine = engine
        found = await both.owner.ask("GET", path)
        assert found.status == 200
        rows = found.body.split(b"\n")
        # Views and events come in another order: visit by visit.
        files.append(rows if what == "statistics" else sorted(rows))
    assert files[0] == files[1]
    assert len(files[0]) > 20
