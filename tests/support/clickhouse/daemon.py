"""Daemons that send to real servers: hits over HTTP, and what the servers have of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Self

from attrs import define, field
from support.clickhouse.servers import CLUSTER, Server
from support.daemon import HIT, Client, Daemon, finished_fork, until

from medamad.clickhouse import client as clickhouse


def command(daemon: Daemon, *arguments: str) -> tuple[int, str, str]:
    """Run `medamad cluster` of a daemon's build with its configuration.

    Return status, output and errors.
    """
    daemon.folder.mkdir(exist_ok=True)
    file = daemon.folder / "medamad.toml"
    file.write_text(daemon.configuration, "utf-8")
    where = ("--config", str(file), "--data", str(daemon.data))
    done = finished_fork(["cluster", *arguments, *where], before=daemon.before)
    return done.returncode, done.stdout, done.stderr


def initialized(daemon: Daemon) -> None:
    """Make the tables of a daemon's cluster."""
    status, _, error = command(daemon, "init")
    assert status == 0, error


def send(daemon: Daemon, number: int) -> None:
    """Load a page, whose path is its number."""
    body = HIT | {"b": f"b{number}", "u": f"https://example.com/{number}"}
    assert Client(daemon.port).request("POST", "/api/event/hit", body).status == 204


def leave(daemon: Daemon, number: int, duration_ms: int) -> None:
    """Unload a page."""
    body = {"e": "unload", "b": f"b{number}", "m": duration_ms}
    assert Client(daemon.port).request("POST", "/api/event/hit", body).status == 204


def durations(client: clickhouse.Client) -> dict[str, int]:
    """Return the durations of the views by path; fails if a path is there twice."""
    found = client.query(
        "SELECT CAST(path AS String) AS path_, duration_ms AS ms"
        f" FROM {client.table('views')} FINAL"
    )
    paths = found.get("path_", [])
    assert len(set(paths)) == len(paths)
    return dict(zip(paths, [int(ms) for ms in found.get("ms", [])], strict=True))


def have_arrived(client: clickhouse.Client, expected: dict[str, int]) -> bool:
    """Return whether exactly these views are there; False while the server does not answer."""
    try:
        return durations(client) == expected
    except clickhouse.Unavailable:
        return False


@define(eq=False)
class Collectors:
    """Three collectors of one cluster, by their numbers from 1. The first one begins it."""

    servers: Sequence[Server]
    database: str
    daemons: dict[int, Daemon]
    more: str = ""
    """What else the configuration of each has."""
    secret: str = field(factory=lambda: token_hex(32))

    @classmethod
    def of(cls, servers: Sequence[Server], database: str, folder: Path, more: str = "") -> Self:
        daemons = {number: Daemon(folder / f"collector{number}") for number in (1, 2, 3)}
        return cls(servers, database, daemons, more)

    def __getitem__(self, number: int) -> Daemon:
        return self.daemons[number]

    def configured(self, number: int, others: Mapping[int, str]) -> str:
        """Return the configuration of a collector, with other addresses of some."""
        urls = {each: daemon.base for each, daemon in self.daemons.items()} | others
        addresses = "".join(f'{each} = "{url}"\n' for each, url in urls.items())
        servers = ", ".join(f'"{server.url}"' for server in self.servers)
        shards = f'name = "{CLUSTER}"\nreplicated = false\n' if len(self.servers) > 1 else ""
        return (
            f'{self.more}[cluster]\nurls = [{servers}]\ndatabase = "{self.database}"\n{shards}'
            f'collector = {number}\nsecret_file = "secret"\n[cluster.collectors]\n{addresses}'
        )

    def start(self) -> None:
        """Make the tables, let the first begin and the others join, and start all."""
        for number, daemon in self.daemons.items():
            daemon.folder.mkdir()
            (daemon.folder / "secret").write_text(f"{self.secret}\n")
            daemon.configuration = self.configured(number, {})
        initialized(self[1])
        self[1].start()
        until(lambda: self.numbers() == [1])
        for number in self.daemons.keys() - {1}:
            status, _, error = command(self[number], "join")
            assert status == 0, error
            self[number].start()

    def stop(self) -> None:
        for daemon in self.daemons.values():
            if daemon.is_running:
                daemon.stop()

    def client(self) -> clickhouse.Client:
        return self.servers[0].client(self.database)

    def numbers(self) -> list[int]:
        """Return the numbers that have been claimed."""
        client = self.client()
        found = client.query(f"SELECT collector FROM {client.table('collectors')} ORDER BY 1")
        return [int(number) for number in found.get("collector", ())]
