from hypothesis import given
from hypothesis import strategies as st

from medamad.store.recent import LastDay

DAY_MS = 86_400_000
NOW_MS = 1_790_000_000_000

_ahead_ms = st.one_of(
    st.integers(-2 * DAY_MS, 2 * DAY_MS),
    st.sampled_from([0, 1, 899_999, 900_000, 900_001, DAY_MS - 1, DAY_MS, DAY_MS + 1]),
)
times = st.lists(_ahead_ms.map(lambda ahead_ms: NOW_MS + ahead_ms), max_size=30)


def since(visits: list[int], since_ms: int) -> int:
    return len([time_ms for time_ms in visits if time_ms >= since_ms])


@given(times, st.lists(times, max_size=4), st.lists(_ahead_ms, min_size=1))
def test_who_came_is_counted_or_it_is_said_that_it_cannot_be(
    first: list[int], later: list[list[int]], asked: list[int]
) -> None:
    """In whatever order they came: a clock may be set back."""
    last_day = LastDay()
    assert last_day.count(NOW_MS) is None
    newest = max(first, default=NOW_MS)
    last_day.fill([time_ms for time_ms in first if time_ms >= newest - DAY_MS], newest - DAY_MS)
    visits = list(first)
    for more in ([], *later):
        last_day.add(more)
        visits += more
        newest = max([newest, *more])
        for ahead_ms in (*asked, newest - NOW_MS):
            now_ms = NOW_MS + ahead_ms
            counted = last_day.count(now_ms)
            if counted is None:
                assert now_ms < newest, "it could have been told"
            else:
                assert counted == since(visits, now_ms - DAY_MS)


def test_what_is_long_gone_takes_no_room() -> None:
    last_day = LastDay()
    last_day.fill([], NOW_MS - DAY_MS)
    for day in range(20):
        last_day.add(range(NOW_MS + day * DAY_MS, NOW_MS + (day + 1) * DAY_MS, 60_000))
        assert len(last_day._slots) <= 98
    assert last_day.count(NOW_MS + 20 * DAY_MS) == 1440


def test_nobody_is_counted_before_all_are_known() -> None:
    """Hits come while the blocks are still being read."""
    last_day = LastDay()
    last_day.add([NOW_MS])
    assert last_day.count(NOW_MS) is None
    last_day.fill([NOW_MS - 5, NOW_MS], NOW_MS - DAY_MS)
    assert last_day.count(NOW_MS) == 2


def test_beyond_so_many_times_it_is_said_that_they_cannot_be_told_apart() -> None:
    last_day = LastDay()
    last_day.fill([], NOW_MS - DAY_MS)
    # A quarter of an hour that begins at `first`, and the one after it.
    first = NOW_MS // 900_000 * 900_000
    last_day.add(range(first, first + 900_000, 9))
    last_day.add([first + 900_000 + step for step in (0, 5, 9)])
    assert last_day.count(first + 900_000) == 100_003
    # The day begins amid the many.
    assert last_day.count(first + DAY_MS + 450_000) is None
    assert last_day.count(first + DAY_MS + 900_005) == 2
    assert sum(len(slot.times) for slot in last_day._slots.values()) == 4_096 + 3
