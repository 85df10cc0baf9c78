from collections.abc import Callable

import pytest
import pytest_twisted
from support.storage.hits import DAY_MS, NOW_MS
from support.storage.log_lines import logged_warnings

from medamad.domain.errors import Conflict, Unavailable
from medamad.storage.check import StoreCheck
from medamad.storage.followed_logs import FilePlace, LogCounts, LogPosition
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
TODAY = NOW_MS // DAY_MS
LOG = "/var/log/é.log"


def counts(number: int) -> LogCounts:
    return LogCounts(
        robots={number: {TODAY: {"curl": {"/": 2}}}, 99: {TODAY: {"curl": {"/": 2}}}},
        loads={number: {TODAY: {"": {"/": 2}, "Firefox": {"/": 5}}}},
    )


@pytest_twisted.ensureDeferred
async def test_counts_and_the_place_after_them_are_stored_together(open_store: OpenStore) -> None:
    store = open_store()
    number = (await store.add_website("example.com", 1)).number
    assert store.log_position(LOG) == LogPosition(LOG)
    first = LogPosition(LOG, 1, (FilePlace(7, 100, b"mark"),))
    await store.follow_log(first, counts(number))
    second = LogPosition(LOG, 2, (FilePlace(7, 200, b"mark"), FilePlace(8, 0, b"")))
    await store.follow_log(second, counts(number))
    await store.close()
    store = open_store()
    assert store.log_position(LOG) == second
    assert store.log_position("/other.log") == LogPosition("/other.log")
    assert store.robots.of(number, None, None).counts == {TODAY: {"curl": {"/": 4}}}
    loads = store.robots.loads(number, TODAY, TODAY).counts
    assert loads == {TODAY: {"": {"/": 4}, "Firefox": {"/": 10}}}
    assert store.robots.loads(number, None, TODAY - 1).counts == {}
    await store.close()


@pytest.mark.parametrize("version", [0, 1, 3])
@pytest_twisted.ensureDeferred
async def test_a_place_that_does_not_follow_stores_nothing(
    open_store: OpenStore, version: int
) -> None:
    store = open_store()
    number = (await store.add_website("example.com", 1)).number
    await store.follow_log(LogPosition(LOG, 1), counts(number))
    with pytest.raises(Conflict, match="it was read by another process meanwhile"):
        await store.follow_log(LogPosition(LOG, version), counts(number))
    assert store.log_position(LOG).version == 1
    assert store.robots.of(number, None, None).counts == {TODAY: {"curl": {"/": 2}}}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_without_room_nothing_is_stored(open_store: OpenStore) -> None:
    store = open_store(min_free_disk=1 << 62)
    with pytest.raises(Unavailable):
        await store.follow_log(LogPosition(LOG, 1), LogCounts())
    assert store.log_position(LOG).version == 0
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_damaged_place_is_logged_and_replaced(open_store: OpenStore) -> None:
    store = open_store()
    await store.follow_log(LogPosition(LOG, 1), LogCounts())
    meta = store.environment.databases.meta
    with store.environment.lmdb.begin(write=True) as txn, txn.cursor(db=meta) as cursor:
        assert cursor.set_range(b"log:")
        txn.put(cursor.key(), cursor.value()[:-1], db=meta)
    with logged_warnings() as lines:
        assert store.log_position(LOG) is None
    assert lines == [
        f"a damaged part of the store is ignored: the place in {LOG}: its checksum does not match"
    ]
    with store.environment.reading() as txn:
        (finding,) = StoreCheck(store.environment, txn).findings()
    assert finding.startswith("the place in a followed log, ")
    with pytest.raises(Conflict):
        await store.follow_log(LogPosition(LOG, 2), LogCounts())
    await store.follow_log(LogPosition(LOG, 1), LogCounts())
    assert store.log_position(LOG) == LogPosition(LOG, 1)
    with store.environment.reading() as txn:
        assert store.environment.unknown_names(txn) == []
    await store.close()
