"""A site on a real store, pipeline and account in a temporary directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.fast_hashing import fast_hashing
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server, build_server
from twisted.internet.defer import Deferred

# pytest finds fixtures by their names here.
__all__ = ("fast_hashing", "owner", "server", "visitor", "website")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_server(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


@pytest.fixture
def visitor(server: Server) -> Browser:
    """A browser that is not logged in."""
    return server.browser()


@pytest.fixture
def owner(server: Server) -> Browser:
    """A browser that is logged in."""
    return pytest_twisted.blockon(Deferred.fromCoroutine(server.owner()))


@pytest.fixture
def website(server: Server) -> str:
    """The hostname of a registered website."""
    pytest_twisted.blockon(Deferred.fromCoroutine(server.store.add_website("example.com", NOW)))
    return "example.com"
