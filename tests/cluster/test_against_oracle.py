"""Every statistic over random hits in ClickHouse, compared with the naive oracle."""

import random
from collections.abc import Iterator
from itertools import count
from zoneinfo import ZoneInfo

import pytest
from attrs import define, field
from support.clickhouse.rows import send
from support.clickhouse.servers import CLUSTER, Server
from support.query.oracle import Oracle
from support.query.random_queries import GOALS, INTERVALS, MOMENTS, ZONES, RandomTraffic
from support.query.snapshots import ENDPOINTS, GOAL_ENDPOINTS, SOURCES, answer

from medamad.clickhouse.client import Client
from medamad.clickhouse.tables import Layout, create_tables
from medamad.query.clickhouse.engine import ClickHouseEngine
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.query.request import Cancellation

DATABASE = "against_oracle"


@define(eq=False)
class Cluster:
    """Tables in which each example has a website of its own."""

    client: Client
    engine: ClickHouseEngine
    numbers: Iterator[int] = field(factory=lambda: count(1))

    def reader(self, website: int) -> ClickHouseReader:
        return self.engine.reader(website, SOURCES, Cancellation())


def cluster_of(client: Client) -> Cluster:
    return Cluster(client, ClickHouseEngine(client))


@pytest.fixture(scope="module", params=["one server", "two shards"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    if request.param == "one server":
        server: Server = request.getfixturevalue("server")
        client = server.client(DATABASE)
        create_tables(client, Layout())
        return cluster_of(client)
    shards: tuple[Server, Server] = request.getfixturevalue("shards")
    for each in shards:
        create_tables(each.client(DATABASE), Layout(CLUSTER, is_replicated=False))
    return cluster_of(shards[0].client(DATABASE))


def check(
    cluster: Cluster, traffic: RandomTraffic, sizes: tuple[int, int], endpoints: list[str]
) -> None:
    """Compare some statistics of the same hits, each with a query of its own."""
    rng = traffic.rng
    views = traffic.views(sizes[0])
    events = traffic.events(sizes[1], views)
    now_ms = traffic.now_ms
    website = next(cluster.numbers)
    send(cluster.client, website, views, events, rng)
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
        reader = cluster.reader(website)
        found = answer(reader, endpoint, query, now_ms=now_ms, returning_zone=zone)
        assert found == oracle.answer(endpoint, query), (endpoint, query)


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 200))]
)
def test_random_queries_match_the_oracle(cluster: Cluster, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same each time
    for moment in MOMENTS:
        traffic = RandomTraffic(rng, moment, rng.choice(INTERVALS))
        endpoints = rng.sample([*ENDPOINTS, *GOAL_ENDPOINTS], 6)
        check(cluster, traffic, (rng.randint(0, 60), rng.randint(0, 30)), endpoints)


@pytest.mark.parametrize("endpoint", [*ENDPOINTS, *GOAL_ENDPOINTS])
def test_random_queries_of_each_statistic_match_the_oracle(cluster: Cluster, endpoint: str) -> None:
    rng = random.Random(endpoint)  # noqa: S311
    traffic = RandomTraffic(rng, rng.choice(MOMENTS), "day")
    check(cluster, traffic, (200, 60), [endpoint] * 3)
