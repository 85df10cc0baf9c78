"""The real daemon with a cluster: hits over HTTP, and the commands."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clickhouse.daemon import command, durations, leave, send
from support.clickhouse.servers import Server
from support.daemon import Client, Daemon, until

CONFIGURED = """
[cluster]
urls = [{urls}]
database = "{database}"
collector = 7
"""


def configured(database: str, *servers: Server, more: str = "") -> str:
    urls = ", ".join(f'"{server.url}"' for server in servers)
    return CONFIGURED.format(urls=urls, database=database) + more


@pytest.fixture
def daemon(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Daemon]:
    database = f"d_{request.node.name}"
    found = Daemon(tmp_path / "daemon", configuration=configured(database, server))
    yield found
    if found.is_running:
        found.stop()


def test_hits_reach_the_cluster(server: Server, daemon: Daemon) -> None:
    assert command(daemon, "init") == (
        0,
        "The database d_test_hits_reach_the_cluster has its tables.\n",
        "",
    )
    daemon.start()
    daemon.client().add_website("example.com")
    for number in range(1, 21):
        send(daemon, number)
    leave(daemon, 3, 4_000)
    client = server.client("d_test_hits_reach_the_cluster")
    expected = {f"/{number}": 4_000 * (number == 3) for number in range(1, 21)}
    until(lambda: durations(client) == expected)
    # A second later, the daemon knows that there is nothing left.
    until(lambda: not json.loads(command(daemon, "status", "--json")[1])["left"])
    status, printed, _ = command(daemon, "status")
    assert status == 0
    assert printed.startswith("collector    7\nsent         ")
    assert command(daemon, "resend", "--since", "2020-01-01")[1].startswith("20 rows were sent")
    assert durations(client) == expected
    metrics = Client(daemon.port).request("GET", "/metrics").body.decode()
    assert "medamad_cluster_rows_waiting 0.0" in metrics
    assert "medamad_cluster_failures_total 0.0" in metrics
    assert "degraded" not in Client(daemon.port).get("/health")
