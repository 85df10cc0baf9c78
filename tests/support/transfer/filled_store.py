"""A store with views in segments, groups and the memtable, and with odd texts."""

from support.storage.bulk_loads import load, made
from support.storage.hits import DAY_MS, NOW_MS, event, unload, views

from medamad.domain.dimensions import WidthClass
from medamad.domain.hits import Event, View
from medamad.domain.websites import Website
from medamad.storage.store import Store

NASTY = (
    *("=1+1", "+49", "-2", "@cmd", "'", "''=x", "\t=1", "\r\n=1", "\n", 'a"b,c;d', "\u2028"),
    *("a;=1", "\uff1d1", "a;'\t@b", ';"=1;'),
    *("\ufeffbom", "\x1a", "", " ", "ünï", "\U0001f600", "null", "None", "(other)"),
)


async def fill(store: Store) -> Website:
    """Store views in segments and the memtable, with corrections, late events and odd texts."""
    website = await store.add_website("example.com", 1)
    odd = [
        View(
            website=1, time_ms=NOW_MS + n, beacon=f"odd{n}", first_today=n % 2 == 0,
            first_of_page=n % 3 == 0, hosting=n % 5 == 0, path=text, referrer=text,
            utm_source=text, browser=text,
            country=("DE", "", "(other)")[n % 3], locale=("en-GB", "", "de")[n % 3],
            width_class=WidthClass(n % 6), properties=(("name" + text, text), ("=n", text)),
        )
        for n, text in enumerate(NASTY)
    ]  # fmt: skip
    await store.append([event("b1"), *odd, *views(1, 9), unload(2, 700)])
    await store.maintain(NOW_MS + DAY_MS + 1)
    await load(store, website, made(1, 30, 12))
    await store.append([*views(10, 30, NOW_MS + DAY_MS), event("b3", NOW_MS + DAY_MS)])
    await store.append([unload(3, 900, NOW_MS + 5)])
    await store.append(
        [Event(website=1, time_ms=NOW_MS + DAY_MS + 1, properties=(("lost", "1"),), beacon="none")]
    )
    async with store.maintenance.segments_lock:
        pass
    return website
