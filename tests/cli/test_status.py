import json
import re
import socket
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from support.daemon import HIT, finished, running, until

from medamad.admin.protocol import SOCKET_NAME, DaemonState
from medamad.build import VERSION, commit
from medamad.cli import main
from medamad.cli.status import lines_of
from medamad.storage.environment.environment import open_environment

pytestmark = pytest.mark.daemon

status = partial(finished, "status")


def test_it_describes_a_running_and_a_stopped_daemon(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        assert client.request("POST", "/api/event/hit", HIT).status == 204
        assert client.request("POST", "/api/event/hit", HIT | {"u": "https://x.y/"}).status == 404
        result = status(daemon.data)
        assert (result.returncode, result.stderr) == (0, "")
        for line in (
            f"medamad {VERSION} ({commit()}) runs on {daemon.data}",
            r"since        \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d+ (s|min)\), process "
            + str(daemon.pid),
            f"listening    tcp:{daemon.port}:interface=127.0.0.1; 0 connections",
            "websites     1, 1 page open now",
            "hits         1 accepted, 1 not counted since the start (unknown-website 1)",
            r"at present   \d\.\d hits/s in the last full minute, 0 waiting",
            r"commits      \d+, \d+\.\d ms each",
            r"store        \d+\.\d KiB of 64\.0 GiB; \d+\.\d .iB of the disk are free",
        ):
            literal = line if "\\d" in line else re.escape(line)
            assert re.search(f"^{literal}$", result.stdout, re.MULTILINE), (line, result.stdout)
        given = json.loads(status(daemon.data, "--json").stdout)
        assert given["running"] is True
        assert (given["pid"], given["websites"], given["accepted"]) == (daemon.pid, 1, 1)
        assert given["refused"] == {"unknown-website": 1}
        assert given["lacks"] == given["warnings"] == []
        daemon.kill()
        assert (daemon.data / SOCKET_NAME).exists()
        ended = status(daemon.data)
        assert (ended.returncode, ended.stdout) == (3, "")
        assert ended.stderr == f"medamad: {daemon.data}: no daemon runs on it\n"
        daemon.start()
        assert status(daemon.data).returncode == 0


@pytest.mark.parametrize(
    ("age_s", "counted"),
    [(-60, "since the start"), (86_399, "since the start"), (86_400, "in 24 hours")],
)
def test_hits_are_shown_with_their_time_span(age_s: int, counted: str) -> None:
    now = 1_750_000_000
    state = DaemonState(
        version="0",
        commit="0",
        pid=1,
        started=now - age_s,
        listening=(),
        connections=0,
        websites=1,
        visitors=0,
        accepted=1_200,
        refused={"bot": 2, "gpc": 1},
        last_minute=0,
        waiting=0,
        commits=0,
        commit_seconds=0.0,
        store_bytes=0,
        store_max_bytes=0,
        disk_free_bytes=0,
        last_backup=None,
        unavailable_reasons=(),
        warnings=(),
    )
    result = f"hits         1,200 accepted, 3 not counted {counted} (bot 2, gpc 1)"
    assert result in lines_of(state, Path("data"), now)


def test_a_daemon_that_rejects_all_hits_is_unhealthy(tmp_path: Path) -> None:
    configuration = '[store]\nmin_free_disk = "1000 TiB"\n'
    with running(tmp_path, configuration=configuration) as daemon:
        result = status(daemon.data)
        assert result.returncode == 1
        assert re.search(
            r"^no hits are accepted: \d+ MiB of the disk are free, "
            r"store.min_free_disk asks for \d+ MiB$",
            result.stdout,
            re.MULTILINE,
        )


def test_a_backup_that_is_too_old_fails(tmp_path: Path) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    (backups / "medamad-20200101-000000Z.mdb.zst").touch()
    configuration = f'[backup]\nfolder = "{backups}"\n'
    with running(tmp_path, configuration=configuration) as daemon:
        until(lambda: status(daemon.data).returncode == 1)
        result = status(daemon.data)
    assert re.search(r"^backup       2020-01-0\d", result.stdout, re.MULTILINE)
    assert re.search(
        r"^backups need attention: .*: the newest backup is \d+ hours old",
        result.stdout,
        re.MULTILINE,
    )


def test_json_describes_a_stopped_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", "--json", "--data", str(tmp_path)]) == 3
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"running": False, "error": f"{tmp_path}: no daemon runs on it"}


def test_a_daemon_that_stops_meanwhile_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket(socket.AF_UNIX) as going:
        going.bind(str(tmp_path / SOCKET_NAME))
        going.listen()

        def go() -> None:
            going.accept()[0].close()

        leaving = Thread(target=go)
        leaving.start()
        assert main(["status", "--data", str(tmp_path)]) == 1
        leaving.join()
    assert capsys.readouterr().err.startswith("medamad: the connection to the daemon was lost: ")


def test_a_starting_daemon_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment = open_environment(tmp_path, 16 << 20)
    assert main(["status", "--data", str(tmp_path)]) == 1
    result = f"{tmp_path}: a daemon uses it but is not accepting commands yet"
    assert capsys.readouterr().err == f"medamad: {result}\n"
    assert main(["status", "--json", "--data", str(tmp_path)]) == 1
    assert json.loads(capsys.readouterr().out) == {"running": None, "error": result}
    environment.close()
    assert main(["status", "--data", str(tmp_path)]) == 3


def test_a_broken_socket_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / SOCKET_NAME).symlink_to(SOCKET_NAME)
    assert main(["status", "--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(
        f"medamad: {tmp_path}: the daemon there cannot be reached: "
    )
