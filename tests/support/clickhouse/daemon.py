"""Daemons that send to real servers: hits over HTTP, and what the servers have of them."""

from support.daemon import HIT, Client, Daemon, finished_fork

from medamad.clickhouse import client as clickhouse


def command(daemon: Daemon, *arguments: str) -> tuple[int, str, str]:
    """Run `medamad cluster` with a daemon's configuration; return status, output and errors."""
    daemon.folder.mkdir(exist_ok=True)
    file = daemon.folder / "medamad.toml"
    file.write_text(daemon.configuration, "utf-8")
    where = ("--config", str(file), "--data", str(daemon.data))
    done = finished_fork(["cluster", *arguments, *where])
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
