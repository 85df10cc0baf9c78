"""Sealing where there is no room left: nothing is lost, nothing left behind, and it comes later."""

import random
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import lmdb
import pytest
import pytest_twisted
from attrs import define, evolve, field
from held import blocks_and_groups, entries, held, orphans, settled
from views import DAY_MS, HOUR_MS, NOW_MS, event, views

from medamad.model.errors import Unavailable
from medamad.store.doomed import LAST_BLOCK
from medamad.store.environment import Environment
from medamad.store.numbers import read_number
from medamad.store.planning import Sizes
from medamad.store.store import Store

OpenStore = Callable[..., Store]


@define
class Taken:
    """Room of a store that something else has taken."""

    environment: Environment
    _names: list[bytes] = field(factory=list)

    def all(self, *sizes: int) -> None:
        """Take all there is, in pieces of these sizes, one after the other."""
        for size in sizes:
            with suppress(lmdb.MapFullError):
                for number in count():
                    self._take(b"taken-%d-%d" % (size, number), size)

    def give_back(self) -> bool:
        """Give the last piece back; returns whether there was one."""
        if not self._names:
            return False
        with self.environment.lmdb.begin(write=True) as txn:
            txn.delete(self._names.pop(), db=self.environment.databases.meta)
        return True

    def _take(self, name: bytes, size: int) -> None:
        with self.environment.lmdb.begin(write=True) as txn:
            txn.put(name, bytes(size), db=self.environment.databases.meta)
        self._names.append(name)


@pytest_twisted.ensureDeferred
async def test_a_sealing_for_which_there_is_no_room_is_taken_up_later(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=Sizes(chunk_views=200, counted_from=0), map_size=2 << 20)
    website = await store.add_website("example.com", 1)
    await store.append([event("b301"), *views(1, 300)])
    before = held(store, website)
    taken = Taken(store._environment)
    taken.all(100_000, 10_000)
    for _ in range(3):
        with pytest.raises(Unavailable, match="map_size"):
            await store.tidy(NOW_MS + 2 * DAY_MS)
        assert held(store, website) == before
    assert blocks_and_groups(store._environment) == (0, 0)
    while taken.give_back():
        pass
    await store.append(views(301, 301, NOW_MS + 30_000))
    await settled(store, NOW_MS + 2 * DAY_MS)
    views_there, events_there = held(store, website)
    assert len(views_there) == 301
    assert [row["view"] for row in events_there] == [("/301", NOW_MS + 30_000)]
    assert blocks_and_groups(store._environment)[0] > 0
    assert entries(store, "journal") == [0]
    assert orphans(store._environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_sealing_that_fails_half_way_leaves_nothing(open_store: OpenStore) -> None:
    """What is written in vain must not become ever more, and in the end fill the map."""
    store = open_store(sizes=Sizes(chunk_views=4_000, counted_from=0), map_size=8 << 20)
    await store.add_website("example.com", 1)
    rng = random.Random(1)  # noqa: S311 - the same each time
    for first in range(0, 4_000, 500):
        hits = views(first, first + 499)
        later_ms = [rng.randrange(HOUR_MS // 2) for _ in hits]
        await store.append(
            [evolve(hit, time_ms=NOW_MS + ms) for hit, ms in zip(hits, later_ms, strict=True)]
        )
    taken = Taken(store._environment)
    taken.all(50_000, 10_000, 4_000)
    now_ms = NOW_MS + DAY_MS + HOUR_MS // 2
    while not blocks_and_groups(store._environment)[0]:
        # A little more room for each attempt: first to begin, in the end to finish.
        assert taken.give_back()
        with suppress(Unavailable):
            await store.tidy(now_ms)
        assert entries(store, "doomed") == [0]
    with store._environment.reading() as txn:
        last = read_number(txn, store._environment.databases.meta, LAST_BLOCK)
    assert last > 3, "no attempt failed half-way"
    await settled(store, now_ms)
    assert orphans(store._environment) == []
    await store.close()
