"""Random hits over some days on two websites, and maintenance and deletions in between."""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import count

from attrs import define, evolve, field, frozen
from support.storage.contents import settled, stored_rows
from support.storage.hits import NOW_MS
from support.storage.naive_store import NaiveStore
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from medamad.domain.dimensions import Since, WidthClass
from medamad.domain.hits import Event, Hit, Unload, View
from medamad.domain.websites import Website
from medamad.storage.store import Store

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_AHEAD_MS = (
    *(0, 0, 0, 1, 900, 9_000, 20_000, 40_000, 60_000),
    *(HOUR_MS, 7 * HOUR_MS, DAY_MS, 26 * HOUR_MS, -HOUR_MS),
)
_DURATIONS_MS = (1, 200, 4999, 5000, 5001, 70_000, DAY_MS)
_PROPERTIES = ((("plan", "free"),), (("plan", "pro"), ("n", "3")), (("Plan", ""),))


@frozen
class Append:
    hits: Sequence[Hit]


@frozen
class Tidy:
    """`is_awaited` says whether anything else happens meanwhile."""

    now_ms: int
    is_awaited: bool = True


@frozen
class Delete:
    """The website of that place is deleted, and another made in its place."""

    place: int


Step = Append | Tidy | Delete


@define
class Scene:
    """Generates the steps. `numbers` are those of the websites that get hits."""

    rng: random.Random
    numbers: list[int]
    now_ms: int = NOW_MS
    _newest_ms: int = NOW_MS
    _count: Iterator[int] = field(factory=count)
    _beacons: list[str] = field(factory=list)
    _early: list[str] = field(factory=list)
    """Beacons that something has named, and no load yet."""

    def steps(self, length: int) -> Iterator[Step]:
        for _ in range(length):
            # A beacon is known for an hour more than a day: so far a clock may be set back.
            self._newest_ms = max(self._newest_ms, self.now_ms)
            ahead_ms = self.rng.choice(_AHEAD_MS)
            self.now_ms = max(self.now_ms + ahead_ms, self._newest_ms - HOUR_MS)
            kind = self.rng.random()
            if ahead_ms >= DAY_MS:
                yield from self._overtaken()
            elif kind < 0.75:
                yield Append([self.hit() for _ in range(self.rng.choice((1, 1, 2, 3, 7)))])
            elif kind < 0.98:
                yield Tidy(self.now_ms, is_awaited=self.rng.random() < 0.5)
            else:
                yield Delete(self.rng.randrange(len(self.numbers)))

    def _overtaken(self) -> Iterator[Step]:
        """Yield a flush by age between an event and the load that it belongs to."""
        event, load = self._event(self._new()), self._view()
        yield Append([event])
        yield Tidy(self.now_ms)
        yield Append([evolve(load, beacon=event.beacon, website=event.website)])

    def hit(self) -> Hit:
        kind = self.rng.random()
        if kind < 0.5:
            return self._view()
        beacon = self._named()
        if kind < 0.8:
            return Unload(
                time_ms=self.now_ms, beacon=beacon, duration_ms=self.rng.choice(_DURATIONS_MS)
            )
        return self._event(self.rng.choice(("", beacon, beacon)))

    def _event(self, beacon: str) -> Event:
        return Event(
            website=self.rng.choice(self.numbers),
            time_ms=self.now_ms,
            properties=self.rng.choice(_PROPERTIES),
            beacon=beacon,
        )

    def _view(self) -> View:
        rng, number = self.rng, next(self._count)
        return View(
            website=rng.choice(self.numbers),
            time_ms=self.now_ms,
            beacon=self._loaded(),
            first_today=rng.random() < 0.6,
            first_of_page=rng.random() < 0.6,
            hosting=rng.random() < 0.3,
            path=f"/{number}",
            referrer=rng.choice(("", "google.com")),
            browser=rng.choice(("Firefox", "Chrome")),
            browser_version=rng.choice(("1", "2")),
            country=rng.choice(("", "DE", "GB")),
            locale=rng.choice(("", "de-DE")),
            host="example.com",
            since=("", *Since)[number % 6],
            width_class=rng.choice(tuple(WidthClass)),
            properties=rng.choice(((), (), *_PROPERTIES)),
        )

    def _loaded(self) -> str:
        """Return the beacon of a load: a new one, one that came early, or a repeated one."""
        kind = self.rng.random()
        if self._early and kind < 0.4:
            return self._early.pop(self.rng.randrange(len(self._early)))
        if self._beacons and kind > 0.95:
            return self.rng.choice(self._beacons[-12:])
        return self._new()

    def _named(self) -> str:
        """Return the beacon of a past or future load."""
        if self._beacons and self.rng.random() < 0.7:
            return self.rng.choice(self._beacons[-12:])
        self._early = [*self._early[-2:], self._new()]
        return self._early[-1]

    def _new(self) -> str:
        self._beacons.append(f"b{len(self._beacons)}")
        return self._beacons[-1]


@define
class ScenePlayer:
    """Runs the steps of a scene on a store and applies them to the naive store."""

    store: Store
    websites: list[Website]
    expected: NaiveStore = field(factory=NaiveStore)
    acknowledged: Callable[[], None] = lambda: None
    """Called whenever a change is known to be stored."""
    _under_way: list[Deferred[None]] = field(factory=list)

    @classmethod
    async def begin(cls, store: Store) -> "ScenePlayer":
        websites = [await store.add_website(f"{number}.example", 1) for number in range(2)]
        player = cls(store, websites)
        for website in websites:
            player.expected.add_website(website.number)
        return player

    async def play(self, scene: Scene, length: int) -> None:
        """Generate so many steps and run them."""
        for step in scene.steps(length):
            await self.run(step)
            scene.numbers = [website.number for website in self.websites]

    async def run(self, step: Step) -> None:
        match step:
            case Append(hits):
                await self.store.append(hits)
                for hit in hits:
                    self.expected.append(hit)
                self.acknowledged()
            case Tidy(now_ms, is_awaited):
                tidying = Deferred.fromCoroutine(self.store.maintain(now_ms))
                if is_awaited:
                    await tidying
                else:
                    tidying.addErrback(Failure.trap, CancelledError)
                    self._under_way.append(tidying)
            case Delete(place):
                old = self.websites[place]
                await self.store.delete_website(old)
                self.expected.delete_website(old.number)
                self.acknowledged()
                website = await self.store.add_website(old.hostname, 1)
                self.expected.add_website(website.number)
                self.websites[place] = website
                self.acknowledged()

    def check(self) -> None:
        for website in self.websites:
            there, wanted = stored_rows(self.store, website), self.expected.rows(website.number)
            if there == wanted:
                continue
            for found, rows in zip(there, wanted, strict=True):
                assert [row for row in found if row not in rows] == [], "unexpected rows"
                assert [row for row in rows if row not in found] == [], "missing rows"
                assert len(found) == len(rows)

    async def restart(self, open_store: Callable[[], Store]) -> None:
        """Stop as the daemon does, and start again."""
        for tidying in self._under_way:
            tidying.cancel()
        self._under_way.clear()
        await self.store.close()
        self.expected.restart()
        self.store = open_store()

    async def settle(self, now_ms: int) -> None:
        for tidying in self._under_way:
            await tidying
        self._under_way.clear()
        await settled(self.store, now_ms)
