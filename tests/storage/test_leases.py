"""A query's snapshot stays unchanged while the query runs, and is freed after it."""

from collections.abc import Callable
from contextlib import ExitStack
from threading import Event as Flag
from typing import Any

import pytest
import pytest_twisted
from hypothesis import given
from hypothesis import strategies as st
from support.daemon import PATIENCE_S
from support.storage.contents import entries, keys_of, leaves, orphans, settled
from support.storage.hits import DAY_MS, NOW_MS, event, unload, views
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from medamad.domain.dimensions import VIEW_DIMENSIONS, ViewNumber
from medamad.domain.websites import Website
from medamad.storage.compaction.planner import Sizes
from medamad.storage.environment.access import Leases, QueryAccess
from medamad.storage.environment.environment import Environment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


class AtOnce:
    """A reactor that runs calls from threads at once."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> None:
        call(*args)


# Leases


def test_replaced_data_is_kept_until_all_its_leases_end() -> None:
    leases = Leases(AtOnce())
    with ExitStack() as first, ExitStack() as second, ExitStack() as later:
        first.enter_context(leases.lease(1))
        second.enter_context(leases.lease(1))
        number = leases.next_number()
        later.enter_context(leases.lease(1))
        assert not leases.all_ended(number, 1)
        assert leases.all_ended(number, 2)
        second.close()
        assert not leases.all_ended(number, 1)
        first.close()
        assert leases.all_ended(number, 1)
        assert not leases.all_ended(leases.next_number(), 1)
    assert leases.all_ended(leases.next_number(), 1)


def test_the_lease_of_a_failed_query_ends_too() -> None:
    leases = Leases(AtOnce())
    with pytest.raises(ZeroDivisionError), leases.lease(1):
        raise ZeroDivisionError
    assert leases.all_ended(leases.next_number(), 1)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["begin", "end first", "end last", "wait"]), st.sampled_from([1, 2])
        )
    )
)
def test_a_wait_ends_when_all_earlier_leases_of_the_website_end(
    steps: list[tuple[str, int]],
) -> None:
    leases = Leases(AtOnce())
    under_way: list[tuple[int, int, ExitStack]] = []
    waiting: list[tuple[int, int, Deferred[None]]] = []
    for number, (step, website) in enumerate(steps):
        if step == "begin":
            stack = ExitStack()
            stack.enter_context(leases.lease(website))
            under_way.append((number, website, stack))
        elif step == "wait":
            waiting.append((number, website, leases.ended(website)))
        elif under_way:
            under_way.pop(0 if step == "end first" else -1)[2].close()
        for since, awaited, done in waiting:
            before = [of for begun, of, _ in under_way if begun < since]
            assert done.called == (awaited not in before)


# Transactions


def test_an_old_transaction_is_renewed(environment: Environment) -> None:
    now_s = 100.0
    access = QueryAccess(environment.lmdb, environment.page_bytes, lambda: now_s)

    def value() -> bytes | None:
        found = access.value(b"key", environment.databases.meta)
        return None if found is None else bytes(found)

    assert value() is None
    for written, seen, later_s in (
        (b"1", None, 0.2),
        (b"2", b"2", 0.1),
        (b"3", b"2", 0.25),
        (b"4", b"4", 0.01),
    ):
        with environment.lmdb.begin(write=True) as txn:
            txn.put(b"key", written, db=environment.databases.meta)
        now_s += later_s
        access.renew()
        assert value() == seen
    access.release()


def test_a_borrowed_value_outlives_its_transaction(environment: Environment) -> None:
    """Large values are views of the file; small ones are copied, since their pages change."""
    database = environment.databases.segments
    kept = {b"%05d" % size: bytes([size % 251]) * size for size in (1, 2_000, 4_095, 4_096, 99_999)}
    with environment.lmdb.begin(write=True) as txn:
        for key, value in kept.items():
            txn.put(key, value, db=database)
    now_s = 0.0
    access = QueryAccess(environment.lmdb, environment.page_bytes, lambda: now_s)
    borrowed = {key: access.value(key, database) for key in kept}
    now_s = 10.0
    access.renew()
    for turn in range(20):
        with environment.lmdb.begin(write=True) as txn:
            for number in range(200):
                txn.put(b"%05d-%d" % (number * 97, turn), bytes(turn * 40), db=database)
                txn.delete(b"%05d-%d" % (number * 97, turn - 2), db=database)
    assert {key: bytes(value) for key, value in borrowed.items() if value} == kept
    access.release()


def test_borrowed_values_are_read_only(environment: Environment) -> None:
    with environment.lmdb.begin(write=True) as txn:
        txn.put(b"large", bytes(9_999), db=environment.databases.segments)
    access = QueryAccess(environment.lmdb, environment.page_bytes)
    value = access.value(b"large", environment.databases.segments)
    assert value is not None
    assert value.readonly
    access.release()


# Running queries


async def ask_meanwhile(
    store: Store, website: Website, change: Callable[[], Any], *, meanwhile: Callable[[], None]
) -> tuple[Any, Any]:
    """Change the store while a query in a thread reads one snapshot twice."""
    begun: Deferred[None] = Deferred()
    go_on = Flag()

    def query(snapshot: Snapshot) -> tuple[Any, Any]:
        first = columns(snapshot)
        reactor.callFromThread(begun.callback, None)
        assert go_on.wait(PATIENCE_S)
        return first, columns(snapshot)

    result = deferToThread(store.read, website, query)
    await begun
    await change()
    meanwhile()
    go_on.set()
    answer: tuple[Any, Any] = await result
    return answer


def columns(snapshot: Snapshot) -> list[Any]:
    """Read everything that a query can read except for the texts."""
    found: list[Any] = []
    for part in leaves(snapshot.parts):
        found += [part.time_ms.tolist(), part.sequence.tolist(), part.flags.tolist()]
        found += [part.duration_ms.tolist()]
        found += [part.numbers(number).tolist() for number in ViewNumber]
        found += [part.codes(dimension).tolist() for dimension in VIEW_DIMENSIONS]
        for events in (part.own, part.loose):
            found += [events.event.tolist(), events.view.tolist(), events.property.tolist()]
            found += [events.time_ms.tolist()]
    for events in snapshot.events:
        found += [events.event.tolist(), events.view.tolist(), events.property.tolist()]
    return found


@pytest_twisted.ensureDeferred
async def test_a_replaced_segment_is_kept_for_the_queries_that_read_it(
    open_store: OpenStore,
) -> None:
    sizes = Sizes(chunk_views=10_000, counted_from=0)
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 3_000), event("b1"), unload(1, 300)])
    await store.maintain(NOW_MS + DAY_MS + 1)
    (old,) = store.partitions.get_or_create(website.number).segments
    now_ms = NOW_MS + 2 * DAY_MS
    await store.append(views(3_001, 6_000, now_ms))

    def replaced() -> None:
        (new,) = store.partitions.get_or_create(website.number).segments
        assert new.number != old.number
        stored = keys_of(store.environment, "segments", "purge_queue")
        assert any(key.startswith(old.key) for key in stored["segments"])
        assert stored["purge_queue"] == [old.key]

    first, second = await ask_meanwhile(
        store, website, lambda: store.maintain(now_ms + DAY_MS + 1), meanwhile=replaced
    )
    assert first == second
    await settled(store, now_ms + DAY_MS + 1)
    assert orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_deleted_website_is_kept_for_the_queries_that_read_it(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=Sizes(chunk_views=1_000, counted_from=0))
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 2_500), event("b1"), unload(1, 300)])
    await settled(store, NOW_MS)
    kept = ("segments", "counters", "headers", "dictionary", "codes", "wal")
    before = entries(store, *kept)
    assert min(before) > 0

    def still_there() -> None:
        assert entries(store, *kept) == before

    async def delete() -> None:
        await store.delete_website(website)
        for _ in range(30):
            # Time enough for the removal to begin, if it did not wait.
            await store.account.end_login(b"nobody's")

    first, second = await ask_meanwhile(store, website, delete, meanwhile=still_there)
    assert first == second
    assert len(first) > 20
    await settled(store, NOW_MS)
    assert entries(store, *kept, "corrections", "purge_queue") == [0] * 8
    await store.close()
