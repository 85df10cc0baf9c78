from collections.abc import Callable
from operator import itemgetter

import pytest
import pytest_twisted
from support.storage.contents import stored_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view
from support.storage.log_lines import logged_warnings

from medamad.domain.errors import Conflict, Unavailable
from medamad.domain.hits import View, Visitor
from medamad.storage.check import StoreCheck
from medamad.storage.followed_logs import FilePlace, LogCounts, LogPosition
from medamad.storage.request_totals import LOADS, ROBOTS
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

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
    robots = store.robots.read(number, ROBOTS, None, None).by_day().counts
    assert robots == {TODAY: {"curl": {"/": 4}}}
    loads = store.robots.read(number, LOADS, TODAY, TODAY).by_day().counts
    assert loads == {TODAY: {"": {"/": 4}, "Firefox": {"/": 10}}}
    assert store.robots.read(number, LOADS, None, TODAY - 1).by_day().counts == {}
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
    robots = store.robots.read(number, ROBOTS, None, None).by_day().counts
    assert robots == {TODAY: {"curl": {"/": 2}}}
    await store.close()


def logged(minute: int, name: str = "ada", path: str = "/", day: int = 0) -> View:
    return a_view(
        path=path,
        happened_ms=NOW_MS - HOUR_MS + day * DAY_MS + minute * 60_000,
        visitor=Visitor(name, 738_000 + day, is_stored=False),
        identity=name.encode(),
        first_today=False,
        first_of_page=False,
    )


def counted(store: Store) -> list[tuple[str, bool, bool, int]]:
    """Return the path of each view, its flags, and which one it is after the first of its visit."""
    website = store.websites.by_number(1)
    assert website is not None
    views = sorted(stored_rows(store, website)[0], key=itemgetter("time_ms"))
    return [(row["path"], row["p"], row["q"], row["visit_offset"]) for row in views]


@pytest_twisted.ensureDeferred
async def test_views_and_the_place_after_them_are_stored_together(open_store: OpenStore) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    first = [logged(0), logged(1, path="/a"), logged(2, "bob"), logged(40, path="/a")]
    outcomes = await store.follow_log(LogPosition(LOG, 1), LogCounts(), first)
    assert outcomes == [Outcome.STORED] * 4
    with pytest.raises(Conflict):
        await store.follow_log(LogPosition(LOG, 1), LogCounts(), [logged(41, "eve")])
    # As if the first one had never been sent.
    await store.follow_log(LogPosition(LOG, 2), LogCounts(), [logged(42, "eve"), logged(43)])
    expected = [
        ("/", True, True, 1),
        ("/a", False, True, 2),
        ("/", True, True, 1),
        ("/a", False, False, 1),
        ("/", True, True, 1),
        ("/", False, False, 3),
    ]
    assert counted(store) == expected
    with store.environment.reading() as txn:
        assert txn.stat(store.environment.databases.visitors)["entries"] == 0
    await store.close()
    store = open_store()
    assert counted(store) == expected
    assert store.log_position(LOG).version == 2
    # Nothing is known of the visitors any more.
    await store.follow_log(LogPosition(LOG, 3), LogCounts(), [logged(44)])
    assert counted(store)[-1] == ("/", True, True, 1)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_views_of_a_deleted_website_are_left_out(open_store: OpenStore) -> None:
    store = open_store()
    await store.delete_website(await store.add_website("example.com", 1))
    outcomes = await store.follow_log(LogPosition(LOG, 1), LogCounts(), [logged(0)])
    assert outcomes == [Outcome.NO_WEBSITE]
    assert store.log_position(LOG).version == 1
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
