"""Jobs without enough space lose nothing, leave nothing behind and run later."""

import random
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import count
from typing import Final

import lmdb
import pytest
import pytest_twisted
from attrs import define, evolve, field
from support.storage.bulk_loads import code_texts, imported, made
from support.storage.contents import (
    entries,
    idle,
    orphans,
    segments_and_merged,
    settled,
    stored_rows,
)
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view, event, views
from support.storage.visible_hits import stored_texts
from twisted.internet import reactor
from twisted.internet.task import deferLater

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import NotFound, Unavailable
from medamad.domain.websites import Website
from medamad.storage.compaction.planner import Sizes
from medamad.storage.compaction.purge import LAST_SEGMENT
from medamad.storage.environment.environment import Environment
from medamad.storage.environment.meta import read_number
from medamad.storage.import_batches import ImportBatch
from medamad.storage.settings import NEW_VALUES, Keep, Retention
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


_FOR_A_DELETION: Final = 1 << 16


@define
class Taken:
    """Space of a store that something else has taken."""

    environment: Environment
    _names: list[bytes] = field(factory=list)

    def all(self, *sizes: int) -> None:
        """Take all the space, in pieces of these sizes, in this order."""
        for size in sizes:
            with suppress(lmdb.MapFullError):
                for number in count():
                    self._take(b"taken-%d-%d" % (size, number), size)

    def give_back(self) -> bool:
        """Free the last piece; return whether there was one."""
        if not self._names:
            return False
        lmdb_environment = self.environment.lmdb
        try:
            self._delete(self._names[-1])
        except lmdb.MapFullError:
            # To delete takes a few pages as well.
            lmdb_environment.set_mapsize(lmdb_environment.info()["map_size"] + _FOR_A_DELETION)
            self._delete(self._names[-1])
        self._names.pop()
        return True

    def _delete(self, name: bytes) -> None:
        with self.environment.lmdb.begin(write=True) as txn:
            txn.delete(name, db=self.environment.databases.meta)

    def _take(self, name: bytes, size: int) -> None:
        with self.environment.lmdb.begin(write=True) as txn:
            txn.put(name, bytes(size), db=self.environment.databases.meta)
        self._names.append(name)


