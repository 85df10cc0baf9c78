"""An unwritable folder ends the start, or the daemon, with a clear error."""

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from support.daemon import HIT, Daemon, finished, finished_fork
from support.durability.disks import Mounts, lack, mounts

from medamad.storage.environment.environment import FILE_NAME, open_environment

LACK = lack()
pytestmark = [pytest.mark.daemon, pytest.mark.skipif(bool(LACK), reason=LACK)]

NOBODY = 65_534
AS_NOBODY = f"import os; os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})"
SYSTEM = Path("/sys/fs/ext4")


@pytest.fixture
def held() -> Iterator[Mounts]:
    with mounts() as made:
        yield made


@pytest.fixture
def reachable() -> Iterator[Path]:
    """Return a folder that others can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def is_not_started(before: str, data: Path, reason: str) -> None:
    ended = finished("run", data, "--listen", "tcp:0:interface=127.0.0.1", before=before)
    assert ended.returncode == 1
    assert ended.stderr.endswith(f"not started: {reason}\n")
    assert ended.stderr.count("\n") == 1


def test_a_read_only_file_system(tmp_path: Path, held: Mounts) -> None:
    data = tmp_path / "data"
    open_environment(data, 16 << 20).close()
    before = (data / FILE_NAME).read_bytes()
    held.mount(tmp_path, tmp_path, "--bind")
    held.run("mount", "-o", "remount,bind,ro", tmp_path)
    is_not_started(held.before, data, f"{data}: Read-only file system")
    absent = tmp_path / "absent"
    is_not_started(held.before, absent, f"{absent}: Read-only file system")
    # To read it, nothing has to be written.
    checked = finished("check", data, before=held.before)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "no problems found" in checked.stdout
    assert (data / FILE_NAME).read_bytes() == before


@cache
def runs_for_nobody() -> bool:
    return finished_fork(["version"], before=AS_NOBODY).returncode == 0


def own_but_closed(data: Path) -> str:
    """Create a folder its owner may not write to; return the expected error."""
    data.mkdir()
    os.chown(data, NOBODY, NOBODY)
    data.chmod(0o500)
    return f"{data}: Permission denied"


def with_a_file_of_roots(data: Path) -> str:
    """Create a folder whose store belongs to root; return the expected error."""
    open_environment(data, 16 << 20).close()
    for path in (data, *data.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    os.chown(data / FILE_NAME, 0, 0)
    return f"{data / FILE_NAME}: cannot be read: Permission denied"


@pytest.mark.parametrize("made", [own_but_closed, with_a_file_of_roots])
def test_a_user_without_permission_to_write(reachable: Path, made: Callable[[Path], str]) -> None:
    if not runs_for_nobody():
        pytest.skip("others cannot run this tree")
    data = reachable / "data"
    reason = made(data)
    is_not_started(AS_NOBODY, data, reason)


def test_an_unreadable_store(reachable: Path) -> None:
    if not runs_for_nobody():
        pytest.skip("others cannot run this tree")
    data = reachable / "data"
    open_environment(data, 16 << 20).close()
    data.chmod(0o755)
    checked = finished("check", data, before=AS_NOBODY)
    assert checked.returncode == 1
    assert checked.stderr == f"medamad: {data / 'daemon.lock'}: Permission denied\n"


def test_a_disk_that_fails_while_the_daemon_runs(tmp_path: Path, held: Mounts) -> None:
    """The system makes the file system of a failing disk read-only, as ext4 does by default."""
    daemon = Daemon(
        tmp_path,
        configuration='[store]\nmin_free_disk = "1 MiB"',
        before=held.before,
    )
    held.mount_ext4(daemon.data, 40, "errors=remount-ro")
    device = held.seen(daemon.data).stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    fault = SYSTEM / Path(f"/sys/dev/block/{number}").resolve().name / "trigger_fs_error"
    if not os.access(fault, os.W_OK):
        pytest.skip("ext4 cannot be made to fail")
    daemon.start()
    client = daemon.client()
    client.add_website("example.com")
    assert client.request("POST", "/api/event/hit", HIT).status == 204
    fault.write_text("simulated by a test")
    assert client.request("POST", "/api/event/hit", HIT | {"b": "2"}).status == 503
    assert daemon.ended() == 1
    assert "the store cannot continue: the store has failed: " in daemon.log
    assert "Traceback" not in daemon.log
