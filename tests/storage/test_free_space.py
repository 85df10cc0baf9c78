from collections.abc import Callable
from uuid import uuid4

import pytest
import pytest_twisted
from support.storage.contents import settled
from support.storage.hits import DAY_MS, NOW_MS, a_view
from support.storage.visible_hits import paths, seen, until_removed
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from medamad.domain.errors import Unavailable
from medamad.storage.settings import StoreSettings
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

OpenStore = Callable[..., Store]


@pytest_twisted.ensureDeferred
async def test_hits_are_rejected_when_the_disk_is_nearly_full(open_store: OpenStore) -> None:
    store = open_store(min_free_disk=1 << 60)
    await store.add_website("example.com", 1)
    with pytest.raises(Unavailable, match="min_free_disk") as refused:
        await store.append([a_view()])
    assert refused.value.retry_after > 0
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_full_map_rejects_hits_until_something_is_deleted(open_store: OpenStore) -> None:
    store = open_store(map_size=2 << 20)
    website = await store.add_website("example.com", 1)

    async def fill() -> None:
        while True:
            await store.append([a_view(path=f"/{'x' * 500}/{uuid4()}") for _ in range(50)])

    with pytest.raises(Unavailable, match="map_size"):
        await fill()
    assert len(paths(seen(store, website))) > 100
    await store.delete_website(website)
    await until_removed(store)
    again = await store.add_website("example.com", 2)
    assert await store.append([a_view(again.number)]) == [Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_free_pages_are_used_although_the_disk_is_nearly_full(open_store: OpenStore) -> None:
    store = open_store(map_size=64 << 20)
    website = await store.add_website("example.com", 1)
    used = await store.add_website("used.example", 1)
    for day in range(20):
        await store.append(
            [
                a_view(used.number, path=f"/{'x' * 500}/{uuid4()}", time_ms=NOW_MS - day * DAY_MS)
                for _ in range(500)
            ]
        )
    store.apply(StoreSettings(min_free_disk=1 << 60))
    with pytest.raises(Unavailable, match="min_free_disk"):
        await store.append([a_view(website.number)])
    await store.delete_website(used)
    await settled(store, NOW_MS)
    assert await store.append([a_view(website.number)]) == [Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_rejecting_hits_is_logged_when_it_begins_and_ends(open_store: OpenStore) -> None:
    logged: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_namespace"] == "medamad.storage.environment.free_space.FreeSpace":
            logged.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)
    store = open_store(min_free_disk=1 << 60)
    await store.add_website("example.com", 1)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await store.append([a_view()])
    store.apply(StoreSettings(min_free_disk=0))
    await store.append([a_view()])
    globalLogPublisher.removeObserver(observe)
    assert [text.partition(":")[0] for text in logged] == [
        "hits are rejected, queries still work",
        "hits are taken again",
    ]
    await store.close()
