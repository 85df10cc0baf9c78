"""The backups of a whole daemon, in this process."""

import os
from pathlib import Path

import msgspec
import pytest_twisted
from attrs import evolve
from support.in_process_daemon import GIVEN, Told, config_in, daemon_of
from twisted.internet import reactor
from twisted.internet.process import reapProcessHandlers
from twisted.internet.task import deferLater

from medamad.config.schema import Config
from medamad.config.values import TimeOfDay
from medamad.daemon.service import Started
from medamad.storage.environment.environment import open_environment

STANDS_STILL = """
import os, pathlib, signal
pathlib.Path(os.environ["BEGUN"]).touch()
os.kill(os.getpid(), signal.SIGSTOP)
"""


def with_backups(config: Config) -> Config:
    return evolve(config, backup=msgspec.structs.replace(config.backup, at=TimeOfDay("03:30")))


def names_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir()] if folder.exists() else []


@pytest_twisted.ensureDeferred
async def test_it_makes_backups_when_they_are_due(tmp_path: Path) -> None:
    told = Told()
    # The file has been spoilt since it was read.
    (tmp_path / "medamad.toml").write_text("[log]\nlevel = 'loud'\n", "utf-8")
    config = evolve(config_in(tmp_path / "data"), file=tmp_path / "medamad.toml")
    later = [with_backups(config)]
    daemon = daemon_of(config, told, read_config=later.pop)
    daemon.environ = {**os.environ, **GIVEN}
    daemon.look_s = 0.01
    daemon.startService()
    assert isinstance(await told.first, Started)
    folder = tmp_path / "data" / "backups"
    assert names_in(folder) == []
    await daemon.reload()
    while not any(name.startswith("medamad-") for name in names_in(folder)):
        await deferLater(reactor, 0.02)
    await daemon.stopService()
    open_environment(tmp_path / "data", 64 << 20).close()


@pytest_twisted.ensureDeferred
async def test_it_stops_beside_a_backup_that_stands_still(tmp_path: Path) -> None:
    told = Told()
    (tmp_path / "sitecustomize.py").write_text(STANDS_STILL, "utf-8")
    begun = tmp_path / "begun"
    paths = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    daemon = daemon_of(with_backups(config_in(tmp_path / "data")), told)
    daemon.environ = {**os.environ, **GIVEN, "PYTHONPATH": paths, "BEGUN": str(begun)}
    daemon.look_s = 0.01
    daemon.startService()
    await told.first
    while not begun.exists():
        await deferLater(reactor, 0.02)
    await daemon.stopService()
    open_environment(tmp_path / "data", 64 << 20).close()
    while reapProcessHandlers:
        await deferLater(reactor, 0.02)
