"""Backups under load are consistent and contain every acknowledged hit."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from support.daemon import Daemon, finished, running, until
from support.durability.load_clients import HOSTNAME, Sent, press

from medamad.cli import main

pytestmark = pytest.mark.daemon

TWENTY = pytest.param(20, marks=(pytest.mark.slow, pytest.mark.timeout(3_600)))
CLIENTS = 4
CONFIGURATION = """
[store]
map_size = "256 MiB"
min_free_disk = "1 MiB"
[limits]
new_paths = 1000000
"""


def medamad(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@contextmanager
def pressed(daemon: Daemon, prefix: str) -> Iterator[list[Sent]]:
    """Start several clients; return what each of them has sent."""
    stop = Event()
    by_client = [Sent() for _ in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as clients:
        posting = [
            clients.submit(press, daemon.port, f"{prefix}{number}-", stop, sent)
            for number, sent in enumerate(by_client)
        ]
        try:
            yield by_client
        finally:
            stop.set()
        for client in posting:
            client.result()


def back_up(daemon: Daemon, target: Path) -> None:
    """Back up by a process of its own."""
    given = ["--config", str(daemon.folder / "medamad.toml")]
    assert finished("backup", daemon.data, str(target), *given).returncode == 0


def acknowledged(by_client: list[Sent]) -> set[str]:
    return {path for sent in by_client for path in list(sent.acknowledged)}


def exported(data: Path, what: str) -> list[str]:
    file = data / f"{what}.ndjson"
    medamad("export", HOSTNAME, "--data", data, "--what", what, "--format", "ndjson", "-o", file)
    return file.read_text("utf-8").splitlines()


@pytest.mark.parametrize("rounds", [3, TWENTY])
def test_backups_under_load_contain_every_acknowledged_hit(
    tmp_path: Path, rounds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, configuration=CONFIGURATION) as daemon:
        daemon.client().add_website(HOSTNAME)
        with pressed(daemon, "/first/") as sent:
            until(lambda: len(acknowledged(sent)) > 20)
        for number in range(rounds):
            backup, again = tmp_path / f"{number}.mdb.zst", tmp_path / f"again-{number}"
            prefix = f"/{number}/"
            with pressed(daemon, prefix) as sent:
                until(lambda: len(acknowledged(sent)) > 20)
                before = acknowledged(sent)
                back_up(daemon, backup)
            assert len(acknowledged(sent)) > len(before), "nothing was sent meanwhile"
            medamad("restore", backup, "--data", again)
            medamad("check", "--data", again)
            assert "no problems found" in capsys.readouterr().out
            held, all_of_it = exported(again, "views"), exported(daemon.data, "views")
            assert set(held) <= set(all_of_it)
            earlier = [line for line in all_of_it if prefix not in line]
            assert [line for line in held if prefix not in line] == earlier
            paths = {json.loads(line)["path"] for line in held}
            assert before <= paths, "an acknowledged hit is missing"


def test_a_daemon_continues_from_a_restored_backup(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup = tmp_path / "backup.mdb.zst"
    with running(tmp_path, configuration=CONFIGURATION) as daemon:
        client = daemon.client()
        client.add_website(HOSTNAME)
        with pressed(daemon, "/before/") as sent:
            until(lambda: len(acknowledged(sent)) > 20)
        before = acknowledged(sent)
        back_up(daemon, backup)
        with pressed(daemon, "/after/") as sent:
            until(lambda: len(acknowledged(sent)) > 20)
        assert main(["restore", str(backup), "--data", str(daemon.data)]) == 1
        printed = capsys.readouterr().err
        assert "another medamad uses this directory" in printed
        assert "systemctl stop medamad.socket medamad" in printed
        daemon.stop()
        medamad("restore", backup, "--data", daemon.data)
        assert "store.mdb.replaced-" in capsys.readouterr().out
        daemon.start()
        assert client.request("GET", "/api/user").status == 401, "a login has come back"
        rows = daemon.client().get(f"/api/website/{HOSTNAME}/pages", limit="5000")
        assert {row["path"] for row in rows} == before


def test_a_disk_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    with running(tmp_path, configuration=CONFIGURATION) as daemon:
        daemon.client().add_website(HOSTNAME)
        folder = tmp_path / "backups"
        folder.mkdir()
        limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))"
        failed = finished("backup", daemon.data, str(folder / "b.mdb.zst"), before=limited)
        assert failed.returncode == 1
        assert failed.stderr.startswith("medamad: ")
        assert "Traceback" not in failed.stderr
        assert list(folder.iterdir()) == []
