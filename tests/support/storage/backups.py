"""Stores that are backed up, and what there is of them."""

from collections.abc import Callable
from pathlib import Path

from support.storage.contents import settled
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, event, unload, views

from medamad.domain.accounts import Account, Login
from medamad.domain.websites import Website
from medamad.storage.backup import BackupProgress, Note, back_up, no_progress
from medamad.storage.compaction.planner import Sizes
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
SIZES = Sizes(chunk_views=4, merged_members=2, counted_from=0)


async def filled(open_store: OpenStore) -> tuple[Store, Website]:
    """Open a store with a website that has segments, a memtable, corrections and events."""
    store = open_store(sizes=SIZES)
    await store.account.put(Account("ada", "hash", 1, 1))
    await store.account.add_login(b"digest", Login(1, 2))
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 30), event("b1"), unload(2, 700)])
    await settled(store, NOW_MS + DAY_MS + HOUR_MS + 1)
    await store.append([*views(31, 40, NOW_MS + DAY_MS + HOUR_MS), unload(3, 900)])
    return store, website


def back_up_of(
    store: Store, target: Path, progress: BackupProgress = no_progress, spare_bytes: int = 0
) -> Note:
    """Back up a store that is open here: no process can open it twice."""
    env = store.environment
    with env.lmdb.begin() as txn:
        return back_up(env, txn, target, progress=progress, spare_bytes=spare_bytes)
