from collections.abc import Callable
from pathlib import Path

import pytest_twisted
from support.storage.contents import entries
from support.storage.hits import DAY_MS, NOW_MS
from support.storage.log_lines import logged_warnings

from medamad.domain.dimensions import OTHER
from medamad.storage.check import StoreCheck
from medamad.storage.drop_damaged import drop_damaged
from medamad.storage.environment.environment import FILE_NAME, open_as_guest, open_to_read
from medamad.storage.environment.files import open_lmdb
from medamad.storage.followed_logs import LogCounts, LogPosition
from medamad.storage.request_totals import (
    FOLLOWED,
    HITS,
    MAX_NAMES,
    MAX_PATH,
    MAX_PATHS,
    ROBOTS,
    RequestDays,
    RequestSources,
    added_up,
    merge_counts,
    requests_of,
)
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
TODAY = NOW_MS // DAY_MS


def robots(
    store: Store, website: int, first_day: int | None = None, last_day: int | None = None
) -> RequestDays:
    return store.robots.read(website, ROBOTS, first_day, last_day).by_day()


def test_new_names_and_paths_beyond_the_limits_count_together() -> None:
    counts: dict[str, dict[str, int]] = {}
    merge_counts(counts, {f"Bot{number}": {"/": 1} for number in range(MAX_NAMES + 2)})
    assert len(counts) == MAX_NAMES + 1
    assert counts[OTHER] == {"/": 2}
    merge_counts(counts, {"Bot0": {f"/{number}": 2 for number in range(MAX_PATHS)}})
    kept = MAX_PATHS - MAX_NAMES - 1
    assert counts["Bot0"][OTHER] == 2 * (MAX_PATHS - kept)
    assert sum(map(len, counts.values())) == MAX_PATHS + 1
    merge_counts(counts, {"Bot0": {"/": 3, "/0": 4}})
    assert (counts["Bot0"]["/"], counts["Bot0"]["/0"]) == (4, 6)


def test_names_that_anyone_may_make_up_keep_no_known_robot_out() -> None:
    def is_listed(name: str) -> bool:
        return name.startswith("Known")

    counts: dict[str, dict[str, int]] = {}
    known = {f"Known{number}": {"/": 1} for number in range(MAX_NAMES)}
    made_up = {f"Bot{number}": {"/": 1} for number in range(MAX_NAMES + 1)}
    for more in (dict(list(known.items())[:3]), made_up, known):
        merge_counts(counts, more, is_listed=is_listed)
    assert set(counts) == {*known, *made_up, OTHER} - {f"Bot{MAX_NAMES}"}
    assert (counts[OTHER], counts["Known0"], counts["Known9"]) == ({"/": 1}, {"/": 2}, {"/": 1})


def test_a_very_long_path_counts_among_the_others() -> None:
    counts: dict[str, dict[str, int]] = {}
    longest = "/" * MAX_PATH
    merge_counts(counts, {"Bot": {longest: 1, longest + "x": 2}})
    assert counts == {"Bot": {longest: 1, OTHER: 2}}


def test_what_several_stores_have_of_one_source_adds_up() -> None:
    stores = [
        RequestSources({(2, HITS): {"A": {"/": 3}, "B": {"/": 1}}, (2, FOLLOWED): {"A": {"/": 4}}}),
        RequestSources({(2, HITS): {"A": {"/": 1, "/a": 1}}, (1, HITS): {"A": {"/": 1}}}),
        RequestSources({(2, FOLLOWED): {"B": {"/b": 2}}, (4, HITS): {"A": {"/": 1}}}),
    ]
    # Of A, five hits are more than the four requests in one log; of B, two in a log than one hit.
    expected = {
        1: {"A": {"/": 1}},
        2: {"A": {"/": 4, "/a": 1}, "B": {"/b": 2}},
        4: {"A": {"/": 1}},
    }
    found = added_up(stores).by_day()
    assert (found.counts, list(found.counts), found.damaged) == (expected, [1, 2, 4], frozenset())
    damaged = RequestSources({(2, HITS): {"A": {"/": 9}}}, frozenset({4}))
    found = added_up((*stores, damaged)).by_day()
    assert (list(found.counts), found.damaged) == ([1, 2], {4})
    assert found.counts[2]["A"] == {"/": 13, "/a": 1}


