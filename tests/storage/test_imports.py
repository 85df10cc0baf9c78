"""An import is atomic: visible completely or not at all, counted once, undone completely."""

import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import pytest_twisted
from support.query.readers import reader_of
from support.query.snapshots import SOURCES
from support.storage.bulk_loads import Bulk, expected, imported, made, together
from support.storage.contents import (
    agrees,
    entries,
    idle,
    orphans,
    segments_and_merged,
    settled,
    stored_rows,
)
from support.storage.hits import DAY_MS, NOW_MS, event, unload, views
from support.storage.log_lines import logged_warnings
from support.storage.reactor import RecordingReactor
from twisted.internet.defer import Deferred

from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.goals import Definitions, Exclusion
from medamad.domain.websites import Website
from medamad.query.embedded.excluded import find_left_out
from medamad.query.exclusions import rules_of
from medamad.query.request import Gap, Query
from medamad.storage.check import StoreCheck
from medamad.storage.compaction.planner import Sizes
from medamad.storage.compaction.retention import cutoff_of
from medamad.storage.import_batches import ImportBatch
from medamad.storage.imports import ImportedHits
from medamad.storage.offline import open_reader
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
SIZES = Sizes(chunk_views=8, merged_members=2, counted_from=2)


async def begun(
    store: Store, website: Website, *, digest: str = "digest", newest: int = 0, of: str = "other"
) -> ImportBatch:
    return await store.imports.begin(
        website, source="views.csv", digest=digest, ranges=[(of, 11, 1_000)], newest=newest, now=7
    )


async def load(store: Store, batch: ImportBatch, bulk: Bulk, pieces: int = 4) -> None:
    """Load a bulk in several segments."""
    whole = imported(bulk, batch.spans[0].at)
    ends = np.linspace(0, len(bulk), pieces + 1).astype(int).tolist()
    content = whole.content
    for begin, end in pairwise(ends):
        span = slice(begin, end)
        views_of = content.sequence[span]
        own = np.isin(content.events.view, views_of) | (content.events.view == 0) * (begin == 0)
        await store.imports.load(
            batch,
            [
                ImportedHits(
                    content.select(span, own),
                    whole.texts,
                )
            ],
        )


async def loaded(open_store: OpenStore) -> tuple[Store, Website, ImportBatch]:
    """Open a store with a batch that is loaded and not finished."""
    store = open_store(sizes=SIZES)
    website = await store.add_website("example.com", 1)
    batch = await begun(store, website)
    await load(store, batch, made(1, 20, 5))
    return store, website, batch


def findings(store: Store) -> list[str]:
    with store.environment.reading() as txn:
        return list(StoreCheck(store.environment, txn).findings())


