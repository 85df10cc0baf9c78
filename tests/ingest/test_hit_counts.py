import tracemalloc

from hypothesis import example, given
from hypothesis import strategies as st
from support.call_counts import calls_of

from medamad.ingest.hit_counts import (
    MAX_HOSTNAMES,
    RecentCount,
    RecentSenders,
    Uncounted,
    UncountedHits,
    UnknownHostnames,
    Unregistered,
)
from medamad.ingest.networks import Sender, address_of

NOW = 1_700_000_000.0
DAY_S = 86_400


def test_ignored_hits_are_counted_by_website_and_reason() -> None:
    uncounted = UncountedHits()
    for website, reason in [(1, "bot"), (1, "spam"), (1, "bot"), (2, "bot"), (None, "malformed")]:
        uncounted.count(website, reason, NOW)
    assert uncounted.of(1, NOW) == [
        Uncounted("bot", 2, int(NOW)),
        Uncounted("spam", 1, int(NOW)),
    ]
    assert uncounted.of(2, NOW) == [Uncounted("bot", 1, int(NOW))]
    assert uncounted.of(3, NOW) == []
    assert uncounted.of(None, NOW) == [Uncounted("malformed", 1, int(NOW))]
    assert uncounted.totals() == {"bot": 3, "spam": 1, "malformed": 1}


def test_reasons_are_sorted_by_count_then_name() -> None:
    uncounted = UncountedHits()
    for reason in ["spam", "bot", "blocked", "spam"]:
        uncounted.count(1, reason, NOW)
    assert [refused.reason for refused in uncounted.of(1, NOW)] == ["spam", "blocked", "bot"]


def test_counts_expire_after_a_day_but_totals_stay() -> None:
    uncounted = UncountedHits()
    uncounted.count(1, "bot", NOW)
    uncounted.count(1, "bot", NOW + 3_600)
    assert uncounted.of(1, NOW + DAY_S - 300) == [Uncounted("bot", 2, int(NOW) + 3_600)]
    assert uncounted.of(1, NOW + DAY_S + 300) == [Uncounted("bot", 1, int(NOW) + 3_600)]
    assert uncounted.of(1, NOW + 2 * DAY_S) == []
    uncounted.count(1, "bot", NOW + 2 * DAY_S)
    assert uncounted.of(1, NOW + 2 * DAY_S) == [Uncounted("bot", 1, int(NOW) + 2 * DAY_S)]
    assert uncounted.totals() == {"bot": 3}


def test_reason_counts_cover_only_the_last_day() -> None:
    uncounted = UncountedHits()
    for minute in range(3 * 1440):
        uncounted.count(1, "bot", NOW + 60 * minute)
    now = NOW + 60 * (3 * 1440 - 1)
    # Counts are kept in slots of five minutes.
    assert uncounted.of(1, now) == [Uncounted("bot", 1443, int(now))]


def test_setting_the_clock_back_loses_no_count() -> None:
    uncounted = UncountedHits()
    uncounted.count(1, "bot", NOW)
    uncounted.count(1, "bot", NOW - 3_600)
    assert uncounted.of(1, NOW) == [Uncounted("bot", 2, int(NOW) - 3_600)]


def test_counts_can_be_summed_over_all_websites() -> None:
    uncounted = UncountedHits()
    assert uncounted.of_all(NOW) == []
    uncounted.count(1, "spam", NOW - 2 * DAY_S)
    for second, (website, reason) in enumerate(
        [(2, "bot"), (1, "bot"), (None, "malformed"), (2, "blocked")]
    ):
        uncounted.count(website, reason, NOW + second)
    assert uncounted.of_all(NOW + 3) == [
        Uncounted("bot", 2, int(NOW) + 1),
        Uncounted("blocked", 1, int(NOW) + 3),
        Uncounted("malformed", 1, int(NOW) + 2),
    ]


def test_summing_over_websites_costs_the_same_for_one_or_many() -> None:
    one, many = UncountedHits(), UncountedHits()
    for website in range(100):
        one.count(1, "bot", NOW)
        many.count(website, "bot", NOW)
    assert one.of_all(NOW) == many.of_all(NOW) == [Uncounted("bot", 100, int(NOW))]
    assert calls_of(lambda: many.of_all(NOW)) == calls_of(lambda: one.of_all(NOW))


def test_counts_of_a_deleted_website_are_dropped() -> None:
    uncounted = UncountedHits()
    uncounted.count(1, "bot", NOW)
    uncounted.forget(1)
    uncounted.forget(2)
    assert uncounted.of(1, NOW) == []
    assert uncounted.of_all(NOW) == [Uncounted("bot", 1, int(NOW))]
    assert uncounted.totals() == {"bot": 1}


SLOT_S = 300
SLOTS_OF_A_DAY = 288


