"""Fatal errors are logged, and the daemon leaves foreign files alone."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from support.daemon import HIT, finished, running, until

from medamad.storage.environment.environment import FILE_NAME

pytestmark = pytest.mark.daemon


def start(data: Path) -> subprocess.CompletedProcess[str]:
    return finished("run", data, "--listen", "tcp:0:interface=127.0.0.1")


@pytest.mark.parametrize(
    "content",
    [b"no store " * 2_000, b"", bytes(100_000)],
    ids=["other content", "empty", "zeros"],
)
def test_an_invalid_store_file_ends_the_start(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    ended = start(tmp_path)
    assert ended.returncode == 1
    assert f"not started: {tmp_path / FILE_NAME}: not a store of medamad" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (tmp_path / FILE_NAME).read_bytes() == content


def test_a_damaged_page_after_a_clean_shutdown_does_not_end_the_daemon(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("example.com")
        daemon.stop()
        file = daemon.data / FILE_NAME
        content = bytearray(file.read_bytes())
        used = len(content.rstrip(b"\0")) // 4096
        content[2 * 4096 : (used + 1) * 4096] = bytes((used - 1) * 4096)
        file.write_bytes(content)
        daemon.start(status=503)
        # While the store is checked, the status is the same.
        reason = "no hits are taken and no statistics returned: the store is damaged: "
        until(lambda: reason in daemon.log)
        assert "Traceback" not in daemon.log


def test_a_read_only_folder_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    ended = start(tmp_path / "file" / "data")
    assert ended.returncode == 1
    assert f"not started: {tmp_path / 'file' / 'data'}: Not a directory" in ended.stderr


def test_a_first_login_that_cannot_be_written_ends_the_start(tmp_path: Path) -> None:
    (tmp_path / "first-login.txt").mkdir()
    ended = start(tmp_path)
    assert ended.returncode == 1
    assert "not started: " in ended.stderr
    assert f"{tmp_path / 'first-login.txt'}: Is a directory" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("token", "add", "x"),
        ("share", "add", "a.example", "x"),
        ("goal", "add", "a.example", "x", "--path", "/"),
        ("alert", "add", "backup", "--url", "https://example.com/"),
        ("annotate", "add", "a.example", "x"),
        ("passwd",),
    ],
)
def test_a_failed_write_ends_the_command(tmp_path: Path, command: tuple[str, ...]) -> None:
    with running(tmp_path) as daemon:
        daemon.client().add_website("a.example")
        daemon.stop()
        limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))"
        name, *arguments = command
        ended = finished(name, daemon.data, *arguments, given="nine other words\n", before=limited)
        reason = "mdb_txn_commit: File too large"
        assert ended.stderr == f"medamad: {daemon.data / FILE_NAME}: {reason}\n"
        assert ended.returncode == 1


def test_replacing_the_store_of_a_running_daemon_ends_it(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        assert client.request("POST", "/api/event/hit", HIT).status == 204
        assert client.request("GET", "/health").status == 200
        (tmp_path / "other").write_bytes(b"a backup, say")
        (tmp_path / "other").replace(daemon.data / FILE_NAME)
        health = client.request("GET", "/health")
        assert health.status == 503
        assert b"store.mdb is no longer the file that was opened" in health.body
        assert client.request("POST", "/api/event/hit", HIT | {"b": "2"}).status == 503
        assert daemon.ended() == 1
        assert "critical] the store cannot continue: the store has failed: store.mdb" in daemon.log
        assert "Traceback" not in daemon.log
        assert (daemon.data / FILE_NAME).read_bytes() == b"a backup, say"


def test_a_kill_by_the_system_is_reported(tmp_path: Path) -> None:
    """A disk that fails below the mapped file ends the process by SIGBUS."""
    with running(tmp_path) as daemon:
        os.kill(daemon.pid, signal.SIGBUS)
        assert daemon.ended() == -signal.SIGBUS
        assert "Fatal Python error: Bus error" in daemon.log
