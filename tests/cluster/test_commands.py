"""`medamad cluster`: what it says if something is wrong."""

from pathlib import Path

import pytest
from support.clickhouse.daemon import command, initialized, send
from support.clickhouse.servers import CLUSTER, SHARDS, Server
from support.daemon import Client, Daemon, free_port, until

from medamad.clickhouse import tables

pytestmark = pytest.mark.daemon


def with_cluster(folder: Path, url: str, more: str = "") -> Daemon:
    return Daemon(folder, configuration=f'[cluster]\nurls = ["{url}"]\n{more}')


def one_line(text: str) -> str:
    return text.replace("\n", " ")


def test_without_a_cluster_there_is_nothing_to_make(tmp_path: Path) -> None:
    status, _, error = command(Daemon(tmp_path), "init")
    assert status == 78
    assert error.endswith("cluster.urls: no server is named\n")


def test_without_a_cluster_there_is_no_state(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    assert command(daemon, "status")[0] == 1
    daemon.start()
    for arguments in (["status"], ["resend", "--since", "2026-01-01"]):
        status, _, error = command(daemon, *arguments)
        assert status == 1
        assert "the daemon has no [cluster] in its configuration" in error
    daemon.stop()


def test_no_server_answers(tmp_path: Path) -> None:
    status, _, error = command(with_cluster(tmp_path, f"http://127.0.0.1:{free_port()}"), "init")
    assert status == 1
    assert "Connection refused" in error


def test_tables_of_another_version_are_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version, way_out in ((1, "an earlier medamad"), (9, "a later medamad")):
        database = f"of_{version}"
        with monkeypatch.context() as changed:
            changed.setattr(tables, "VERSION", version)
            tables.create_tables(server.client(database), tables.Layout())
        daemon = with_cluster(tmp_path, server.url, f'database = "{database}"\n')
        refusal = f"have the version {version}, and not {tables.VERSION}; {way_out} has made them"
        status, _, error = command(daemon, "init")
        assert (status, refusal in error) == (1, True)
        daemon.start()
        until(lambda of=daemon, text=refusal: text in one_line(command(of, "status")[1]))
        client = daemon.client()
        if version == 1:
            client.add_website("example.com")
        send(daemon, version)
        assert client.request("GET", "/api/website/example.com/summary").status == 503
        daemon.stop()
    # An update of it takes what has waited.
    daemon.before = "from medamad.clickhouse import tables; tables.VERSION = 9"
    daemon.start()
    path = "/api/website/example.com/summary"
    until(lambda: client.get(path)["current"]["pageviews"] == 2)
    daemon.stop()


def test_a_database_without_tables_says_how_they_are_made(server: Server, tmp_path: Path) -> None:
    daemon = with_cluster(tmp_path, server.url, 'database = "no_tables"\n')
    daemon.start()
    until(lambda: "run medamad cluster init" in command(daemon, "status")[1])
    # It goes on by itself.
    initialized(daemon)
    until(lambda: "degraded" not in Client(daemon.port).get("/health"))
    daemon.stop()


def test_the_database_of_another_store_is_refused(server: Server, tmp_path: Path) -> None:
    both = [
        with_cluster(
            tmp_path / str(number), server.url, f'database = "of_one"\ncollector = {number}'
        )
        for number in (1, 2)
    ]
    initialized(both[0])
    both[0].start()
    collectors = server.client("of_one")
    until(
        lambda: len(collectors.query("SELECT store FROM of_one.collectors").get("store", ())) == 1
    )
    both[1].start()
    until(lambda: "hits of another store" in command(both[1], "status")[1])
    assert "degraded" not in Client(both[0].port).get("/health")
    for daemon in both:
        daemon.stop()


def test_servers_that_share_nothing_each_get_their_tables(
    shards: tuple[Server, Server], tmp_path: Path
) -> None:
    urls = '", "'.join(each.url for each in shards)
    more = f'database = "nothing_shared"\nname = "{CLUSTER}"\nreplicated = false\n'
    daemon = with_cluster(tmp_path, shards[0].url, more)
    status, _, error = command(daemon, "init")
    assert status == 78
    assert f"cluster.urls: expected all 2 servers of {CLUSTER}, got 1" in error
    daemon = with_cluster(tmp_path, urls, more)
    for _ in range(2):
        initialized(daemon)
    for each in shards:
        tables.check_tables(each.client("nothing_shared"), SHARDS)
        found = each.client("nothing_shared").query(
            "SELECT count() AS n FROM nothing_shared.views_local"
        )
        assert found["n"].tolist() == [0]


@pytest.mark.parametrize("replicated", ["true", "false"])
def test_a_cluster_that_is_not_defined_gets_no_tables(
    server: Server, tmp_path: Path, replicated: str
) -> None:
    database = f"of_nobody_{replicated}"
    more = f'database = "{database}"\nname = "nobody"\nreplicated = {replicated}\n'
    status, _, error = command(with_cluster(tmp_path, server.url, more), "init")
    assert status == 78
    assert "cluster.name: the servers define no cluster nobody" in error
    found = server.client("default").query(
        f"SELECT count() AS n FROM system.databases WHERE name = '{database}'"
    )
    assert found["n"].tolist() == [0]


def test_a_date_is_checked(tmp_path: Path) -> None:
    status, _, error = command(Daemon(tmp_path), "resend", "--since", "yesterday")
    assert status == 64
    assert "yesterday is no date such as 2026-11-20" in error