@pytest_twisted.ensureDeferred
async def test_a_batch_becomes_visible_and_is_undone_as_a_whole(open_store: OpenStore) -> None:
    store = open_store(sizes=SIZES)
    website = await store.add_website("example.com", 1)
    await store.append([event("b1"), *views(1, 12), unload(2, 700)])
    await settled(store, NOW_MS + DAY_MS + 1)
    before = stored_rows(store, website)
    bulk = made(1, 40, 9)
    batch = await begun(store, website)
    await load(store, batch, bulk)
    assert stored_rows(store, website) == before
    assert store.imports.batches(website) == []
    # What comes meanwhile is flushed and merged beside it.
    await store.append([*views(13, 40, NOW_MS + DAY_MS), unload(13, 900, NOW_MS + DAY_MS)])
    await settled(store, NOW_MS + 3 * DAY_MS)
    before = stored_rows(store, website)
    whole = await store.imports.finish(batch)
    both = together(before, expected(bulk))
    assert stored_rows(store, website) == both
    assert (whole.views, whole.events) == (40, len(np.unique(bulk.event)))
    assert whole.visitors == np.count_nonzero(bulk.first_today)
    assert (whole.first_ms, whole.last_ms) == bulk.time_bounds()
    assert store.imports.batches(website) == [whole]
    for _ in range(2):
        await settled(store, NOW_MS + 9 * DAY_MS)
        assert stored_rows(store, website) == both
        store.read(website, agrees)
        assert orphans(store.environment) == findings(store) == []
        assert segments_and_merged(store.environment)[1] > 0
        await store.close()
        store = open_store(sizes=SIZES)
    assert await store.imports.undo(website, whole.number) == whole
    for _ in range(2):
        assert stored_rows(store, website) == before
        store.read(website, agrees)
        await settled(store, NOW_MS + 12 * DAY_MS)
        assert orphans(store.environment) == findings(store) == []
        assert store.imports.batches(website) == []
        assert entries(store, "import_batches") == [0]
        await store.close()
        store = open_store(sizes=SIZES)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_imported_hits_keep_their_original_ids(open_store: OpenStore) -> None:
    """Their store and number there, whatever numbers they have here."""
    store = open_store(sizes=SIZES)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 3))
    batch = await begun(store, website)
    await load(store, batch, made(1, 20, 0))
    at = batch.spans[0].at
    ours = store.imports.origins(website).store
    numbers = np.array([1, at, at + 19, batch.spans[0].end, 0], np.uint64)
    assert store.imports.origins(website).of(numbers)[0] == [ours] * 5
    await store.imports.finish(batch)
    stores, found = store.imports.origins(website).of(numbers)
    assert stores == [ours, "other", "other", "other", ours]
    assert found == [1, 11, 30, 1_000, 0]
    await store.close()
    store = open_store(sizes=SIZES)
    assert store.imports.origins(website).of(numbers) == (stores, found)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_nothing_is_imported_twice(open_store: OpenStore) -> None:
    store = open_store(sizes=SIZES)
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    batch = await begun(store, website)
    with pytest.raises(Conflict, match="under way"):
        await begun(store, website, digest="another")
    await load(store, batch, made(1, 20, 5))
    await store.imports.finish(batch)
    with pytest.raises(Conflict, match=f"imported before, as number {batch.number}"):
        await begun(store, website)
    with pytest.raises(Conflict, match="come in between"):
        await begun(store, website, digest="another")
    with pytest.raises(Conflict, match="has ended"):
        await load(store, batch, made(1, 20, 5))
    with pytest.raises(Conflict, match="has ended"):
        await store.imports.finish(batch)
    with pytest.raises(NotFound, match="nothing was imported as number"):
        await store.imports.undo(other, batch.number)
    await begun(store, other)
    await store.imports.undo(website, batch.number)
    again = await begun(store, website)
    assert again.number > batch.number
    assert again.spans[0].at > batch.spans[0].end
    await store.close()


