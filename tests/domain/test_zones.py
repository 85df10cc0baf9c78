from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from medamad.domain.errors import BadRequest
from medamad.domain.zones import change_between, day_at, offset_at, start_of_day, zone_named

EPOCH_DAY = date(1970, 1, 1).toordinal()


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def days(text: str) -> int:
    return date.fromisoformat(text).toordinal() - EPOCH_DAY


@pytest.mark.parametrize(
    ("zone", "instant", "offset"),
    [
        ("Europe/Berlin", "2024-03-31T00:59:59Z", 3600),
        ("Europe/Berlin", "2024-03-31T01:00:00Z", 7200),
        ("Asia/Kathmandu", "2024-01-01T00:00:00Z", 20700),
        ("Africa/Monrovia", "1960-01-01T00:00:00Z", -2670),
    ],
)
def test_offsets(zone: str, instant: str, offset: int) -> None:
    assert offset_at(ZoneInfo(zone), seconds(instant)) == offset


def test_offsets_beyond_the_calendar_are_those_at_its_ends() -> None:
    assert offset_at(ZoneInfo("Europe/Berlin"), 10**12) == 3600
    assert offset_at(ZoneInfo("Europe/Berlin"), -(10**12)) == 3208
    assert offset_at(UTC, 10**12) == 0
    assert offset_at(timezone(timedelta(hours=-5)), -(10**12)) == -18000


def test_a_change_is_found_to_the_second() -> None:
    low, high = seconds("2024-03-30T20:00:00Z"), seconds("2024-03-31T02:00:00Z")
    assert change_between(ZoneInfo("Europe/Berlin"), low, high) == seconds("2024-03-31T01:00:00Z")


@pytest.mark.parametrize(
    ("zone", "day", "start"),
    [
        ("UTC", "2024-01-01", "2024-01-01T00:00:00Z"),
        ("Europe/Berlin", "2024-07-01", "2024-07-01T00:00:00+02:00"),
        # Forward over midnight: the day begins at one o'clock.
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04T01:00:00-02:00"),
        # Forward from half past eleven: the day begins at half past midnight.
        ("America/Toronto", "1919-03-31", "1919-03-31T00:30:00-04:00"),
        # Back to midnight: the first of the two counts.
        ("America/Havana", "2018-11-04", "2018-11-04T00:00:00-04:00"),
        # Back from one minute past midnight, twice midnight.
        ("America/St_Johns", "2010-11-07", "2010-11-07T00:00:00-02:30"),
        # Back at midnight: there is one midnight, an hour later.
        ("America/Sao_Paulo", "2018-02-18", "2018-02-18T00:00:00-03:00"),
        # A day that was left out.
        ("Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"),
        ("Pacific/Apia", "2011-12-31", "2011-12-31T00:00:00+14:00"),
    ],
)
def test_starts_of_days(zone: str, day: str, start: str) -> None:
    assert start_of_day(ZoneInfo(zone), days(day)) == seconds(start)


def test_a_day_is_that_of_the_local_clock() -> None:
    instant = seconds("2024-01-01T23:30:00Z")
    assert day_at(ZoneInfo("Europe/Berlin"), instant) == days("2024-01-02")
    assert day_at(UTC, instant) == days("2024-01-01")


def test_zones_by_name() -> None:
    assert zone_named("Asia/Calcutta").utcoffset(datetime(2024, 1, 1)) == timedelta(hours=5.5)  # noqa: DTZ001


@pytest.mark.parametrize(
    "name",
    ["", "Berlin", "europe/berlin", "Europe", "../etc/passwd", "/etc/localtime", "right/UTC", "\0"],
)
def test_other_names_are_rejected(name: str) -> None:
    with pytest.raises(BadRequest, match=r"\Atimezone: expected an IANA time zone"):
        zone_named(name)
