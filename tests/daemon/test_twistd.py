import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.daemon import PATIENCE_S, Daemon

pytestmark = pytest.mark.daemon

STARTERS = [
    pytest.param(["twistd", "-n", "--pidfile=", "medamad"], id="twistd"),
    pytest.param(["twist", "medamad"], id="twist"),
]


def command_of(starter: Sequence[str]) -> list[str]:
    program = shutil.which(starter[0], path=str(Path(sys.executable).parent))
    assert program is not None
    return [program, *starter[1:]]


@pytest.mark.parametrize("starter", STARTERS)
def test_twistd_runs_the_same_daemon(tmp_path: Path, starter: Sequence[str]) -> None:
    daemon = Daemon(tmp_path, command=command_of(starter))
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    assert client.get("/websites") == [{"hostname": "example.com"}]
    daemon.stop()
    assert daemon.data.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("starter", STARTERS)
def test_an_invalid_configuration_ends_it(tmp_path: Path, starter: Sequence[str]) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text("[sever]", "utf-8")
    ended = subprocess.run(
        [*command_of(starter), "--config", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.returncode == 78
    assert ended.stderr == f"medamad: {file}: sever: unknown key\n"


@pytest.mark.parametrize("starter", STARTERS)
def test_a_port_in_use_ends_it(tmp_path: Path, starter: Sequence[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        ended = subprocess.run(
            [*command_of(starter), "--data", str(tmp_path), "--listen", place],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert ended.returncode == 1
    output = ended.stdout + ended.stderr
    assert f"cannot listen on {place}: Address already in use" in output
