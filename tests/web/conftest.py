"""A site on a real store, collector and account in a temporary directory."""

from collections.abc import Iterator
from datetime import UTC
from ipaddress import ip_network
from pathlib import Path

import pytest
import pytest_twisted
from browser import Browser
from house import NOW, PASSWORD, USERNAME, House
from twisted.internet import reactor
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from medamad.account.accounts import Accounts
from medamad.collect.collector import Collector
from medamad.collect.networks import Networks
from medamad.collect.queue import HitQueue
from medamad.collect.rates import Rates
from medamad.collect.refusals import Refusals
from medamad.collect.rules import Rules
from medamad.store.settings import StoreSettings
from medamad.store.store import Store
from medamad.vocabulary.sources import Sources
from medamad.vocabulary.spam import SpamHosts
from medamad.web.app import make_site
from medamad.web.settings import WebSettings


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    store = Store.open(
        tmp_path / "data", StoreSettings(map_size=64 << 20, min_free_disk=0), reactor
    )
    clock = lambda: built.now  # noqa: E731 - the house has the clock, and needs it to be built
    accounts = Accounts(
        store=store,
        data_dir=tmp_path,
        hashing=execute,
        clock=clock,
        environ={"MEDAMAD_USERNAME": USERNAME, "MEDAMAD_PASSWORD": PASSWORD},
    )
    collector = Collector(
        store.websites,
        HitQueue(store.append, reactor),
        Refusals(),
        Rates(0),
        Rules(
            bots="declared",
            blocked=Networks([ip_network("192.0.2.0/24")]),
            spam=SpamHosts(["spam.example"]),
            zone=UTC,
            hits_per_minute=0,
        ),
        clock,
    )
    turns = Clock()
    site = make_site(
        store=store,
        collector=collector,
        accounts=accounts,
        ask=execute,
        settings=WebSettings(
            sources=Sources({"google.com": "Google"}), data_dir=tmp_path, commit="c0ffee1"
        ),
        clock=clock,
        reactor=turns,
    )
    built = House(site, store, collector, turns)
    pytest_twisted.blockon(Deferred.fromCoroutine(accounts.ensure_first()))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(store.close()))


@pytest.fixture
def stranger(house: House) -> Browser:
    """A browser that is not logged in."""
    return house.browser()


@pytest.fixture
def owner(house: House) -> Browser:
    """A browser that is logged in."""
    browser = house.browser()
    pytest_twisted.blockon(Deferred.fromCoroutine(browser.log_in(USERNAME, PASSWORD)))
    return browser


@pytest.fixture
def website(house: House) -> str:
    """The hostname of a registered website."""
    pytest_twisted.blockon(Deferred.fromCoroutine(house.store.add_website("example.com", NOW)))
    return "example.com"
