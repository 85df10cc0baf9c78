"""Fixtures of the account tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.accounts_in_memory import accounts, doubles
from support.fast_hashing import fast_hashing
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store

# pytest finds fixtures by their names here.
__all__ = ("accounts", "doubles", "fast_hashing", "store")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = start_store(tmp_path, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor)
    yield opened
    pytest_twisted.blockon(Deferred.fromCoroutine(opened.close()))
