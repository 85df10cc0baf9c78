"""Servers with users and passwords, reached by TLS, and their backups.

The build of the server that the tests use speaks no TLS itself, so a proxy does that before it, and
backups are folders, as it has no archives.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.certificates import Authority
from support.clickhouse.daemon import command, durations, initialized, leave, send
from support.clickhouse.servers import Server, await_answer, server_in
from support.clickhouse.tls_proxy import TlsProxy
from support.daemon import Client, Daemon, free_port, until

from medamad.clickhouse.client import Connecting

EXAMPLE = Path(__file__).parents[2] / "etc" / "cluster"
DATABASE = "of_medamad"
PASSWORD = 'it\'s "secret" ø'
CONFIG = """<clickhouse>
<mark_cache_size>67108864</mark_cache_size>
<user_directories><users_xml><path>{folder}/users.xml</path></users_xml></user_directories>
<access_control_improvements>
<select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
</access_control_improvements>
<backups><allowed_path>{folder}/backups/</allowed_path></backups>
</clickhouse>
"""
USERS = """<clickhouse><users>
<default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default>
<limited><password>known</password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota><grants>
{grants}
</grants></limited>
</users><profiles><default></default></profiles><quotas><default></default></quotas></clickhouse>
"""

pytestmark = pytest.mark.daemon


def documented_grants() -> list[str]:
    """Return the statements by which docs/cluster.md lets a user in."""
    text = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")
    return [
        line.rstrip(";").replace(" TO medamad", "").replace("medamad.*", f"{DATABASE}.*")
        for line in text.splitlines()
        if line.startswith("GRANT ")
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clickhouse")


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[Server]:
    """A server with the user of the example, and one that may do only what is documented."""
    (folder / "config.xml").write_text(CONFIG.format(folder=folder))
    grants = "".join(f"<query>{grant}</query>" for grant in documented_grants())
    (folder / "users.xml").write_text(USERS.format(grants=grants))
    (folder / "users.d").mkdir()
    shutil.copy(EXAMPLE / "users.xml", folder / "users.d")
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("CLICKHOUSE_MEDAMAD_PASSWORD", PASSWORD)
        with server_in(folder, free_port(), free_port()) as server:
            await_answer(server)
            yield server


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(tmp_path / "daemon")
    found.folder.mkdir()
    yield found
    if found.is_running:
        found.stop()


def configured(daemon: Daemon, url: str, user: str, password: str, more: str = "") -> None:
    (daemon.folder / "secret").write_text(password, "utf-8")
    daemon.configuration = (
        f'[cluster]\nurls = ["{url}"]\ndatabase = "{DATABASE}"\nuser = "{user}"\n'
        f'password_file = "{daemon.folder / "secret"}"\n{more}'
    )


def test_a_password_that_is_wrong_is_said_to_be(guarded: Server, daemon: Daemon) -> None:
    configured(daemon, guarded.url, "medamad", "wrong, that is")
    status, _, error = command(daemon, "init")
    assert status == 1
    assert "medamad: Authentication failed: password is incorrect" in error
    daemon.start()
    until(lambda: "Authentication failed" in command(daemon, "status")[1])
    # Whoever may ask for it learns nothing of the servers.
    assert Client(daemon.port).get("/health")["degraded"] == (
        "the cluster takes no hits: those that wait (0 rows) are on this machine alone"
    )
    daemon.stop()
    assert "wrong, that is" not in daemon.log


def test_the_documented_rights_suffice(guarded: Server, daemon: Daemon) -> None:
    configured(daemon, guarded.url, "limited", "known")
    initialized(daemon)
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    send(daemon, 1)
    until(lambda: client.get("/api/website/example.com/summary")["current"]["visitors"] == 1)
    client.request("DELETE", "/api/websites/example.com")
    daemon.stop()
    guarded.client("default").run(f"DROP DATABASE {DATABASE}")


def test_hits_go_through_tls_and_come_back_from_a_backup(
    guarded: Server, daemon: Daemon, folder: Path, tmp_path: Path
) -> None:
    authority = Authority(tmp_path / "certificates")
    proxy = TlsProxy(guarded.http_port, authority.folder)
    ca_file = f'ca_file = "{authority.folder / "chain.pem"}"\n'
    configured(daemon, proxy.url, "medamad", PASSWORD, ca_file)
    initialized(daemon)
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    for number in range(1, 21):
        send(daemon, number)
    leave(daemon, 3, 4_000)
    expected = {f"/{number}": 4_000 * (number == 3) for number in range(1, 21)}
    admin = guarded.client(DATABASE)
    until(lambda: durations(admin) == expected)
    path = "/api/website/example.com/pages?visits=true"
    before = client.request("GET", path).json
    where = f"File('{folder}/backups/one')"
    admin.run(f"BACKUP DATABASE {DATABASE} TO {where}")
    admin.run(f"DROP DATABASE {DATABASE} SYNC")
    assert client.request("GET", path).status == 503
    admin.run(f"RESTORE DATABASE {DATABASE} FROM {where}")
    assert client.request("GET", path).json == before
    # And it goes on.
    send(daemon, 21)
    until(lambda: durations(admin) == expected | {"/21": 0})
    daemon.stop()
    proxy.close()
    admin.run(f"DROP DATABASE {DATABASE} SYNC")


def test_nobody_else_gets_in(guarded: Server) -> None:
    nobody = guarded.client_of(Connecting(urls=[guarded.url], user="medamad"))
    with pytest.raises(Exception, match="Authentication failed"):
        nobody.query("SELECT 1")
