"""What a start does with the whole store before it opens it."""

import errno
import socket
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_twisted
from support.daemon import Client, finished, running, until

from medamad.daemon.before_start import StoreWork, bring_up_to_date, compact_if_asked
from medamad.daemon.systemd import Supervisor
from medamad.storage.compact import Compacted, ask_to_compact, compaction_asked
from medamad.storage.environment.environment import FILE_NAME, open_environment
from medamad.storage.errors import DamagedStore
from medamad.storage.migrations import is_outdated

PAGES = 300
FORMATS: Final = Path(__file__).parents[1] / "formats"


def visited(client: Client, word: str) -> None:
    """Count the pages of a website."""
    for number in range(PAGES):
        hit = {"e": "load", "b": f"{word}{number}", "u": f"https://{word}.example/{word}-{number}"}
        answer = client.request("POST", "/api/event/hit", hit | {"p": True, "q": True})
        assert answer.status == 204


def test_a_running_daemon_compacts_at_its_next_start(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        for word in ("kept", "gone"):
            client.add_website(f"{word}.example")
            visited(client, word)
        assert client.request("DELETE", "/api/websites/gone.example").status == 204
        asked = finished("compact", daemon.data)
        assert asked.returncode == 0
        store = daemon.data / FILE_NAME
        assert asked.stdout == f"{store}: a daemon uses it, and compacts it at its next start.\n"
        assert "compaction   at the next start\n" in finished("status", daemon.data).stdout
        before = store.stat().st_ino
        assert b"/gone-7" in store.read_bytes()
        daemon.kill()
        daemon.start()
        assert "the store was compacted: " in daemon.log
        assert store.stat().st_ino != before
        assert b"/gone-7" not in store.read_bytes()
        assert "compaction" not in finished("status", daemon.data).stdout
        rows = daemon.client().get("/api/website/kept.example/pages")
        assert len(rows) == PAGES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_environment(tmp_path, 16 << 20).close()
    return tmp_path


@pytest_twisted.ensureDeferred
async def test_nothing_is_done_without_being_asked(folder: Path) -> None:
    async def refuse(_work: object) -> Compacted:
        raise AssertionError("it was not asked to")

    await compact_if_asked(folder, refuse, StoreWork(Supervisor()))


@pytest_twisted.ensureDeferred
async def test_a_start_without_room_serves_the_store_and_the_next_one_tries_again(
    folder: Path,
) -> None:
    async def fail(_work: object) -> Compacted:
        raise OSError(errno.ENOSPC, "No space left on device", str(folder / FILE_NAME))

    ask_to_compact(folder)
    assert compaction_asked(folder) == ""
    await compact_if_asked(folder, fail, StoreWork(Supervisor()))
    assert compaction_asked(folder) == f"{folder / FILE_NAME}: No space left on device"


def test_the_status_says_why_the_store_was_not_compacted(folder: Path) -> None:
    with running(folder) as daemon:
        ask_to_compact(daemon.data, "the reason")
        assert "the reason" in finished("status", daemon.data).stdout


@pytest_twisted.ensureDeferred
async def test_a_damaged_store_is_not_served(folder: Path) -> None:
    async def fail(_work: object) -> Compacted:
        raise DamagedStore("the store is damaged")

    ask_to_compact(folder)
    with pytest.raises(DamagedStore):
        await compact_if_asked(folder, fail, StoreWork(Supervisor()))
    assert compaction_asked(folder) == ""


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """Return the folder of a store of an earlier build."""
    with tarfile.open(FORMATS / "10.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


HELD: Final = """
import sys, time
from pathlib import Path
from medamad import cli
from medamad.storage import migrations

until = Path(sys.argv.pop())

def wait(environment, progress):
    while not until.exists():
        progress("waiting", 1, 2)
        time.sleep(0.02)
    migrate(environment, progress)

step = migrations._STEPS[0]
migrate, step.migrate = step.migrate, wait
sys.exit(cli.main())
"""


@contextmanager
def held(data: Path, until_there: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a daemon, whose first migration waits until a file is there."""
    command = [sys.executable, "-c", HELD, "run", "--data", str(data)]
    listen = ["--listen", "tcp:0:interface=127.0.0.1", str(until_there)]
    with subprocess.Popen([*command, *listen], stderr=subprocess.DEVNULL) as daemon:
        try:
            said = "no hits are accepted: Bringing the store up to date: waiting (50 %)"
            until(lambda: said in finished("status", data).stdout)
            yield daemon
        finally:
            daemon.terminate()


def test_the_status_says_how_far_the_store_is_up_to_date(earlier: Path, tmp_path: Path) -> None:
    with held(earlier, tmp_path / "go on"):
        (tmp_path / "go on").touch()
        until(lambda: "websites     4," in finished("status", earlier).stdout)
    assert not is_outdated(earlier)


def test_a_daemon_that_is_stopped_ends_the_migration(earlier: Path, tmp_path: Path) -> None:
    with held(earlier, tmp_path / "never") as daemon:
        daemon.terminate()
        try:
            assert daemon.wait(timeout=60) == 0
        finally:
            daemon.kill()
    assert is_outdated(earlier)


@pytest_twisted.ensureDeferred
async def test_systemd_waits_for_a_migration_and_says_how_far_it_is(
    earlier: Path, tmp_path: Path
) -> None:
    async def at_once(work: Callable[[], Any]) -> Any:
        return work()

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        work = StoreWork(Supervisor(str(tmp_path / "notify")))
        await bring_up_to_date(earlier, 256 << 20, at_once, work)
        first = "STATUS=Bringing the store up to date: visits end after 24 hours (0 %)"
        assert systemd.recv(200).decode().split("\n") == [first, "EXTEND_TIMEOUT_USEC=600000000"]
        assert systemd.recv(200) == b"STATUS="
    assert not is_outdated(earlier)