@pytest_twisted.ensureDeferred
async def test_totals_add_up_and_survive_a_restart(open_store: OpenStore) -> None:
    store = open_store()
    number = (await store.add_website("example.com", 1)).number
    other = (await store.add_website("other.example", 1)).number
    await store.robots.add({(number, TODAY): {"GPTBot": {"/": 2}}, (other, TODAY): {"A": {"/": 9}}})
    await store.robots.add({(number, TODAY): {"GPTBot": {"/": 1, "/a": 1}, "curl": {"/": 1}}})
    await store.robots.add({(number, TODAY - 3): {"curl": {"/": 5}}, (99, TODAY): {"A": {"/": 1}}})
    await store.close()
    store = open_store()
    today = {"GPTBot": {"/": 3, "/a": 1}, "curl": {"/": 1}}
    assert robots(store, number).counts == {
        TODAY: today,
        TODAY - 3: {"curl": {"/": 5}},
    }
    assert robots(store, number, TODAY - 2, TODAY).counts == {TODAY: today}
    assert robots(store, number, None, TODAY - 1).counts == {TODAY - 3: {"curl": {"/": 5}}}
    assert robots(store, 99).counts == {}
    await store.close()
    assert findings(store.environment.path.parent) == []


def findings(directory: Path) -> list[str]:
    environment, txn = open_to_read(directory)
    try:
        return list(StoreCheck(environment, txn).findings())
    finally:
        txn.abort()
        environment.close()