@pytest_twisted.ensureDeferred
async def test_a_flush_without_space_is_retried_later(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=Sizes(chunk_views=200, counted_from=0), map_size=2 << 20)
    website = await store.add_website("example.com", 1)
    await store.append([event("b301"), *views(1, 300)])
    before = stored_rows(store, website)
    taken = Taken(store.environment)
    taken.all(100_000, 10_000)
    for _ in range(3):
        with pytest.raises(Unavailable, match="map_size"):
            await store.maintain(NOW_MS + 2 * DAY_MS, NOW_MS)
        assert stored_rows(store, website) == before
    assert segments_and_merged(store.environment) == (0, 0)
    while taken.give_back():
        pass
    await store.append(views(301, 301, NOW_MS + 30_000))
    await settled(store, NOW_MS + 2 * DAY_MS)
    views_there, events_there = stored_rows(store, website)
    assert len(views_there) == 301
    assert [row["view"] for row in events_there] == [("/301", NOW_MS + 30_000)]
    assert segments_and_merged(store.environment)[0] > 0
    assert entries(store, "wal") == [0]
    assert orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_flush_that_fails_half_way_leaves_nothing_behind(open_store: OpenStore) -> None:
    """Repeated failures must not fill the map."""
    store = open_store(sizes=Sizes(chunk_views=4_000, counted_from=0), map_size=8 << 20)
    await store.add_website("example.com", 1)
    rng = random.Random(1)  # noqa: S311 - the same each time
    for first in range(0, 4_000, 500):
        hits = views(first, first + 499)
        later_ms = [rng.randrange(HOUR_MS // 2) for _ in hits]
        await store.append(
            [evolve(hit, time_ms=NOW_MS + ms) for hit, ms in zip(hits, later_ms, strict=True)]
        )
    taken = Taken(store.environment)
    taken.all(50_000, 10_000, 4_000)
    now_ms = NOW_MS + DAY_MS + HOUR_MS // 2
    while not segments_and_merged(store.environment)[0]:
        # A little more room for each attempt: first to begin, in the end to finish.
        assert taken.give_back()
        with suppress(Unavailable):
            await store.maintain(now_ms)
        assert entries(store, "purge_queue") == [0]
    with store.environment.reading() as txn:
        last = read_number(txn, store.environment.databases.meta, LAST_SEGMENT)
    assert last > 3, "no attempt failed half-way"
    await settled(store, now_ms)
    assert orphans(store.environment) == []
    await store.close()


async def begun(store: Store, website: Website) -> ImportBatch:
    """Begin an import with a hundred views."""
    batch = await store.imports.begin(
        website, source="", digest="", ranges=[("other", 1, 1_000)], newest=0, now=1
    )
    await store.imports.load(batch, [imported(made(1, 100, 0), batch.spans[0].at)])
    return batch


@pytest_twisted.ensureDeferred
async def test_an_import_fails_when_hits_are_rejected_and_leaves_no_texts(
    open_store: OpenStore,
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    batch = await begun(store, website)
    store.apply(evolve(store.settings, min_free_disk=1 << 60))
    with pytest.raises(Unavailable, match="min_free_disk"):
        await store.imports.load(batch, [imported(made(2, 100, 0), batch.spans[0].at + 100)])
    paths = stored_texts(store, website, Dimension.PATH)
    assert paths == [f"/bulk-1/{number}" for number in range(100)]
    await store.imports.undo(website, batch.number)
    await idle(store)
    assert stored_texts(store, website, Dimension.PATH) == paths[-1:]
    with pytest.raises(Unavailable, match="min_free_disk"):
        await begun(store, website)
    await store.close()


@pytest.mark.parametrize("is_whole", [False, True])
@pytest_twisted.ensureDeferred
async def test_an_aborted_import_is_removed_once_there_is_space(
    open_store: OpenStore, is_whole: bool
) -> None:
    """Whether it was aborted or undone, and without a restart."""
    store = open_store(map_size=2 << 20)
    website = await store.add_website("example.com", 1)
    batch = await begun(store, website)
    await store.imports.load(batch, [imported(made(1, 20, 5), batch.spans[0].at)])
    if is_whole:
        await store.imports.finish(batch)
    taken = Taken(store.environment)
    taken.all(100_000, 10_000, 4_000, 1)
    going = store.imports.undo if is_whole else store.imports.give_up
    with pytest.raises(Unavailable, match="map_size"):
        await going(website, batch.number if is_whole else batch)
    for _ in range(2):
        with pytest.raises(Unavailable, match="map_size"):
            await store.maintain(NOW_MS)
        assert entries(store, "import_batches") == [1]
    while taken.give_back():
        pass
    if is_whole:
        # There may have been room to begin with that.
        with suppress(NotFound):
            await store.imports.undo(website, batch.number)
    await store.maintain(NOW_MS)
    assert entries(store, "import_batches", "segments", "purge_queue") == [0] * 3
    assert store.imports._totals == {}
    await begun(store, website)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_texts_of_an_undone_import_stay_for_its_readers(
    open_store: OpenStore,
) -> None:
    """An export that began before needs them to decode its views; a later one does not."""
    store = open_store()
    website = await store.add_website("example.com", 1)
    batch = await begun(store, website)
    await store.imports.finish(batch)
    reader, later = ExitStack(), ExitStack()
    reader.enter_context(store.snapshot(website))
    await store.imports.undo(website, batch.number)
    await idle(store)
    paths = [f"/bulk-1/{number}" for number in range(100)]
    assert stored_texts(store, website, Dimension.PATH) == paths
    # Nor do they go with those that are looked for each day.
    await store.maintain(NOW_MS + 3 * DAY_MS)
    assert stored_texts(store, website, Dimension.PATH) == paths
    later.enter_context(store.snapshot(website))
    reader.close()
    for _ in range(10_000):
        if stored_texts(store, website, Dimension.PATH) == paths[-1:]:
            break
        await deferLater(reactor, 0.01)
    else:
        raise AssertionError("the names are still there")
    later.close()
    await store.close()


@pytest_twisted.ensureDeferred
async def test_texts_are_deleted_in_steps_that_fit_the_space(open_store: OpenStore) -> None:
    store = open_store(map_size=4 << 20)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 5))
    unused = [f"/unused/{number}" for number in range(5_000)]
    await code_texts(store, website, {Dimension.PATH: unused}, NOW_MS)
    taken = Taken(store.environment)
    taken.all(100_000, 10_000, 4_000)
    tries = 0
    while len(stored_texts(store, website, Dimension.PATH)) > 6:
        # All of it on one day.
        with suppress(Unavailable):
            await store.maintain(NOW_MS)
        tries += 1
        assert tries < 20, "much room is needed to remove names"
        taken.give_back()
    assert tries > 1, "there was room from the start"
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_job_without_space_does_not_delay_others(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=4_000, counted_from=0), map_size=8 << 20)
    website = await store.add_website("example.com", 1)
    for first in range(0, 4_000, 500):
        await store.append(views(first, first + 499))
    await code_texts(store, website, {Dimension.COUNTRY: ["unused", "last"]}, NOW_MS)
    taken = Taken(store.environment)
    taken.all(50_000, 10_000, 4_000)
    while "unused" in stored_texts(store, website, Dimension.COUNTRY):
        assert taken.give_back()
        with pytest.raises(Unavailable, match="map_size"):
            # Not so late that beacons are forgotten, which makes room.
            await store.maintain(NOW_MS + DAY_MS + HOUR_MS // 2)
    assert segments_and_merged(store.environment) == (0, 0)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_deleting_expired_views_frees_their_texts_too(open_store: OpenStore) -> None:
    """If they filled the disk, hits would otherwise be rejected until the daily vacuum."""
    store = open_store(
        sizes=Sizes(chunk_views=400, counted_from=0),
        map_size=8 << 20,
        new_values=dict.fromkeys(NEW_VALUES, 1_000_000),
    )
    website = await store.add_website("example.com", 1)

    async def fill(time_ms: int) -> int:
        """Store views of pages with long paths until there is no space; return how many."""
        for batch in count():
            first = time_ms + 100 * batch
            paths = [f"/{first + number:01900}" for number in range(100)]
            try:
                await store.append([a_view(path=path, time_ms=time_ms) for path in paths])
            except Unavailable:
                return 100 * batch
        raise AssertionError

    many = await fill(NOW_MS)
    later_ms = NOW_MS - NOW_MS % DAY_MS + 20 * DAY_MS
    await store.maintain(later_ms)
    assert len(stored_texts(store, website, Dimension.PATH)) >= many
    assert await fill(later_ms) < many // 2
    store.apply(evolve(store.settings, retention=Retention(others=Keep(7, "nothing"))))
    await store.maintain(later_ms + HOUR_MS)
    assert await fill(later_ms + HOUR_MS) > many // 2
    await store.close()
