"""Compaction flushes, merges, folds and purges without losing or delaying a hit."""

from collections.abc import Callable
from itertools import groupby
from typing import Any

import pytest
import pytest_twisted
from support.storage.contents import (
    agrees,
    durations,
    entries,
    idle,
    logged_rows,
    orphans,
    segments_and_merged,
    settled,
    stored_rows,
)
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view, event, unload, views
from support.storage.reactor import RecordingReactor
from twisted.internet.defer import CancelledError, Deferred

from medamad.domain.dimensions import WidthClass
from medamad.domain.hits import Hit
from medamad.storage.compaction.job import Job
from medamad.storage.compaction.planner import Sizes
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome, WriteBatch

OpenStore = Callable[..., Store]

SETTLED_MS = DAY_MS + HOUR_MS
ONE_EACH = Sizes(chunk_views=1, merged_members=2, counted_from=0)


# Flush


@pytest.mark.parametrize(("at_once", "left"), [(1, 4), (2, 5), (6, 7)])
@pytest_twisted.ensureDeferred
async def test_a_memtable_is_flushed_when_it_is_more_than_two_chunks(
    open_store: OpenStore, at_once: int, left: int
) -> None:
    """A record that is flushed only in part stays, and none of its views counts twice."""
    store = open_store(sizes=Sizes(chunk_views=3))
    website = await store.add_website("example.com", 1)
    for first in range(1, 7, at_once):
        await store.append(views(first, first + at_once - 1))
    await idle(store)
    assert segments_and_merged(store.environment) == (0, 0)
    await store.append(views(7, 7))
    await idle(store)
    assert segments_and_merged(store.environment) == (1, 0)
    assert logged_rows(store) == left
    for _ in range(2):
        assert len(stored_rows(store, website)[0]) == 7
        await store.close()
        store = open_store(sizes=Sizes(chunk_views=3))
    await store.maintain(NOW_MS + DAY_MS + 1)
    assert logged_rows(store) == 0
    assert len(stored_rows(store, website)[0]) == 7
    await store.close()


@pytest_twisted.ensureDeferred
async def test_hits_older_than_a_day_are_flushed_and_merged(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=10, counted_from=0))
    website = await store.add_website("example.com", 1)
    # One view a day: it joins segments up to twice its size, as long as all of it fits into one.
    for day, segments in enumerate((1, 1, 1, 2, 1, 2, 2, 1), 1):
        now_ms = NOW_MS + day * 2 * DAY_MS
        await store.append(views(day, day, now_ms))
        await store.maintain(now_ms + DAY_MS)
        assert entries(store, "wal") == [1]
        await store.maintain(now_ms + DAY_MS + 1)
        assert entries(store, "wal") == [0]
        assert (day, segments_and_merged(store.environment)) == (day, (segments, 0))
        assert store.read(website, agrees) > 0
        assert len(stored_rows(store, website)[0]) == day
    assert orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_events_alone_are_flushed_too(open_store: OpenStore) -> None:
    """Triggered by size and by age, so that they do not fill memory."""
    store = open_store(sizes=Sizes(chunk_views=2, counted_from=0))
    website = await store.add_website("example.com", 1)
    await store.append([event("") for _ in range(20)])
    await store.maintain(NOW_MS)
    assert entries(store, "wal") == [0]
    await store.append([event("", NOW_MS + 1)])
    await store.maintain(NOW_MS + 1 + DAY_MS)
    assert logged_rows(store) == 2
    await store.maintain(NOW_MS + 2 + DAY_MS)
    assert entries(store, "wal") == [0]
    assert len(stored_rows(store, website)[1]) == 21
    assert store.read(website, agrees) > 0
    await store.close()


