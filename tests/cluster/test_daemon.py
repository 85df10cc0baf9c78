"""The real daemon with a cluster: hits over HTTP, and the commands."""

import json
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import pytest
from support.clickhouse.daemon import command, durations, initialized, leave, send
from support.clickhouse.servers import CLUSTER, Server, servers
from support.daemon import HIT, Client, Daemon, finished, finished_fork, until
from support.transfer.day_files import HOST, Plausible

from medamad.clickhouse import client as clickhouse
from medamad.query.reports import STATISTICS

CONFIGURED = """
[cluster]
urls = [{urls}]
database = "{database}"
collector = 7
"""

pytestmark = pytest.mark.daemon


PRINTING_MODULES = (
    sys.executable,
    "-c",
    """import atexit, sys
from medamad.cli import main
atexit.register(lambda: print("MODULES", *sys.modules))
sys.exit(main())""",
)


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
    until(lambda: not json.loads(command(daemon, "status", "--json")[1])["waiting"])
    status, printed, _ = command(daemon, "status")
    assert status == 0
    assert printed.startswith("collector    7\nsent         ")
    assert command(daemon, "resend", "--since", "2020-01-01")[1].startswith("20 rows were sent")
    assert durations(client) == expected
    metrics = Client(daemon.port).request("GET", "/metrics").body.decode()
    assert "medamad_cluster_rows_waiting 0.0" in metrics
    assert "medamad_cluster_failures_total 0.0" in metrics
    assert "medamad_cluster_sent_bytes_total 0.0" not in metrics
    assert "degraded" not in Client(daemon.port).get("/health")


def test_views_in_a_followed_log_reach_the_cluster(
    server: Server, daemon: Daemon, tmp_path: Path
) -> None:
    assert command(daemon, "init")[0] == 0
    daemon.start()
    daemon.client().add_website("example.com")
    log = tmp_path / "access.log"
    log.write_text(
        "".join(
            f'192.0.2.{number} - - [05/Oct/2026:10:00:00 +0000] "GET /{number} HTTP/1.1" 200 1'
            f' "-" "{FIREFOX}"\n'
            for number in range(1, 21)
        )
    )
    done = finished(
        "follow", daemon.data, str(log), "--website", "example.com", "--people", "--once"
    )
    assert (done.returncode, done.stderr) == (0, "")
    client = server.client("d_test_views_in_a_followed_log_reach_the_cluster")
    until(lambda: durations(client) == {f"/{number}": 0 for number in range(1, 21)})
    summary = daemon.client().get("/api/website/example.com/summary")["current"]
    assert (summary["pageviews"], summary["visitors"]) == (20, 20)


FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/141.0.0.0 Safari/537.36"
)
PARAMETERS: tuple[dict[str, str], ...] = (
    {},
    {"visits": "true"},
    {"views": "true"},
    {"path[eq]": "/1"},
    {"browser[eq]": "Firefox", "visits": "true"},
)


def browse(daemon: Daemon) -> None:
    """Let five visitors look around: three pages each, some events."""
    client = Client(daemon.port)
    for visitor in range(5):
        agent = FIREFOX if visitor % 2 else CHROME
        headers = {"User-Agent": agent, "Accept-Language": f"{'en,de'[3 * (visitor > 2) :]},fr"}
        for page in range(3):
            beacon = f"v{visitor}p{page}"
            load = HIT | {
                "b": beacon,
                "u": f"https://example.com/{(visitor + page) % 4}?utm_source=s{visitor % 2}",
                "r": "https://search.example/" if page == 0 else f"https://example.com/{page}",
                "p": page == 0,
                "q": page < 2,
            }
            event = {
                "e": "custom",
                "b": beacon,
                "g": "example.com",
                "d": {"clicked": f"c{visitor}"},
            }
            leave_page = {"e": "unload", "b": beacon, "m": 1_000 * visitor + page + 1}
            for body in (load, *([event] if page == 1 else []), leave_page):
                answer = client.request("POST", "/api/event/hit", body, headers)
                assert answer.status == 204, answer


