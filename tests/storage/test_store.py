import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from fcntl import F_GETFL, fcntl
from pathlib import Path

import pytest
import pytest_twisted
from support.daemon import finished
from support.storage.hits import NOW_MS, a_view
from support.storage.visible_hits import paths, reopened, seen, until_removed
from twisted.internet.defer import Deferred

from medamad.domain.errors import NotFound, Unavailable
from medamad.domain.hits import Event, Unload
from medamad.storage.environment.environment import FILE_NAME, LOCK_NAME
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

OpenStore = Callable[..., Store]


def durations(snapshot: Snapshot) -> list[int]:
    return [ms for part in snapshot.parts for ms in part.duration_ms.tolist()]


def event_views(snapshot: Snapshot) -> list[int]:
    return [view for events in snapshot.events for view in events.view.tolist()]


def sequences(snapshot: Snapshot) -> list[int]:
    return [number for part in snapshot.parts for number in part.sequence.tolist()]


@pytest_twisted.ensureDeferred
async def test_hits_are_visible_immediately_and_after_a_restart(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    before = seen(store, website)
    outcomes = await store.append([a_view(path="/a"), a_view(path="/b")])
    assert outcomes == [Outcome.STORED, Outcome.STORED]
    assert paths(seen(store, website)) == ["/a", "/b"]
    assert paths(before) == []
    store, snapshot = await reopened(store, open_store)
    assert paths(snapshot) == ["/a", "/b"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_repeated_load_is_stored_once_even_across_a_restart(open_store: OpenStore) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    view = a_view(beacon="same")
    assert await store.append([view, view]) == [Outcome.STORED, Outcome.REPEATED]
    assert await store.append([view]) == [Outcome.REPEATED]
    store, _ = await reopened(store, open_store)
    day_later = a_view(beacon="same", time_ms=NOW_MS + 86_400_001)
    assert await store.append([view, day_later]) == [Outcome.REPEATED, Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_unloads_find_their_view_in_any_order(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)

    def unload(beacon: str, duration_ms: int, after_ms: int = 0) -> Unload:
        return Unload(time_ms=NOW_MS + after_ms, beacon=beacon, duration_ms=duration_ms)

    outcomes = await store.append([a_view(beacon="a"), unload("a", 5), unload("b", 7)])
    assert outcomes == [Outcome.STORED, Outcome.STORED, Outcome.NO_VIEW]
    await store.append([unload("b", 6), unload("c", 9)])
    await store.append([a_view(beacon="b"), a_view(beacon="c", time_ms=NOW_MS + 60_001)])
    await store.append([unload("a", 4), unload("b", 8)])
    assert durations(seen(store, website)) == [5, 8, 0]
    assert await store.append([unload("a", 99, after_ms=86_400_001)]) == [Outcome.NO_VIEW]
    store, snapshot = await reopened(store, open_store)
    assert durations(snapshot) == [5, 8, 0]
    assert await store.append([unload("c", 3, after_ms=60_002)]) == [Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_events_belong_to_the_view_of_their_beacon(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)

    def event(beacon: str, number: int = website.number) -> Event:
        return Event(website=number, time_ms=NOW_MS, properties=(("k", "v"),), beacon=beacon)

    await store.append([a_view(beacon="a", properties=(("x", "1"), ("y", "2"))), event("a")])
    await store.append([event("early"), event(""), a_view(beacon="early")])
    snapshot = seen(store, website)
    first, early = sequences(snapshot)
    assert event_views(snapshot) == [first, first, first, early, 0]
    store, snapshot = await reopened(store, open_store)
    assert event_views(snapshot) == [first, first, first, early, 0]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_event_does_not_belong_to_another_websites_view(open_store: OpenStore) -> None:
    store = open_store()
    one = await store.add_website("one.example", 1)
    two = await store.add_website("two.example", 1)
    crossing = Event(website=two.number, time_ms=NOW_MS, properties=(("k", "v"),), beacon="b")
    await store.append([a_view(one.number, beacon="b"), crossing])
    assert event_views(seen(store, two)) == [0]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_deleted_website_is_hidden_immediately_and_purged_soon(
    open_store: OpenStore,
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([a_view(path=f"/{number}") for number in range(2000)])
    await store.delete_website(website)
    assert store.websites.all() == []
    assert paths(seen(store, website)) == []
    assert await store.append([a_view(beacon="late")]) == [Outcome.NO_WEBSITE]
    with pytest.raises(NotFound):
        await store.delete_website(website)
    await until_removed(store)
    again = await store.add_website("example.com", 2)
    assert again.number == website.number + 1
    assert await store.append([a_view(again.number, beacon="late")]) == [Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_purge_is_resumed_after_a_restart(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([a_view(path=f"/{number}") for number in range(2000)])
    removal = Deferred.fromCoroutine(store.delete_website(website))
    closing = Deferred.fromCoroutine(store.close())
    await removal
    await closing
    store = open_store()
    assert store.websites.all() == []
    await until_removed(store)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_load_of_a_deleted_website_does_not_stop_the_next(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([a_view(beacon="b")])
    await store.delete_website(website)
    again = await store.add_website("example.com", 2)
    assert await store.append([a_view(again.number, beacon="b")]) == [Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_damaged_record_is_ignored_and_logged(open_store: OpenStore) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    for path in ("/a", "/b", "/c"):
        await store.append([a_view(path=path)])
    databases = store.environment.databases
    with store.environment.lmdb.begin(write=True) as txn:
        cursor = txn.cursor(db=databases.wal)
        assert cursor.first()
        assert cursor.next()
        key, value = cursor.item()
        txn.put(key, value[:10] + bytes([value[10] ^ 1]) + value[11:], db=databases.wal)
    store, snapshot = await reopened(store, open_store)
    assert paths(snapshot) == ["/a", "/c"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_closing_finishes_accepted_writes_and_rejects_others(
    open_store: OpenStore,
) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    taken = Deferred.fromCoroutine(store.append([a_view(path="/taken")]))
    await store.close()
    assert await taken == [Outcome.STORED]
    with pytest.raises(Unavailable, match="the store is closed"):
        await store.append([a_view(path="/late")])
    store = open_store()
    assert paths(seen(store, store.websites.all()[0])) == ["/taken"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_missing_folder_stops_the_store(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="the store has failed"):
        await store.append([a_view()])
    assert "the store has failed" in await store.broken
    await store.close()


@pytest.mark.parametrize("name", [FILE_NAME, f"{FILE_NAME}-lock", LOCK_NAME])
@pytest.mark.parametrize("is_replaced", [True, False])
@pytest_twisted.ensureDeferred
async def test_a_renamed_file_stops_the_store(
    open_store: OpenStore, tmp_path: Path, name: str, *, is_replaced: bool
) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    assert store.unavailable_reason() == ""
    file = tmp_path / "data" / name
    file.rename(tmp_path / "moved")
    if is_replaced:
        shutil.copy(tmp_path / "moved", file)
    reason = f"{name} is no longer the file that was opened"
    assert store.unavailable_reason().startswith(reason)
    with pytest.raises(Unavailable, match=f"the store has failed: {reason}"):
        await store.append([a_view()])
    assert reason in await store.broken
    await store.close()
    (tmp_path / "moved").rename(file)
    store = open_store()
    assert paths(seen(store, store.websites.all()[0])) == []
    await store.close()


@pytest.mark.parametrize("is_older", [True, False])
@pytest_twisted.ensureDeferred
async def test_an_overwritten_file_stops_the_store(
    open_store: OpenStore, tmp_path: Path, *, is_older: bool
) -> None:
    """For example by `cp` from a backup; later writes would be lost."""
    store, other = open_store(), open_store(name="other")
    website = await store.add_website("example.com", 1)
    content = (tmp_path / "data" / FILE_NAME).read_bytes()
    await store.append([a_view(path="/before")])
    if not is_older:
        for number in range(9):
            await other.add_website(f"{number}.example.com", 1)
        content = (tmp_path / "other" / FILE_NAME).read_bytes()
    await other.close()
    assert paths(seen(store, website)) == ["/before"]
    with (tmp_path / "data" / FILE_NAME).open("r+b") as file:
        file.write(content)
    # A command does not write into it either, which would make it look like ours.
    ended = finished("token", tmp_path / "data", "add", "x")
    assert (ended.returncode, "it was written over" in ended.stderr) == (1, True)
    with pytest.raises(Unavailable, match="it was written over"):
        await store.append([a_view(path="/after")])
    assert "it was written over" in await store.broken
    await store.close()


@pytest_twisted.ensureDeferred
async def test_the_store_stops_even_without_hits(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    # What the start still does in the writer's thread would notice it otherwise.
    await store.writer.submit(lambda _: None)
    (tmp_path / "data" / FILE_NAME).rename(tmp_path / "moved")
    with pytest.raises(Unavailable, match="is no longer the file"):
        await store.maintain(NOW_MS)
    assert "is no longer the file" in await store.broken
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_commit_that_cannot_be_published_stops_the_store(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    store.partitions.get_or_create(website.number).memtable = None
    with pytest.raises(AttributeError):
        await store.append([a_view()])
    assert "cannot be shown" in await store.broken
    with pytest.raises(Unavailable, match="cannot be shown"):
        await store.append([a_view()])
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_store_stops_if_its_meta_pages_cannot_be_written(
    open_store: OpenStore,
) -> None:
    """LMDB rejects everything from then on, and an earlier transaction stays the last."""
    store = open_store()
    await store.add_website("example.com", 1)
    await store.append([a_view()])
    fail_synced_writes(store.environment.path)
    with pytest.raises(Unavailable, match="the store has failed"):
        await store.append([a_view()])
    assert "No space left on device" in await store.broken
    assert store.unavailable_reason().startswith("the store cannot be read")
    await store.close()
    store = open_store()
    assert len(paths(seen(store, store.websites.all()[0]))) == 1
    await store.close()


def fail_synced_writes(file: Path) -> None:
    """Make all writes through the file's O_DSYNC descriptor fail."""
    for link in Path("/proc/self/fd").iterdir():
        descriptor = int(link.name)
        with suppress(OSError):
            if link.readlink() == file and fcntl(descriptor, F_GETFL) & os.O_DSYNC:
                full = os.open("/dev/full", os.O_WRONLY)
                os.dup2(full, descriptor)
                os.close(full)


@pytest_twisted.ensureDeferred
async def test_maintenance_deletes_old_beacons(open_store: OpenStore) -> None:
    store = open_store(recent_beacons=0)
    await store.add_website("example.com", 1)
    await store.append([a_view() for _ in range(1200)])
    await store.append([a_view() for _ in range(600)])
    databases = store.environment.databases
    for now_ms, on_disk, in_memory in ((NOW_MS, 1200, 600), (NOW_MS + 2 * 86_400_000, 0, 0)):
        await store.maintain(now_ms)
        with store.environment.reading() as txn:
            assert txn.stat(databases.beacons)["entries"] == on_disk
        assert len(store.wal.beacons) == in_memory
    await store.close()


@pytest_twisted.ensureDeferred
async def test_visitors_of_the_last_day_are_counted(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    day_ms = 86_400_000
    await store.append(
        [
            a_view(time_ms=NOW_MS - day_ms - 1),
            a_view(time_ms=NOW_MS - day_ms),
            a_view(time_ms=NOW_MS - 1),
            a_view(time_ms=NOW_MS, first_today=False),
            a_view(time_ms=NOW_MS),
        ]
    )
    assert store.visitors_last_day(website, NOW_MS) == 3
    await store.close()


@pytest_twisted.ensureDeferred
async def test_visitors_of_the_future_are_not_of_the_last_day(open_store: OpenStore) -> None:
    """The clock was a year ahead for a while."""
    store = open_store()
    website = await store.add_website("example.com", 1)
    day_ms = 86_400_000
    for ahead_ms, count in ((0, 3), (365 * day_ms, 5), (1_000, 2)):
        await store.append([a_view(time_ms=NOW_MS + ahead_ms) for _ in range(count)])
    for _ in range(2):
        for days, counted in ((0, 5), (1, 2), (5, 0), (365, 5), (5, 0), (0, 5)):
            now_ms = NOW_MS + days * day_ms + 1_000
            assert store.visitors_last_day(website, now_ms) == counted
            await store.maintain(now_ms, NOW_MS)
            # From then on no segment is scanned for it.
            assert store.partitions.knows_visitors(website.number, now_ms)
        await store.close()
        store = open_store()
    await store.close()


@pytest_twisted.ensureDeferred
async def test_visitors_are_counted_in_memory_from_the_first_hit_on(open_store: OpenStore) -> None:
    """Scanning segments takes too long for a list of websites."""
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([a_view(time_ms=NOW_MS - 1), a_view(first_today=False), a_view()])
    for _ in range(2):
        while not store.partitions.knows_visitors(website.number, NOW_MS):
            await store.account.end_login(b"nobody's")
        assert store.visitors_last_day(website, NOW_MS) == 2
        await store.close()
        store = open_store()
    await store.close()
