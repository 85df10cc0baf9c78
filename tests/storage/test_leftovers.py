"""Data that belongs to no website is logged at start."""

from collections.abc import Callable

import pytest
import pytest_twisted
from support.storage.contents import entries, idle, settled
from support.storage.hits import DAY_MS, NOW_MS, event, unload, views
from support.storage.log_lines import logged_warnings

from medamad.storage.compaction.planner import Sizes
from medamad.storage.compaction.purge import PER_WEBSITE
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
SIZES = Sizes(chunk_views=4, merged_members=2, counted_from=0)
ELSEWHERE = b"\x80\x00\x00\x01"


@pytest.mark.parametrize("name", PER_WEBSITE)
@pytest_twisted.ensureDeferred
async def test_data_of_no_website_is_logged(open_store: OpenStore, name: str) -> None:
    store = open_store(SIZES)
    await store.add_website("example.com", 1)
    await store.append([*views(1, 9), event("b1")])
    await settled(store, NOW_MS + DAY_MS + 1)
    await store.append([*views(10, 12, NOW_MS + 2 * DAY_MS), unload(1, 700)])
    await store.close()
    with logged_warnings() as lines:
        store = open_store(SIZES)
    assert lines == []
    await idle(store)
    database = getattr(store.environment.databases, name)
    with store.environment.lmdb.begin(write=True) as txn, txn.cursor(database) as cursor:
        key, value = cursor.item() if cursor.last() else (b"\x00\x00\x00\x01" + b"x" * 12, b"")
        if key[:4] == b"\x00\x00\x00\x01" and value:
            cursor.delete()
        txn.put(ELSEWHERE + key[4:], value, db=database)
    await store.close()
    with logged_warnings() as lines:
        store = open_store(SIZES)
    line = (
        f"data that belongs to no website is ignored: website {int.from_bytes(ELSEWHERE)}: {name}"
    )
    assert line in lines
    await store.close()


@pytest_twisted.ensureDeferred
async def test_data_of_a_website_being_purged_is_not_logged(open_store: OpenStore) -> None:
    store = open_store(SIZES)
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 9), event("b1")])
    await store.delete_website(website)
    await store.close()
    with logged_warnings() as lines:
        store = open_store(SIZES)
    assert lines == []
    await settled(store, NOW_MS)
    assert not any(entries(store, "wal", "dictionary"))
    await store.close()