def test_the_figures_are_those_of_a_daemon_without_a_cluster(
    shards: tuple[Server, Server], tmp_path: Path
) -> None:
    text = configured("equal_figures", *shards, more=f'name = "{CLUSTER}"\nreplicated = false\n')
    both = Daemon(tmp_path / "with", configuration=text), Daemon(tmp_path / "without")
    initialized(both[0])
    for daemon in both:
        daemon.start()
    try:
        clients = [daemon.client() for daemon in both]
        for client in clients:
            client.add_website("example.com")
        for daemon in both:
            browse(daemon)
        cluster = shards[0].client("equal_figures")
        until(lambda: len(rows_of(cluster, "events", "event")) == 5)
        lasted = sum(1_000 * visitor + page + 1 for visitor in range(5) for page in range(3))
        until(lambda: sum(rows_of(cluster, "views", "duration_ms")) == lasted)
        names = ("summary", "live", *(statistic.name for statistic in STATISTICS))
        for name, parameters in product(names, PARAMETERS):
            path = f"/api/website/example.com/{name}?{urlencode(parameters)}"
            with_cluster, without = [client.request("GET", path) for client in clients]
            assert with_cluster.status == without.status, (name, parameters)
            assert with_cluster.json == without.json, (name, parameters)
        path = "/api/websites?summary=true"
        summaries = [client.get(path)[0]["summary"] for client in clients]
        assert summaries[0] == summaries[1]
        assert summaries[0]["visitors"] == 5
    finally:
        for daemon in both:
            daemon.stop()


def rows_of(client: clickhouse.Client, table: str, column: str) -> list[int]:
    found = client.query(f"SELECT {column} AS found FROM {client.table(table)} FINAL")
    return [int(number) for number in found.get("found", [])]


