"""The quartiles of pages from cached durations, compared with those of all durations."""

import random
from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest_twisted
from support.query.oracle import quantile
from support.query.readers import reader_of
from support.storage.contents import idle
from support.storage.hits import DAY_MS, NOW_MS, a_view, unload

from medamad.domain.dimensions import Dimension
from medamad.query.embedded.aggregate import CachedWindows, find_quartiles, quartiles_by_path
from medamad.query.embedded.quantiles import NearDurations
from medamad.query.embedded.scan import Selection, divide
from medamad.query.embedded.series import EVER
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
PATHS = 6


def windows(cached_as: Hashable, snapshot: Snapshot) -> CachedWindows | None:
    """Return what is cached of all segments that never change."""
    whole, _ = divide(snapshot, ALWAYS)
    if not whole.segments:
        return None
    first = whole.with_segments([next(whole.leaf_segments())])
    found: CachedWindows | None = first.find_cached((find_quartiles, cached_as))
    return found


def leaves_of(snapshot: Snapshot) -> int:
    """Return how many segments there are, none of them merged."""
    return len(list(snapshot.leaf_segments()))


def agrees(snapshot: Snapshot) -> NearDurations | None:
    """Compare the quartiles of all pages, and of some; return what is cached."""
    texts = snapshot.texts(Dimension.PATH)
    for period in (ALWAYS, Period(NOW_MS + DAY_MS // 2, None)):
        durations: dict[int, list[int]] = defaultdict(list)
        for leaf in snapshot.leaves():
            is_in = period.mask(leaf.time_ms) & (leaf.duration_ms > 0)
            columns = (leaf.codes(Dimension.PATH)[is_in], leaf.duration_ms[is_in])
            for code, duration_ms in zip(*(each.tolist() for each in columns), strict=True):
                durations[code].append(duration_ms)
        selection = Selection(snapshot, period, ViewFilter({}), Cancellation())
        for paths in (np.arange(len(texts)), np.arange(0, len(texts), 2)):
            found = quartiles_by_path(selection, paths)
            for place, path in enumerate(paths.tolist()):
                expected = [quantile(durations[path], Fraction(q, 4)) for q in (1, 2, 3)]
                assert [int(found.quartile(q)[place]) for q in (1, 2, 3)] == expected
                assert found.counts[place] == len(durations[path])
    cached = windows(Dimension.PATH, snapshot)
    return cached and cached.near


@pytest_twisted.ensureDeferred
async def test_quartiles_stay_exact_while_views_are_added(open_store: OpenStore) -> None:
    rng = random.Random(1)  # noqa: S311 - the same each time
    store = open_store(sizes=Sizes(chunk_views=100, merged_members=2, counted_from=0))
    website = await store.add_website("example.com", 1)
    number, now_ms = 0, NOW_MS

    async def add(count: int, mean_ms: float, paths: int) -> None:
        nonlocal number
        hits = []
        for _ in range(count):
            number += 1
            path = f"/{min(rng.randrange(paths), rng.randrange(paths))}"
            hits.append(a_view(website.number, beacon=f"b{number}", path=path, time_ms=now_ms))
            hits.append(unload(number, int(rng.lognormvariate(0, 0.5) * mean_ms)))
        await store.append(hits)

    for _ in range(3):
        await add(500, 20_000, PATHS)
        now_ms += DAY_MS + DAY_MS // 2
        await store.maintain(now_ms)
        await idle(store)
    prepared = store.read(website, partial(windows, EVER.edges_ms.tobytes()))
    assert prepared is None
    store.read(website, lambda snapshot: reader_of(snapshot).prepare())
    prepared = store.read(website, partial(windows, EVER.edges_ms.tobytes()))
    assert prepared is not None
    first = store.read(website, agrees)
    assert first is not None
    assert len(first.duration_ms) < 3 * 1500
    # A few more, also of new pages, change nothing that is cached; many of another length do.
    await add(20, 20_000, PATHS + 2)
    assert store.read(website, agrees) is first
    # Nor do they once they are in a segment.
    before = store.read(website, leaves_of)
    now_ms += DAY_MS + DAY_MS // 2
    await store.maintain(now_ms)
    await idle(store)
    assert store.read(website, leaves_of) > before
    assert store.read(website, agrees) is first
    await add(150, 200_000, 1)
    second = store.read(website, agrees)
    assert second is not None
    assert second is not first
    assert store.read(website, agrees) is second
    await store.close()
