"""Every statistic over random hits in ClickHouse, compared with the naive oracle."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC
from itertools import count, product
from zoneinfo import ZoneInfo

import pytest
from attrs import define, field
from support.clickhouse.rows import AWKWARD, send
from support.clickhouse.servers import SHARDS, Server
from support.query.hits import NOON, event, view
from support.query.oracle import Entry, Oracle
from support.query.random_queries import GOALS, INTERVALS, MOMENTS, VALUES, ZONES, RandomTraffic
from support.query.snapshots import ENDPOINTS, GOAL_ENDPOINTS, SOURCES, answer, query_from

from medamad.clickhouse.client import Client
from medamad.clickhouse.tables import Layout, create_tables, day_of
from medamad.cluster.settling import Settling, touch
from medamad.query.clickhouse.engine import ClickHouseEngine
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.query.exclusions import left_out_by_day
from medamad.query.filters import FIELDS
from medamad.query.request import Cancellation, Query

DATABASE = "against_oracle"
MOST_WEBSITES = 8
"""How many websites have rows at a time."""
ALL = [*ENDPOINTS, *GOAL_ENDPOINTS]
AT_ONCE = 8
"""How many statistics are asked for of the same hits."""


@define(eq=False)
class Cluster:
    """Tables in which each example has a website of its own, and the servers that have them."""

    client: Client
    engine: ClickHouseEngine
    servers: Sequence[Client]
    suffix: str
    is_sharded: bool
    """Shards get half of what one server is asked: the same statements, in twice the time."""
    numbers: Iterator[int] = field(factory=lambda: count(1))

    def next_website(self) -> int:
        """Return the number of a website. There are few others: each has parts, which add up."""
        number = next(self.numbers)
        # No website has settled days of its own.
        names = ("days",) if number % MOST_WEBSITES else ("days", "views", "events", "visits")
        for client, name in product(self.servers, names):
            client.run(f"TRUNCATE TABLE {client.table(name + self.suffix)}")
        return number

    def reader(self, website: int, rules: Sequence[Query] = ()) -> ClickHouseReader:
        return self.engine.reader(website, SOURCES, Cancellation(), rules)


@pytest.fixture(scope="module", params=["one server", "two shards"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == "one server":
        servers: tuple[Server, ...] = (request.getfixturevalue("server"),)
        layout, suffix = Layout(), ""
    else:
        servers = request.getfixturevalue("shards")
        layout, suffix = SHARDS, "_local"
    clients = [each.client(DATABASE) for each in servers]
    for client in clients:
        create_tables(client, layout)
    return Cluster(clients[0], ClickHouseEngine(clients[0]), clients, suffix, len(clients) > 1)


def check(
    cluster: Cluster,
    traffic: RandomTraffic,
    sizes: tuple[int, int],
    endpoints: list[str],
    rules: int = 0,
) -> None:
    """Compare some statistics of the same hits, each with a query of its own."""
    rng = traffic.rng
    views = traffic.views(sizes[0])
    events = traffic.events(sizes[1], views)
    now_ms = traffic.now_ms
    website = cluster.next_website()
    client, settling = cluster.client, Settling(cluster.client)
    every_day = sorted({day_of(each["time_ms"]) for each in (*views, *events)})
    days = rng.sample(every_day, min(len(every_day), 3))
    if rng.random() < 0.5:
        # Some visits, and of the others nothing yet.
        known = [each for each in views if (each.get("visit") or each["id"]) % 2]
        send(client, website, known, [], rng)
        for day in days:
            settling.settle(day)
        touch(client, days, max(days, default=0) + 10)
    send(client, website, views, events, rng)
    for day in days:
        if rng.random() < 0.5:
            settling.settle(day)
    for endpoint in endpoints:
        query = traffic.query(endpoint)
        name = rng.choice([None, *ZONES[:2], dict(query).get("timezone")])
        zone = None if name is None else ZoneInfo(name)
        oracle = Oracle(
            views,
            events,
            source_of=SOURCES.name_of,
            now_ms=now_ms,
            goals=GOALS,
            returning_zone=zone,
        )
        left_out = [traffic.rule() for _ in range(rules)]
        reader = cluster.reader(website, list(map(query_from, left_out)))
        found = answer(reader, endpoint, query, now_ms=now_ms, returning_zone=zone)
        expected = oracle.without(left_out).answer(endpoint, query)
        assert found == expected, (endpoint, query, left_out)


LONG = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 200)]


@pytest.mark.parametrize("seed", [0, *LONG])
def test_random_queries_match_the_oracle(cluster: Cluster, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same each time
    for moment in MOMENTS:
        traffic = RandomTraffic(rng, moment, rng.choice(INTERVALS))
        endpoints = rng.sample(ALL, 3 if cluster.is_sharded else 6)
        check(cluster, traffic, (rng.randint(0, 60), rng.randint(0, 30)), endpoints)


@pytest.mark.parametrize("begin", range(0, len(ALL), AT_ONCE))
def test_random_queries_of_each_statistic_match_the_oracle(cluster: Cluster, begin: int) -> None:
    rng = random.Random(begin)  # noqa: S311
    traffic = RandomTraffic(rng, rng.choice(MOMENTS), "day")
    times = 1 if cluster.is_sharded else 2
    check(cluster, traffic, (200, 60), ALL[begin : begin + AT_ONCE] * times)


@pytest.mark.parametrize("at_once", [AT_ONCE, pytest.param(1, marks=pytest.mark.slow)])
def test_what_rules_leave_out_is_in_no_statistic(cluster: Cluster, at_once: int) -> None:
    rng = random.Random("rules")  # noqa: S311
    for begin in range(0, len(ALL), at_once):
        traffic = RandomTraffic(rng, rng.choice(MOMENTS), "day")
        endpoints = ALL[begin : begin + at_once : 2 if cluster.is_sharded else 1]
        check(cluster, traffic, (100, 40), endpoints, 1 + begin // at_once % 3)


def test_what_each_rule_leaves_out_is_known(cluster: Cluster) -> None:
    rng, left_out = random.Random(5), 0  # noqa: S311
    traffic = RandomTraffic(rng, MOMENTS[0], "day")
    views = traffic.views(80)
    events = traffic.events(30, views)
    website = cluster.next_website()
    send(cluster.client, website, views, events, rng)
    whole = Oracle(views, events, source_of=SOURCES.name_of, now_ms=0, goals=GOALS)
    for rule in (traffic.rule() for _ in range(8)):
        kept = {view["id"] for view in whole.without([rule]).views}
        gone = [view for view in whole.views if view["id"] not in kept]
        reader = cluster.reader(website, [query_from(traffic.rule())])
        found = left_out_by_day(reader, query_from(rule), UTC, has_visits=True)
        assert found["views"] == len(gone) == sum(day["views"] for day in found["interval"])
        assert found["visits"] == len({view["visit"] for view in gone} - {0})
        left_out += len(gone)
    assert left_out


def awkward_hits() -> tuple[list[Entry], list[Entry]]:
    """Return views that have each text in every place, each with an event that has it."""
    views = [
        {
            **view(number, "pq", 1000),
            **dict.fromkeys(VALUES, text),
            "visit": number,
        }
        for number, text in enumerate(AWKWARD, 1)
    ]
    # NUL divides the name of a property from its value, so neither can have it.
    events = [
        event(number, number, **{text.replace("\0", "") or "x": text.replace("\0", "")})
        for number, text in enumerate(AWKWARD, 1)
    ]
    return views, events


def test_awkward_texts_pass_through_every_filter(cluster: Cluster) -> None:
    views, events = awkward_hits()
    website = cluster.next_website()
    send(cluster.client, website, views, events, random.Random(1))  # noqa: S311
    oracle = Oracle(views, events, source_of=SOURCES.name_of, now_ms=NOON, goals=GOALS)
    # Each field has each of these with some texts.
    kinds = list(product(("eq", "not_contains", "in"), ("pages", "properties", "entries")))
    for place, text in enumerate(AWKWARD):
        reader, found = cluster.reader(website), 0
        # The shards get texts from the server that is asked: each field with one text shows it.
        fields = [*enumerate(FIELDS, place)]
        if cluster.is_sharded:
            fields = [each for each in fields if each[0] % len(AWKWARD) == 0]
        for number, field_name in fields:
            operator, endpoint = kinds[number % len(kinds)]
            # A comma divides the values of a list.
            value = text.partition(",")[0] if operator == "in" else text
            query = [(f"{field_name}[{operator}]", value)]
            rows = answer(reader, endpoint, query, now_ms=NOON)
            assert rows == oracle.answer(endpoint, query), (place, endpoint, field_name, operator)
            found += bool(rows)
        assert found > len(fields) / 3, place


def test_pages_beside_an_awkward_one_are_found(cluster: Cluster) -> None:
    views = [
        {
            **view(number, "pq"),
            "visit": number - place,
            "path": (f"/{begin}", text, "/after")[place],
        }
        for begin, text in zip(range(1, 3 * len(AWKWARD), 3), AWKWARD, strict=True)
        for place, number in enumerate(range(begin, begin + 3))
    ]
    website = cluster.next_website()
    send(cluster.client, website, views, [], random.Random(1))  # noqa: S311
    reader = cluster.reader(website)
    for begin, text in zip(range(1, 3 * len(AWKWARD), 3), AWKWARD, strict=True):
        for endpoint, beside in (("next", "/after"), ("previous", f"/{begin}")):
            (row,) = answer(reader, endpoint, [("of", text)])
            assert (row["path"], row["views"]) == (beside, 1)
