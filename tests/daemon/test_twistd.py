import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.daemon import Daemon, finished_fork
from support.forked_process import running_script

pytestmark = pytest.mark.daemon

STARTERS = [
    pytest.param(["twistd", "-n", "--pidfile=", "medamad"], id="twistd"),
    pytest.param(["twist", "medamad"], id="twist"),
]


def program_of(starter: Sequence[str]) -> str:
    program = shutil.which(starter[0], path=str(Path(sys.executable).parent))
    assert program is not None
    return program


def finished_starter(starter: Sequence[str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one to its end."""
    program = Path(program_of(starter))
    return finished_fork((), before=running_script(program, *starter[1:], *arguments))


@pytest.mark.parametrize("starter", STARTERS)
def test_twistd_runs_the_same_daemon(tmp_path: Path, starter: Sequence[str]) -> None:
    daemon = Daemon(tmp_path, command=[program_of(starter), *starter[1:]])
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
    ended = finished_starter(starter, "--config", str(file))
    assert ended.returncode == 78
    assert ended.stderr == f"medamad: {file}: sever: unknown key; did you mean server?\n"


@pytest.mark.parametrize("starter", STARTERS)
def test_a_port_in_use_ends_it(tmp_path: Path, starter: Sequence[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place = f"tcp:{taken.getsockname()[1]}:interface=127.0.0.1"
        ended = finished_starter(starter, "--data", str(tmp_path), "--listen", place)
    assert ended.returncode == 1
    output = ended.stdout + ended.stderr
    assert f"cannot listen on {place}: Address already in use" in output