def test_recent_count_covers_the_last_day() -> None:
    counted = RecentCount()
    assert (counted.last, counted.last_day(NOW)) == (0, 0)
    for second in (0, 1, 90, 3_600):
        counted.count(NOW + second)
    assert (counted.last, counted.last_day(NOW + 3_600)) == (int(NOW) + 3_600, 4)
    assert counted.last_day(NOW + DAY_S + 1_000) == 1
    assert counted.last_day(NOW + 2 * DAY_S) == 0
    assert counted.last == int(NOW) + 3_600


@given(
    st.lists(st.integers(0, 400) | st.integers(0, 100_000) | st.integers(-200_000, 0), max_size=30),
    st.integers(-100_000, 200_000),
)
@example([*[60] * 3 * 1440], 0)
def test_recent_count_equals_a_naive_count(steps: list[int], later: int) -> None:
    counted, now, kept = RecentCount(), NOW, []
    for step in steps:
        now += step
        counted.count(now)
        slot = now // SLOT_S
        kept = [min(one, slot) for one in [*kept, slot] if one >= slot - SLOTS_OF_A_DAY]
    oldest = max((now + later) // SLOT_S, *kept, 0) - SLOTS_OF_A_DAY
    assert counted.last_day(now + later) == sum(one >= oldest for one in kept)
    assert counted.total == len(steps)


def test_recent_count_uses_constant_memory() -> None:
    tracemalloc.start()
    try:
        counted = RecentCount()
        for step in range(4_000):
            counted.count(NOW + 61 * step)
        room_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counted.total == 4_000
    assert room_bytes < 4_000


def test_recent_count_survives_a_clock_set_back() -> None:
    counted = RecentCount()
    counted.count(NOW)
    counted.count(NOW - 3_600)
    assert counted.last_day(NOW) == 2


def test_counts_from_the_future_expire_too() -> None:
    counted = RecentCount()
    for _ in range(3):
        counted.count(NOW + 365 * DAY_S)
    counted.count(NOW)
    assert counted.last_day(NOW) == 4
    counted.count(NOW + DAY_S + 120)
    assert counted.last_day(NOW + DAY_S + 120) == 1


def test_last_minute_counts_the_last_full_minute() -> None:
    counted = RecentCount()
    minute = NOW // 60 * 60
    counted.count(minute - 1)
    for second in (0, 30, 59):
        assert counted.last_minute(minute + second) == 1
        counted.count(minute + second)
    counted.count(minute + 60)
    assert counted.last_minute(minute + 60) == counted.last_minute(minute + 119) == 3
    assert counted.last_minute(minute + 120) == 1
    assert counted.last_minute(minute + 240) == 0
    assert counted.total == 5


def test_unknown_hostnames_are_sorted_newest_first() -> None:
    unknown = UnknownHostnames()
    for second, hostname in enumerate(["a.example", "b.example", "a.example", "c.example"]):
        unknown.count(hostname, NOW + second)
    assert unknown.newest(NOW + 3) == [
        Unregistered("c.example", 1, int(NOW) + 3),
        Unregistered("a.example", 2, int(NOW) + 2),
        Unregistered("b.example", 1, int(NOW) + 1),
    ]


def test_unknown_hostnames_expire_after_a_day() -> None:
    unknown = UnknownHostnames()
    unknown.count("a.example", NOW)
    unknown.count("b.example", NOW + 7_200)
    assert [each.hostname for each in unknown.newest(NOW + DAY_S + 300)] == ["b.example"]
    assert unknown.newest(NOW + 2 * DAY_S) == []


def test_unknown_hostnames_are_bounded_in_number_and_length() -> None:
    unknown = UnknownHostnames()
    unknown.count("kept.example", NOW)
    for number in range(1_000):
        unknown.count(f"{number}.example", NOW)
        unknown.count("kept.example", NOW)
    names = [each.hostname for each in unknown.newest(NOW)]
    assert names[:2] == ["kept.example", "999.example"]
    assert len(names) == MAX_HOSTNAMES
    unknown.count("9" * 10_000, NOW)
    assert len(unknown.newest(NOW)[0].hostname) == 253


def test_nearly_all_hits_of_one_local_address_are_a_warning() -> None:
    senders = RecentSenders()
    proxy, visitor = (Sender(address_of(address)) for address in ("10.0.0.1", "203.0.113.9"))
    for _ in range(199):
        senders.count(proxy)
    assert senders.warning == ""
    senders.count(proxy)
    assert senders.warning == (
        "nearly all hits come from 10.0.0.1, so visitors with the same browser are hard to tell"
        " apart: if that is a proxy, add it to server.trusted_proxies"
    )
    for _ in range(30):
        senders.count(visitor)
    assert senders.warning == ""
    for _ in range(400):
        senders.count(visitor)
    assert senders.warning == ""
    for _ in range(400):
        senders.count(Sender(None))
    assert senders.warning.startswith("nearly all hits come from a Unix socket, so")
