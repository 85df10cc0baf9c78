"""Commands that are interrupted, for example by a closed terminal."""

from pathlib import Path

import pytest
from pytest_twisted import blockon
from support.daemon import finished_fork
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from medamad.cli import main
from medamad.cli.exit_statuses import statuses
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

AT_A_WORD = """
import os, signal, sys
from medamad.cli import support

# So that no progress is left out because it follows too soon.
support._EVERY_S = 0

class Going:
    def isatty(self):
        return True

    def write(self, text):
        if {at!r} in text:
            # The shell and the system each tell of a terminal that goes.
            for _ in range(2):
                os.kill(os.getpid(), signal.{by})

    def flush(self):
        pass

sys.stderr = Going()
handler = signal.{how}
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, handler)
signal.signal(signal.SIGINT, handler or signal.default_int_handler)
"""
"""Sends a command a signal when it tells how far it has come by a word."""

COMMANDS = (
    ("backup", "out/one"),
    ("restore", "backup", "--data", "out"),
    ("export", "example.com", "--output", "out/one"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder in which the data of a website are, a backup of them, and room for more."""
    data = tmp_path / "medamad-data"
    store = start_store(data, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor)
    blockon(Deferred.fromCoroutine(store.add_website("example.com", 1)))
    blockon(Deferred.fromCoroutine(store.close()))
    assert main(["backup", str(tmp_path / "backup"), "--data", str(data)]) == 0
    (tmp_path / "out").mkdir()
    return tmp_path


def end_by_signal(
    folder: Path, by: str, command: tuple[str, ...], how: str = "SIG_DFL", at: str = ""
) -> int:
    """Return the status of a command that is interrupted once it prints a word."""
    before = AT_A_WORD.format(by=by, how=how, at=at)
    return finished_fork(command, folder, before=before).returncode


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("by", ["SIGTERM", "SIGHUP"])
def test_partial_output_is_removed(folder: Path, by: str, command: tuple[str, ...]) -> None:
    status = end_by_signal(folder, by, command)
    assert status == 130
    assert status in statuses(command[0])
    assert {each.name for each in (folder / "out").iterdir()} <= {"daemon.lock"}


@pytest.mark.parametrize("command", COMMANDS)
def test_nohup_is_respected(folder: Path, command: tuple[str, ...]) -> None:
    """As nohup has it."""
    assert end_by_signal(folder, "SIGHUP", command, "SIG_IGN") == 0
    assert {each.name for each in (folder / "out").iterdir()} & {"one", "store.mdb"}


OVER_WHAT_IS_THERE = ("restore", "backup", "--data", "medamad-data")
PLACING = "putting it in place"


@pytest.mark.parametrize("at", ["unpacking", f"{PLACING}: 0 of 2", f"{PLACING}: 1 of 2"])
@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupted_restore_leaves_the_store(folder: Path, by: str, at: str) -> None:
    def there() -> dict[str, int]:
        return {file.name: file.stat().st_ino for file in (folder / "medamad-data").iterdir()}

    before = there()
    assert end_by_signal(folder, by, OVER_WHAT_IS_THERE, at=at) == 130
    assert there() == before


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_store_is_replaced_with_all_its_files(folder: Path, by: str) -> None:
    data = folder / "medamad-data"
    for name in ("presence.json", "first-login.txt"):
        (data / name).write_text("of the store before", "utf-8")
    assert end_by_signal(folder, by, OVER_WHAT_IS_THERE, at=f"{PLACING}: 2 of 2") == 0
    names = {file.name.partition(".replaced-")[0] for file in data.glob("*.replaced-*")}
    assert names == {"store.mdb", "first-login.txt"}
    assert not {"presence.json", "first-login.txt"} & {file.name for file in data.iterdir()}
