"""A store in a temporary directory, with a reactor that runs calls from threads at once."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from twisted.internet import reactor

from medamad.storage.compaction.division import FindLeftOut
from medamad.storage.compaction.planner import Sizes
from medamad.storage.environment.environment import Environment, open_environment
from medamad.storage.environment.folder import BACKUP_SUFFIX
from medamad.storage.environment.writer import CallsFromThread
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store

MAP_SIZE = 64 << 20


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Environment]:
    opened = open_environment(tmp_path / "data", MAP_SIZE)
    yield opened
    opened.close()


@pytest.fixture
def open_store(tmp_path: Path) -> Callable[..., Store]:
    def open_again(
        sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
        name: str = "data",
        its_reactor: CallsFromThread = reactor,
        find_left_out: FindLeftOut | None = None,
        **settings: object,
    ) -> Store:
        chosen = {"map_size": MAP_SIZE, "min_free_disk": 0} | settings
        store_settings = StoreSettings(**chosen)
        return start_store(tmp_path / name, store_settings, its_reactor, sizes, find_left_out)

    return open_again


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    return tmp_path / f"backup{BACKUP_SUFFIX}"