@pytest_twisted.ensureDeferred
async def test_corrections_that_arrive_during_a_flush_are_kept(
    open_store: OpenStore,
) -> None:
    sizes = Sizes(chunk_views=2, counted_from=0)
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    await store.append([event("b9"), *views(1, 5)])
    # The first step of the flush is queued: these writes come between it and the next one.
    between = [
        Deferred.fromCoroutine(store.append(hits))
        for hits in ([unload(1, 700)], [unload(1, 900), unload(2, 5)], views(9, 9))
    ]
    for done in between:
        await done
    await idle(store)
    # Two durations and the view of an event.
    assert entries(store, "corrections") == [3]
    for _ in range(2):
        assert durations(store, website) == {"/1": 900, "/2": 5, "/3": 0, "/4": 0, "/5": 0, "/9": 0}
        assert [row["view"] for row in stored_rows(store, website)[1]] == [("/9", NOW_MS)]
        store.read(website, agrees)
        await store.close()
        store = open_store(sizes=sizes)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_corrections_that_arrive_while_segments_are_rewritten_are_kept(
    open_store: OpenStore,
) -> None:
    sizes = Sizes(chunk_views=10, counted_from=0)
    recording = RecordingReactor()
    store = open_store(sizes=sizes, its_reactor=recording)
    website = await store.add_website("example.com", 1)
    now_ms = NOW_MS + DAY_MS
    await store.append([*views(1, 1), *views(2, 2, NOW_MS + 10)])
    await store.maintain(now_ms + 5)
    await store.append(views(3, 3, now_ms - 6))
    await store.append([unload(2, 100, now_ms + 5)])
    assert entries(store, "corrections") == [1]

    between: list[Deferred[Any]] = []

    def on_result(result: object) -> None:
        if isinstance(result, Job):
            recording.on_result = lambda _: None
            between.append(Deferred.fromCoroutine(store.append([unload(2, 200, now_ms + 9)])))

    # The clock was set back: this view is flushed by age before the others are settled.
    await store.append(views(4, 4, NOW_MS))
    recording.on_result = on_result
    await store.maintain(now_ms + 9)
    # It arrived after the segments had been read and before they were replaced.
    assert await between[0] == [Outcome.STORED]
    assert segments_and_merged(store.environment) == (1, 0)
    assert entries(store, "corrections") == [1]
    for _ in range(2):
        assert durations(store, website) == {"/1": 0, "/2": 200, "/3": 0, "/4": 0}
        await store.close()
        store = open_store(sizes=sizes)
    await store.close()


@pytest.mark.parametrize("size", [8_192, pytest.param(65_536, marks=pytest.mark.slow)])
@pytest_twisted.ensureDeferred
async def test_hits_are_acknowledged_between_the_steps_of_a_flush(
    open_store: OpenStore, size: int
) -> None:
    """A segment takes several steps; a hit waits for at most one."""
    recording = RecordingReactor()
    store = open_store(sizes=Sizes(chunk_views=size), its_reactor=recording)
    website = await store.add_website("example.com", 1)
    for first in range(0, 2 * size + 1, 4_096):
        await store.append(
            [
                a_view(
                    path=f"/{n % 5_003}", time_ms=NOW_MS + n, width_class=WidthClass(n * 7919 % 6)
                )
                for n in range(first, first + 4_096)
            ]
        )
    # The first step of the flush is queued by now.
    flushing = Deferred.fromCoroutine(idle(store))
    recording.results.clear()
    appended = 0
    while not flushing.called:
        appended += 1
        await store.append([a_view(time_ms=NOW_MS + DAY_MS)])
    kinds = ["hit" if isinstance(result, WriteBatch) else "step" for result in recording.results]
    assert kinds.count("step") > 7
    in_a_row = {len(list(steps)) for kind, steps in groupby(kinds) if kind == "step"}
    assert in_a_row == {1}, "a hit waited for more than one step"
    there = store.read(website, lambda snapshot: sum(map(len, snapshot.parts)))
    assert there == 2 * size + 4_096 + appended
    assert segments_and_merged(store.environment) == (1, 0)
    await store.close()


# Corrections


@pytest_twisted.ensureDeferred
async def test_corrections_are_folded_in_once_no_more_can_arrive(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=Sizes(chunk_views=2, counted_from=0, merged_members=9))
    website = await store.add_website("example.com", 1)
    await store.append([event("b9"), *views(1, 5)])
    await idle(store)
    await store.append([unload(1, 5_000), unload(2, 6_000), *views(9, 9)])
    assert entries(store, "corrections") == [3]
    assert store.read(website, agrees) > 0
    await store.maintain(NOW_MS + SETTLED_MS)
    assert entries(store, "corrections") == [3]
    before = stored_rows(store, website)
    await store.maintain(NOW_MS + SETTLED_MS + 1)
    assert entries(store, "corrections") == [0]
    assert stored_rows(store, website) == before
    assert store.read(website, agrees) > 0
    assert orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_shorter_duration_corrects_nothing(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=1, merged_members=9))
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 3), unload(1, 500)])
    await idle(store)
    await store.append([unload(1, 400), unload(1, 600), unload(1, 550)])
    await store.append([unload(1, 599)])
    assert durations(store, website) == {"/1": 600, "/2": 0, "/3": 0}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_correction_splits_a_merged_segment(open_store: OpenStore) -> None:
    """Only after the clock was set back; otherwise members are too old to be corrected."""
    store = open_store(sizes=ONE_EACH)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 4))
    now_ms = NOW_MS + SETTLED_MS + 1
    await store.maintain(now_ms)
    assert segments_and_merged(store.environment) == (4, 3)
    assert store.read(website, lambda snapshot: len(list(snapshot.parts))) == 1
    assert await store.append([unload(3, 700)]) == [Outcome.STORED]
    assert durations(store, website) == {"/1": 0, "/2": 0, "/3": 700, "/4": 0}
    # The merged segment of all four and that of the last two are split, the other one is not.
    assert store.read(website, lambda snapshot: len(list(snapshot.parts))) == 3
    store.read(website, agrees)
    await store.maintain(now_ms)
    assert store.read(website, lambda snapshot: len(list(snapshot.parts))) == 1
    assert segments_and_merged(store.environment) == (4, 3)
    assert durations(store, website) == {"/1": 0, "/2": 0, "/3": 700, "/4": 0}
    store.read(website, agrees)
    assert orphans(store.environment) == []
    await store.close()


