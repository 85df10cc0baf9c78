"""Kills and cut connections: every acknowledged hit arrives, once and with its duration."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from attrs import define, field
from support.clickhouse.cutting_proxy import CuttingProxy
from support.clickhouse.daemon import durations, have_arrived, initialized, leave, send
from support.clickhouse.servers import Server, await_answer, server_config, server_in
from support.daemon import Client, Daemon, free_port, until

DATABASE = "faults"

pytestmark = pytest.mark.daemon


@define(eq=False)
class KilledServer:
    """A server that can be killed and started again on what it has."""

    folder: Path
    http_port: int = field(factory=free_port)
    tcp_port: int = field(factory=free_port)
    running: ExitStack = field(factory=ExitStack)
    server: Server | None = None

    def start(self) -> None:
        """Start the server if it does not run, also where it has ended by itself."""
        if self.server is not None and self.server.process.poll() is not None:
            self.kill()
        if self.server is None:
            self.folder.mkdir(exist_ok=True)
            (self.folder / "config.xml").write_text(server_config([self.tcp_port]))
            started = server_in(self.folder, self.http_port, self.tcp_port)
            self.server = self.running.enter_context(started)
            await_answer(self.server)

    def kill(self) -> None:
        self.running.close()
        self.server = None


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[KilledServer]:
    found = KilledServer(tmp_path / "clickhouse")
    yield found
    found.kill()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    found = Daemon(tmp_path / "daemon")
    yield found
    if found.is_running:
        found.stop()


def through(proxy: CuttingProxy) -> str:
    return (
        f'[cluster]\nurls = ["http://127.0.0.1:{proxy.port}"]\n'
        f'database = "{DATABASE}"\ncollector = 2\n'
    )


def play(rounds: int, seed: int, killed: KilledServer, daemon: Daemon) -> None:
    chance = random.Random(seed)  # noqa: S311
    killed.start()
    proxy = CuttingProxy(killed.http_port, chance)
    daemon.configuration = through(proxy)
    initialized(daemon)
    daemon.start()
    daemon.client().add_website("example.com")
    expected: dict[str, int] = {}
    for _ in range(rounds):
        match chance.choice(["cut", "kill the server", "kill the daemon", "heal"]):
            case "cut":
                proxy.cuts = chance.choice([0.1, 0.5])
            case "kill the server":
                killed.kill()
            case "kill the daemon":
                daemon.kill()
                daemon.start()
            case "heal":
                proxy.cuts = 0.0
                killed.start()
        first = len(expected) + 1
        for number in range(first, first + chance.randrange(1, 40)):
            send(daemon, number)
            expected[f"/{number}"] = 0
        for _ in range(chance.randrange(20)):
            number, duration_ms = chance.randrange(1, len(expected) + 1), chance.randrange(1, 9_000)
            leave(daemon, number, duration_ms)
            expected[f"/{number}"] = max(expected[f"/{number}"], duration_ms)
    proxy.cuts = 0.0

    def arrived() -> bool:
        killed.start()
        assert killed.server is not None
        return have_arrived(killed.server.client(DATABASE), expected)

    until(arrived)
    proxy.close()


def test_every_acknowledged_hit_arrives_once(killed: KilledServer, daemon: Daemon) -> None:
    play(10, 1, killed, daemon)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_every_acknowledged_hit_arrives_once_in_many_rounds(
    killed: KilledServer, daemon: Daemon, seed: int
) -> None:
    play(10, seed, killed, daemon)


def test_hits_are_taken_while_the_cluster_is_down(killed: KilledServer, daemon: Daemon) -> None:
    killed.start()
    proxy = CuttingProxy(killed.http_port, random.Random(0))  # noqa: S311
    daemon.configuration = through(proxy)
    initialized(daemon)
    daemon.start()
    daemon.client().add_website("example.com")
    send(daemon, 1)
    assert killed.server is not None
    until(lambda: durations(killed.server.client(DATABASE)) == {"/1": 0})
    killed.kill()
    for number in range(2, 30):
        send(daemon, number)
    leave(daemon, 1, 700)
    client = Client(daemon.port)
    until(lambda: "on this machine alone" in client.get("/health").get("degraded", ""))
    assert "medamad_cluster_failures_total 0.0" not in (
        client.request("GET", "/metrics").body.decode()
    )
    daemon.stop()
    daemon.start()
    killed.start()
    expected = {"/1": 700} | {f"/{number}": 0 for number in range(2, 30)}
    until(lambda: have_arrived(killed.server.client(DATABASE), expected))
    until(lambda: "degraded" not in client.get("/health"))
    assert "the cluster takes no hits, they stay here" in daemon.log
    proxy.close()
