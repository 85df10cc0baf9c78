import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.storage.visitors import VisitorsLastDay

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000

_ahead_ms = st.one_of(
    st.integers(-2 * DAY_MS, 2 * DAY_MS),
    st.sampled_from([0, 1, 899_999, 900_000, 900_001, DAY_MS - 1, DAY_MS, DAY_MS + 1]),
)
times = st.lists(_ahead_ms.map(lambda ahead_ms: NOW_MS + ahead_ms), max_size=30)


def of_day(visits: list[int], now_ms: int) -> int:
    return len([time_ms for time_ms in visits if now_ms - DAY_MS <= time_ms <= now_ms])


@given(times, st.lists(st.one_of(times, _ahead_ms), max_size=4), st.lists(_ahead_ms, min_size=1))
def test_visitors_are_counted_exactly_or_not_at_all(
    first: list[int], later: list[list[int] | int], asked: list[int]
) -> None:
    """In any order, since the clock may be set."""
    last_day = VisitorsLastDay()
    visits: list[int] = []
    assert last_day.count(NOW_MS) is None
    for more in (0, first, *later):
        if isinstance(more, int):
            now_ms = NOW_MS + more
            last_day.fill([time_ms for time_ms in visits if time_ms >= now_ms - DAY_MS], now_ms)
            assert last_day.count(now_ms) == of_day(visits, now_ms)
        else:
            last_day.add(more)
            visits += more
        for ahead_ms in asked:
            now_ms = NOW_MS + ahead_ms
            counted = last_day.count(now_ms)
            assert (counted is None) is not last_day.knows(now_ms)
            assert counted in {None, of_day(visits, now_ms)}


def test_old_visitors_are_dropped() -> None:
    last_day = VisitorsLastDay()
    last_day.fill([], NOW_MS)
    for day in range(20):
        last_day.add(range(NOW_MS + day * DAY_MS, NOW_MS + (day + 1) * DAY_MS, 60_000))
        assert len(last_day._slots) <= 98
        assert last_day.count(NOW_MS + (day + 1) * DAY_MS - 1) == 1440


@pytest.mark.parametrize("ahead_ms", [-365 * DAY_MS, 365 * DAY_MS])
def test_a_wrong_clock_does_not_leave_old_visitors_behind(
    ahead_ms: int,
) -> None:
    last_day = VisitorsLastDay()
    last_day.fill([], NOW_MS)
    visits = [NOW_MS, NOW_MS + ahead_ms]
    last_day.add(visits)
    fills = 0
    for day in range(5):
        more = range(NOW_MS + 1 + day * DAY_MS, NOW_MS + 1 + (day + 1) * DAY_MS, 60_000)
        last_day.add(more)
        visits += more
        assert len(last_day._slots) <= 98
        now_ms = NOW_MS + (day + 1) * DAY_MS
        if not last_day.knows(now_ms):
            fills += 1
            last_day.fill(visits, now_ms)
        assert last_day.count(now_ms) == of_day(visits, now_ms)
    assert fills == 1


@pytest.mark.parametrize("ahead_ms", [DAY_MS // 2, 365 * DAY_MS])
def test_visitors_of_the_future_do_not_count_yet(ahead_ms: int) -> None:
    last_day = VisitorsLastDay()
    last_day.fill([NOW_MS - 1, NOW_MS, NOW_MS + 1, NOW_MS + ahead_ms], NOW_MS)
    assert last_day.count(NOW_MS) == 2
    assert last_day.count(NOW_MS + 1) == 3
    assert last_day.count(NOW_MS + ahead_ms - 900_000) == (3 if ahead_ms < DAY_MS else 0)
    # Visitors that there was no room for are loaded again.
    assert last_day.count(NOW_MS + ahead_ms) == (4 if ahead_ms < DAY_MS else None)


def test_nothing_is_counted_before_all_visitors_are_loaded() -> None:
    """Hits arrive while segments are still being read."""
    last_day = VisitorsLastDay()
    last_day.add([NOW_MS])
    assert last_day.count(NOW_MS) is None
    last_day.fill([NOW_MS - 5, NOW_MS], NOW_MS)
    assert last_day.count(NOW_MS) == 2


def test_too_many_visitors_in_a_quarter_of_an_hour_cannot_be_split() -> None:
    last_day = VisitorsLastDay()
    last_day.fill([], NOW_MS)
    # The quarter of an hour that begins at `first`, and the next one.
    first = NOW_MS // 900_000 * 900_000
    last_day.add(range(first, first + 900_000, 9))
    last_day.add([first + 900_000 + step for step in (0, 5, 9)])
    assert last_day.count(first + 900_009) == 100_003
    assert last_day.count(first + 900_005) == 100_002
    assert last_day.count(first + 450_000) is None
    # The day begins within the crowded quarter of an hour.
    assert last_day.count(first + DAY_MS + 450_000) is None
    assert last_day.count(first + DAY_MS + 900_005) == 2
    assert sum(len(slot.times) for slot in last_day._slots.values()) == 4_096 + 3
