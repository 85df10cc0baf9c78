from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_twisted
from attrs import evolve
from held import settled
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from views import NOW_MS, a_view

from medamad.model.accounts import Account, Login
from medamad.model.dimensions import Dimension
from medamad.model.errors import BadRequest, Conflict, NotFound, Unauthorised, Unavailable
from medamad.model.hits import Event, Leaving
from medamad.model.websites import Website
from medamad.store.journal import Outcome
from medamad.store.parts import Snapshot
from medamad.store.settings import StoreSettings
from medamad.store.store import Store

OpenStore = Callable[..., Store]


def seen(store: Store, website: Website) -> Snapshot:
    """What questions see of a website whose hits are all in the tail."""
    return store.ask(website, lambda snapshot: snapshot)


def paths(snapshot: Snapshot) -> list[str]:
    texts = snapshot.texts(Dimension.PATH)
    return [texts[code] for part in snapshot.parts for code in part.codes(Dimension.PATH)]


def durations(snapshot: Snapshot) -> list[int]:
    return [ms for part in snapshot.parts for ms in part.duration_ms.tolist()]


def event_views(snapshot: Snapshot) -> list[int]:
    return [view for events in snapshot.events for view in events.view.tolist()]


def sequences(snapshot: Snapshot) -> list[int]:
    return [number for part in snapshot.parts for number in part.sequence.tolist()]


async def reopened(store: Store, open_store: OpenStore) -> tuple[Store, Snapshot]:
    await store.close()
    again = open_store()
    return again, seen(again, again.websites.all()[0])


