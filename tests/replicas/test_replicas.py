"""Two shards of two replicas, and a ZooKeeper, each of which may die: every hit arrives once."""

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest
from support.clickhouse.daemon import command, initialized, leave, send
from support.clickhouse.replicas import CLUSTER, MISSING, PASSWORD, Node, Replicas, replicas
from support.daemon import Daemon, until

from medamad.clickhouse.client import Client, Connecting, Refused, Unavailable
from medamad.clickhouse.native import Values
from medamad.clickhouse.tables import VIEWS, Layout, create_tables, insert
from medamad.cluster.removal import Removal

pytestmark = [
    pytest.mark.daemon,
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
]
QUORUM = {"insert_quorum": 2, "insert_quorum_timeout": 5_000, "insert_deduplicate": 0}
NO_QUORUM = {"insert_deduplicate": 0}
CONFIGURED = """
[cluster]
urls = [{urls}]
database = "{database}"
name = "{cluster}"
collector = 2
"""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Replicas]:
    # Each test has its own: after some kills, servers of this version make no more tables.
    with replicas(tmp_path / "servers") as started:
        yield started


@pytest.fixture
def daemon(servers: Replicas, tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(tmp_path / "daemon")
    urls = ", ".join(f'"{url}"' for url in servers.urls)
    found.configuration = CONFIGURED.format(urls=urls, database=database_of(found), cluster=CLUSTER)
    initialized(found)
    found.start()
    found.client().add_website("example.com")
    yield found
    if found.is_running:
        found.stop()


def database_of(daemon: Daemon) -> str:
    return f"of_port_{daemon.port}"


def made(servers: Replicas, database: str) -> Client:
    client = servers.client(database)
    # These old servers may all close the connection of a statement of the whole cluster.
    until(lambda: succeeds(lambda: create_tables(client, Layout(CLUSTER))))
    return client


def views(numbers: Sequence[int], duration_ms: int = 0) -> dict[str, Values]:
    """Return views, the path of each of which is its number."""
    given: dict[str, Values] = {
        name: [""] * len(numbers) if type_ == "String" else np.zeros(len(numbers), np.int64)
        for name, type_ in VIEWS.types.items()
    }
    return given | {
        "website": [1] * len(numbers),
        "view": list(numbers),
        "path": [f"/{number}" for number in numbers],
        "duration_ms": [duration_ms] * len(numbers),
    }


def on(servers: Replicas, database: str, *nodes: Node) -> list[dict[str, int]]:
    """Return the durations that each of some servers has, by path; fails if a path is twice."""
    found = []
    for node in nodes or servers.nodes:
        client = servers.client(database, node)
        rows = client.query(f"SELECT path, duration_ms FROM {client.table('views_local')} FINAL")
        client.close()
        paths = rows.get("path", [])
        assert len(set(paths)) == len(paths)
        found.append(dict(zip(paths, map(int, rows.get("duration_ms", [])), strict=True)))
    return found


def replicas_have(servers: Replicas, database: str, expected: dict[str, int]) -> bool:
    """Return whether both replicas have the same, and both shards together what is expected."""
    try:
        first, of_first, second, of_second = on(servers, database)
    except Unavailable:
        return False
    assert not first.keys() & second.keys()
    return first == of_first and second == of_second and first | second == expected


def test_a_row_is_on_both_replicas_of_one_shard(servers: Replicas) -> None:
    client = made(servers, "both")
    insert(client, VIEWS, views(range(1, 101)), **QUORUM)
    insert(client, VIEWS, views(range(1, 101)), **QUORUM)
    expected = {f"/{number}": 0 for number in range(1, 101)}
    assert replicas_have(servers, "both", expected)
    assert all(on(servers, "both"))
    # The collectors' user is the one of the example.
    for password in (PASSWORD, "another"):
        asked = Client(
            Connecting(urls=servers.urls, database="both", password=password, user="medamad")
        )
        with nullcontext() if password == PASSWORD else pytest.raises(Refused, match="password"):
            assert asked.query(f"SELECT count() AS n FROM {asked.table('views')} FINAL")["n"] == 100
        asked.close()


def test_without_a_replica_only_inserts_without_quorum_succeed(servers: Replicas) -> None:
    client = made(servers, "one_down")
    insert(client, VIEWS, views(range(1, 11), 300), **QUORUM)
    dead = servers.nodes[1]
    dead.kill()
    # Until ZooKeeper has noticed, the servers wait for the dead one in vain.
    with pytest.raises(Unavailable) as caught:
        insert(client, VIEWS, views(range(1, 21), 200), **QUORUM)
    assert caught.value.code in (285, 286, 319)
    insert(client, VIEWS, views(range(1, 21), 200), **NO_QUORUM)
    expected = {f"/{number}": 300 if number <= 10 else 200 for number in range(1, 21)}
    first, second, same = on(servers, "one_down", *(servers.nodes[each] for each in (0, 2, 3)))
    assert first | second == expected
    assert second == same
    (read,) = client.query(f"SELECT count() AS n FROM {client.table('views')} FINAL")["n"]
    assert read == 20
    servers.start()
    until(lambda: replicas_have(servers, "one_down", expected))
    until(lambda: succeeds(lambda: insert(client, VIEWS, views(range(1, 21), 400), **QUORUM)))
    assert replicas_have(servers, "one_down", dict.fromkeys(expected, 400))


def succeeds(run: Callable[[], None]) -> bool:
    with suppress(Unavailable):
        run()
        return True
    return False


def test_each_shard_gets_one_deletion_after_the_other(servers: Replicas) -> None:
    """These servers may take minutes to do it, unlike those of `tests/cluster/test_removal.py`."""
    client = made(servers, "deleted")
    insert(client, VIEWS, views(range(1, 101)), **QUORUM)
    removal = Removal(client, Layout(CLUSTER))
    clients = [servers.client("deleted", node) for node in servers.nodes]
    asked = "SELECT table, command FROM system.mutations WHERE database = 'deleted'"
    for _ in range(3):
        assert not removal.remove_websites([1])
        until(lambda: all(each.query(asked) for each in clients))
    for each in clients:
        found = each.query(asked)
        assert found == {"table": ["views_local"], "command": ["DELETE WHERE website IN 1"]}
    for each in clients:
        each.close()


def test_without_zookeeper_inserts_are_refused(servers: Replicas) -> None:
    client = made(servers, "no_zookeeper")
    insert(client, VIEWS, views([1]), **QUORUM)
    servers.zookeeper.kill()
    with pytest.raises(Unavailable):
        insert(client, VIEWS, views([1, 2]), **NO_QUORUM)
    servers.start()
    until(lambda: succeeds(lambda: insert(client, VIEWS, views([1, 2], 7), **QUORUM)))
    until(lambda: replicas_have(servers, "no_zookeeper", {"/1": 7, "/2": 7}))


def test_without_a_shard_nothing_is_read(servers: Replicas) -> None:
    client = made(servers, "no_shard")
    insert(client, VIEWS, views(range(1, 21)), **QUORUM)
    for node in servers.nodes[2:]:
        node.kill()
    for attempt in (
        lambda: client.query(f"SELECT count() FROM {client.table('views')}"),
        lambda: insert(client, VIEWS, views(range(1, 41)), **NO_QUORUM),
    ):
        with pytest.raises(Unavailable):
            attempt()
    servers.start()
    expected = {f"/{number}": 0 for number in range(1, 41)}
    insert(client, VIEWS, views(range(1, 41)), **NO_QUORUM)
    until(lambda: replicas_have(servers, "no_shard", expected))


def test_a_row_whose_answer_was_cut_is_there_once(servers: Replicas) -> None:
    client = made(servers, "cut")
    expected = {}
    for node in servers.nodes:
        node.proxy.cuts = 0.7
    for first in range(1, 200, 10):
        numbers = range(first, first + 10)
        until(lambda n=numbers: succeeds(lambda: insert(client, VIEWS, views(n), **QUORUM)))
        expected |= {f"/{number}": 0 for number in numbers}
    assert sum(node.proxy.cut for node in servers.nodes) > 10
    for node in servers.nodes:
        node.proxy.cuts = 0.0
    until(lambda: replicas_have(servers, "cut", expected))


def test_what_one_replica_has_is_sent_again_to_both(servers: Replicas, daemon: Daemon) -> None:
    send(daemon, 1)
    database = database_of(daemon)
    until(lambda: replicas_have(servers, database, {"/1": 0}))
    for node in (servers.nodes[0], servers.nodes[2]):
        node.kill()
    expected = {f"/{number}": 0 for number in range(1, 21)}
    for number in range(2, 21):
        send(daemon, number)
    there = (servers.nodes[1], servers.nodes[3])
    until(lambda: (found := on(servers, database, *there))[0] | found[1] == expected)
    until(lambda: unsafe(daemon) > 0)
    servers.start()
    until(lambda: unsafe(daemon) == 0)
    assert replicas_have(servers, database, expected)


def unsafe(daemon: Daemon) -> int:
    found: int = json.loads(command(daemon, "status", "--json")[1])["unsafe"]
    return found


def play(rounds: int, chance: random.Random, servers: Replicas, daemon: Daemon) -> None:
    """Send hits while something dies in each round, and find each hit once on two servers."""
    expected: dict[str, int] = {}
    for _ in range(rounds):
        hurt(chance, servers, daemon)
        first = len(expected) + 1
        for number in range(first, first + chance.randrange(1, 40)):
            send(daemon, number)
            expected[f"/{number}"] = 0
        for _ in range(chance.randrange(20)):
            number, duration_ms = chance.randrange(1, len(expected) + 1), chance.randrange(1, 9_000)
            leave(daemon, number, duration_ms)
            expected[f"/{number}"] = max(expected[f"/{number}"], duration_ms)
        # What dies next dies while hits are sent, or before.
        time.sleep(chance.choice([0.0, 0.3, 1.2]))
        if chance.random() < 0.3:
            heal(servers)
    heal(servers)
    until(lambda: replicas_have(servers, database_of(daemon), expected))
    until(lambda: unsafe(daemon) == 0)


def hurt(chance: random.Random, servers: Replicas, daemon: Daemon) -> None:
    match chance.choice(["replica", "replica", "shard", "ZooKeeper", "daemon", "cut"]):
        case "replica":
            chance.choice(servers.nodes).kill()
        case "shard":
            first = chance.choice([0, 2])
            for node in servers.nodes[first : first + 2]:
                node.kill()
        case "ZooKeeper":
            servers.zookeeper.kill()
        case "daemon":
            daemon.kill()
            daemon.start()
        case "cut":
            for node in servers.nodes:
                node.proxy.cuts = chance.choice([0.2, 0.5])


def heal(servers: Replicas) -> None:
    for node in servers.nodes:
        node.proxy.cuts = 0.0
    servers.start()


def test_every_acknowledged_hit_is_on_two_replicas_once(servers: Replicas, daemon: Daemon) -> None:
    play(10, random.Random(3), servers, daemon)  # noqa: S311


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_every_acknowledged_hit_is_on_two_replicas_once_in_many_rounds(
    servers: Replicas, daemon: Daemon, seed: int
) -> None:
    play(10, random.Random(seed), servers, daemon)  # noqa: S311
