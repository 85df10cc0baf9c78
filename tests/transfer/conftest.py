"""Stores in a temporary folder, by name."""

from collections.abc import Callable
from pathlib import Path

import pytest
from twisted.internet import reactor

from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store


@pytest.fixture
def open_store(tmp_path: Path) -> Callable[..., Store]:
    def open_again(
        sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
        name: str = "data",
        **settings: object,
    ) -> Store:
        chosen = StoreSettings(map_size=64 << 20, min_free_disk=0, **settings)
        return start_store(tmp_path / name, chosen, reactor, sizes)

    return open_again
