"""Hits in which everything is new: what strangers can make grow has bounds."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_twisted
from attrs import define
from house import SOURCES
from measuring import anonymous_bytes
from twisted.internet import reactor
from twisted.internet.defer import Deferred, DeferredList

from medamad.collect.collector import Collector
from medamad.collect.queue import HitQueue
from medamad.collect.rates import Rates
from medamad.collect.refusals import Refusals
from medamad.collect.rules import Rules
from medamad.collect.sender import Address, Sender
from medamad.model.dimensions import Dimension
from medamad.model.errors import TooMany
from medamad.model.websites import Website
from medamad.stats import dimensions, pages
from medamad.stats.properties import report as report_properties
from medamad.stats.question import Question
from medamad.store.settings import StoreSettings
from medamad.store.store import Store
from medamad.store.tail import CHUNK_VIEWS

NOW = 1_790_000_000
PER_MINUTE = 600
AT_ONCE = 2_000
BOUNDS = {
    Dimension.PATH: 400,
    Dimension.REFERRER: 300,
    Dimension.UTM_SOURCE: 100,
    Dimension.UTM_MEDIUM: 100,
    Dimension.UTM_CAMPAIGN: 100,
    Dimension.UTM_TERM: 100,
    Dimension.UTM_CONTENT: 100,
    Dimension.PROPERTY_NAME: 20,
    Dimension.PROPERTY: 30,
}
OTHERS = 50
AGENTS = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/{0}.0.0.0 Safari/537.36"
LONGEST_S = 3_600
LONG = (pytest.mark.slow, pytest.mark.timeout(LONGEST_S))
NEW_NAMES = 10
BYTES_A_NAME = 200
"""What a name takes in memory at least, were it kept: its text, its code, both of their places."""
SMALL_BYTES = NEW_NAMES * BYTES_A_NAME * 1_000_000 // 8
"""An eighth of what the names of a million hits would take; to seal and to merge takes some."""
BYTES_A_HIT = 1_500
"""What a hit may take in the file while it waits to be sealed, beacon, journal and all."""
FEW_BYTES = 64 * 1_024
"""What the pages of a few commits take."""
BYTES_A_LEAVING = 120
MOST_LEAVINGS = 4 * CHUNK_VIEWS
"""Of so many, the views are sealed."""


@define(eq=False)
class Place:
    """A store and what is before it. `now` is the time."""

    store: Store
    collector: Collector
    attacked: Website
    other: Website
    folder: Path
    now: float = NOW

    async def send(self, host: str, number: int, address: Address, text: str = "") -> bool:
        """Send a load and a custom event; tells whether both were taken."""
        said = text or f"{number}-x"
        agent = AGENTS.format(number if not text else 120)
        sender = Sender(address, agent, "de-DE", gpc=False)
        utm = "&".join(f"utm_{one}={said}" for one in ("source", "medium", "campaign", "term"))
        load = (
            f'{{"e":"load","b":"{said}-{number}","u":"https://{host}/{said}?{utm}",'
            f'"r":"https://r{said}.example/{said}","p":true,"q":true,"d":{{"n{said}":"v{said}"}}}}'
        )
        custom = (
            f'{{"e":"custom","b":"{said}-{number}","g":"{host}",'
            f'"d":{{"kept":"{said}","m{said}":1}}}}'
        )
        try:
            for body in (load, custom):
                await self.collector.collect(body.encode(), sender)
        except TooMany:
            return False
        return True

    async def flood(self, count: int, address_of: Callable[[int], Address]) -> int:
        """Send so many, many of them at once; gives how many were taken."""
        taken = 0
        for first in range(0, count, AT_ONCE):
            some = [
                Deferred.fromCoroutine(self.send("attacked.example", number, address_of(number)))
                for number in range(first, min(first + AT_ONCE, count))
            ]
            results = await DeferredList(some, fireOnOneErrback=True)
            taken += sum(bool(result) for _, result in results)
        return taken

    async def leave(self, beacon: str, durations_ms: Sequence[int]) -> None:
        """Send unloads of one view, each from a network of its own, many of them at once."""
        for first in range(0, len(durations_ms), AT_ONCE):
            some = [
                Deferred.fromCoroutine(
                    self.collector.collect(
                        f'{{"e":"unload","b":"{beacon}","m":{duration_ms}}}'.encode(),
                        Sender(many_networks(number), AGENTS.format(120), "de-DE", gpc=False),
                    )
                )
                for number, duration_ms in enumerate(durations_ms[first : first + AT_ONCE], first)
            ]
            await DeferredList(some, fireOnOneErrback=True)

    def rows(self, website: Website, report: Callable[..., object]) -> Any:
        """Give all the rows of a report, as they are sent."""
        found = self.store.ask(website, lambda seen: report(seen, Question(), SOURCES))
        return msgspec.json.decode(msgspec.json.encode(found))

    def figures(self, website: Website) -> list[object]:
        """Give what the statistics say of a website."""
        columns = (dimensions.REFERRERS, dimensions.CAMPAIGNS, dimensions.BROWSERS)
        return [
            self.rows(website, pages.report),
            self.rows(website, report_properties),
            *(
                self.rows(website, lambda *asked, one=column: dimensions.report(*asked, column=one))
                for column in columns
            ),
        ]

    def names(self, website: Website, dimension: Dimension) -> set[str]:
        """Give the texts of a dimension."""
        return self.store.ask(website, lambda seen: set(seen.texts(dimension)))


def open_in(folder: Path) -> Store:
    settings = StoreSettings(
        map_size=8 << 30, min_free_disk=0, new_values=BOUNDS, other_new_values=OTHERS
    )
    return Store.open(folder, settings, reactor)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    store = open_in(tmp_path)
    attacked, other = (
        pytest_twisted.blockon(Deferred.fromCoroutine(store.add_website(host, NOW)))
        for host in ("attacked.example", "other.example")
    )
    collector = Collector(
        store.websites,
        HitQueue(store.append, reactor),
        Refusals(),
        Rates(PER_MINUTE),
        Rules(),
        lambda: built.now,
    )
    built = Place(store, collector, attacked, other, tmp_path)
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


def one_network(number: int) -> Address:
    return IPv4Address((203 << 24) + (113 << 8) + number % 256)


def many_networks(number: int) -> Address:
    return IPv6Address((0x2001 << 112) + (number << 80))


async def known_before(place: Place) -> None:
    """Send what is to stay as it is."""
    for host in ("attacked.example", "other.example"):
        for number in range(5):
            assert await place.send(host, number, many_networks(number), "known")


def check_names(place: Place) -> None:
    """Hold what is kept of the flood to its bounds."""
    for dimension, bound in {**BOUNDS, Dimension.BROWSER_VERSION: OTHERS}.items():
        most = bound
        if dimension == Dimension.PROPERTY:
            most *= BOUNDS[Dimension.PROPERTY_NAME]
        # Beside the bound stands (other), of properties for each name.
        most += 2 + BOUNDS[Dimension.PROPERTY_NAME] * (dimension == Dimension.PROPERTY)
        assert len(place.names(place.attacked, dimension)) <= most, dimension


async def from_many(place: Place, count: int) -> None:
    """Flood a website from many networks, and see what that did."""
    await known_before(place)
    others = place.figures(place.other)
    assert await place.flood(count, many_networks) == count
    check_names(place)
    assert place.figures(place.other) == others
    paths = {row["path"]: row for row in place.rows(place.attacked, pages.report)}
    assert paths["/known"]["pageviews"] == 5
    assert paths["(other)"]["pageviews"] == count - (BOUNDS[Dimension.PATH] - 1)
    assert sum(row["pageviews"] for row in paths.values()) == count + 5
    # What was known before is still counted as what it is.
    assert await place.send("attacked.example", count, many_networks(0), "known")
    paths = {row["path"]: row for row in place.rows(place.attacked, pages.report)}
    assert paths["/known"]["pageviews"] == 6
    assert len(place.collector.rates) <= place.collector.rates.capacity
    assert used_bytes(place) <= 2 * BYTES_A_HIT * (count + 2_000)


def used_bytes(place: Place) -> int:
    return sum(file.stat().st_blocks * 512 for file in place.folder.rglob("*") if file.is_file())


@pytest_twisted.ensureDeferred
async def test_from_many_networks_new_values_are_bounded(place: Place) -> None:
    await from_many(place, 4_000)


@pytest.mark.parametrize("count", [4_000, pytest.param(1_000_000, marks=LONG)])
@pytest_twisted.ensureDeferred
async def test_from_one_network_few_are_taken(place: Place, count: int) -> None:
    await known_before(place)
    others = place.figures(place.other)
    disk = used_bytes(place)
    assert await place.flood(count, one_network) <= PER_MINUTE
    assert used_bytes(place) - disk <= 2 * BYTES_A_HIT * (PER_MINUTE + 2_000)
    assert place.figures(place.other) == others
    # Everybody else is taken as before.
    assert await place.send("attacked.example", 1, IPv4Address("198.51.100.1"), "known")
    place.now += 60
    assert await place.send("attacked.example", 1, one_network(1), "known")


@pytest.mark.parametrize("count", [4_000, pytest.param(1_000_000, marks=LONG)])
@pytest_twisted.ensureDeferred
async def test_a_page_that_is_left_again_and_again_takes_little_room(
    place: Place, count: int
) -> None:
    await known_before(place)
    await place.leave("known-0", [1, 2])
    others = place.figures(place.other)
    before = place.store.usage().used
    await place.leave("known-0", [7] * count)
    assert place.store.usage().used - before <= FEW_BYTES
    await place.leave("known-0", range(8, 8 + count))
    kept_bytes = min(count, MOST_LEAVINGS) * BYTES_A_LEAVING
    assert place.store.usage().used - before <= kept_bytes + FEW_BYTES
    seen = place.figures(place.attacked)
    await place.store.close()
    place.store = open_in(place.folder)
    assert place.figures(place.attacked) == seen
    assert place.figures(place.other) == others
    paths = {row["path"]: row for row in place.rows(place.attacked, pages.report)}
    assert paths["/known"]["pageviews"] == 5


@pytest.mark.slow
@pytest.mark.timeout(LONGEST_S)
@pytest_twisted.ensureDeferred
async def test_a_million_new_values_take_bounded_memory_and_disk(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    # What is in memory for a while is there by then: the tail, the latest beacons, the networks.
    await from_many(place, 300_000)
    before, disk = anonymous_bytes(os.getpid()), used_bytes(place)
    assert await place.flood(1_000_000, lambda number: many_networks(number + 300_000)) > 0
    grown, taken = anonymous_bytes(os.getpid()) - before, used_bytes(place) - disk
    with capsys.disabled():
        seconds = time.monotonic() - began
        text = (
            f"{grown / 2**20:.0f} MiB of memory, {taken / 2**20:.0f} MiB of disk, {seconds:.0f} s"
        )
        os.write(1, f"\n{text}\n".encode())
    check_names(place)
    assert grown < SMALL_BYTES
    assert taken < 2 * BYTES_A_HIT * 1_000_000
