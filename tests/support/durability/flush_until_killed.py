"""Stores, flushes and merges hits until it is killed. Run by test_kill_while_flushing.py.

Prints the path of each view once it is acknowledged. Times go on by an hour with each turn, from
the turn given. Views are kept for as many days as is given; 0 for ever.
"""

import sys
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred

from medamad.domain.hits import Event, Unload, View
from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import Keep, Retention, StoreSettings
from medamad.storage.startup import start_store

HOUR_MS = 3_600_000
SIZES = Sizes(chunk_views=6, merged_members=3, counted_from=0)


def settings(raw_days: int) -> StoreSettings:
    retention = Retention(others=Keep(raw_days))
    return StoreSettings(map_size=64 << 20, min_free_disk=0, retention=retention)


async def go_on(folder: Path, turn: int, raw_days: int) -> None:
    store = start_store(folder, settings(raw_days), reactor, SIZES)
    if not store.websites.all():
        await store.add_website("example.com", 1)
    while True:
        now_ms = 1_790_000_000_000 + turn * HOUR_MS
        tidying = Deferred.fromCoroutine(store.maintain(now_ms))
        for number in range(3):
            path = f"/{turn}/{number}"
            view = View(
                website=1,
                time_ms=now_ms,
                beacon=path,
                first_today=True,
                first_of_page=True,
                path=path,
            )
            event = Event(website=1, time_ms=now_ms, properties=(("n", path),), beacon=path)
            earlier = f"/{turn - 7}/{number}"
            unload = Unload(time_ms=now_ms, beacon=earlier, duration_ms=7 * HOUR_MS)
            await store.append([event, unload])
            await store.append([view])
            sys.stdout.write(f"{path}\n")
            sys.stdout.flush()
        await tidying
        turn += 1


if __name__ == "__main__":
    Deferred.fromCoroutine(go_on(Path(sys.argv[1]), *map(int, sys.argv[2:])))
    reactor.run()