# Cancelled and failed jobs


@pytest.mark.parametrize("at", [Job, bool])
@pytest_twisted.ensureDeferred
async def test_a_segment_of_a_cancelled_job_stays_if_it_was_published(
    open_store: OpenStore, at: type
) -> None:
    """A stopping daemon cancels its maintenance and still stores and flushes hits."""
    recording = RecordingReactor()
    store = open_store(sizes=ONE_EACH, its_reactor=recording)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 2))
    tidying = Deferred.fromCoroutine(store.maintain(NOW_MS + 2 * DAY_MS))

    def on_result(result: object) -> None:
        # The step after the one with this result is queued by now.
        if isinstance(result, at):
            recording.on_result = lambda _: None
            tidying.cancel()

    recording.on_result = on_result
    with pytest.raises(CancelledError):
        await tidying
    assert recording.results
    await store.append(views(3, 5, NOW_MS + 2 * DAY_MS))
    await settled(store, NOW_MS + 4 * DAY_MS)
    assert sorted(durations(store, website)) == ["/1", "/2", "/3", "/4", "/5"]
    await store.close()
    store = open_store(sizes=ONE_EACH)
    assert sorted(durations(store, website)) == ["/1", "/2", "/3", "/4", "/5"]
    await settled(store, NOW_MS + 4 * DAY_MS)
    assert orphans(store.environment) == []
    await store.close()


@pytest.mark.parametrize("step", range(9))
@pytest_twisted.ensureDeferred
async def test_a_website_deleted_during_a_flush_leaves_nothing(
    open_store: OpenStore, step: int
) -> None:
    recording = RecordingReactor()
    store = open_store(sizes=ONE_EACH, its_reactor=recording)
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 2), event("b1"), unload(1, 300)])
    await idle(store)
    deleted: list[Deferred[None]] = []

    def on_result(_: object) -> None:
        if len(recording.results) == step + 1 and not deleted:
            deleted.append(Deferred.fromCoroutine(store.delete_website(website)))

    recording.results.clear()
    recording.on_result = on_result
    await store.maintain(NOW_MS + 2 * DAY_MS)
    await deleted[0]
    await settled(store, NOW_MS + 2 * DAY_MS)
    assert orphans(store.environment) == []
    assert entries(store, "headers", "segments", "wal", "purge_queue") == [0] * 4
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_hit_of_a_deleted_website_recreates_nothing(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 2))
    await store.delete_website(website)
    hits: list[Hit] = [*views(3, 4), event("b1"), unload(1, 7)]
    outcomes = await store.append(hits)
    assert outcomes == [Outcome.NO_WEBSITE] * 3 + [Outcome.NO_VIEW]
    assert [partition.website for partition in store.partitions.all()] == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_corrections_that_change_nothing_are_deleted(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=4, counted_from=0))
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 4), *(unload(number, 9_000) for number in range(1, 5))])
    await store.append(views(5, 9))
    await idle(store)
    await store.append([unload(number, 10) for number in range(1, 5)])
    assert entries(store, "corrections") == [4]
    seen = durations(store, website)
    await store.maintain(NOW_MS + SETTLED_MS + 1)
    assert entries(store, "corrections") == [0]
    assert durations(store, website) == seen
    assert (
        store.partitions.get_or_create(website.number).idle_corrections(
            store.partitions.get_or_create(website.number).leaves()
        )
        == []
    )
    await store.close()
