"""Hits in which everything is new, sent into a store, and what they take there."""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, field, frozen
from support.abuse.process_usage import anonymous_bytes
from support.query.readers import reader_of
from support.received_hits import received
from support.storage.contents import idle
from support.web.daemon_in_memory import SOURCES
from twisted.internet import reactor
from twisted.internet.defer import Deferred, DeferredList

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import TooMany
from medamad.domain.websites import Website
from medamad.ingest.networks import Address, Sender
from medamad.ingest.pipeline import Pipeline, Rules
from medamad.ingest.rate_limit import RateLimiter
from medamad.ingest.robot_counts import PendingRobots
from medamad.ingest.write_queue import WriteQueue
from medamad.query.reports import ROW_REPORTS
from medamad.query.request import Query
from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.storage.wal.memtable import CHUNK_VIEWS
from medamad.storage.wal.visit_keys import VisitSettings

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


def one_network(number: int) -> Address:
    return bytes((203, 0, 113, number % 256))


def many_networks(number: int) -> Address:
    return ((0x2001 << 112) + (number << 80)).to_bytes(16)


@frozen
class Kept:
    """How many of the latest are in memory, whatever they are; once there are so many, no more."""

    views: int = CHUNK_VIEWS
    beacons: int = StoreSettings().recent_beacons
    networks: int = 65_536
    visits: int = VisitSettings().capacity


FEW = Kept(views=500, beacons=500, networks=500, visits=500)


@frozen
class Used:
    """What a store and all before it take."""

    objects: int
    memory_bytes: int
    disk_bytes: int


@define(eq=False)
class Place:
    """A store and what is before it. `now` is the time."""

    folder: Path
    kept: Kept
    now: float = NOW
    store: Store = field(init=False)
    pipeline: Pipeline = field(init=False)
    attacked: Website = field(init=False)
    other: Website = field(init=False)

    async def open(self) -> None:
        """Open the store, and make the websites where there are none."""
        settings = StoreSettings(
            map_size=8 << 30,
            min_free_disk=0,
            new_values=BOUNDS,
            other_new_values=OTHERS,
            recent_beacons=self.kept.beacons,
            visits=VisitSettings(capacity=self.kept.visits),
        )
        self.store = start_store(self.folder, settings, reactor, Sizes(self.kept.views))
        self.attacked, self.other = self.store.websites.all() or [
            await self.store.add_website(host, NOW)
            for host in ("attacked.example", "other.example")
        ]
        self.pipeline = Pipeline(
            self.store.websites,
            WriteQueue(self.store.append, reactor),
            PendingRobots(self.store.robots.add),
            Rules(hits_per_minute=PER_MINUTE),
            lambda: self.now,
            RateLimiter(self.kept.networks),
        )

    async def open_again(self) -> None:
        """Close the store and open it, as a restart does."""
        await self.store.close()
        await self.open()

    async def send(self, host: str, number: int, address: Address, text: str = "") -> bool:
        """Send a load and a custom event; return whether both were accepted."""
        chosen = text or f"{number}-x"
        agent = AGENTS.format(number if not text else 120)
        sender = Sender(address, agent, "de-DE", gpc=False)
        utm = "&".join(f"utm_{one}={chosen}" for one in ("source", "medium", "campaign", "term"))
        load = (
            f'{{"e":"load","b":"{chosen}-{number}","u":"https://{host}/{chosen}?{utm}",'
            f'"r":"https://r{chosen}.example/{chosen}","p":true,"q":true,"d":{{"n{chosen}":"v{chosen}"}}}}'
        )
        custom = (
            f'{{"e":"custom","b":"{chosen}-{number}","g":"{host}",'
            f'"d":{{"kept":"{chosen}","m{chosen}":1}}}}'
        )
        try:
            for body in (load, custom):
                await received(self.pipeline, body.encode(), sender)
        except TooMany:
            return False
        return True

    async def flood(self, numbers: range, address_of: Callable[[int], Address]) -> int:
        """Send new values concurrently; return how many hits were accepted."""
        taken = 0
        for first in range(0, len(numbers), AT_ONCE):
            some = [
                Deferred.fromCoroutine(self.send("attacked.example", number, address_of(number)))
                for number in numbers[first : first + AT_ONCE]
            ]
            results = await DeferredList(some, fireOnOneErrback=True)
            taken += sum(bool(result) for _, result in results)
        return taken

    async def leave(self, beacon: str, durations_ms: Sequence[int]) -> None:
        """Send many unloads of one view concurrently, each from its own network."""
        for first in range(0, len(durations_ms), AT_ONCE):
            some = [
                received(
                    self.pipeline,
                    f'{{"e":"unload","b":"{beacon}","m":{duration_ms}}}'.encode(),
                    Sender(many_networks(number), AGENTS.format(120), "de-DE", gpc=False),
                )
                for number, duration_ms in enumerate(durations_ms[first : first + AT_ONCE], first)
            ]
            await DeferredList(some, fireOnOneErrback=True)

    def rows(self, website: Website, report: str) -> Any:
        """Return all the rows of a report, as they are sent."""
        run = ROW_REPORTS[report]
        found = self.store.read(website, lambda seen: run(reader_of(seen, SOURCES), Query()))
        return msgspec.json.decode(msgspec.json.encode(found.content))

    def figures(self, website: Website) -> list[object]:
        """Return what the statistics say of a website."""
        reports = ("pages", "properties", "referrer_urls", "campaigns", "browsers")
        return [self.rows(website, report) for report in reports]

    def views(self) -> dict[str, int]:
        """Return how many views each page of the attacked website has."""
        return {row["path"]: row["pageviews"] for row in self.rows(self.attacked, "pages")}

    def visitors(self, report: str, column: str) -> dict[str, int]:
        """Return how many visitors each value of a column has there."""
        return {row[column]: row["visitors"] for row in self.rows(self.attacked, report)}

    def customs(self) -> int:
        """Return how many custom events were taken there."""
        rows = self.rows(self.attacked, "properties")
        return sum(row["events"] for row in rows if row["name"] == "kept")

    def names(self, website: Website, dimension: Dimension) -> set[str]:
        """Return the texts of a dimension."""
        return self.store.read(website, lambda seen: set(seen.texts(dimension)))

    async def used(self) -> Used:
        """Measure what it takes, once nothing goes on by itself any more."""
        await idle(self.store)
        gc.collect()
        return Used(sys.getallocatedblocks(), anonymous_bytes(os.getpid()), self.used_bytes())

    def used_bytes(self) -> int:
        """Return what the files take on the disk."""
        files = (file for file in self.folder.rglob("*") if file.is_file())
        return sum(file.stat().st_blocks * 512 for file in files)
