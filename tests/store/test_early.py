from medamad.store.early import KEPT_MS, Early

NOW_MS = 1_790_000_000_000
SITE = 1


def test_the_longest_leaving_and_all_events_of_the_website_wait() -> None:
    early = Early(10)
    early.leave(b"b", NOW_MS, 300)
    early.leave(b"b", NOW_MS + 1, 200)
    early.happen(b"b", NOW_MS + 2, SITE, 77)
    early.happen(b"b", NOW_MS + 2, 2, 78)
    early.happen(b"b", NOW_MS + 2, SITE, 79)
    assert early.duration_ms(b"b", SITE, NOW_MS + 3) == 300
    assert early.events(b"b", SITE, NOW_MS + 3) == [77, 79]
    early.forget(b"b")
    assert (early.duration_ms(b"b", SITE, NOW_MS + 3), early.events(b"b", SITE, NOW_MS + 3)) == (
        0,
        [],
    )


def test_each_waits_for_60_seconds_of_its_own() -> None:
    early = Early(10)
    early.leave(b"b", NOW_MS, 300)
    early.happen(b"b", NOW_MS, SITE, 7)
    early.leave(b"b", NOW_MS + 50_000, 200)
    early.happen(b"b", NOW_MS + 50_000, SITE, 8)
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
    early = Early(10)
    early.leave(b"b", NOW_MS, 300)
    early.happen(b"b", NOW_MS, SITE, 7)
    assert early.duration_ms(b"b", SITE, NOW_MS - KEPT_MS) == 300
    assert early.events(b"b", SITE, NOW_MS - KEPT_MS) == [7]
    assert early.duration_ms(b"b", SITE, NOW_MS - KEPT_MS - 1) == 0


def test_a_leaving_waits_for_the_websites_that_its_page_may_be_of() -> None:
    early = Early(10)
    early.leave(b"b", NOW_MS, 100)
    early.leave(b"b", NOW_MS, 200, frozenset({SITE, 3}))
    early.leave(b"b", NOW_MS, 300, frozenset({2, 3}))
    found = {site: early.duration_ms(b"b", site, NOW_MS) for site in (SITE, 2, 3, 4)}
    assert found == {SITE: 200, 2: 300, 3: 300, 4: 100}


def test_memory_is_bounded() -> None:
    early = Early(3)
    for number in range(10):
        early.leave(bytes([number]), NOW_MS, 1)
    early.leave(bytes([7]), NOW_MS, 1)
    early.leave(bytes([10]), NOW_MS, 1)
    kept = [number for number in range(11) if early.duration_ms(bytes([number]), SITE, NOW_MS)]
    assert kept == [7, 9, 10]
    for number in range(100):
        early.happen(b"\x09", NOW_MS, SITE, number)
    assert early.events(b"\x09", SITE, NOW_MS) == list(range(70, 100))
