from collections.abc import Callable

import pytest_twisted
from support.storage.hits import HOUR_MS, NOW_MS, event, leaving

from medamad.storage.store import Store
from medamad.storage.wal.dedup import KEPT_MS, UnmatchedBeacons

SITE = 1
LET_GO_MS = KEPT_MS + HOUR_MS + 1


def test_the_longest_leaving_and_all_events_of_the_website_wait() -> None:
    early = UnmatchedBeacons(10)
    early.add_leaving(b"b", NOW_MS, 300)
    early.add_leaving(b"b", NOW_MS + 1, 200)
    early.add_event(b"b", NOW_MS + 2, SITE, 77)
    early.add_event(b"b", NOW_MS + 2, 2, 78)
    early.add_event(b"b", NOW_MS + 2, SITE, 79)
    assert early.duration_ms(b"b", SITE, NOW_MS + 3) == 300
    assert early.events(b"b", SITE, NOW_MS + 3) == [77, 79]
    early.forget(b"b")
    assert (early.duration_ms(b"b", SITE, NOW_MS + 3), early.events(b"b", SITE, NOW_MS + 3)) == (
        0,
        [],
    )


def test_each_waits_for_60_seconds_of_its_own() -> None:
    early = UnmatchedBeacons(10)
    early.add_leaving(b"b", NOW_MS, 300)
    early.add_event(b"b", NOW_MS, SITE, 7)
    early.add_leaving(b"b", NOW_MS + 50_000, 200)
    early.add_event(b"b", NOW_MS + 50_000, SITE, 8)
    for after_ms, duration_ms, events in (
        (50_000, 300, [7, 8]),
        (KEPT_MS, 300, [7, 8]),
        (KEPT_MS + 1, 200, [8]),
        (KEPT_MS + 50_000, 200, [8]),
        (KEPT_MS + 50_001, 0, []),
    ):
        assert early.duration_ms(b"b", SITE, NOW_MS + after_ms) == duration_ms
        assert early.events(b"b", SITE, NOW_MS + after_ms) == events


def test_a_clock_set_back_a_little_loses_nothing() -> None:
    early = UnmatchedBeacons(10)
    early.add_leaving(b"b", NOW_MS, 300)
    early.add_event(b"b", NOW_MS, SITE, 7)
    assert early.duration_ms(b"b", SITE, NOW_MS - KEPT_MS) == 300
    assert early.events(b"b", SITE, NOW_MS - KEPT_MS) == [7]
    assert early.duration_ms(b"b", SITE, NOW_MS - KEPT_MS - 1) == 0


def test_a_leaving_waits_for_the_websites_that_its_page_may_be_of() -> None:
    early = UnmatchedBeacons(10)
    early.add_leaving(b"b", NOW_MS, 100)
    early.add_leaving(b"b", NOW_MS, 200, frozenset({SITE, 3}))
    early.add_leaving(b"b", NOW_MS, 300, frozenset({2, 3}))
    found = {site: early.duration_ms(b"b", site, NOW_MS) for site in (SITE, 2, 3, 4)}
    assert found == {SITE: 200, 2: 300, 3: 300, 4: 100}


def test_memory_is_bounded() -> None:
    early = UnmatchedBeacons(3)
    for number in range(10):
        early.add_leaving(bytes([number]), NOW_MS, 1)
    early.add_leaving(bytes([7]), NOW_MS, 1)
    early.add_leaving(bytes([10]), NOW_MS, 1)
    kept = [number for number in range(11) if early.duration_ms(bytes([number]), SITE, NOW_MS)]
    assert kept == [7, 9, 10]
    for number in range(100):
        early.add_event(b"\x09", NOW_MS, SITE, number)
    assert early.events(b"\x09", SITE, NOW_MS) == list(range(70, 100))


def test_what_waits_in_vain_is_let_go_of_some_at_a_time() -> None:
    early = UnmatchedBeacons(10)
    for number in range(5):
        early.add_leaving(bytes([number]), NOW_MS, 1)
    early.add_event(b"\0", NOW_MS + LET_GO_MS, SITE, 7)
    assert early.expire(NOW_MS + LET_GO_MS - 1, 2) == 0
    assert [early.expire(NOW_MS + LET_GO_MS, 2) for _ in range(3)] == [2, 2, 0]
    assert len(early) == 1
    assert early.events(b"\0", SITE, NOW_MS + LET_GO_MS) == [7]


def test_what_came_while_the_clock_was_ahead_by_no_more_than_an_hour_is_found() -> None:
    early = UnmatchedBeacons(10)
    early.add_event(b"b", NOW_MS, SITE, 7)
    early.expire(NOW_MS + HOUR_MS, 10)
    assert early.events(b"b", SITE, NOW_MS) == [7]


@pytest_twisted.ensureDeferred
async def test_a_store_that_is_tidied_lets_go_of_what_waits_in_vain(
    open_store: Callable[..., Store],
) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    await store.append([*(leaving(number, 1) for number in range(1_000)), event("e")])
    counts = []
    for after_ms in (0, LET_GO_MS - 1, LET_GO_MS):
        await store.tidy(NOW_MS + after_ms)
        counts.append(len(store.journal.unmatched))
    assert counts == [1_001, 1_001, 0]
    await store.close()