@pytest.mark.parametrize(
    "ranges", [[("other", 0, 5)], [("other", 7, 6)], [("", 1, 1 << 60)], [("x", 1 << 62, 1 << 63)]]
)
@pytest_twisted.ensureDeferred
async def test_impossible_numbers_are_rejected(
    open_store: OpenStore, ranges: list[tuple[str, int, int]]
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    with pytest.raises(BadRequest, match="view: expected numbers"):
        await store.imports.begin(website, source="", digest="", ranges=ranges, newest=0, now=1)
    batch = await begun(store, website)
    for first in (batch.spans[0].at - 1, batch.spans[0].end - 3):
        with pytest.raises(BadRequest, match="expected ascending numbers"):
            await store.imports.load(batch, [imported(made(1, 5, 0), first)])
    assert entries(store, "segments") == [0]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_aborted_import_accepts_nothing_more(open_store: OpenStore) -> None:
    store, website, batch = await loaded(open_store)
    await store.imports.undo(website, batch.number)
    with pytest.raises(NotFound, match="was given up"):
        await load(store, batch, made(1, 20, 5))
    with pytest.raises(NotFound, match="was given up"):
        await store.imports.finish(batch)
    await settled(store, NOW_MS)
    assert entries(store, "import_batches", "segments", "counters", "purge_queue") == [0] * 4
    await store.close()


@pytest_twisted.ensureDeferred
async def test_check_finds_problems_of_a_batch(open_store: OpenStore) -> None:
    store, website, batch = await loaded(open_store)
    await store.imports.finish(batch)
    environment = store.environment
    key = struct.pack(">II", website.number, batch.number)
    for value, found in (
        (b"damaged", "website 1, batch 00000001: its checksum does not match"),
        (None, "website 1, segment 4: its import batch 1 is missing"),
    ):
        with environment.lmdb.begin(write=True) as txn:
            if value is None:
                txn.delete(key, db=environment.databases.import_batches)
            else:
                txn.put(key, value, db=environment.databases.import_batches)
        assert found in findings(store)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_batch_is_deleted_with_its_website(open_store: OpenStore) -> None:
    store, website, batch = await loaded(open_store)
    await store.imports.finish(batch)
    await store.delete_website(website)
    await settled(store, NOW_MS)
    assert entries(store, "import_batches", "segments", "headers") == [0] * 3
    with pytest.raises(NotFound):
        await begun(store, website, newest=99)
    assert store.partitions.all() == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_deleting_the_website_removes_an_import_under_way(open_store: OpenStore) -> None:
    store, website, batch = await loaded(open_store)
    await store.delete_website(website)
    for refused in (
        load(store, batch, made(1, 20, 5)),
        store.imports.load_days(batch, []),
        store.imports.finish(batch),
        store.imports.undo(website, batch.number),
    ):
        with pytest.raises(NotFound):
            await refused
    await store.imports.give_up(website, batch)
    await settled(store, NOW_MS)
    assert store.partitions.all() == []
    assert store.imports._totals == {}
    assert orphans(store.environment) == findings(store) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_import_finishing_while_its_website_is_deleted_leaves_nothing(
    open_store: OpenStore,
) -> None:
    for ends in (
        lambda store, _, batch: load(store, batch, made(1, 20, 5)),
        lambda store, _, batch: store.imports.finish(batch),
        lambda store, website, batch: store.imports.undo(website, batch.number),
        lambda store, website, batch: store.imports.give_up(website, batch),
    ):
        store, website, batch = await loaded(open_store)
        deleting = Deferred.fromCoroutine(store.delete_website(website))
        with suppress(NotFound):
            await ends(store, website, batch)
        await deleting
        await store.imports.give_up(website, batch)
        await settled(store, NOW_MS)
        assert store.partitions.all() == []
        assert store.partitions._published == store.imports._totals == {}
        assert orphans(store.environment) == findings(store) == []
        await store.close()


@pytest_twisted.ensureDeferred
async def test_a_batch_aborted_while_finishing_never_becomes_visible(
    open_store: OpenStore,
) -> None:
    """It would have no visitors and date from 1970."""
    store, website, batch = await loaded(open_store)
    async with store.maintenance.segments_lock:
        finishing = Deferred.fromCoroutine(store.imports.finish(batch))
        giving_up = Deferred.fromCoroutine(store.imports.give_up(website, batch))
    with pytest.raises(NotFound, match="batch: the import of number 1 was given up"):
        await finishing
    await giving_up
    assert store.imports.batches(website) == []
    await settled(store, NOW_MS)
    assert orphans(store.environment) == findings(store) == []
    await store.close()


@pytest.mark.parametrize("of_undoing", [False, True])
@pytest.mark.parametrize("step", range(0, 36, 5))
@pytest_twisted.ensureDeferred
async def test_after_a_kill_a_start_finds_all_of_a_batch_or_nothing(
    open_store: OpenStore, step: int, of_undoing: bool
) -> None:
    """Whichever step of importing or undoing it was the last."""
    recording = RecordingReactor()
    store = open_store(sizes=SIZES, its_reactor=recording)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 12))
    await settled(store, NOW_MS + DAY_MS + 1)
    before = stored_rows(store, website)
    bulk = made(1, 30, 6)
    if of_undoing:
        batch = await begun(store, website)
        await load(store, batch, bulk)
        await store.imports.finish(batch)
        await idle(store)
    results = len(recording.results)
    stopped: list[Deferred[None]] = []

    def on_result(_: object) -> None:
        if len(recording.results) - results > step and not stopped:
            stopped.append(Deferred.fromCoroutine(store.close()))

    async def work() -> None:
        if of_undoing:
            await store.imports.undo(website, batch.number)
        else:
            begun_now = await begun(store, website)
            await load(store, begun_now, bulk)
            await store.imports.finish(begun_now)

    recording.on_result = on_result
    working = Deferred.fromCoroutine(work())
    working.addErrback(lambda _: None)
    await working
    recording.on_result = lambda _: None
    if not stopped:
        stopped.append(Deferred.fromCoroutine(store.close()))
    await stopped[0]
    store = open_store(sizes=SIZES)
    whole = bool(store.imports.batches(website))
    assert stored_rows(store, website) == (together(before, expected(bulk)) if whole else before)
    await settled(store, NOW_MS + 2 * DAY_MS)
    assert stored_rows(store, website) == (together(before, expected(bulk)) if whole else before)
    assert entries(store, "import_batches") == [int(whole)]
    assert orphans(store.environment) == findings(store) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_day_of_several_batches_is_forecast_once(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store(sizes=SIZES)
    website = await store.add_website("example.com", 1)
    bulk = made(1, 40, 9)
    newest_ms = bulk.time_bounds()[1]
    await store.append(views(1, 12, newest_ms))
    batch = await begun(store, website)
    await load(store, batch, bulk)
    await store.imports.finish(batch)
    await settled(store, newest_ms + 9 * DAY_MS)
    await store.close()
    bound = cutoff_of(Keep(1), UTC, newest_ms + 9 * DAY_MS)
    with open_reader(tmp_path / "data") as reader:
        found = reader.forecast(website, bound)
    days = {time_ms // DAY_MS for time_ms in [*bulk.time_ms.tolist(), newest_ms]}
    assert found.due_views == 52
    assert found.new_days == len(days)


@pytest_twisted.ensureDeferred
async def test_a_batch_of_which_rollups_remain_is_undone_as_a_whole(open_store: OpenStore) -> None:
    def counted(snapshot: Snapshot) -> int:
        return sum(int(sum(day.overall().sums[0])) for day in snapshot.rollups)

    store = open_store(sizes=SIZES, retention=Retention(others=Keep(1)))
    website = await store.add_website("example.com", 1)
    bulk = made(1, 40, 9)
    newest_ms = bulk.time_bounds()[1]
    await store.append(views(1, 12, newest_ms))
    await settled(store, newest_ms + 9 * DAY_MS)
    assert store.read(website, counted) == 12
    batch = await begun(store, website)
    await load(store, batch, bulk)
    await settled(store, newest_ms + 9 * DAY_MS)
    assert store.read(website, counted) == 12, "the batch is not whole yet"
    whole = await store.imports.finish(batch)
    assert (whole.first_ms, whole.last_ms) == bulk.time_bounds(), "not those of whole days"
    await settled(store, newest_ms + 9 * DAY_MS)
    assert store.read(website, counted) == 52
    assert stored_rows(store, website)[0] == []
    assert orphans(store.environment) == findings(store) == []
    await store.imports.undo(website, whole.number)
    await idle(store)
    assert store.read(website, counted) == 12
    assert orphans(store.environment) == findings(store) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_exclusions_leave_out_of_a_batch_is_kept_apart(open_store: OpenStore) -> None:
    rule = Exclusion(id="a", name="a", filters=(("path[contains]", "/1"),), created=1)
    rules = rules_of(Definitions(exclusions=(rule,)))

    def counted(rules: Sequence[Query], snapshot: Snapshot) -> tuple[int, int]:
        total = reader_of(snapshot, SOURCES, rules).select(Query())
        found, gaps = total.visits_by_bucket(None)
        assert not gaps.days(Gap.EXCLUSIONS)
        return int(total.series(None).tally.views[0]), int(found.visits.sum())

    def answers() -> list[tuple[int, int]]:
        return [store.read(website, partial(counted, each)) for each in ((), rules)]

    store = open_store(sizes=SIZES, find_left_out=partial(find_left_out, SOURCES))
    website = await store.add_website("example.com", 1)
    await store.goals.change(website.number, lambda _: Definitions(exclusions=(rule,)))
    bulk = made(1, 40, 9)
    newest_ms = bulk.time_bounds()[1]
    await store.append(views(1, 12, newest_ms))
    batch = await begun(store, website)
    await load(store, batch, bulk)
    batch = await store.imports.finish(batch)
    await settled(store, newest_ms + 9 * DAY_MS)
    before = answers()
    assert before[1][0] < before[0][0] == 52
    store.apply(store.settings.__class__(min_free_disk=0, retention=Retention(others=Keep(1))))
    await settled(store, newest_ms + 9 * DAY_MS)
    assert stored_rows(store, website)[0] == []
    assert answers() == before
    assert findings(store) == []
    await store.imports.undo(website, batch.number)
    await idle(store)
    assert [views for views, _ in answers()] == [12, 8]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_damaged_batch_is_logged_at_start(open_store: OpenStore) -> None:
    store, website, batch = await loaded(open_store)
    await store.imports.finish(batch)
    there = stored_rows(store, website)
    databases = store.environment.databases
    with (
        store.environment.lmdb.begin(write=True) as txn,
        txn.cursor(databases.import_batches) as cursor,
    ):
        assert cursor.first()
        key, value = cursor.item()
        txn.put(key, value[:-1] + bytes([value[-1] ^ 1]), db=databases.import_batches)
    await store.close()
    with logged_warnings() as lines:
        store = open_store(sizes=SIZES)
    place = f"website {website.number}, batch {key[4:].hex()}"
    assert lines == [f"an import batch is damaged: {place}: its checksum does not match"]
    assert stored_rows(store, website) == there
    assert store.imports.batches(website) == []
    await store.close()
