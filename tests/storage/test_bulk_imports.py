"""Past views and events, imported in bulk alongside live hits."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import pytest_twisted
from attrs import evolve, fields
from support.storage.bulk_loads import Bulk, add, begin, expected, load, made, together
from support.storage.contents import (
    agrees,
    durations,
    entries,
    idle,
    orphans,
    segments_and_merged,
    settled,
    stored_rows,
)
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, event, unload, views
from support.storage.reactor import RecordingReactor
from twisted.internet.defer import Deferred

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import NotFound
from medamad.storage.compaction.planner import Sizes
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


@pytest.mark.parametrize(("views_made", "events"), [(1, 0), (1, 1), (7, 3), (8, 0), (50, 40)])
@pytest.mark.parametrize("chunk_views", [1, 4, 10_000])
@pytest_twisted.ensureDeferred
async def test_imported_hits_are_stored_exactly_once(
    open_store: OpenStore, views_made: int, events: int, chunk_views: int
) -> None:
    sizes = Sizes(chunk_views=chunk_views, merged_members=3, counted_from=2)
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    bulk = made(1, views_made, events)
    await load(store, website, bulk)
    for _ in range(2):
        assert stored_rows(store, website) == expected(bulk)
        store.read(website, agrees)
        assert entries(store, "wal", "beacons") == [0, 0]
        await settled(store, NOW_MS)
        assert orphans(store.environment) == []
        await store.close()
        store = open_store(sizes=sizes)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_imports_are_exempt_from_limits_on_new_values(open_store: OpenStore) -> None:
    new_values = {Dimension.PATH: 2, Dimension.PROPERTY_NAME: 1, Dimension.PROPERTY: 1}
    store = open_store(new_values=new_values, other_new_values=1)
    website = await store.add_website("example.com", 1)
    bulk = made(1, 2_500, 10)
    await load(store, website, bulk)
    assert stored_rows(store, website) == expected(bulk)
    await store.append(views(1, 3))
    found = {row["path"] for row in stored_rows(store, website)[0]}
    assert found - set(bulk.texts[Dimension.PATH]) == {"/1", "/2", "(other)"}
    await store.close()


@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 1, 3))]
)
@pytest_twisted.ensureDeferred
async def test_imports_and_hits_can_interleave(open_store: OpenStore, seed: int) -> None:
    """Before, during and after each other, however segments are merged."""
    rng = random.Random(seed)  # noqa: S311 - the same each time
    sizes = Sizes(chunk_views=rng.randint(3, 12), merged_members=2, counted_from=0)
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    bulks = [made(n, rng.randint(1, 30), rng.randint(0, 20)) for n in range(4)]
    hits = [views(10 * n, 10 * n + 9, NOW_MS + n) for n in range(6)]
    await store.append([event("b0"), *hits[0]])
    await load(store, website, bulks[0])
    await store.append([unload(0, 700), *hits[1]])

    async def load_two() -> None:
        for bulk in bulks[1:3]:
            await load(store, website, bulk)

    under_way = Deferred.fromCoroutine(load_two())
    for more in hits[2:4]:
        await store.append([*more, unload(20, 900)])
        assert len(stored_rows(store, website)[0]) >= 30
    await under_way
    await store.append(hits[4])
    await settled(store, NOW_MS + 2 * DAY_MS)
    await load(store, website, bulks[3])
    await store.append(hits[5])
    for _ in range(2):
        views_there, events = stored_rows(store, website)
        store.read(website, agrees)
        of_hits = [row for row in views_there if not row["path"].startswith("/bulk")]
        assert sorted(row["path"] for row in of_hits) == sorted(f"/{n}" for n in range(60))
        assert durations(store, website)["/0"] == 700
        assert durations(store, website)["/20"] == 900
        of_event = {
            "time_ms": NOW_MS,
            "view": ("/0", NOW_MS),
            "properties": [("k", "v"), ("n", "1")],
        }
        assert (views_there, events) == together(
            (of_hits, [of_event]), *(expected(bulk) for bulk in bulks)
        )
        await settled(store, NOW_MS + 4 * DAY_MS)
        assert orphans(store.environment) == []
        await store.close()
        store = open_store(sizes=sizes)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_small_segments_of_a_batch_are_combined(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=10, merged_members=99))
    website = await store.add_website("example.com", 1)
    batch = await begin(store, website, 30)
    first = batch.spans[0].at
    for seed, (views_made, segments) in enumerate(((4, 1), (3, 1), (13, 3), (1, 3), (9, 4))):
        first = await add(store, batch, made(seed, views_made, 0), first)
        assert segments_and_merged(store.environment) == (segments, 0)
    await store.imports.finish(batch)
    assert len(stored_rows(store, website)[0]) == 30
    await store.close()


@pytest_twisted.ensureDeferred
async def test_imported_visitors_of_the_last_day_are_counted(
    open_store: OpenStore,
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 2))
    await store.close()
    store = open_store()
    await idle(store)
    assert store.visitors_last_day(website, NOW_MS) == 2
    bulk = made(1, 40, 0, first_ms=NOW_MS - 25 * HOUR_MS)
    await load(store, website, bulk)
    recent = int(np.count_nonzero(bulk.first_today & (bulk.time_ms >= NOW_MS - DAY_MS)))
    assert 0 < recent < 40
    assert store.visitors_last_day(website, NOW_MS) == 2 + recent
    await store.append(views(3, 3))
    assert store.visitors_last_day(website, NOW_MS) == 3 + recent
    await store.close()


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, marks=() if step % 9 == 0 else pytest.mark.slow)
        for step in range(0, 40, 3)
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_vacuum_does_not_delete_texts_of_an_import_under_way(
    open_store: OpenStore, step: int
) -> None:
    """The texts of an import are unused until its segments are published."""
    recording = RecordingReactor()
    store = open_store(sizes=Sizes(chunk_views=10), its_reactor=recording)
    website = await store.add_website("example.com", 1)
    bulk = made(1, 30, 10)
    tidying: list[Deferred[None]] = []

    def on_result(_: object) -> None:
        if len(recording.results) == step + 1 and not tidying:
            tidying.append(Deferred.fromCoroutine(store.maintain(NOW_MS)))

    recording.results.clear()
    recording.on_result = on_result
    await load(store, website, bulk)
    recording.on_result = lambda _: None
    for done in tidying:
        await done
    for _ in range(2):
        assert stored_rows(store, website) == expected(bulk)
        await store.close()
        store = open_store()
    await store.close()


@pytest_twisted.ensureDeferred
async def test_nothing_is_imported_into_a_deleted_website(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.delete_website(website)
    with pytest.raises(NotFound):
        await load(store, website, made(1, 5, 2))
    assert entries(store, "dictionary", "codes", "segments", "headers", "purge_queue") == [0] * 5
    await store.close()


@pytest_twisted.ensureDeferred
async def test_events_without_views_and_empty_imports_are_accepted(
    open_store: OpenStore,
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    whole = made(1, 5, 3)
    nothing = {
        field.name: getattr(whole, field.name)[:0]
        for field in fields(Bulk)
        if field.name not in ("codes", "texts")
    }
    none_of_each = {dimension: codes[:0] for dimension, codes in whole.codes.items()}
    empty = Bulk(**nothing, codes=none_of_each, texts=whole.texts)
    await load(store, website, empty)
    assert entries(store, "headers") == [0]
    rows = len(whole.event)
    alone = evolve(
        empty,
        event=whole.event,
        event_time_ms=whole.event_time_ms,
        event_view=np.full(rows, -1),
        property=whole.property,
    )
    await load(store, website, alone)
    views_held, events_held = stored_rows(store, website)
    assert (len(views_held), len(events_held)) == (0, len(np.unique(whole.event)))
    await store.close()


@pytest.mark.parametrize("duration_ms", [700, 300])
@pytest.mark.parametrize("tidied_after_days", [(0, 1, 8), (8,)])
@pytest_twisted.ensureDeferred
async def test_corrections_of_hits_do_not_affect_an_import_between_them(
    open_store: OpenStore, duration_ms: int, tidied_after_days: tuple[int, ...]
) -> None:
    """Segments of hits may span the sequence numbers of an import."""
    sizes = Sizes(chunk_views=12, merged_members=9, counted_from=0)
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 5))
    await store.maintain(NOW_MS + DAY_MS + 1)
    later_ms = NOW_MS + 2 * DAY_MS
    await store.append([*views(6, 6, later_ms), *views(7, 10, later_ms + 23 * HOUR_MS)])
    await store.append([unload(7, 500, later_ms + 23 * HOUR_MS)])
    await load(store, website, made(1, 5, 0, first_ms=NOW_MS))
    await store.maintain(later_ms + DAY_MS + 1)
    assert segments_and_merged(store.environment) == (2, 0)
    assert entries(store, "wal") == [0]
    # This is longer than the known duration; or shorter, which changes nothing.
    await store.append([unload(7, duration_ms, later_ms + DAY_MS + 2)])
    for days in tidied_after_days:
        await store.maintain(later_ms + DAY_MS + 3 + days * DAY_MS)
        for _ in range(2):
            assert durations(store, website)["/7"] == max(duration_ms, 500)
            await store.close()
            store = open_store(sizes=sizes)
    assert entries(store, "corrections") == [0]
    await store.close()