@pytest_twisted.ensureDeferred
async def test_they_go_with_the_website(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    other = await store.add_website("other.example", 1)
    for each in (website, other):
        await store.robots.add({(each.number, TODAY): {"curl": {"/": 1}}})
    await store.delete_website(website)
    await store.maintain(NOW_MS)
    assert entries(store, "robots") == [1]
    assert robots(store, other.number).counts == {TODAY: {"curl": {"/": 1}}}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_retention_deletes_them_with_the_totals_of_people(open_store: OpenStore) -> None:
    store = open_store(retention=Retention(others=Keep(3, "sums")))
    number = (await store.add_website("example.com", 1)).number
    days = range(TODAY - 9, TODAY + 1)
    await store.robots.add({(number, day): {"curl": {"/": 1}} for day in days})
    await store.maintain(NOW_MS)
    assert list(robots(store, number).counts) == list(days)
    store.apply(
        store.settings.__class__(min_free_disk=0, retention=Retention(others=Keep(3, "nothing")))
    )
    assert store.maintenance.has_expired(NOW_MS)
    await store.maintain(NOW_MS)
    kept = list(robots(store, number).counts)
    assert kept
    assert kept == [day for day in days if day >= kept[0]]
    assert kept[0] in {TODAY - 4, TODAY - 3}
    assert not store.maintenance.has_expired(NOW_MS)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_of_two_sources_the_one_that_saw_more_of_a_robot_counts(
    open_store: OpenStore,
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    number = website.number
    await store.robots.add({(number, TODAY): {"Googlebot": {"/": 5}, "bingbot": {"/js": 3}}})
    batch = await store.imports.begin(
        website, source="access.log", digest="d", ranges=[("", 1, 9)], newest=0, now=7
    )
    imported = {TODAY: {"Googlebot": {"/": 4, "/a": 3}, "bingbot": {"/": 2}, "curl": {"/": 1}}}
    await store.robots.add_imported(number, batch.number, imported)
    received = {"Googlebot": {"/": 5}, "bingbot": {"/js": 3}}
    assert robots(store, number).counts == {TODAY: received}
    await store.imports.finish(batch)
    assert robots(store, number).counts == {
        TODAY: {"Googlebot": {"/": 4, "/a": 3}, "bingbot": {"/js": 3}, "curl": {"/": 1}}
    }
    await store.imports.undo(website, batch.number)
    assert robots(store, number).counts == {TODAY: received}
    assert entries(store, "robots") == [1]
    await store.robots.add_imported(number, batch.number, imported)
    assert entries(store, "robots") == [1]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_damaged_day_is_left_out_and_can_be_dropped(open_store: OpenStore) -> None:
    store = open_store()
    number = (await store.add_website("example.com", 1)).number
    await store.robots.add(
        {(number, TODAY): {"curl": {"/": 1}}, (number, TODAY - 1): {"curl": {"/": 2}}}
    )
    directory = store.environment.path.parent
    await store.close()
    environment = open_as_guest(directory)
    with environment.lmdb.begin(write=True) as txn:
        with txn.cursor(db=environment.databases.robots) as cursor:
            assert cursor.first()
            key, value = cursor.item()
        txn.put(key, value[:-1] + bytes([value[-1] ^ 1]), db=environment.databases.robots)
    environment.close()
    store = open_store()
    found = robots(store, number)
    assert (found.counts, found.damaged) == ({TODAY: {"curl": {"/": 1}}}, {TODAY - 1})
    await store.close()
    (finding,) = findings(directory)
    assert finding.startswith("robots ")
    assert finding.endswith("its checksum does not match")
    (dropped,) = drop_damaged(directory, is_dry_run=False)
    assert (dropped.hostname, dropped.what) == ("example.com", "the robots of a day")
    store = open_store()
    assert not robots(store, number).damaged
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_damaged_day_stays_damaged_until_it_is_dropped(open_store: OpenStore) -> None:
    store = open_store()
    number = (await store.add_website("example.com", 1)).number
    await store.robots.add({(number, TODAY): {"curl": {"/": 1}}})
    with store.environment.lmdb.begin(write=True) as txn:
        with txn.cursor(db=store.environment.databases.robots) as cursor:
            assert cursor.first()
            key, value = cursor.item()
        txn.put(key, value[:-1], db=store.environment.databases.robots)
    with logged_warnings() as lines:
        await store.robots.add({(number, TODAY): {"curl": {"/": 7}}})
    place = f"website {number}, robots of day {TODAY}: its checksum does not match"
    assert lines == [f"a damaged part of the store is ignored: {place}"]
    # What other sources saw would pass for the whole day.
    seen = {number: {TODAY: {"curl": {"/": 3}}, TODAY - 1: {"curl": {"/": 2}}}}
    await store.follow_log(LogPosition("/log", 1), LogCounts(robots=seen))
    found = robots(store, number)
    assert (found.counts, found.damaged) == ({TODAY - 1: {"curl": {"/": 2}}}, {TODAY})
    await store.close()
    drop_damaged(store.environment.path.parent, is_dry_run=False)
    store = open_store()
    await store.robots.add({(number, TODAY): {"curl": {"/": 7}}})
    assert robots(store, number, TODAY, None).counts == {TODAY: {"curl": {"/": 7}}}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_days_of_a_damaged_import_are_damaged(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    batch = await store.imports.begin(
        website, source="access.log", digest="d", ranges=[("", 1, 9)], newest=0, now=7
    )
    await store.robots.add_imported(website.number, batch.number, {TODAY: {"curl": {"/": 1}}})
    await store.imports.finish(batch)
    await store.robots.add({(website.number, day): {"A": {"/": 5}} for day in (TODAY, TODAY - 1)})
    batches = store.environment.databases.import_batches
    with store.environment.lmdb.begin(write=True) as txn, txn.cursor(db=batches) as cursor:
        assert cursor.first()
        txn.put(cursor.key(), cursor.value()[:-1], db=batches)
    found = robots(store, website.number)
    assert (found.counts, found.damaged) == ({TODAY - 1: {"A": {"/": 5}}}, {TODAY})
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_store_of_an_earlier_build_has_none_until_it_is_written(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    number = (await store.add_website("example.com", 1)).number
    await store.close()
    env = open_lmdb(tmp_path / "data" / FILE_NAME, 0)
    with env.begin(write=True) as txn:
        txn.drop(env.open_db(b"robots", txn=txn), delete=True)
    env.close()
    environment, reading = open_to_read(tmp_path / "data")
    assert environment.databases.robots is None
    assert requests_of(reading, environment.databases, number, ROBOTS).counts == {}
    assert list(StoreCheck(environment, reading).findings()) == []
    reading.abort()
    environment.close()
    store = open_store()
    await store.robots.add({(number, TODAY): {"curl": {"/": 7}}})
    assert robots(store, number).counts == {TODAY: {"curl": {"/": 7}}}
    await store.close()
