from medamad.collect.tallies import Tally

NOW = 1_700_000_000.0
DAY_S = 86_400


def test_a_day_is_counted() -> None:
    tally = Tally()
    assert (tally.last, tally.last_day(NOW)) == (0, 0)
    for second in (0, 1, 90, 3_600):
        tally.count(NOW + second)
    assert (tally.last, tally.last_day(NOW + 3_600)) == (int(NOW) + 3_600, 4)
    assert tally.last_day(NOW + DAY_S + 1_000) == 1
    assert tally.last_day(NOW + 2 * DAY_S) == 0
    assert tally.last == int(NOW) + 3_600


def test_many_days_take_no_more_room_than_one() -> None:
    tally = Tally()
    for minute in range(3 * 1440):
        tally.count(NOW + 60 * minute)
    assert tally.last_day(NOW + 60 * (3 * 1440 - 1)) == 1441
    assert len(tally._slots) == 1441


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
