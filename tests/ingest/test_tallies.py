import tracemalloc

from hypothesis import example, given
from hypothesis import strategies as st

from medamad.ingest.rejections import Tally

NOW = 1_700_000_000.0
DAY_S = 86_400
SLOT_S = 300
SLOTS_OF_A_DAY = 288


def test_a_day_is_counted() -> None:
    tally = Tally()
    assert (tally.last, tally.last_day(NOW)) == (0, 0)
    for second in (0, 1, 90, 3_600):
        tally.count(NOW + second)
    assert (tally.last, tally.last_day(NOW + 3_600)) == (int(NOW) + 3_600, 4)
    assert tally.last_day(NOW + DAY_S + 1_000) == 1
    assert tally.last_day(NOW + 2 * DAY_S) == 0
    assert tally.last == int(NOW) + 3_600


@given(
    st.lists(st.integers(0, 400) | st.integers(0, 100_000) | st.integers(-200_000, 0), max_size=30),
    st.integers(-100_000, 200_000),
)
@example([*[60] * 3 * 1440], 0)
def test_a_day_is_counted_as_by_hand(steps: list[int], later: int) -> None:
    tally, now, kept = Tally(), NOW, []
    for step in steps:
        now += step
        tally.count(now)
        slot = now // SLOT_S
        kept = [min(one, slot) for one in [*kept, slot] if one >= slot - SLOTS_OF_A_DAY]
    oldest = max((now + later) // SLOT_S, *kept, 0) - SLOTS_OF_A_DAY
    assert tally.last_day(now + later) == sum(one >= oldest for one in kept)
    assert tally.total == len(steps)


def test_no_number_of_hits_takes_more_room() -> None:
    tracemalloc.start()
    try:
        tally = Tally()
        for step in range(4_000):
            tally.count(NOW + 61 * step)
        room_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert tally.total == 4_000
    assert room_bytes < 4_000


def test_a_clock_set_back_loses_no_count() -> None:
    tally = Tally()
    tally.count(NOW)
    tally.count(NOW - 3_600)
    assert tally.last_day(NOW) == 2


def test_what_was_counted_ahead_of_time_is_forgotten_too() -> None:
    tally = Tally()
    for _ in range(3):
        tally.count(NOW + 365 * DAY_S)
    tally.count(NOW)
    assert tally.last_day(NOW) == 4
    tally.count(NOW + DAY_S + 120)
    assert tally.last_day(NOW + DAY_S + 120) == 1


def test_the_last_minute_is_the_last_full_one() -> None:
    tally = Tally()
    minute = NOW // 60 * 60
    tally.count(minute - 1)
    for second in (0, 30, 59):
        assert tally.last_minute(minute + second) == 1
        tally.count(minute + second)
    tally.count(minute + 60)
    assert tally.last_minute(minute + 60) == tally.last_minute(minute + 119) == 3
    assert tally.last_minute(minute + 120) == 1
    assert tally.last_minute(minute + 240) == 0
    assert tally.total == 5
