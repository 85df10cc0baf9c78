"""What the engine finds after a start, before anybody asks."""

from collections.abc import Callable

import numpy as np
import pytest
import pytest_twisted
from numpy.typing import NDArray
from support.storage.contents import idle
from support.storage.hits import DAY_MS, NOW_MS, a_view

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.domain.goals import Goal
from medamad.lookup.referrers import Sources
from medamad.query.embedded.aggregate import find_quartiles
from medamad.query.embedded.engine import EmbeddedEngine
from medamad.query.embedded.reader import EmbeddedReader
from medamad.query.embedded.scan import divide
from medamad.query.embedded.series import EVER
from medamad.query.embedded.visit_sums import FirstViews, sums_of_covered
from medamad.query.goal_reports import goal_figures
from medamad.query.period import ALWAYS
from medamad.query.reader import SeriesOptions
from medamad.query.request import Cancellation, Cancelled, Query
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments import gathered
from medamad.storage.segments.parts import Numbers, ViewColumns
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import rows_of_visits
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


def has_sums(snapshot: Snapshot) -> bool:
    """Return whether the sums of visits by their entry page are cached."""
    whole, _ = divide(snapshot, ALWAYS)
    return whole.find_cached((FirstViews(Dimension.PATH), sums_of_covered)) is not None


def has_near_median(snapshot: Snapshot) -> bool:
    """Return whether the durations around the median of all views are cached."""
    whole, _ = divide(snapshot, ALWAYS)
    first = whole.with_segments([next(whole.leaf_segments())])
    cached = first.find_cached((find_quartiles, EVER.edges_ms.tobytes()))
    return cached is not None and cached.near is not None


@pytest_twisted.ensureDeferred
async def test_what_first_requests_need_of_large_websites_is_found_before(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(sizes=Sizes(chunk_views=2, merged_members=2, counted_from=0))
    large = await store.add_website("large.example", 1)
    small = await store.add_website("small.example", 1)
    await store.add_website("without-hits.example", 1)
    for website, views in (large, 16), (small, 2):
        for second in range(views):
            view = a_view(
                website.number,
                time_ms=NOW_MS + second * 1000,
                identity=(b"ann", b"bob")[second % 2],
                first_today=second < 2,
            )
            await store.append([view])
    await idle(store)
    await store.maintain(NOW_MS + 2 * DAY_MS)
    await idle(store)
    engine = EmbeddedEngine(store)
    websites = (large, small)
    merged = [store.read(each, lambda s: any(o.members for o in s.segments)) for each in websites]
    assert merged == [True, False]
    cancelled = Cancellation()
    cancelled.cancel()
    with pytest.raises(Cancelled):
        engine.load(cancelled)
    assert not any(store.read(each, has_sums) for each in websites)
    gathered_from: list[ViewColumns] = []

    def note_rows(part: ViewColumns, numbers: Numbers) -> NDArray[np.intp]:
        if len(numbers):
            gathered_from.append(part)
        return rows_of_visits(part, numbers)

    monkeypatch.setattr(gathered, "rows_of_visits", note_rows)
    engine.load(Cancellation())
    assert [store.read(each, has_sums) for each in websites] == [True, False]
    assert [store.read(each, has_near_median) for each in websites] == [True, False]
    partition = store.partitions.find(large.number)
    assert partition is not None
    read_bytes = partition.texts.size()
    for dimension in VIEW_DIMENSIONS:
        partition.texts(dimension)
    assert partition.texts.size() == read_bytes
    # The views of visits that are in several segments are not searched for again.
    assert gathered_from
    gathered_from.clear()
    goals = [Goal(id="a", name="Home", path="/")]
    options = SeriesOptions(now_ms=NOW_MS)
    found = engine.read(
        large,
        Sources({}),
        Cancellation(),
        lambda reader: goal_figures(reader, Query(with_visits=True), goals=goals, options=options),
    )
    assert [row["visits"] for row in found.content] == [2]
    assert not gathered_from
    # What is deleted meanwhile is left out.
    prepare = EmbeddedReader.prepare
    prepared = []

    def delete(reader: EmbeddedReader) -> None:
        partition = store.partitions.find(large.number)
        assert partition is not None
        partition.texts.is_deleted = not prepared
        prepared.append(reader)
        prepare(reader)

    monkeypatch.setattr(EmbeddedReader, "prepare", delete)
    engine.load(Cancellation())
    assert len(prepared) == 3
    await store.close()