@pytest_twisted.ensureDeferred
async def test_what_was_stored_is_seen_at_once_and_after_a_restart(open_store: OpenStore) -> None:
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
async def test_leavings_find_their_view_in_order_or_not(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)

    def leaving(beacon: str, duration_ms: int, after_ms: int = 0) -> Leaving:
        return Leaving(time_ms=NOW_MS + after_ms, beacon=beacon, duration_ms=duration_ms)

    outcomes = await store.append([a_view(beacon="a"), leaving("a", 5), leaving("b", 7)])
    assert outcomes == [Outcome.STORED, Outcome.STORED, Outcome.NO_VIEW]
    await store.append([leaving("b", 6), leaving("c", 9)])
    await store.append([a_view(beacon="b"), a_view(beacon="c", time_ms=NOW_MS + 60_001)])
    await store.append([leaving("a", 4), leaving("b", 8)])
    assert durations(seen(store, website)) == [5, 8, 0]
    assert await store.append([leaving("a", 99, after_ms=86_400_001)]) == [Outcome.NO_VIEW]
    store, snapshot = await reopened(store, open_store)
    assert durations(snapshot) == [5, 8, 0]
    assert await store.append([leaving("c", 3, after_ms=60_002)]) == [Outcome.STORED]
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
async def test_websites_keep_their_number_through_a_rename(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("old.example", 10)
    await store.append([a_view(path="/kept")])
    renamed = await store.rename_website(website, "new.example", 20)
    assert renamed == Website(website.number, "new.example", created=10, updated=20)
    assert store.websites.by_hostname("old.example") is None
    store, snapshot = await reopened(store, open_store)
    assert paths(snapshot) == ["/kept"]
    assert store.websites.all() == [renamed]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_hostnames_are_unique(open_store: OpenStore) -> None:
    store = open_store()
    one = await store.add_website("one.example", 1)
    await store.add_website("two.example", 1)
    with pytest.raises(Conflict, match=r"one\.example is registered already"):
        await store.add_website("one.example", 2)
    with pytest.raises(BadRequest, match=r"two\.example is the name of another website"):
        await store.rename_website(one, "two.example", 2)
    await store.rename_website(one, "one.example", 3)
    assert [website.hostname for website in store.websites.all()] == ["one.example", "two.example"]
    await store.close()


@pytest.mark.parametrize(
    ("registered", "asked", "served"),
    [
        ("example.com", "example.com", True),
        ("example.com", "www.example.com", True),
        ("www.example.com", "example.com", True),
        ("example.com", "blog.example.com", False),
        ("example.com", "www.www.example.com", False),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_page_on_www_belongs_to_the_bare_name_and_back(
    open_store: OpenStore, registered: str, asked: str, served: bool
) -> None:
    store = open_store()
    website = await store.add_website(registered, 1)
    assert store.websites.serving(asked) == (website if served else None)
    await store.close()


async def entries(store: Store) -> dict[str, int]:
    databases = store._environment.databases
    with store._environment.reading() as txn:
        return {
            name: txn.stat(getattr(databases, name))["entries"]
            for name in ("journal", "names", "codes", "websites")
        }


async def until_removed(store: Store) -> None:
    for _ in range(200):
        if not any((await entries(store)).values()):
            return
        await deferLater(reactor, 0.01)
    raise AssertionError(await entries(store))


@pytest_twisted.ensureDeferred
async def test_a_deleted_website_is_gone_at_once_and_its_keys_soon(open_store: OpenStore) -> None:
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
async def test_a_removal_goes_on_after_a_restart(open_store: OpenStore) -> None:
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
async def test_a_new_account_takes_the_place_of_everything(open_store: OpenStore) -> None:
    store = open_store()
    await store.add_website("one.example", 1)
    await store.put_account(Account("old", "hash", 1, 1))
    await store.add_login(b"digest", Login(1, 1))
    await store.append([a_view()])
    new = Account("new", "hash", 2, 2)
    await store.replace_account(new)
    assert (store.account(), store.login(b"digest"), store.websites.all()) == (new, None, [])
    await until_removed(store)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_the_account_changes_from_what_it_is_when_its_turn_comes(
    open_store: OpenStore,
) -> None:
    store = open_store()
    with pytest.raises(Unauthorised):
        await store.change_account(lambda account: account)
    await store.put_account(Account("me", "hash", 1, 1))
    await store.add_login(b"digest", Login(1, 1))
    await store.add_login(b"other", Login(1, 1))
    password = Deferred.fromCoroutine(
        store.change_account(
            lambda account: evolve(account, password_hash="new"), login=b"digest", end_logins=True
        )
    )
    name = Deferred.fromCoroutine(
        store.change_account(lambda account: evolve(account, username="you"), login=b"digest")
    )
    late = Deferred.fromCoroutine(
        store.change_account(lambda account: evolve(account, username="late"), login=b"other")
    )
    assert await password == Account("me", "new", 1, 1)
    assert await name == store.account() == Account("you", "new", 1, 1)
    with pytest.raises(Unauthorised, match="the login has ended"):
        await late
    await store.close()


@pytest_twisted.ensureDeferred
async def test_logins_are_kept_used_and_ended(open_store: OpenStore) -> None:
    store = open_store()
    account = Account("admin", "hash", 1, 1)
    await store.put_account(account)
    for name in (b"a", b"b", b"c"):
        await store.add_login(name, Login(10, 10))
    await store.touch_login(b"a", 20)
    await store.touch_login(b"a", 15)
    await store.touch_login(b"unknown", 20)
    await store.end_login(b"c")
    await store.close()
    store = open_store()
    logins = [store.login(name) for name in (b"a", b"b", b"c", b"unknown")]
    assert logins == [Login(10, 20), Login(10, 10), None, None]
    await store.change_account(lambda kept: kept, login=b"a", end_logins=True)
    assert [store.login(name) for name in (b"a", b"b")] == [Login(10, 20), None]
    assert store.account() == account
    assert await store.forget_logins(lambda login: login.last_seen < 20) == 0
    assert await store.forget_logins(lambda login: login.last_seen < 21) == 1
    assert store.login(b"a") is None
    await store.close()


@pytest_twisted.ensureDeferred
async def test_no_hits_are_taken_when_the_disk_is_nearly_full(open_store: OpenStore) -> None:
    store = open_store(min_free_disk=1 << 60)
    await store.add_website("example.com", 1)
    with pytest.raises(Unavailable, match="min_free_disk") as refused:
        await store.append([a_view()])
    assert refused.value.retry_after > 0
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_full_map_refuses_hits_and_deleting_makes_room(open_store: OpenStore) -> None:
    store = open_store(map_size=2 << 20)
    website = await store.add_website("example.com", 1)

    async def fill() -> None:
        while True:
            await store.append([a_view(path=f"/{'x' * 500}/{uuid4()}") for _ in range(50)])

    with pytest.raises(Unavailable, match="map_size"):
        await fill()
    assert len(paths(seen(store, website))) > 100
    await store.delete_website(website)
    await until_removed(store)
    again = await store.add_website("example.com", 2)
    assert await store.append([a_view(again.number)]) == [Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_freed_room_is_used_though_the_disk_is_nearly_full(open_store: OpenStore) -> None:
    store = open_store(map_size=64 << 20)
    website = await store.add_website("example.com", 1)
    used = await store.add_website("used.example", 1)
    for _ in range(20):
        await store.append(
            [a_view(used.number, path=f"/{'x' * 500}/{uuid4()}") for _ in range(500)]
        )
    store.apply(StoreSettings(min_free_disk=1 << 60))
    with pytest.raises(Unavailable, match="min_free_disk"):
        await store.append([a_view(website.number)])
    await store.delete_website(used)
    await settled(store, NOW_MS)
    assert await store.append([a_view(website.number)]) == [Outcome.STORED]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_damaged_record_is_left_out_and_named(open_store: OpenStore) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    await store.append([a_view(path="/a"), a_view(path="/b"), a_view(path="/c")])
    databases = store._environment.databases
    with store._environment.lmdb.begin(write=True) as txn:
        cursor = txn.cursor(db=databases.journal)
        assert cursor.first()
        assert cursor.next()
        key, value = cursor.item()
        txn.put(key, value[:10] + bytes([value[10] ^ 1]) + value[11:], db=databases.journal)
    store, snapshot = await reopened(store, open_store)
    assert paths(snapshot) == ["/a", "/c"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_closed_store_finishes_what_it_took_and_takes_no_more(
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
async def test_a_folder_that_is_gone_stops_the_store(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="the store has failed"):
        await store.append([a_view()])
    assert "the store has failed" in await store.broken
    await store.close()


@pytest_twisted.ensureDeferred
async def test_refusing_is_logged_when_it_begins_and_when_it_ends(open_store: OpenStore) -> None:
    told: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_namespace"] == "medamad.store.room.Room":
            told.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)
    store = open_store(min_free_disk=1 << 60)
    await store.add_website("example.com", 1)
    for _ in range(3):
        with pytest.raises(Unavailable):
            await store.append([a_view()])
    store.apply(StoreSettings(min_free_disk=0))
    await store.append([a_view()])
    globalLogPublisher.removeObserver(observe)
    assert [text.partition(":")[0] for text in told] == [
        "no hits are taken, reading goes on",
        "hits are taken again",
    ]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_cannot_be_shown_stops_the_store(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    store._shelves.of(website.number).tail = None
    with pytest.raises(AttributeError):
        await store.append([a_view()])
    assert "cannot be shown" in await store.broken
    with pytest.raises(Unavailable, match="cannot be shown"):
        await store.append([a_view()])
    await store.close()


@pytest_twisted.ensureDeferred
async def test_old_beacons_are_tidied_away(open_store: OpenStore) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    await store.append([a_view() for _ in range(1200)])
    databases = store._environment.databases
    for now_ms, left in ((NOW_MS, 1200), (NOW_MS + 2 * 86_400_000, 0)):
        await store.tidy(now_ms)
        with store._environment.reading() as txn:
            assert txn.stat(databases.beacons)["entries"] == left
    await store.close()


@pytest_twisted.ensureDeferred
async def test_live_figures(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    day_ms, minute_ms = 86_400_000, 60_000
    await store.append(
        [
            a_view(time_ms=NOW_MS - day_ms - 1),
            a_view(time_ms=NOW_MS - day_ms),
            a_view(time_ms=NOW_MS - 5 * minute_ms - 1),
            a_view(time_ms=NOW_MS - 5 * minute_ms, first_today=False),
            a_view(time_ms=NOW_MS, beacon="left"),
            Leaving(time_ms=NOW_MS, beacon="left", duration_ms=10),
        ]
    )
    assert store.visitors_last_day(website, NOW_MS) == 3
    assert store.live_visitors(website, NOW_MS) == 1
    # Set back, the clock makes the latest views ones of a time to come.
    assert store.live_visitors(website, NOW_MS - 1) == 2
    assert store.live_visitors(website, NOW_MS - day_ms) == 2
    assert store.live_visitors(website, NOW_MS - 2 * day_ms) == 0
    await store.close()


@pytest_twisted.ensureDeferred
async def test_visitors_are_counted_in_memory_from_the_first_on(open_store: OpenStore) -> None:
    """To look through the blocks takes too long for a list of websites."""
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([a_view(time_ms=NOW_MS - 1), a_view(first_today=False), a_view()])
    for _ in range(2):
        while (counted := store._shelves._visitors.get(website.number)) is None:
            await store.end_login(b"nobody's")
        assert counted.count(NOW_MS) == 2
        assert store.visitors_last_day(website, NOW_MS) == 2
        await store.close()
        store = open_store()
    await store.close()
