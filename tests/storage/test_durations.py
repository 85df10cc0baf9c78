"""Many durations of one view: the longest counts, and the space they take is bounded."""

from collections.abc import Callable, Sequence

import pytest
import pytest_twisted
from support.storage.contents import agrees, durations, entries, idle, logged_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view, unload, views

from medamad.domain.hits import Unload
from medamad.storage.compaction.planner import Sizes
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

SETTLED_MS = DAY_MS + HOUR_MS
TIMES = 1_000


def room(store: Store) -> tuple[int, int]:
    """Return the number of rows in the write-ahead log, and of corrections."""
    (corrected,) = entries(store, "corrections")
    return logged_rows(store), corrected


def in_batches(hits: Sequence[Unload], size: int) -> list[Sequence[Unload]]:
    return [hits[first : first + size] for first in range(0, len(hits), size)]


@pytest.mark.parametrize("size", [1, 7, TIMES])
@pytest.mark.parametrize("reported_ms", [[700] * TIMES, range(TIMES, 0, -1)])
@pytest_twisted.ensureDeferred
async def test_shorter_durations_take_no_space(
    open_store: OpenStore, reported_ms: Sequence[int], size: int
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 2))
    for batch in in_batches([unload(1, ms) for ms in reported_ms], size):
        await store.append(batch)
    assert room(store) == (3, 0)
    for _ in range(2):
        assert durations(store, website) == {"/1": max(reported_ms), "/2": 0}
        await store.close()
        store = open_store()
    await store.close()


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest_twisted.ensureDeferred
async def test_a_view_with_many_durations_is_flushed(open_store: OpenStore, size: int) -> None:
    sizes = Sizes(chunk_views=10, counted_from=0)
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 2))
    most = 0
    for batch in in_batches([unload(1, ms) for ms in range(1, TIMES + 1)], size):
        await store.append(batch)
        await idle(store)
        most = max(most, sum(room(store)))
    # Two for each view of a full memtable.
    assert 2 + 2 * 2 * 10 - size <= most <= 2 + 2 * 2 * 10 + size
    # From then on the correction is replaced.
    assert room(store) == (0, 1)
    for now_ms in (NOW_MS, NOW_MS + DAY_MS + 1, NOW_MS + SETTLED_MS + 1):
        assert durations(store, website) == {"/1": TIMES, "/2": 0}
        store.read(website, agrees)
        await store.close()
        store = open_store(sizes=sizes)
        assert durations(store, website) == {"/1": TIMES, "/2": 0}
        await store.maintain(now_ms)
    assert room(store) == (0, 0)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_view_and_its_unload_in_one_batch(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    # The first unload arrives before its page load.
    await store.append([unload(1, 5), a_view(beacon="b1", path="/1"), *views(2, 3)])
    await store.append(
        [
            *(unload(1, ms) for ms in (5, 4)),
            *(unload(2, ms) for ms in (7, 7, 9, 8)),
            a_view(beacon="b4", path="/4"),
            *(unload(4, ms) for ms in (3, 2, 6, 6)),
        ]
    )
    assert room(store) == (4 + 1 + 2 + 2, 0)
    for _ in range(2):
        assert durations(store, website) == {"/1": 5, "/2": 9, "/3": 0, "/4": 6}
        await store.close()
        store = open_store()
    await store.close()


@pytest_twisted.ensureDeferred
async def test_all_views_of_a_new_website_and_their_unloads_in_one_batch(
    open_store: OpenStore,
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 1), unload(1, 5), unload(1, 6)])
    assert room(store) == (3, 0)
    assert durations(store, website) == {"/1": 6}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_many_durations_of_a_flushed_view_take_no_more_space(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=Sizes(chunk_views=2, counted_from=0))
    website = await store.add_website("example.com", 1)
    for number in range(1, 5):
        await store.append(views(number, number))
    await store.append([*views(5, 5), unload(1, 5), unload(1, 6)])
    await idle(store)
    assert room(store) == (3 + 2, 0)
    for ms in range(1, 101):
        await store.append([unload(1, ms), unload(1, ms)])
    assert room(store) == (3 + 2, 1)
    for _ in range(2):
        assert durations(store, website) == {"/1": 100, "/2": 0, "/3": 0, "/4": 0, "/5": 0}
        store.read(website, agrees)
        await store.close()
        store = open_store(sizes=Sizes(chunk_views=2, counted_from=0))
    await store.maintain(NOW_MS + SETTLED_MS + 1)
    assert room(store) == (0, 0)
    assert durations(store, website) == {"/1": 100, "/2": 0, "/3": 0, "/4": 0, "/5": 0}
    await store.close()
