"""The data of a deleted website is purged even with very little free space."""

from collections.abc import Callable
from typing import TypeVar

import pytest
import pytest_twisted
from attrs import define
from support.storage.contents import entries, orphans, settled
from support.storage.hits import NOW_MS
from twisted.internet import reactor
from twisted.internet.defer import Deferred, fail, succeed

from medamad.domain.errors import Unavailable
from medamad.storage.compaction.purge import STEP_KEYS, WebsitePurge
from medamad.storage.environment.access import Leases
from medamad.storage.environment.environment import TOMBSTONE, Environment
from medamad.storage.environment.writer import Transaction
from medamad.storage.store import Store
from medamad.storage.websites import tombstones

T = TypeVar("T")

NAMES = 1_000


def deleted(environment: Environment) -> list[int]:
    with environment.reading() as txn:
        return list(tombstones(txn, environment.databases.meta))


@define
class Submitted:
    """Runs changes at once, unless there is no space for such a deletion."""

    environment: Environment
    room: int

    def __call__(self, change: Callable[[Transaction], T]) -> "Deferred[T]":
        names = self.environment.databases.dictionary
        txn = self.environment.lmdb.begin(write=True)
        before = txn.stat(names)["entries"]
        result = change(Transaction(txn))
        if before - txn.stat(names)["entries"] > self.room:
            txn.abort()
            return fail(Unavailable("no room", retry_after=1))
        txn.commit()
        return succeed(result)


def fill(environment: Environment, *websites: int) -> None:
    with environment.lmdb.begin(write=True) as txn:
        for website in websites:
            prefix = website.to_bytes(4, "big")
            txn.put(TOMBSTONE + prefix, b"", db=environment.databases.meta)
            for number in range(NAMES):
                key = prefix + b"\0" + number.to_bytes(4, "big")
                txn.put(key, b"name", db=environment.databases.dictionary)


@pytest.mark.parametrize("room", [STEP_KEYS, STEP_KEYS - 1, 9, 1])
@pytest_twisted.ensureDeferred
async def test_a_website_is_purged_in_smaller_steps_when_space_is_short(
    environment: Environment, room: int
) -> None:
    fill(environment, 1)
    await WebsitePurge(environment, Submitted(environment, room), Leases(reactor)).purge(1)
    assert deleted(environment) == []
    assert orphans(environment) == []


@pytest_twisted.ensureDeferred
async def test_a_failed_purge_is_resumed(environment: Environment) -> None:
    fill(environment, 1, 2, 3)
    submitted = Submitted(environment, 0)
    purge = WebsitePurge(environment, submitted, Leases(reactor))
    with pytest.raises(Unavailable, match="no room"):
        await purge.purge(2)
    assert deleted(environment) == [1, 2, 3]
    submitted.room = STEP_KEYS
    await purge.resume(lambda website: website == 3)
    assert deleted(environment) == [3]


@pytest_twisted.ensureDeferred
async def test_a_purge_waits_only_for_queries_of_the_same_website(environment: Environment) -> None:
    fill(environment, 1, 2)
    leases = Leases(reactor)
    purge = WebsitePurge(environment, Submitted(environment, STEP_KEYS), leases)
    with leases.lease(2):
        await purge.purge(1)
        assert deleted(environment) == [2]
        waiting = Deferred.fromCoroutine(purge.purge(2))
        assert not waiting.called
    await waiting
    assert deleted(environment) == []


@pytest_twisted.ensureDeferred
async def test_a_start_on_a_full_disk_postpones_purging(
    open_store: Callable[..., Store],
) -> None:
    store = open_store()
    fill(store.environment, 77)
    with store.environment.lmdb.begin(write=True) as txn:
        txn.put(bytes(15) + b"\1", b"", db=store.environment.databases.purge_queue)
    await store.close()
    store = open_store(min_free_disk=1 << 60)
    seen = []
    for number in range(20):
        await store.add_website(f"a{number}.example", 0)
        seen.append(deleted(store.environment))
    assert seen == [[77]] * 20
    assert entries(store, "purge_queue") == [1]
    await settled(store, NOW_MS)
    assert orphans(store.environment) == []
    assert entries(store, "purge_queue") == [0]
    await store.close()
