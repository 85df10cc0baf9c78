"""The retention forecast matches what happens."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import pytest_twisted
from support.query.snapshots import SOURCES
from support.storage.contents import settled, stored_rows
from support.storage.hits import DAY_MS, NOW_MS, a_view, event, unload, views

from medamad.domain.goals import Definitions, Exclusion
from medamad.query.embedded.excluded import find_left_out
from medamad.storage.compaction.division import FindLeftOut
from medamad.storage.compaction.planner import Sizes
from medamad.storage.compaction.retention import Forecast, cutoff_of
from medamad.storage.environment.environment import open_as_guest
from medamad.storage.offline import open_reader
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
RETENTION = Retention(others=Keep(3))


async def past(store: Store) -> None:
    await store.add_website("example.com", 1)
    for day in range(9, -1, -1):
        at_ms = NOW_MS - day * DAY_MS
        await store.append([*views(10 * day, 10 * day + 6, at_ms), event(f"b{10 * day}", at_ms)])
        await store.append([event("", at_ms), unload(10 * day, 70_000 + day, at_ms)])
    await settled(store, NOW_MS)


def forecast_of(folder: Path, keep: Keep, retention: Retention = RETENTION) -> Forecast:
    with open_reader(folder) as reader:
        (website,) = reader.websites()
        return reader.forecast(website, cutoff_of(keep, retention.zone, NOW_MS))


@pytest.mark.parametrize("sizes", [Sizes(counted_from=0), Sizes(5, 2, 0), Sizes(16, 3, 2)])
@pytest_twisted.ensureDeferred
async def test_the_forecast_matches_what_is_deleted(
    open_store: OpenStore, tmp_path: Path, sizes: Sizes
) -> None:
    store = open_store(sizes=sizes)
    await past(store)
    await store.close()
    before = forecast_of(tmp_path / "data", Keep(3))
    assert before == forecast_of(tmp_path / "data", Keep(3)), "it has changed something"
    assert (before.due_views, before.due_events, before.new_days) == (42, 12, 6)
    assert (before.views, before.days, before.due_days, before.damaged) == (70, 0, 0, ())
    assert before.earliest_ms == NOW_MS - 9 * DAY_MS
    assert 0 < before.due_bytes <= before.bytes
    nothing = forecast_of(tmp_path / "data", Keep(0))
    assert (nothing.due_views, nothing.due_bytes, nothing.new_days) == (0, 0, 0)
    store = open_store(sizes=sizes, retention=RETENTION)
    await settled(store, NOW_MS)
    (website,) = store.websites.all()
    left = len(stored_rows(store, website)[0])
    await store.close()
    after = forecast_of(tmp_path / "data", Keep(3))
    assert (after.views, after.days) == (28, 6) == (left, before.new_days)
    assert (after.due_views, after.due_events, after.due_bytes, after.new_days) == (0, 0, 0, 0)
    assert after.earliest_ms == NOW_MS - 3 * DAY_MS
    # Where segments are as small as a day, its rollups are not merged.
    is_merged = sizes.chunk_views > 7
    assert (after.bytes_of_days == before.bytes_of_new_days) == is_merged
    gone = forecast_of(tmp_path / "data", Keep(3, "nothing"))
    assert (gone.due_days, gone.bytes_of_due_days) == (6, after.bytes_of_days)


@pytest.mark.parametrize("sizes", [Sizes(counted_from=0), Sizes(5, 2, 0), Sizes(1, 2, 0)])
@pytest_twisted.ensureDeferred
async def test_the_forecast_goes_by_the_days_on_which_visits_began(
    open_store: OpenStore, tmp_path: Path, sizes: Sizes
) -> None:
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    midnight_ms = NOW_MS - NOW_MS % DAY_MS - 3 * DAY_MS
    for number, distance_ms in enumerate((-1000, 1000, 2000), 1):
        at = {"time_ms": midnight_ms + distance_ms, "beacon": f"b{number}"}
        in_visit = a_view(identity=b"somebody", first_today=number == 1, **at)
        await store.append([in_visit, a_view(time_ms=at["time_ms"])])
        await store.append([event(f"b{number}", midnight_ms + DAY_MS // 2)])
    await settled(store, NOW_MS)
    await store.close()
    found = forecast_of(tmp_path / "data", Keep(3))
    assert (found.due_views, found.due_events, found.new_days) == (4, 3, 2)
    store = open_store(sizes=sizes, retention=RETENTION)
    await settled(store, NOW_MS)
    assert [len(rows) for rows in stored_rows(store, website)] == [2, 0]
    await store.close()
    after = forecast_of(tmp_path / "data", Keep(3))
    assert (after.views, after.days, after.due_views, after.due_events) == (2, 2, 0, 0)


@pytest_twisted.ensureDeferred
async def test_damaged_segments_are_named_and_kept(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    await past(store)
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        cursor = txn.cursor(db=guest.databases.segments)
        assert cursor.first()
        *others, last = cursor.value()
        cursor.put(cursor.key(), bytes((*others, last ^ 1)))
    guest.close()
    found = forecast_of(tmp_path / "data", Keep(3))
    assert "segment" in found.damaged[0]
    assert found.due_views < 42


@pytest_twisted.ensureDeferred
async def test_what_exclusions_leave_out_is_forecast_apart(
    open_store: OpenStore, tmp_path: Path
) -> None:
    find = partial(find_left_out, SOURCES)
    store = open_store()
    await past(store)
    rule = Exclusion(id="a", name="a", filters=(("path[contains]", "1"),), created=1)
    (website,) = store.websites.all()
    await store.goals.change(website.number, lambda _: Definitions(exclusions=(rule,)))
    await store.close()

    def forecast_with(find: FindLeftOut | None) -> Forecast:
        with open_reader(tmp_path / "data") as reader:
            return reader.forecast(website, cutoff_of(Keep(3), RETENTION.zone, NOW_MS), find)

    before = forecast_with(find)
    assert before.new_days == 6
    assert before.bytes_of_new_days > forecast_with(None).bytes_of_new_days
    store = open_store(retention=RETENTION, find_left_out=find)
    await settled(store, NOW_MS)
    await store.close()
    after = forecast_with(find)
    assert (after.days, after.bytes_of_days) == (6, before.bytes_of_new_days)
