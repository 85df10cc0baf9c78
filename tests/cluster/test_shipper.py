"""What a store has, and what the shipper sends of it to a real server."""

import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_twisted
from support.clickhouse.collector import COLLECTOR, Collector, flush, logged, start, stored
from support.clickhouse.servers import Server
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view, event, unload, views

from medamad.clickhouse import tables
from medamad.clickhouse.client import Client, Connecting, Unavailable
from medamad.cluster import shipper as shippers
from medamad.cluster.shipper import Backlog, CannotSend, Stopped
from medamad.domain.dimensions import Dimension
from medamad.domain.errors import Unavailable as StoreUnavailable
from medamad.storage.spool import Marks, least_number


@pytest_twisted.async_yield_fixture()
async def collector(
    server: Server, tmp_path: Path, request: pytest.FixtureRequest
) -> AsyncIterator[Collector]:
    client = server.client(request.node.name)
    tables.create_tables(client, tables.Layout())
    store = start(tmp_path / "data")
    await store.add_website("example.com", NOW_MS // 1000)
    started = Collector(store, client)
    yield started
    await started.store.close()


@pytest_twisted.ensureDeferred
async def test_views_arrive_with_what_they_have(collector: Collector) -> None:
    await collector.append(a_view(path="/a", country="DE"), a_view(path="/b", first_today=False))
    progress = await collector.ship()
    assert (progress.left, progress.rows) == (0, 2)
    assert collector.views("path", "country", "first_today", "website", "time_ms") == [
        ("/a", "DE", "1", "1", str(NOW_MS)),
        ("/b", "", "0", "1", str(NOW_MS)),
    ]
    assert (await collector.ship()).rows == 0


@pytest_twisted.ensureDeferred
async def test_a_number_has_the_collector_in_front(collector: Collector) -> None:
    await collector.append(a_view())
    await collector.ship()
    (number,) = map(int, collector.views("view"))
    assert number >> 48 == COLLECTOR
    assert number & (1 << 48) - 1 == collector.store.wal.last_sequence


@pytest_twisted.ensureDeferred
async def test_durations_follow_in_memory_and_after_a_flush(collector: Collector) -> None:
    await collector.append(*views(1, 250))
    await collector.ship()
    await collector.append(unload(1, 700), unload(250, 900), unload(250, 800))
    await collector.ship()
    await flush(collector.store)
    assert len(collector.store.partitions.all()[0].leaves()) == 3
    await collector.append(unload(2, 5_000), unload(1, 600), unload(249, 4_000))
    await collector.ship()
    assert len(collector.views("view")) == 250
    lasted = [row for row in collector.views("path", "duration_ms") if row[1] != "0"]
    assert lasted == [("/1", "700"), ("/2", "5000"), ("/249", "4000"), ("/250", "900")]


@pytest_twisted.ensureDeferred
async def test_a_visit_has_the_day_on_which_it_began(collector: Collector) -> None:
    midnight_ms = NOW_MS // DAY_MS * DAY_MS + DAY_MS
    here = {"identity": b"somebody", "width_px": 1000}
    first = a_view(beacon="b1", time_ms=midnight_ms - 60_000, **here)
    second = a_view(beacon="b2", time_ms=midnight_ms + 60_000, from_page="/", **here)
    await collector.append(first)
    await collector.ship()
    await collector.append(second, event("b2", midnight_ms + 90_000))
    await collector.ship()
    day = str(np.datetime64(midnight_ms - DAY_MS, "ms").astype("datetime64[D]"))
    visits = set(collector.views("visit", "visit_day"))
    assert visits == {(collector.views("view")[0], day)}
    assert set(collector.events("visit", "visit_day")) == visits
    # The same from a collector that has forgotten all.
    collector.begin()
    await collector.append(unload(2, 100, midnight_ms + 100_000))
    await collector.ship()
    assert len(collector.views("view")) == 2
    assert set(collector.views("visit", "visit_day")) == visits


@pytest_twisted.ensureDeferred
async def test_what_is_sent_again_has_the_same_day_once_its_visit_has_begun_too_long_ago(
    collector: Collector,
) -> None:
    midnight_ms = NOW_MS // DAY_MS * DAY_MS
    here = {"identity": b"somebody", "width_px": 1000}
    await collector.append(a_view(beacon="b1", time_ms=midnight_ms - 60_000, **here))
    await flush(collector.store)
    later = a_view(beacon="b2", time_ms=midnight_ms + 60_000, from_page="/", **here)
    await collector.append(later, event("b1", midnight_ms + 70_000))
    await flush(collector.store)
    last = a_view(beacon="b3", time_ms=midnight_ms + 90_000, from_page="/", number_today=2, **here)
    await collector.append(last)
    collector.now_ms = midnight_ms + 60 * HOUR_MS
    await collector.ship()
    views, events = collector.views("view", "visit_day"), collector.events("visit", "late")
    assert len({day for _, day in views}) == 1
    # What has begun the visit is gone from here, and the rest is not.
    await collector.store.maintain(midnight_ms + 72 * HOUR_MS)
    assert stored(collector.store) == 2
    collector.begin()
    assert sum(collector.shipper.resend(0)) == 4
    assert collector.views("view", "visit_day") == views
    assert collector.events("visit", "late") == events


@pytest_twisted.ensureDeferred
async def test_a_visit_whose_beginning_nobody_has_has_one_day(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight_ms = NOW_MS // DAY_MS * DAY_MS
    here = {"identity": b"somebody", "width_px": 1000}
    for at_ms, number in ((-120_000, 1), (-60_000, 2), (60_000, 1)):
        page = {"number_today": number, "from_page": "/" if at_ms > -120_000 else ""}
        await collector.append(a_view(time_ms=midnight_ms + at_ms, **page, **here))
        await flush(collector.store)
    collector.now_ms = midnight_ms + 60 * HOUR_MS
    await collector.ship()
    assert len(set(collector.views("visit"))) == 1
    await collector.store.maintain(midnight_ms - 90_000 + 72 * HOUR_MS)
    assert stored(collector.store) == 2
    collector.client.run(f"TRUNCATE TABLE {collector.client.table('views')}")
    day = str(np.datetime64(midnight_ms - 60_000, "ms").astype("datetime64[D]"))
    monkeypatch.setattr(shippers, "MOST_NUMBERS", 1)
    for _ in range(2):
        collector.begin()
        assert list(collector.shipper.resend(0)) == [1, 1]
        assert collector.views("visit_day") == [day, day]


@pytest_twisted.ensureDeferred
async def test_events_have_their_view_and_are_late_unless_it_loads_with_them(
    collector: Collector,
) -> None:
    await collector.append(
        a_view(beacon="b1", properties=(("plan", "free"), ("ab", "1"))), event("b1"), event("")
    )
    await collector.ship()
    (view,) = collector.views("view")
    assert collector.events("name", "value", "place", "view", "late") == [
        ("plan", "free", "0", view, "0"),
        ("ab", "1", "1", view, "0"),
        ("k", "v", "0", view, "1"),
        ("n", "1", "1", view, "1"),
        ("k", "v", "0", "0", "0"),
        ("n", "1", "1", "0", "0"),
    ]


@pytest_twisted.ensureDeferred
async def test_an_event_waits_for_its_page_load(collector: Collector) -> None:
    await collector.append(event("b1"), event("b2"), a_view())
    progress = await collector.ship()
    assert progress.rows == 1
    assert progress.marks.sent < collector.store.wal.last_sequence
    assert collector.events("event") == []
    collector.seconds += 30
    await collector.append(a_view(beacon="b1"))
    await collector.ship()
    view = collector.views("view")[1]
    assert collector.events("view") == [view, view]
    collector.seconds += 31
    await collector.ship()
    assert collector.events("view") == [view, view]
    collector.seconds += 5
    progress = await collector.ship()
    assert sorted(collector.events("view")) == ["0", "0", view, view]
    assert progress.marks.sent == collector.store.wal.last_sequence
    assert not collector.store.spool.unbound


@pytest_twisted.ensureDeferred
async def test_an_event_that_was_bound_before_a_restart_is_there_once(
    collector: Collector,
) -> None:
    await collector.append(event("b1"))
    await collector.ship()
    await collector.append(a_view(beacon="b1"))
    await collector.ship()
    before = collector.events("view")
    await flush(collector.store)
    collector.begin_from(Marks(collector=COLLECTOR))
    await collector.ship()
    assert collector.events("view") == before
    assert before[0] != "0"


@pytest_twisted.ensureDeferred
async def test_what_was_sent_before_a_crash_is_there_once(collector: Collector) -> None:
    await collector.append(*views(1, 50), event("b7"), unload(9, 500))
    collector.shipper.step()  # and the mark is not moved
    await collector.append(*views(51, 60), unload(9, 700))
    collector.begin()
    await collector.ship()
    assert len(collector.views("view")) == 60
    assert len(collector.events("event")) == 2
    assert collector.views("path", "duration_ms")[8] == ("/9", "700")


@pytest_twisted.ensureDeferred
async def test_a_backlog_is_sent_in_blocks_and_gaps_are_skipped(collector: Collector) -> None:
    for first in range(1, 20_001, 5_000):
        await collector.append(*views(first, first + 4_999), unload(first, 100))
    await collector.store.writer.submit(lambda _: collector.store.wal.reserve(10**9))
    await collector.append(*views(20_001, 20_010))
    blocks = 0
    while (progress := collector.shipper.step()).left:
        blocks += 1
        await collector.store.move_marks(progress.marks)
    assert blocks < 6
    assert len(collector.views("view")) == 20_010
    assert sum(duration == "100" for duration in collector.views("duration_ms")) == 4


@pytest_twisted.ensureDeferred
async def test_a_block_may_have_views_of_many_months(collector: Collector) -> None:
    months = 150
    await collector.append(
        *(a_view(happened_ms=NOW_MS - month * 31 * DAY_MS) for month in range(months))
    )
    await collector.ship()
    assert len(set(collector.views("visit_day"))) == months


@pytest_twisted.ensureDeferred
async def test_rows_that_wait_are_counted_and_gaps_are_not(collector: Collector) -> None:
    store = collector.store
    await store.add_website("other.example", NOW_MS // 1000)
    await collector.append(a_view(time_ms=NOW_MS - 7_000, happened_ms=NOW_MS - DAY_MS), a_view(2))
    # A start skips numbers.
    await store.writer.submit(lambda _: store.wal.reserve(10**9))
    await collector.append(*views(1, 3, NOW_MS + 1_000), unload(1, 500, NOW_MS + 2_000))
    expected = Backlog(waiting=6, since_ms=NOW_MS - 7_000, unsafe=0)
    assert collector.shipper.backlog() == expected
    collector.begin()
    assert collector.shipper.backlog() == expected
    while collector.shipper.backlog() == expected:
        collector.shipper.step()
    assert collector.shipper.backlog() == Backlog(waiting=4, since_ms=NOW_MS + 1_000, unsafe=0)
    await collector.append(a_view(2))
    website = store.websites.all()[1]
    assert collector.shipper.backlog().waiting == 5
    await store.delete_website(website)
    assert collector.shipper.backlog().waiting == 4
    await collector.ship()
    assert collector.shipper.backlog() == Backlog(waiting=0, since_ms=None, unsafe=0)


@pytest_twisted.ensureDeferred
async def test_rows_that_wait_are_counted_while_no_server_answers(collector: Collector) -> None:
    collector.client = Client(Connecting(urls=["http://127.0.0.1:1"]))
    collector.begin()
    for number in range(1, 4):
        await collector.append(*views(number, number, NOW_MS + number))
        with pytest.raises(Unavailable):
            collector.shipper.step()
        assert collector.shipper.backlog().waiting == number
    assert collector.shipper.backlog().since_ms == NOW_MS + 1


@pytest_twisted.ensureDeferred
async def test_a_late_event_that_is_unsafe_is_counted(collector: Collector) -> None:
    client = WithReplicas(collector.client.connecting)
    collector.client = client
    collector.begin(quorum=2)
    await collector.append(event("b1"), a_view())
    await collector.ship()
    await collector.append(a_view(beacon="b1"))
    client.are_there = False
    await collector.ship()
    # The log from the event on: its two rows and a view, that of the event, and that it has it.
    assert collector.shipper.backlog().unsafe == 5
    client.are_there = True
    await collector.ship()
    assert collector.shipper.backlog().unsafe == 0
    client.close()


@pytest_twisted.ensureDeferred
async def test_texts_are_listed_once_for_each_website(collector: Collector) -> None:
    await collector.store.add_website("other.example", NOW_MS // 1000)
    await collector.append(a_view(path="/é"), a_view(2, path="/é"), a_view(path="/b"), event(""))
    await collector.ship()
    paths = ("1", str(int(Dimension.PATH)), "/b"), ("1", "1", "/é"), ("2", "1", "/é")
    found = collector.rows_of("texts", "website, dimension, text", "website", "dimension", "text")
    assert [row for row in found if row[1] == "1"] == list(paths)
    assert [row[2] for row in found if row[1] == "16"] == ["k\0v", "n\0" + "1"]


@pytest_twisted.ensureDeferred
async def test_the_log_stays_until_the_cluster_has_it(collector: Collector) -> None:
    await collector.append(*views(1, 250), unload(1, 100))
    await flush(collector.store)
    assert logged(collector.store) > 0
    # A start while the cluster is down reads no more of it than is not flushed.
    await collector.restart()
    await collector.store.maintain(NOW_MS)
    assert logged(collector.store) > 0
    await collector.ship()
    await collector.store.maintain(NOW_MS)
    assert logged(collector.store) == 0
    assert len(collector.views("view")) == 250
    assert collector.views("duration_ms")[0] == "100"


@pytest_twisted.ensureDeferred
async def test_hits_stay_for_a_while_once_the_cluster_has_them(collector: Collector) -> None:
    await collector.append(*views(1, 250))
    await flush(collector.store)
    late_ms = NOW_MS + 100 * HOUR_MS
    await collector.store.maintain(late_ms)
    assert stored(collector.store) == 250
    await collector.ship()
    await collector.store.maintain(NOW_MS + 71 * HOUR_MS)
    assert stored(collector.store) == 250
    # Something from a day after may still belong to one of these visits.
    await collector.store.maintain(late_ms)
    assert stored(collector.store) == 250
    collector.now_ms = late_ms
    await collector.append(a_view(time_ms=late_ms))
    await collector.ship()
    await collector.store.maintain(late_ms)
    assert stored(collector.store) == 1
    assert len(collector.views("view")) == 251


@pytest_twisted.ensureDeferred
async def test_what_was_stored_without_a_cluster_stays_and_is_not_sent(
    collector: Collector,
) -> None:
    await collector.restart(spool_hours=0)
    await collector.append(*views(1, 250))
    await flush(collector.store)
    await collector.restart(spool_hours=72)
    late_ms = collector.now_ms = NOW_MS + 1000 * HOUR_MS
    await collector.append(*views(251, 300, late_ms))
    await collector.ship()
    await collector.store.maintain(late_ms)
    assert len(collector.views("view")) == 50
    assert stored(collector.store) == 300
    for _ in collector.shipper.resend(0):
        pass
    assert len(collector.views("view")) == 300


@pytest_twisted.ensureDeferred
async def test_everything_since_a_time_can_be_sent_again(collector: Collector) -> None:
    await collector.append(*views(1, 250), event("b5"), unload(7, 300))
    await flush(collector.store)
    await collector.append(*views(251, 260, NOW_MS + HOUR_MS), event("b255", NOW_MS + HOUR_MS))
    await collector.ship()
    everything = collector.views("view", "duration_ms", "path"), collector.events("view", "value")
    for table in ("views", "events", "texts"):
        collector.client.run(f"TRUNCATE TABLE {collector.client.table(table)}")
    assert sum(collector.shipper.resend(NOW_MS + 1)) == 12
    assert len(collector.views("view")) == 10
    assert sum(collector.shipper.resend(0)) == 264
    found = collector.views("view", "duration_ms", "path"), collector.events("view", "value")
    assert found == everything


@pytest_twisted.ensureDeferred
async def test_tables_belong_to_one_store(collector: Collector, tmp_path: Path) -> None:
    await collector.ship()
    other = Collector(start(tmp_path / "other"), collector.client)
    other.begin(4)
    with pytest.raises(CannotSend, match=r"has the hits of another store \(\w{16}\): choose a"):
        other.shipper.step()
    await other.store.close()
    await collector.append(a_view())
    await collector.ship()
    collector.begin(5)
    with pytest.raises(CannotSend, match="as collector 3, and cannot go on as 5"):
        collector.shipper.step()
    # The marks are forgotten while there is no cluster.
    await collector.restart(spool_hours=0)
    await collector.restart()
    collector.begin(5)
    with pytest.raises(CannotSend, match="as collector 3, and cannot go on as 5"):
        next(collector.shipper.load())


@pytest_twisted.ensureDeferred
async def test_nothing_is_read_once_it_is_stopped(collector: Collector) -> None:
    await collector.append(a_view())
    collector.shipper.stop()
    with pytest.raises(Stopped):
        collector.shipper.step()


@pytest_twisted.ensureDeferred
async def test_a_collector_goes_on_with_numbers_that_no_backup_can_have_used(
    collector: Collector,
) -> None:
    assert collector.store.wal.last_sequence >= least_number(time.time()) - least_number(60)
    assert least_number(time.time() + 86_400 * 36_500) < 1 << 48


@pytest_twisted.ensureDeferred
async def test_hits_are_sent_after_a_start_whose_clock_was_ahead(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as ahead:
        now = time.time()
        ahead.setattr("time.time", lambda: now + 600)
        await collector.restart()
        await collector.ship()
    await collector.restart()
    await collector.append(a_view())
    await collector.ship()
    assert len(collector.views("view")) == 1


class WithReplicas(Client):
    """A server whose replicas are there, or not."""

    are_there: bool = True

    def insert(self, *arguments: Any, settings: Mapping[str, Any], **more: Any) -> None:
        if "insert_quorum" in settings and not self.are_there:
            raise Unavailable("Number of alive replicas (1) is less than requested quorum", 285)
        super().insert(*arguments, settings=settings, **more)


@pytest_twisted.ensureDeferred
async def test_what_too_few_replicas_have_is_sent_again_later(collector: Collector) -> None:
    client = WithReplicas(collector.client.connecting)
    collector.client = client
    collector.begin(quorum=2)
    await collector.append(*views(1, 10))
    first = await collector.ship()
    assert first.lacking == ""
    assert collector.shipper.backlog().unsafe == 0
    client.are_there = False
    await collector.append(*views(11, 20), unload(1, 400))
    second = await collector.ship()
    assert "less than requested quorum" in second.lacking
    assert second.marks.sent == collector.store.wal.last_sequence
    assert second.marks.safe == first.marks.safe
    assert len(collector.views("view")) == 20
    for _ in range(2):
        assert collector.shipper.backlog() == Backlog(waiting=0, since_ms=None, unsafe=11)
        # After a start it is counted in the log.
        collector.begin(quorum=2)
    # The other replica takes over with nothing of what this one had.
    for table in ("views", "texts"):
        client.run(
            f"ALTER TABLE {client.table(table)} DELETE WHERE 1", settings={"mutations_sync": 2}
        )
    await flush(collector.store)
    client.are_there = True
    third = await collector.ship()
    assert third.marks.safe == third.marks.sent
    assert collector.shipper.backlog().unsafe == 0
    assert collector.views("path") == ["/1", *(f"/{n}" for n in range(11, 21))]
    assert client.query(f"SELECT count() AS n FROM {client.table('texts')} WHERE text = '/11'")[
        "n"
    ] == [1]
    client.close()


@pytest_twisted.ensureDeferred
async def test_a_full_store_has_room_again_once_the_cluster_has_what_it_had(
    collector: Collector,
) -> None:
    await collector.restart(map_size=8 << 20, chunk_views=2_000)
    number = refused = 0
    while not refused:
        at_ms = NOW_MS + number * 1_000
        hits = views(number + 1, number + 200, at_ms)
        try:
            await collector.append(*hits)
            number += len(hits)
        except StoreUnavailable:
            refused = len(hits)
    assert number > 1_000
    # A start while it is full.
    await collector.restart(map_size=8 << 20, chunk_views=2_000)
    collector.now_ms = at_ms + 200 * HOUR_MS
    await collector.ship()
    assert len(collector.views("view")) == number
    await collector.store.maintain(collector.now_ms)
    await collector.append(a_view(time_ms=collector.now_ms))
    await collector.ship()
    assert len(collector.views("view")) == number + 1
