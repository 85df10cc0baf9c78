import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.daemon import (
    MEDAMAD,
    PATIENCE_S,
    RUN,
    Client,
    finished_fork,
    free_port,
    running,
    until,
)
from support.forked_process import fork

from medamad.storage.environment.environment import open_environment

pytestmark = pytest.mark.daemon


def run(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a daemon that is expected not to start."""
    return finished_fork(["run", *map(str, arguments)], **environ)


def test_on_a_terminal_it_prints_the_address_and_the_login(tmp_path: Path) -> None:
    port = free_port()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*MEDAMAD, "run", "--listen", f"tcp:{port}:interface=127.0.0.1"],
        cwd=tmp_path,
        stdout=theirs,
        stderr=subprocess.PIPE,
        # A background job of a shell is started with SIGINT ignored, and would hand that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    os.close(theirs)
    printed = ""
    while "Ctrl-C" not in printed:
        printed += os.read(ours, 1000).decode()
    file = tmp_path / "medamad-data" / "first-login.txt"
    assert file.stat().st_mode & 0o777 == 0o600
    username, password = (line.partition(": ")[2] for line in file.read_text().splitlines())
    assert f"http://localhost:{port}/\r\n" in printed
    assert f'<script defer src="http://localhost:{port}/script.js"></script>' in printed
    assert f"Log in as {username} with the password {password}" in printed
    assert str(file) in printed
    Client(port).log_in(username, password)
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=PATIENCE_S)
    os.close(ours)
    assert process.returncode == 0
    assert str(file) in log.decode()
    assert password not in log.decode()


def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.chdir(tmp_path)
        listen = f"tcp:{free_port()}:interface=127.0.0.1"
        os.execv(MEDAMAD[0], [*MEDAMAD, "run", "--listen", listen])  # noqa: S606
    shown = ""
    while "Ctrl-C" not in shown:
        shown += os.read(terminal, 1000).decode()
    os.close(terminal)
    # 120 is what Python ends with when its last words have nowhere to go.
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (0, 120)
    environment = open_environment(tmp_path / "medamad-data", 16 << 20)
    environment.close()


def test_without_a_terminal_only_the_log_is_written(tmp_path: Path) -> None:
    with running(tmp_path, command=RUN) as daemon:
        # It may accept requests before its output is written.
        until(lambda: daemon.log.count("\n") > 1)
        lines = daemon.log.splitlines()
    assert [line.partition("] ")[2] for line in lines] == [
        "made the account ada, as given",
        f"listening on tcp:{daemon.port}:interface=127.0.0.1",
    ]


def test_only_threads_of_python_run(tmp_path: Path) -> None:
    program = """
import os, threading
from medamad.cli.run import run_daemon
from medamad.config.schema import Config

def tell(_started):
    print(len(os.listdir("/proc/self/task")), threading.active_count(), flush=True)
    os._exit(0)

config = Config().with_overrides(None, ["unix:socket"])
run_daemon(config, read_config=Config, started=tell)
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    of_process, of_python = ended.stdout.split()
    assert of_process == of_python


def test_a_port_in_use_ends_it(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("--data", tmp_path / "data", "--listen", str(port))
    assert ended.returncode == 1
    assert ended.stderr.endswith(
        f"not started: cannot listen on tcp:{port}:interface=127.0.0.1: Address already in use;"
        f" choose another port: --listen {port + 1}, or server.listen\n"
    )


def test_a_data_directory_in_use_ends_it(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        ended = run("--data", daemon.data, "--listen", f"tcp:{free_port()}")
        assert ended.returncode == 1
        assert f"not started: {daemon.data}: another medamad uses this directory" in ended.stderr
        assert daemon.client().request("GET", "/api/user").status == 200


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[server]\nlisten = []", "server.listen: expected a port, an endpoint"),
        ('[server]\nlisten = "carrier:pigeon"', "server.listen: carrier:pigeon: Unknown endpoint"),
        ('[events]\nreferrers = "absent.toml"', "absent.toml: No such file"),
    ],
)
def test_an_invalid_configuration_ends_it(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "medamad.toml"
    file.write_text(f"{text}\n", "utf-8")
    ended = run("--config", file, "--data", tmp_path / "data")
    assert ended.returncode == 78
    assert reason in ended.stderr
    assert not (tmp_path / "data").exists()


def test_an_invalid_configuration_is_logged_as_an_error(tmp_path: Path) -> None:
    file = tmp_path / "absent.toml"
    with (tmp_path / "journal").open("w+") as journal:
        status = os.fstat(journal.fileno())
        environ = os.environ | {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        with Path(os.devnull).open("r+b") as nothing:
            files = (nothing, nothing, journal)
            ended = fork(["run", "--config", str(file)], files, environ=environ).wait(PATIENCE_S)
        journal.seek(0)
        assert journal.read() == f"<3>medamad: {file}: No such file or directory\n"
    assert ended == 78


def test_an_invalid_first_password_ends_it(tmp_path: Path) -> None:
    where = ["--data", tmp_path / "data", "--listen", f"tcp:{free_port()}"]
    ended = run(*where, MEDAMAD_PASSWORD="four")
    assert ended.returncode == 78
    assert "MEDAMAD_PASSWORD: expected 5 to 128 characters, got 4" in ended.stderr


def test_an_unknown_argument_ends_it() -> None:
    ended = run("--colour")
    assert ended.returncode == 64
    assert "unrecognized arguments: --colour" in ended.stderr
