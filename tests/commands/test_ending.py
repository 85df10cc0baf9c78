"""Commands that are told to end before they are done, as by a terminal that goes."""

import subprocess
import sys
from pathlib import Path

import pytest
from pytest_twisted import blockon
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from medamad.commands import main
from medamad.commands.statuses import statuses
from medamad.store.settings import StoreSettings
from medamad.store.store import Store

AT_THE_FIRST_WORD = """
import os, signal, sys
from medamad.commands import main

class Going:
    def isatty(self):
        return True

    def write(self, _):
        # The shell and the system each tell of a terminal that goes.
        for _ in range(2):
            os.kill(os.getpid(), signal.Signals[sys.argv[1]])

    def flush(self):
        pass

sys.stderr = Going()
for number in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.Handlers[sys.argv[2]])
sys.exit(main(sys.argv[3:]))
"""
"""Runs a command, and tells it to end when it tells how far it has come."""

COMMANDS = (
    ("backup", "out/one"),
    ("restore", "backup", "--data", "out"),
    ("export", "example.com", "--output", "out/one"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder in which the data of a website are, a backup of them, and room for more."""
    data = tmp_path / "medamad-data"
    store = Store.open(data, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor)
    blockon(Deferred.fromCoroutine(store.add_website("example.com", 1)))
    blockon(Deferred.fromCoroutine(store.close()))
    assert main(["backup", str(tmp_path / "backup"), "--data", str(data)]) == 0
    (tmp_path / "out").mkdir()
    return tmp_path


def told_to_end(folder: Path, by: str, how: str, command: tuple[str, ...]) -> int:
    return subprocess.run(
        [sys.executable, "-c", AT_THE_FIRST_WORD, by, how, *command],
        cwd=folder,
        check=False,
        timeout=60,
    ).returncode


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("by", ["SIGTERM", "SIGHUP"])
def test_nothing_half_done_stays(folder: Path, by: str, command: tuple[str, ...]) -> None:
    status = told_to_end(folder, by, "SIG_DFL", command)
    assert status == 130
    assert status in statuses(command[0])
    assert {each.name for each in (folder / "out").iterdir()} <= {"daemon.lock"}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_to_outlast_its_terminal_goes_on(folder: Path, command: tuple[str, ...]) -> None:
    """As nohup has it."""
    assert told_to_end(folder, "SIGHUP", "SIG_IGN", command) == 0
    assert {each.name for each in (folder / "out").iterdir()} & {"one", "store.mdb"}
