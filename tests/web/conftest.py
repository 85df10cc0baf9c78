"""A site on a real store, collector and account in a temporary directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, House, build_house
from twisted.internet.defer import Deferred


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_house(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


@pytest.fixture
def stranger(house: House) -> Browser:
    """A browser that is not logged in."""
    return house.browser()


@pytest.fixture
def owner(house: House) -> Browser:
    """A browser that is logged in."""
    return pytest_twisted.blockon(Deferred.fromCoroutine(house.owner()))


@pytest.fixture
def website(house: House) -> str:
    """The hostname of a registered website."""
    pytest_twisted.blockon(Deferred.fromCoroutine(house.store.add_website("example.com", NOW)))
    return "example.com"
