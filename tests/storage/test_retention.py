"""Views expire, and the rollups of their days answer as the views did."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
import pytest_twisted
from attrs import define, evolve
from support.query.naive_filters import Pairs
from support.query.oracle import Entry, Oracle
from support.query.readers import reader_of
from support.query.snapshots import SOURCES, WITHOUT_VISITS, query_from, result
from support.storage.contents import agrees, entries, idle, orphans, settled, stored_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view, event, unload, views
from support.storage.log_lines import logged_warnings
from support.storage.reactor import RecordingReactor
from twisted.internet.defer import Deferred
from twisted.logger import LogLevel

from medamad.domain.dimensions import Dimension
from medamad.domain.hits import Event, Unload, View
from medamad.domain.websites import Website
from medamad.query.reader import Reader
from medamad.query.request import Gap
from medamad.storage.compaction.job import Expire, Job
from medamad.storage.compaction.planner import Sizes
from medamad.storage.compaction.retention import cutoff_of
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store
from medamad.storage.wal.log import WriteBatch

OpenStore = Callable[..., Store]

SMALL = Sizes(chunk_views=8, merged_members=2, counted_from=0)
MIDNIGHT_MS = NOW_MS - NOW_MS % DAY_MS
TIMEOUT_MS = HOUR_MS // 2
LATER_MS = MIDNIGHT_MS + 60 * DAY_MS - 1
FIRST_EXPIRY_MS = MIDNIGHT_MS + 2 * DAY_MS + HOUR_MS
"""From then on, `keeping(1)` deletes visits that began before `MIDNIGHT_MS`."""


def keeping(raw_days: int, after: str = "sums", zone: str = "UTC") -> Retention:
    return Retention(others=Keep(raw_days, after), zone=ZoneInfo(zone))


def days_of(store: Store, website: Website) -> list[int]:
    """Return the days that have a rollup, relative to today."""
    today = MIDNIGHT_MS // DAY_MS
    return store.read(
        website, lambda snapshot: sorted({day.day - today for day in snapshot.rollups})
    )


def ask(store: Store, website: Website, endpoint: str, query: Any = ()) -> tuple[Any, list[int]]:
    """Return a result and the days that it does not cover."""
    return store.read(website, lambda snapshot: answer_of(snapshot, endpoint, query))


def answer_of(asked: Snapshot | Reader, endpoint: str, query: Any) -> tuple[Any, list[int]]:
    """Return the same of a snapshot, or from a reader."""
    found = result(asked, endpoint, list(query), now_ms=LATER_MS)
    days = [day for gap in Gap for day in found.gaps.days(gap)]
    return msgspec.to_builtins(found.content), days


def answers(store: Store, website: Website) -> dict[str, Any]:
    """Return all results about all time; none may have a gap."""
    query = {"summary": [("interval", "day"), ("start", "2026-01-01T00:00:00Z")]}
    found = {name: ask(store, website, name, query.get(name, ())) for name in WITHOUT_VISITS}
    assert [missing for _, missing in found.values() if missing] == []
    return {name: answered for name, (answered, _) in found.items()}


async def past(store: Store, days: int) -> Website:
    """Store some views, one with a duration, and an event on each of the last days and today."""
    website = await store.add_website("example.com", 1)
    for ago in range(days, -1, -1):
        noon_ms = MIDNIGHT_MS - ago * DAY_MS + 12 * HOUR_MS
        number = 10 * (days - ago)
        await store.append(views(number, number + 2, noon_ms))
        await store.append([unload(number, 1000 + ago, noon_ms + 1), event("", noon_ms)])
        await store.append([event(f"b{number + 1}", noon_ms + 5)])
    return website


async def plain_past(store: Store, hostname: str, days: int) -> Website:
    """Store a view on each of the last days and today."""
    website = await store.add_website(hostname, 1)
    for ago in range(days, -1, -1):
        noon_ms = MIDNIGHT_MS - ago * DAY_MS + 12 * HOUR_MS
        at = {"time_ms": noon_ms, "beacon": f"{hostname}-{ago}"}
        await store.append([a_view(website.number, **at)])
    return website


@pytest.mark.parametrize(
    "sizes",
    [
        SMALL,
        Sizes(),
        *(pytest.param(s, marks=pytest.mark.slow) for s in (Sizes(1, 2, 0), Sizes(3, 3, 5))),
    ],
)
@pytest_twisted.ensureDeferred
async def test_results_stay_the_same_while_views_expire(
    open_store: OpenStore, sizes: Sizes
) -> None:
    store = open_store(sizes=sizes)
    website = await past(store, 9)
    await store.maintain(NOW_MS)
    before, (rows, _) = answers(store, website), stored_rows(store, website)
    store.apply(store.settings.__class__(min_free_disk=0, retention=keeping(3)))
    await settled(store, NOW_MS)
    for _ in range(2):
        assert answers(store, website) == before
        assert days_of(store, website) == list(range(-9, -3))
        left = [row for row in rows if row["time_ms"] >= MIDNIGHT_MS - 3 * DAY_MS]
        assert stored_rows(store, website)[0] == left
        assert orphans(store.environment) == []
        store.read(website, agrees)
        await store.close()
        store = open_store(sizes=sizes, retention=keeping(3))
    await settled(store, NOW_MS + 2 * DAY_MS)
    assert answers(store, website) == before
    assert days_of(store, website) == list(range(-9, -1))
    await store.close()


@pytest_twisted.ensureDeferred
async def test_nothing_remains_without_rollups(open_store: OpenStore) -> None:
    store = open_store(sizes=SMALL, retention=keeping(5))
    website = await past(store, 9)
    await settled(store, NOW_MS)
    assert days_of(store, website) == [-9, -8, -7, -6]
    store.apply(store.settings.__class__(min_free_disk=0, retention=keeping(3, "nothing")))
    await settled(store, NOW_MS)
    assert days_of(store, website) == []
    found, events = stored_rows(store, website)
    assert min(row["time_ms"] for row in (*found, *events)) >= MIDNIGHT_MS - 3 * DAY_MS
    assert (len(found), len(events)) == (12, 8)
    assert ask(store, website, "summary")[0]["current"]["pageviews"] == 12
    assert orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_was_removed_is_logged_once(open_store: OpenStore) -> None:
    store = open_store(sizes=SMALL)
    await past(store, 9)
    await settled(store, NOW_MS)
    with logged_warnings(LogLevel.info) as lines:
        store.apply(store.settings.__class__(min_free_disk=0, retention=keeping(5)))
        await settled(store, NOW_MS)
        removed = f"views (12) and events (8) from before {date_before(5)} were removed"
        assert lines == [f"example.com: {removed}; daily totals remain"]
        lines.clear()
        store.apply(store.settings.__class__(min_free_disk=0, retention=keeping(3, "nothing")))
        await settled(store, NOW_MS)
        removed = f"views (6) and events (4) from before {date_before(3)} were removed"
        assert lines == [
            f"example.com: {removed}; nothing of them remains",
            f"example.com: daily totals (4) from before {date_before(3)} were removed",
        ]
        lines.clear()
        await store.maintain(NOW_MS)
        assert lines == []
    await store.close()


def date_before(days: int) -> str:
    """Return the date of some days ago."""
    return datetime.fromtimestamp(MIDNIGHT_MS / 1000 - days * 86_400, UTC).date().isoformat()


@pytest_twisted.ensureDeferred
async def test_each_website_has_its_own_retention(open_store: OpenStore) -> None:
    retention = Retention(others=Keep(2), websites={"example.com": Keep(0)})
    store = open_store(sizes=SMALL, retention=retention)
    website = await past(store, 4)
    await settled(store, NOW_MS)
    assert days_of(store, website) == []
    other = await plain_past(store, "other.example", 4)
    await settled(store, NOW_MS)
    assert days_of(store, website) == []
    assert days_of(store, other) == [-4, -3]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_renamed_website_keeps_what_the_table_of_its_old_name_keeps(
    open_store: OpenStore,
) -> None:
    """Until the table has the new name or is removed."""
    retention = Retention(
        others=Keep(2), websites={"example.com": Keep(0), "www.example.com": Keep(1)}
    )
    store = open_store(sizes=SMALL, retention=retention)
    with logged_warnings() as lines:
        website = await past(store, 4)
        other = await plain_past(store, "www.example.com", 4)
        assert (lines, store.unregistered_tables()) == ([], [])
        renamed = await store.rename_website(website, "other.example", 2)
        assert store.unregistered_tables() == ["example.com"]
        await settled(store, NOW_MS)
        assert (days_of(store, website), days_of(store, other)) == ([], [-4, -3])
        assert lines == [
            (
                "retention.websites.example.com: no website of this name is registered;"
                " websites without a table keep their views for at least as long as it says"
            )
        ]
        await store.rename_website(renamed, "example.com", 3)
        assert store.unregistered_tables() == []
    store.apply(evolve(store.settings, retention=Retention(others=Keep(2))))
    await settled(store, NOW_MS)
    assert days_of(store, website) == [-4, -3]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_tables_of_unregistered_websites_are_logged_at_start_and_when_they_change(
    open_store: OpenStore,
) -> None:
    with logged_warnings() as lines:
        store = open_store(retention=Retention(websites={"a.example": Keep(1)}))
        assert len(lines) == 1
        other = Retention(websites={"a.example": Keep(2), "b.example": Keep(0)})
        for _ in range(2):
            store.apply(evolve(store.settings, retention=other))
        assert [line.partition(": ")[0] for line in lines[1:]] == ["retention.websites.b.example"]
        for hostname in ("a.example", "b.example"):
            website = await store.add_website(hostname, 1)
        assert len(lines) == 2
        await store.delete_website(website)
        assert lines[2] == lines[1]
    await store.close()


@pytest.mark.parametrize(
    ("lost", "others", "kept"),
    [
        (Keep(0), Keep(20), Keep(0)),
        (Keep(400), Keep(20), Keep(400)),
        (Keep(5), Keep(20), Keep(20)),
        (Keep(5), Keep(0), Keep(0)),
        (Keep(5, "sums"), Keep(20, "nothing"), Keep(20, "sums")),
        (Keep(30, "nothing"), Keep(20, "nothing"), Keep(30, "nothing")),
    ],
)
def test_websites_without_a_table_keep_what_a_table_of_an_unregistered_one_keeps(
    lost: Keep, others: Keep, kept: Keep
) -> None:
    given = Retention(others=others, websites={"lost.example": lost, "a.example": Keep(1)})
    assert given.of("b.example", {"a.example", "b.example"}) == kept
    assert given.of("b.example", {"a.example", "b.example", "lost.example"}) == others
    assert given.of("a.example", {"a.example"}) == Keep(1)


@pytest_twisted.ensureDeferred
async def test_days_are_those_of_the_time_zone(open_store: OpenStore) -> None:
    store = open_store(sizes=SMALL, retention=keeping(1, zone="Asia/Kathmandu"))
    website = await store.add_website("example.com", 1)
    midnight_ms = int(datetime(2026, 9, 1, tzinfo=ZoneInfo("Asia/Kathmandu")).timestamp()) * 1000
    await store.append([*views(1, 2, midnight_ms - 1), *views(3, 3, midnight_ms)])
    await settled(store, midnight_ms + 30 * DAY_MS)
    start = ("start", "2026-09-01T00:00:00+05:45")
    assert ask(store, website, "summary", [start])[0]["current"]["pageviews"] == 1
    assert (
        ask(store, website, "summary", [("start", "2026-09-01T00:00:00Z")])[0]["current"][
            "pageviews"
        ]
        == 0
    )  # the second day is cut, and reported as such
    assert len(ask(store, website, "summary", [("start", "2026-09-01T00:00:00Z")])[1]) == 1
    await store.close()


@pytest_twisted.ensureDeferred
async def test_views_of_a_visit_that_may_have_more_do_not_expire(open_store: OpenStore) -> None:
    """A visit lasts up to 24 hours, and an unload may be a day late and of a clock set back."""
    store = open_store(sizes=SMALL, retention=keeping(1))
    website = await store.add_website("example.com", 1)
    last_ms = MIDNIGHT_MS - 1
    await store.append(views(1, 1, last_ms))
    await settled(store, last_ms + DAY_MS + 1)
    assert days_of(store, website) == []
    await store.append([unload(1, 4000, last_ms + DAY_MS)])
    await settled(store, last_ms + 2 * DAY_MS + HOUR_MS)
    assert days_of(store, website) == []
    await settled(store, last_ms + 2 * DAY_MS + HOUR_MS + 1)
    assert days_of(store, website) == [-1]
    assert ask(store, website, "summary")[0]["current"]["duration"] == 4000
    await store.close()


@pytest_twisted.ensureDeferred
async def test_corrections_that_arrive_during_an_expiry_are_kept(open_store: OpenStore) -> None:
    """After a clock was set back, a view can be corrected while its rollup is written."""
    recording = RecordingReactor()
    store = open_store(sizes=SMALL, its_reactor=recording)
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 3, MIDNIGHT_MS - 1))
    await settled(store, MIDNIGHT_MS + DAY_MS)
    store.apply(store.settings.__class__(min_free_disk=0, retention=keeping(1)))
    between: list[Deferred[Any]] = []

    def on_result(result: object) -> None:
        if isinstance(result, Job):
            recording.on_result = lambda _: None
            overlay = Unload(time_ms=MIDNIGHT_MS, beacon="b2", duration_ms=700)
            between.append(Deferred.fromCoroutine(store.append([overlay])))

    recording.on_result = on_result
    # Not by `tidy`, which would forget every beacon of the day first.
    (partition,) = store.partitions.all()
    store.maintenance._trusted_ms = MIDNIGHT_MS + 3 * DAY_MS
    await store.maintenance.run_due_jobs(partition, MIDNIGHT_MS + 3 * DAY_MS)
    assert between
    assert days_of(store, website) == [-1]
    assert ask(store, website, "summary")[0]["current"]["duration"] == 700
    # From now on it is too late, and unloads leave nothing behind.
    await store.append([Unload(time_ms=MIDNIGHT_MS, beacon="b1", duration_ms=900)])
    assert entries(store, "corrections") == [1]
    await settled(store, MIDNIGHT_MS + 3 * DAY_MS)
    assert ask(store, website, "summary")[0]["current"]["duration"] == 700
    assert entries(store, "corrections") == [0]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_filtering_events_by_expired_views_is_reported(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=SMALL, retention=keeping(1))
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 1, MIDNIGHT_MS - 1))
    await store.append([event("b1", MIDNIGHT_MS + 1)])
    await settled(store, FIRST_EXPIRY_MS)
    assert days_of(store, website) == [-1, 0]
    assert ask(store, website, "properties")[0][0]["events"] == 1
    day_of_event = [MIDNIGHT_MS // DAY_MS]
    for path in ("/1", "/2", ""):
        assert ask(store, website, "properties", [("path", path)]) == ([], day_of_event)
    await store.close()


@pytest.mark.parametrize("sizes", [SMALL, Sizes(1, 2, 0)])
@pytest_twisted.ensureDeferred
async def test_a_visit_that_goes_on_after_midnight_counts_once_with_all_of_its_views(
    open_store: OpenStore, sizes: Sizes
) -> None:
    store = open_store(sizes=sizes, retention=keeping(1))
    website = await store.add_website("example.com", 1)
    minute_ms = HOUR_MS // 60
    for number, (path, minute) in enumerate((("/a", -20), ("/b", -5), ("/c", 10)), 1):
        time_ms = MIDNIGHT_MS + minute * minute_ms
        texts = {"path": path, "beacon": f"b{number}", "identity": b"somebody"}
        await store.append([a_view(time_ms=time_ms, first_today=number == 1, **texts)])
        await store.append([unload(number, 1000 * number, time_ms + 1)])
    await store.append([a_view(time_ms=MIDNIGHT_MS, path="/b", identity=b"another")])
    visit = {"visits": 1, "visit_pageviews": 3, "views_per_visit": 3.0}
    visit |= {"visit_bounce_percentage": 0.0, "visit_duration": 6000}
    bounce = {"visits": 1, "visit_pageviews": 1, "views_per_visit": 1.0}
    bounce |= {"visit_bounce_percentage": 1.0, "visit_duration": 0}
    start = datetime.fromtimestamp(MIDNIGHT_MS / 1000 - 86_400, UTC).isoformat()
    query = [("start", start), ("visits", "true"), ("interval", "day")]
    for now_ms, days, views_left in (
        (MIDNIGHT_MS, [], 4),
        (FIRST_EXPIRY_MS - 1, [], 4),
        (FIRST_EXPIRY_MS, [-1, 0], 1),
        (FIRST_EXPIRY_MS + DAY_MS, [-1, 0], 0),
    ):
        await settled(store, now_ms)
        assert days_of(store, website) == days
        assert len(stored_rows(store, website)[0]) == views_left
        found, missing = ask(store, website, "summary", query)
        series = [{name: day[name] for name in visit} for day in found["interval"][:2]]
        assert (series, missing) == ([visit, bounce], [])
        (exits, _), (pages, _) = (
            ask(store, website, name, query[:2]) for name in ("exits", "pages")
        )
        assert [(row["path"], row["exit_percentage"]) for row in exits] == [("/b", 0.5), ("/c", 1)]
        seen = {row["path"]: (row["visits"], row["visit_bounce_percentage"]) for row in pages}
        assert seen == {"/a": (1, 0), "/b": (2, 0.5), "/c": (1, 0)}
    await store.close()


async def visit_around_midnight(store: Store) -> Website:
    """Store a visit of three views, the last two after midnight, events of these, and others."""
    website = await store.add_website("example.com", 1)
    minute_ms = HOUR_MS // 60
    for number, minute in enumerate((-5, 1, 25), 1):
        time_ms = MIDNIGHT_MS + minute * minute_ms
        at = {"time_ms": time_ms, "beacon": f"b{number}", "path": f"/{number}"}
        await store.append([a_view(identity=b"somebody", first_today=number == 1, **at)])
        await store.append(views(10 * number, 10 * number + 8, time_ms))
        await store.append([event(f"b{number}", time_ms + 23 * HOUR_MS), event("", time_ms)])
    await settled(store, FIRST_EXPIRY_MS - 1)
    return website


@pytest.mark.parametrize("sizes", [SMALL, Sizes(), Sizes(1, 2, 0)])
@pytest.mark.parametrize("after", ["sums", "nothing"])
@pytest_twisted.ensureDeferred
async def test_a_visit_expires_as_a_whole(open_store: OpenStore, sizes: Sizes, after: str) -> None:
    store = open_store(sizes=sizes, retention=keeping(1, after))
    website = await visit_around_midnight(store)
    views_before, events_before = stored_rows(store, website)
    assert (len(views_before), len(events_before)) == (30, 6)
    pages = {row["path"]: row for row in ask(store, website, "pages")[0]}
    await settled(store, FIRST_EXPIRY_MS)
    left, events_left = stored_rows(store, website)
    paths = {row["path"] for row in left}
    assert paths == {f"/{n}" for n in (*range(20, 29), *range(30, 39))}
    # The events without a view are of the day that is not due; of those with one, none is left.
    assert [row["time_ms"] - MIDNIGHT_MS for row in events_left] == [60_000, 25 * 60_000]
    if after == "sums":
        assert days_of(store, website) == [-1, 0]
        assert {row["path"]: row for row in ask(store, website, "pages")[0]} == pages
    else:
        assert days_of(store, website) == []
        assert {row["path"] for row in ask(store, website, "pages")[0]} == paths
    assert orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_visit_goes_by_its_first_view_even_if_a_later_one_was_earlier(
    open_store: OpenStore,
) -> None:
    """Of two hits that a server sends, the second was just before midnight."""
    store = open_store(sizes=SMALL, retention=keeping(1))
    website = await store.add_website("example.com", 1)
    for path, time_ms in (("/a", MIDNIGHT_MS + 1000), ("/b", MIDNIGHT_MS - 1000)):
        said = {"identity": b"somebody", "first_today": False}
        await store.append([a_view(path=path, time_ms=time_ms, **said)])
    await store.append(views(1, 8, MIDNIGHT_MS - 1))
    await settled(store, FIRST_EXPIRY_MS)
    assert sorted(row["path"] for row in stored_rows(store, website)[0]) == ["/a", "/b"]
    assert days_of(store, website) == [-1]
    await settled(store, FIRST_EXPIRY_MS + DAY_MS)
    assert stored_rows(store, website) == ([], [])
    assert ask(store, website, "summary")[0]["current"]["pageviews"] == 10
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_view_that_continues_an_expired_visit_expires_too(open_store: OpenStore) -> None:
    """A server sends the hits of a past day as fast as it can."""
    store = open_store(sizes=SMALL, retention=keeping(1))
    website = await store.add_website("example.com", 1)
    said = {"time_ms": FIRST_EXPIRY_MS, "identity": b"somebody", "first_today": False}
    await store.append([a_view(path="/a", happened_ms=MIDNIGHT_MS - 1000, **said)])
    await settled(store, FIRST_EXPIRY_MS)
    assert stored_rows(store, website) == ([], [])
    await store.append([a_view(path="/b", happened_ms=MIDNIGHT_MS + 1000, **said)])
    said["identity"] = b"another"
    await store.append([a_view(path="/c", happened_ms=MIDNIGHT_MS + 1000, **said)])
    await settled(store, FIRST_EXPIRY_MS)
    assert [row["path"] for row in stored_rows(store, website)[0]] == ["/c"]
    assert days_of(store, website) == [-1, 0]
    assert {row["path"] for row in ask(store, website, "pages")[0]} == {"/a", "/b", "/c"}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_views_whose_visit_may_have_begun_in_a_damaged_segment_go_by_their_own_day(
    open_store: OpenStore,
) -> None:
    sizes = Sizes(1, 2, 0)
    store = open_store(sizes=sizes)
    website = await visit_around_midnight(store)
    with store.environment.lmdb.begin(write=True) as txn:
        cursor = txn.cursor(db=store.environment.databases.segments)
        assert cursor.first()
        *others, last = cursor.value()
        cursor.put(cursor.key(), bytes((*others, last ^ 1)))
    await store.close()
    store = open_store(sizes=sizes, retention=keeping(1))
    for now_ms, seen in ((FIRST_EXPIRY_MS, {"/2", "/3"}), (FIRST_EXPIRY_MS + DAY_MS, set())):
        await settled(store, now_ms)
        found = {row["path"] for row in stored_rows(store, website)[0]}
        assert found & {"/1", "/2", "/3"} == seen
    assert len(store.damaged_places()) == 1
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_expiry_that_is_interrupted_goes_on_after_a_start(open_store: OpenStore) -> None:
    """After each of its jobs, the store is closed and opened again."""
    sizes = Sizes(1, 2, 0)
    store = open_store(sizes=sizes, name="at-once", retention=keeping(1))
    website = await visit_around_midnight(store)
    await settled(store, FIRST_EXPIRY_MS)
    expected = stored_rows(store, website), answers(store, website)
    await store.close()
    store = open_store(sizes=sizes)
    website = await visit_around_midnight(store)
    await settled(store, FIRST_EXPIRY_MS)
    jobs = 0
    while True:
        (partition,) = store.partitions.all()
        bound = cutoff_of(Keep(1), ZoneInfo("UTC"), FIRST_EXPIRY_MS)
        compactor = store.maintenance._compactor
        job = await compactor.run_next(partition, FIRST_EXPIRY_MS, bound)
        if job is None:
            break
        jobs += isinstance(job, Expire)
        await store.close()
        store = open_store(sizes=sizes)
    assert jobs > 10
    assert stored_rows(store, website) == expected[0]
    assert answers(store, website) == expected[1]
    assert orphans(store.environment) == []
    await store.close()


FROM_MIDNIGHT_ON = ("start", datetime.fromtimestamp(MIDNIGHT_MS / 1000, UTC).isoformat())
UNTIL_MIDNIGHT = ("end", datetime.fromtimestamp(MIDNIGHT_MS / 1000 - 1, UTC).isoformat())
ABOUT_WHOLE_VISITS: Sequence[tuple[str, Pairs]] = (
    ("goals", [("path", "/2")]),
    ("goals", [("prop_name", "k")]),
    ("goals", [("entry_page", "/1"), ("path", "/3")]),
    ("pages", [("entry_page", "/1")]),
    ("summary", [("visit_views[gte]", "2"), ("browser[neq]", "Opera")]),
    ("properties", [("entry_page", "/1")]),
    ("next", [("of", "/2")]),
    ("previous", [("of", "/3")]),
)
"""Questions that depend on all of a visit, and count those of its views that are in a period."""


async def visits_of_known_visitors(store: Store) -> Website:
    """Store a visit of four views, the last three after midnight, events of these, and others."""
    website = await store.add_website("example.com", 1)
    minute_ms = HOUR_MS // 60
    for number, minute in enumerate((-5, 1, 25, 26), 1):
        time_ms = MIDNIGHT_MS + minute * minute_ms
        for identity in (b"somebody", b"no. %d" % number):
            at = {"time_ms": time_ms, "beacon": f"{identity!r} {number}", "identity": identity}
            await store.append([a_view(first_today=False, path=f"/{number}", **at)])
            await store.append([event(at["beacon"], time_ms + 1)])
        # It is stored in another segment than its view.
        await store.append([event(f"{b'somebody'!r} {number}", time_ms + 23 * HOUR_MS)])
    await settled(store, FIRST_EXPIRY_MS - 1)
    return website


def from_midnight_on(store: Store, website: Website) -> list[tuple[Any, list[int]]]:
    """Return answers about visits of which views are after midnight, and the days they lack."""
    return [
        ask(store, website, name, [*query, FROM_MIDNIGHT_ON]) for name, query in ABOUT_WHOLE_VISITS
    ]


@pytest_twisted.ensureDeferred
async def test_days_are_named_while_visits_that_began_before_them_expire(
    open_store: OpenStore,
) -> None:
    """The segments of a visit expire one after the other."""
    store = open_store(sizes=Sizes(1, 2, 0))
    website = await visits_of_known_visitors(store)
    answers = from_midnight_on(store, website)
    assert not any(missing for _, missing in answers)
    (partition,) = store.partitions.all()
    cutoff = cutoff_of(Keep(1), ZoneInfo("UTC"), FIRST_EXPIRY_MS)
    lacking = 0
    while await store.compactor.run_next(partition, FIRST_EXPIRY_MS, cutoff) is not None:
        for asked, whole, (found, missing) in zip(
            ABOUT_WHOLE_VISITS, answers, from_midnight_on(store, website), strict=True
        ):
            assert MIDNIGHT_MS // DAY_MS in missing or (found, missing) == whole, asked
            lacking += found != whole[0]
    assert lacking
    await store.close()


@pytest_twisted.ensureDeferred
async def test_days_are_named_if_visits_began_before_them_in_a_damaged_segment(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=Sizes(1, 2, 0))
    website = await visits_of_known_visitors(store)
    # The first view has an event after midnight.
    asked = [*ABOUT_WHOLE_VISITS, ("properties", [("path", "/1")])]
    compare_without(store, website, asked, FROM_MIDNIGHT_ON, MIDNIGHT_MS // DAY_MS)
    pages, rules = [("pages", [])], [[("entry_page", "/1")]]
    compare_without(store, website, pages, FROM_MIDNIGHT_ON, MIDNIGHT_MS // DAY_MS, rules=rules)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_days_are_named_if_their_visits_or_events_go_on_in_a_damaged_segment(
    open_store: OpenStore,
) -> None:
    store = open_store(sizes=Sizes(1, 2, 0))
    website = await store.add_website("example.com", 1)
    before_ms = MIDNIGHT_MS - HOUR_MS // 60
    for identity, path, time_ms in (
        (b"somebody", "/1", before_ms),
        (b"another", "/3", before_ms),
        (b"somebody", "/a", MIDNIGHT_MS),
        (b"no. 3", "/4", MIDNIGHT_MS),
        (b"no. 4", "/5", MIDNIGHT_MS),
    ):
        at = {"time_ms": time_ms, "path": path, "beacon": path}
        await store.append([a_view(identity=identity, first_today=path != "/a", **at)])
    await idle(store)
    await store.append([event("/3", MIDNIGHT_MS)])
    await idle(store)
    await settled(store, FIRST_EXPIRY_MS - 1)
    asked = [
        ("summary", [("visits", "true")]),
        ("exits", []),
        ("goals", []),
        ("goals", [("path", "/a")]),
        ("funnels/pages", []),
        ("next", [("of", "/1")]),
        ("pages", [("visit_bounce", "false")]),
        ("browsers", [("prop_name", "k")]),
    ]
    day = MIDNIGHT_MS // DAY_MS - 1
    compare_without(store, website, asked, UNTIL_MIDNIGHT, day)
    pages, rules = [("pages", [])], [[("path", "/a")]]
    compare_without(store, website, pages, UNTIL_MIDNIGHT, day, rules=rules)
    await store.close()


def compare_without(
    store: Store,
    website: Website,
    asked: Sequence[tuple[str, Pairs]],
    bound: tuple[str, str],
    day: int,
    *,
    rules: Sequence[Pairs] = (),
) -> None:
    """Leave out each segment that is of another day; what changes in an answer has to be named."""
    queries = [query_from(rule) for rule in rules]

    def compare(snapshot: Snapshot) -> None:
        others = [
            leaf.number
            for leaf in snapshot.leaf_segments()
            if day not in {ms // DAY_MS for ms in leaf.header.time_bounds}
        ]
        for name, query in asked:
            whole = answer_of(reader_of(snapshot, SOURCES, queries), name, [*query, bound])
            assert whole[1] == []
            without = [
                reader_of(snapshot.without(frozenset({number})), SOURCES, queries)
                for number in others
            ]
            found = [answer_of(each, name, [*query, bound]) for each in without]
            assert any(content != whole[0] for content, _ in found), (name, query)
            for each in found:
                assert each == whole or day in each[1], (name, query)

    store.read(website, compare)


@pytest_twisted.ensureDeferred
async def test_an_event_stays_as_long_as_its_view(open_store: OpenStore) -> None:
    """It arrived a moment before its view, on the day before."""
    for sizes in (SMALL, Sizes(1, 2, 0)):
        store = open_store(sizes=sizes, name=str(sizes.chunk_views), retention=keeping(1))
        website = await store.add_website("example.com", 1)
        await store.append([*views(7, 9, MIDNIGHT_MS - 9), event("b1", MIDNIGHT_MS - 1)])
        await store.append(views(1, 1, MIDNIGHT_MS + 1))
        await settled(store, FIRST_EXPIRY_MS)
        assert days_of(store, website) == [-1]
        assert ask(store, website, "summary", [("prop_name", "k")])[0]["current"]["pageviews"] == 1
        await settled(store, FIRST_EXPIRY_MS + DAY_MS)
        assert stored_rows(store, website) == ([], [])
        assert ask(store, website, "properties")[0][0]["events"] == 1
        await store.close()


@pytest_twisted.ensureDeferred
async def test_texts_of_rollups_are_kept_and_others_are_deleted(open_store: OpenStore) -> None:
    store = open_store(sizes=SMALL, retention=keeping(1))
    website = await past(store, 3)
    await settled(store, NOW_MS)
    before = answers(store, website)
    for day in (4, 5):
        await settled(store, NOW_MS + day * DAY_MS)
    assert answers(store, website) == before
    store.apply(store.settings.__class__(min_free_disk=0, retention=keeping(1, "nothing")))
    await settled(store, NOW_MS + 6 * DAY_MS)
    # The last text of each dimension stays, as the next code follows it; of property names, both.
    assert entries(store, "dictionary") == [len(Dimension) + 1]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_hits_are_acknowledged_between_the_steps_of_an_expiry(open_store: OpenStore) -> None:
    recording = RecordingReactor()
    store = open_store(its_reactor=recording)
    website = await store.add_website("example.com", 1)
    for day in range(20):
        at_ms = MIDNIGHT_MS - day * DAY_MS
        await store.append([a_view(path=f"/{n}", time_ms=at_ms + n) for n in range(300)])
    await settled(store, NOW_MS)
    store.apply(store.settings.__class__(min_free_disk=0, retention=keeping(1)))
    tidying = Deferred.fromCoroutine(store.maintain(NOW_MS))
    recording.results.clear()
    while not tidying.called:
        await store.append([a_view(time_ms=NOW_MS)])
    hits = [place for place, found in enumerate(recording.results) if isinstance(found, WriteBatch)]
    assert len(hits) > 5
    assert max(later - earlier for earlier, later in pairwise(hits)) <= 2
    assert len(days_of(store, website)) == 17
    await store.close()


@define
class Person:
    """A visitor of a story, and the visit that goes on."""

    browser: str
    country: str
    visit: int = 0
    last_ms: int = 0
    page: str = ""
    day: int = 0
    views_today: int = 0


class Story:
    """Random hits of some weeks, given to a store and to an oracle."""

    def __init__(self, rng: random.Random, store: Store) -> None:
        self.rng, self.store = rng, store
        self.now_ms = NOW_MS
        self.views: list[Entry] = []
        self.events: list[Entry] = []
        self.people = [Person("Firefox", "DE"), Person("Chrome", "DE"), Person("Chrome", "")]

    def restart(self, store: Store) -> None:
        """Go on with a store that was opened again, and has forgotten visits in progress."""
        self.store = store
        for person in self.people:
            person.visit = 0

    def _view(self) -> View:
        """Return a new view of somebody, whose visit goes on if it was active of late."""
        rng, number = self.rng, len(self.views) + 1
        person = rng.choice(self.people)
        day = self.now_ms // DAY_MS
        goes_on = person.visit and self.now_ms - person.last_ms <= TIMEOUT_MS
        entry = {
            "id": number,
            "visit": person.visit if goes_on else number,
            "time_ms": self.now_ms,
            "p": rng.random() < 0.5,
            "q": rng.random() < 0.7,
            "duration_ms": 0,
            "path": rng.choice(("/", "/a", "/b")),
            "referrer": "" if goes_on else rng.choice(("", "google.com")),
            "browser": person.browser,
            "country": person.country,
            "os": "Unknown",
            "device": "Unknown",
        }
        from_page = person.page if goes_on else None
        person.views_today = person.views_today + 1 if person.day == day else 1
        person.visit, person.last_ms, person.day = entry["visit"], self.now_ms, day
        person.page = entry["path"]
        self.views.append(entry)
        return View(
            website=1,
            time_ms=self.now_ms,
            beacon=f"b{number}",
            first_today=entry["p"],
            first_of_page=entry["q"],
            identity=str(self.people.index(person)).encode(),
            number_today=person.views_today,
            from_page=from_page,
            **{name: entry[name] for name in ("path", "referrer", "browser", "country")},
        )

    def _keep_alive(self, view: Entry) -> None:
        for person in self.people:
            if person.visit == view["visit"] and self.now_ms - person.last_ms <= TIMEOUT_MS:
                person.last_ms = self.now_ms

    async def go_on(self) -> None:
        rng = self.rng
        to_midnight_ms = DAY_MS - self.now_ms % DAY_MS
        self.now_ms += rng.choice(
            (0, 1, TIMEOUT_MS // 3, TIMEOUT_MS, HOUR_MS, 22 * HOUR_MS, to_midnight_ms - 1)
        )
        kind = rng.random()
        if kind < 0.6 or not self.views:
            await self.store.append([self._view()])
            return
        view = rng.choice(self.views[-3:])
        if self.now_ms - view["time_ms"] > DAY_MS:
            return
        if kind < 0.85:
            self._keep_alive(view)
            ms = rng.choice((1, 300, 5000, 5001, 70_000))
            view["duration_ms"] = max(view["duration_ms"], ms)
            await self.store.append(
                [Unload(time_ms=self.now_ms, beacon=f"b{view['id']}", duration_ms=ms)]
            )
            return
        properties = rng.choice(((("plan", "pro"),), (("plan", "free"), ("n", "1"))))
        of_view = self.now_ms // DAY_MS == view["time_ms"] // DAY_MS and rng.random() < 0.7
        found = {"time_ms": self.now_ms, "view": None, "properties": list(properties)}
        self.events.append({**found, "view": view["id"] if of_view else None})
        beacon = f"b{view['id']}" if of_view else ""
        if of_view:
            self._keep_alive(view)
        event = Event(website=1, time_ms=self.now_ms, properties=properties, beacon=beacon)
        await self.store.append([event])

    async def check_kept(self, website: Website, retention: Retention) -> None:
        """Compare the times of the views and events that are left."""
        for _ in range(2):  # a run that the last hit has started may be at work, by an earlier time
            await settled(self.store, self.now_ms)
        bound = cutoff_of(retention.others, retention.zone, self.now_ms)
        assert bound is not None
        began_ms = {view["id"]: self.views[view["visit"] - 1]["time_ms"] for view in self.views}

        def is_kept(view: int | None, time_ms: int) -> bool:
            return began_ms.get(view, time_ms) >= bound.before_ms

        views = [each for each in self.views if is_kept(each["id"], each["time_ms"])]
        events = [each for each in self.events if is_kept(each["view"], each["time_ms"])]
        for kept, left in zip((views, events), stored_rows(self.store, website), strict=True):
            assert sorted(hit["time_ms"] for hit in kept) == sorted(row["time_ms"] for row in left)

    def check(self, website: Website) -> int:
        """Compare all results about whole days; return how many days have a rollup."""
        oracle = Oracle(self.views, self.events, source_of=SOURCES.name_of, now_ms=LATER_MS)
        days = sorted(self.rng.choice(range(40)) for _ in range(2))
        start, end = (
            datetime.fromtimestamp(NOW_MS // DAY_MS * 86_400 + day * 86_400, UTC) for day in days
        )
        period = [("start", start.isoformat()), ("end", end.isoformat(timespec="milliseconds"))]
        period[1] = ("end", period[1][1].replace("00:00:00.000", "23:59:59.999"))
        filters = {"pages": "path", "browsers": "browser", "summary": "path", "time": "path"}
        for endpoint in (*WITHOUT_VISITS, "entries", "exits"):
            query = list(period) if self.rng.random() < 0.7 else []
            if endpoint == "summary" and query:
                query.append(("interval", self.rng.choice(("day", "week", "month"))))
            if endpoint in filters and self.rng.random() < 0.5:
                query.append((filters[endpoint], self.rng.choice(("/a", "Firefox"))))
            # The rows of all other pages that visits saw are unknown.
            knows_visits = endpoint != "properties" and ("path", "/a") not in query
            if knows_visits and self.rng.random() < 0.7:
                query.append(("visits", "true"))
            found, missing = ask(self.store, website, endpoint, query)
            assert (found, missing) == (oracle.answer(endpoint, query), []), (endpoint, query)
        return len(days_of(self.store, website))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
@pytest_twisted.ensureDeferred
async def test_results_about_whole_days_stay_the_same(open_store: OpenStore, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    sizes = Sizes(rng.choice((1, 3, 20)), 2, rng.choice((0, 4)))
    retention = keeping(rng.choice((1, 2, 9)))
    store = open_store(sizes=sizes, retention=retention)
    website = await store.add_website("example.com", 1)
    story = Story(rng, store)
    most = 0
    for _ in range(110):
        await story.go_on()
        if rng.random() < 0.1:
            await store.maintain(story.now_ms)
        if rng.random() < 0.05:
            most = max(most, story.check(website))
        if rng.random() < 0.3:
            await story.check_kept(website, retention)
        if rng.random() < 0.02:
            await store.close()
            store = open_store(sizes=sizes, retention=retention)
            story.restart(store)
    await story.check_kept(website, retention)
    assert max(most, story.check(website)) > 4
    assert orphans(store.environment) == []
    store.read(website, agrees)
    await store.close()