def test_statistics_are_unavailable_while_a_shard_is_down(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    with servers(folder, 2) as (first, second):
        text = configured(
            "one_down", first, second, more=f'name = "{CLUSTER}"\nreplicated = false\n'
        )
        daemon = Daemon(tmp_path / "daemon", configuration=text)
        initialized(daemon)
        daemon.start()
        try:
            client, path = daemon.client(), "/api/website/example.com/summary"
            client.add_website("example.com")
            send(daemon, 1)
            until(lambda: client.get(path)["current"]["visitors"] == 1)
            second.kill()
            answer = client.request("GET", path)
            assert answer.status == 503
            assert int(answer.headers["retry-after"]) > 0
            # Also while there is no hit that cannot be sent.
            degraded = Client(daemon.port).get("/health")["degraded"]
            assert degraded == "the cluster did not answer the latest question"
            status, printed, _ = command(daemon, "status")
            assert (status, "Connection refused" in printed) == (1, True)
            send(daemon, 2)
        finally:
            daemon.stop()


def test_no_website_gets_hits_of_one_that_a_backup_lacks(daemon: Daemon, tmp_path: Path) -> None:
    initialized(daemon)
    daemon.start()
    client = daemon.client()
    client.add_website("early.example")
    backup = str(tmp_path / "backup")
    assert finished("backup", daemon.data, backup).returncode == 0
    client.add_website("example.com")
    browse(daemon)
    summary = "/api/website/example.com/summary"
    until(lambda: client.get(summary)["current"]["pageviews"] == 15)
    daemon.stop()
    assert finished("restore", daemon.data, backup).returncode == 0
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    assert client.get(summary)["current"]["pageviews"] == 0
    browse(daemon)
    until(lambda: client.get(summary)["current"]["pageviews"] == 15)
    daemon.stop()


def test_retention_is_that_of_what_the_cluster_has(daemon: Daemon) -> None:
    initialized(daemon)
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    browse(daemon)
    path = "/api/website/example.com/pages"
    until(lambda: sum(row["duration"] for row in client.get(path)) == 30_030)
    here = ["--json", "--data", str(daemon.data)]
    done = finished_fork(["retention", "--raw-days", "10", *here])
    assert done.returncode == 0, done
    (found,) = json.loads(done.stdout)
    assert (found["raw_days"], found["views"], found["due_views"]) == (10, 15, 0)
    assert found["bytes"] > 0
    daemon.stop()
    # The configuration that names the cluster is not given.
    done = finished_fork(["retention", *here])
    assert (done.returncode, "the hits are in a cluster" in done.stderr) == (1, True), done


def test_a_daemon_without_a_cluster_imports_nothing_of_it(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, command=(*PRINTING_MODULES, "run"))
    daemon.start()
    daemon.client().add_website("example.com")
    send(daemon, 1)
    assert daemon.client().get("/api/website/example.com/summary")["current"]["visitors"] == 1
    daemon.stop()
    loaded = daemon.log.partition("MODULES ")[2].split()
    assert "medamad.query.embedded.engine" in loaded
    cluster = ("medamad.cluster", "medamad.clickhouse", "medamad.query.clickhouse")
    assert [name for name in loaded if name.startswith(cluster)] == []


def test_a_store_moves_to_a_cluster_with_its_hits(daemon: Daemon) -> None:
    configuration, daemon.configuration = daemon.configuration, ""
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    browse(daemon)
    paths = [f"/api/website/example.com/{each.name}?visits=true" for each in STATISTICS]
    before = [client.request("GET", path).json for path in paths]
    daemon.stop()
    daemon.configuration = configuration
    initialized(daemon)
    daemon.start()
    earlier = "hits from before [cluster] was set are only on this machine"
    until(lambda: earlier in command(daemon, "status")[1])
    # What goes on meanwhile is not lost or counted twice.
    leave(daemon, 1, 700)
    for rows in (20, 0):
        status, printed, error = command(daemon, "load")
        assert (status, error) == (0, "")
        assert printed.startswith(f"{rows} rows were sent in")
    assert earlier not in command(daemon, "status")[1]
    client = daemon.client()
    assert [client.request("GET", path).json for path in paths] == before


def test_days_of_which_only_totals_are_left_are_not_loaded(daemon: Daemon, tmp_path: Path) -> None:
    configuration, daemon.configuration = daemon.configuration, ""
    daemon.start()
    daemon.client().add_website(HOST)
    export = Plausible()
    done = finished(
        "import", daemon.data, str(export.zip(tmp_path / "export.zip")), "--website", HOST
    )
    assert done.returncode == 0, done
    daemon.stop()
    daemon.configuration = configuration
    initialized(daemon)
    daemon.start()
    until(lambda: command(daemon, "status")[0] == 0)
    status, _, error = command(daemon, "load")
    assert status == 1
    assert "only daily totals are left, which a cluster cannot have: " in error
    assert f"{HOST} ({export.days})." in error
    assert "hits from before" in command(daemon, "status")[1]


def test_a_website_comes_back_from_the_cluster(daemon: Daemon, tmp_path: Path) -> None:
    initialized(daemon)
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    browse(daemon)
    paths = [f"/api/website/example.com/{each.name}?visits=true" for each in STATISTICS]
    # The unloads come last.
    until(lambda: sum(row["duration"] for row in client.get(paths[0])) == 30_030)
    before = [client.request("GET", path).json for path in paths]
    files = []
    for what in ("views", "events"):
        files.append(str(tmp_path / f"{what}.csv"))
        given = ["export", "example.com", "--what", what, "--output", files[-1]]
        done = finished_fork([*given, "--data", str(daemon.data)])
        assert done.returncode == 0, done
    report = ["report", "--website", "example.com", "--week", "2026-W40"]
    done = finished_fork([*report, "--data", str(daemon.data)])
    assert done.returncode == 0, done
    daemon.stop()
    alone = Daemon(tmp_path / "alone")
    alone.start()
    alone.client().add_website("example.com")
    done = finished("import", alone.data, *files, "--website", "example.com")
    assert done.returncode == 0, done
    assert [alone.client().request("GET", path).json for path in paths] == before
    alone.stop()


def test_what_is_in_a_cluster_is_not_exported_from_elsewhere(daemon: Daemon) -> None:
    initialized(daemon)
    daemon.start()
    daemon.client().add_website("example.com")
    until(lambda: "rows since the start" in command(daemon, "status")[1])
    daemon.stop()
    # The configuration that names the cluster is not given.
    done = finished_fork(["export", "example.com", "--data", str(daemon.data)])
    assert (done.returncode, "the hits are in a cluster" in done.stderr) == (1, True), done
