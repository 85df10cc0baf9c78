"""Hits that wait for other collectors, and those that come from them: each counts once."""

from collections.abc import Callable

import pytest_twisted
from msgspec.structs import replace
from support.storage.contents import stored_rows
from support.storage.hits import DAY_MS, NOW_MS, a_view, event, unload

from medamad.domain.hits import Event
from medamad.domain.websites import Website
from medamad.storage.environment.environment import RECEIVED_HIT
from medamad.storage.environment.meta import entries
from medamad.storage.passed_hits import WaitingHit
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

OpenStore = Callable[..., Store]


def passed(beacon: str, number: int) -> Event:
    return replace(event(beacon), needs_view=True, passed_id=b"hit %4d" % number)


def waiting(number: int, *collectors: int, since_ms: int = NOW_MS) -> WaitingHit:
    return WaitingHit(b"hit %4d" % number, since_ms, collectors, event=event("b1", since_ms))


async def with_website(store: Store) -> Website:
    return await store.add_website("example.com", NOW_MS // 1000)


@pytest_twisted.ensureDeferred
async def test_an_event_that_needs_its_view_is_stored_once_and_only_with_it(
    open_store: OpenStore,
) -> None:
    store = open_store()
    website = await with_website(store)
    assert await store.append([passed("b1", 1)]) == [Outcome.NO_VIEW]
    assert await store.append([a_view(beacon="b1"), passed("b1", 1), passed("b1", 2)]) == [
        Outcome.STORED,
        Outcome.STORED,
        Outcome.STORED,
    ]
    assert await store.append([passed("b1", 1), passed("b1", 3)]) == [
        Outcome.REPEATED,
        Outcome.STORED,
    ]
    views, events = stored_rows(store, website)[:2]
    assert len(views) == 1
    assert len(events) == 3
    await store.close()
    store = open_store()
    assert await store.append([passed("b1", 2)]) == [Outcome.REPEATED]
    await store.forget_received(NOW_MS + DAY_MS)
    assert await store.append([passed("b1", 2)]) == [Outcome.REPEATED]
    await store.forget_received(NOW_MS + 3 * DAY_MS)
    with store.environment.reading() as txn:
        assert list(entries(txn, store.environment.databases.meta, RECEIVED_HIT)) == []


@pytest_twisted.ensureDeferred
async def test_an_event_counts_once_nobody_else_can_have_it(open_store: OpenStore) -> None:
    store = open_store()
    website = await with_website(store)
    await store.append([a_view(beacon="b9")])
    await store.keep_waiting([waiting(1, 2, 3), waiting(2, 2, 3), waiting(3, 3)])
    assert store.hits_waiting() == {2: 2, 3: 3}
    first, second = store.hits_waiting_for(2, 10)
    assert store.hits_waiting_for(3, 1) == [first]
    # Collector 2 has taken one, and does not know the other.
    assert await store.settle_waiting(2, [(first, True), (second, False)], NOW_MS) == 3
    assert store.hits_waiting() == {3: 2}
    assert stored_rows(store, website)[1] == []
    # The answer of 3 to the first comes later, and changes nothing.
    third = store.hits_waiting_for(3, 10)[1]
    answered = [(first, False), (second, False), (third, True)]
    assert await store.settle_waiting(3, answered, NOW_MS + 5_000) == 2
    assert store.hits_waiting() == {}
    events = stored_rows(store, website)[1]
    assert [(each["time_ms"], each["view"]) for each in events] == [(NOW_MS, None)]


@pytest_twisted.ensureDeferred
async def test_an_unload_that_nobody_has_the_view_of_is_dropped(open_store: OpenStore) -> None:
    store = open_store()
    website = await with_website(store)
    hit = WaitingHit(b"an id...", NOW_MS, (2,), unload=unload(1, 700))
    await store.keep_waiting([hit])
    await store.close()
    store = open_store()
    assert store.hits_waiting_for(2, 10) == [hit]
    await store.settle_waiting(2, [(hit, False)], NOW_MS)
    assert store.hits_waiting() == {}
    assert stored_rows(store, website)[:2] == ([], [])
