from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query.naive_filters import calendar
from support.query.random_queries import MOMENTS, ZONES

from medamad.domain.errors import BadRequest
from medamad.query.buckets import INTERVALS, MAX_BUCKETS, Buckets, make_buckets


def ms(text: str) -> int:
    moment = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    return moment // timedelta(milliseconds=1)


def made(interval: str, start: str, end: str, zone: str | tzinfo = "UTC") -> Buckets:
    zone = ZoneInfo(zone) if isinstance(zone, str) else zone
    return make_buckets(interval, ms(start), ms(end), zone)


@pytest.mark.parametrize(
    ("interval", "start", "end", "zone", "dates"),
    [
        (
            "minute",
            "2024-01-01T00:00:59.999Z",
            "2024-01-01T00:02:00Z",
            "UTC",
            [f"2024-01-01T00:0{minute}:00+00:00" for minute in (0, 1, 2)],
        ),
        (
            "hour",
            "2024-01-01T10:30:00+05:45",
            "2024-01-01T11:00:00+05:45",
            "Asia/Kathmandu",
            ["2024-01-01T10:00:00+05:45", "2024-01-01T11:00:00+05:45"],
        ),
        # An hour that is left out, and one that comes twice.
        (
            "hour",
            "2024-03-31T01:00:00+01:00",
            "2024-03-31T03:00:00+02:00",
            "Europe/Berlin",
            ["2024-03-31T01:00:00+01:00", "2024-03-31T03:00:00+02:00"],
        ),
        (
            "hour",
            "2024-10-27T02:10:00+02:00",
            "2024-10-27T03:00:00+01:00",
            "Europe/Berlin",
            [
                "2024-10-27T02:00:00+02:00",
                "2024-10-27T02:00:00+01:00",
                "2024-10-27T03:00:00+01:00",
            ],
        ),
        # The clock goes from two back to half past one.
        (
            "hour",
            "2024-04-07T01:15:00+11:00",
            "2024-04-07T02:00:00+10:30",
            "Australia/Lord_Howe",
            [
                "2024-04-07T01:00:00+11:00",
                "2024-04-07T01:30:00+10:30",
                "2024-04-07T02:00:00+10:30",
            ],
        ),
        # The same, beginning within the hour that was cut.
        (
            "hour",
            "2024-04-07T01:45:00+10:30",
            "2024-04-07T01:59:00+10:30",
            "Australia/Lord_Howe",
            ["2024-04-07T01:30:00+10:30"],
        ),
        (
            "day",
            "2018-11-03T12:00:00-03:00",
            "2018-11-05T00:00:00-02:00",
            "America/Sao_Paulo",
            [
                "2018-11-03T00:00:00-03:00",
                "2018-11-04T01:00:00-02:00",
                "2018-11-05T00:00:00-02:00",
            ],
        ),
        (
            "day",
            "2011-12-29T12:00:00-10:00",
            "2011-12-31T12:00:00+14:00",
            "Pacific/Apia",
            ["2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00"],
        ),
        # One minute past midnight back to eleven: the second evening is of the day begun.
        (
            "day",
            "2010-11-06T23:30:00-03:30",
            "2010-11-06T23:45:00-03:30",
            "America/St_Johns",
            ["2010-11-07T00:00:00-02:30"],
        ),
        (
            "day",
            "2010-11-06T22:00:00-02:30",
            "2010-11-06T23:45:00-03:30",
            "America/St_Johns",
            ["2010-11-06T00:00:00-02:30", "2010-11-07T00:00:00-02:30"],
        ),
        (
            "week",
            "2024-03-31T12:00:00+02:00",
            "2024-04-08T00:00:00+02:00",
            "Europe/Berlin",
            [
                "2024-03-25T00:00:00+01:00",
                "2024-04-01T00:00:00+02:00",
                "2024-04-08T00:00:00+02:00",
            ],
        ),
        (
            "month",
            "2024-01-31T00:00:00Z",
            "2024-03-01T00:00:00Z",
            "UTC",
            [f"2024-0{month}-01T00:00:00+00:00" for month in (1, 2, 3)],
        ),
        # An offset that RFC 3339 cannot write: the instant stays.
        (
            "day",
            "1960-01-01T12:00:00Z",
            "1960-01-01T13:00:00Z",
            "Africa/Monrovia",
            ["1960-01-01T00:00:30-00:44"],
        ),
        (
            "month",
            "0001-01-05T00:00:00Z",
            "0001-02-01T00:00:00Z",
            "UTC",
            ["0001-01-01T00:00:00+00:00", "0001-02-01T00:00:00+00:00"],
        ),
        (
            "month",
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59Z",
            "America/New_York",
            ["9999-12-01T00:00:00-05:00"],
        ),
    ],
)
def test_dates(interval: str, start: str, end: str, zone: str, dates: list[str]) -> None:
    buckets = made(interval, start, end, zone)
    assert buckets.dates == dates
    assert buckets.edges_ms[:-1].tolist() == [ms(date) for date in dates]
    assert buckets.edges_ms[0] <= ms(start)
    assert buckets.edges_ms[-2] <= ms(end) < buckets.edges_ms[-1]


def test_a_zone_that_is_a_fixed_offset() -> None:
    zone = timezone(timedelta(hours=-3, minutes=-30))
    assert made("day", "2024-01-01T00:00:00-03:30", "2024-01-01T23:59:59-03:30", zone).dates == [
        "2024-01-01T00:00:00-03:30"
    ]


def test_views_are_assigned_to_their_buckets() -> None:
    buckets = made("hour", "2024-01-01T00:00:00Z", "2024-01-01T02:00:00Z")
    times = np.array([ms("2024-01-01T01:00:00Z") + shift for shift in (-1, 0, 1)])
    assert buckets.of(times).tolist() == [0, 1, 1]


@pytest.mark.parametrize("interval", INTERVALS)
def test_an_empty_period_has_no_buckets(interval: str) -> None:
    assert make_buckets(interval, 1, 0, UTC).dates == []


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Europe/Berlin")])
@pytest.mark.parametrize(("interval", "step_ms"), [("minute", 60_000), ("hour", 3_600_000)])
def test_the_limit_on_buckets_is_exact(interval: str, step_ms: int, zone: tzinfo) -> None:
    start_ms = ms("2024-01-01T00:00:00Z")
    end_ms = start_ms + MAX_BUCKETS * step_ms
    assert len(make_buckets(interval, start_ms, end_ms - 1, zone).dates) == MAX_BUCKETS
    with pytest.raises(BadRequest, match=r"\Ainterval: expected at most 50000 buckets"):
        make_buckets(interval, start_ms, end_ms, zone)


@pytest.mark.parametrize("interval", INTERVALS)
def test_ten_thousand_years_are_too_many_buckets(interval: str) -> None:
    period = ms("0001-01-01T00:00:00+14:00"), ms("9999-12-31T23:59:59-12:00")
    with pytest.raises(BadRequest, match=r"\Ainterval: "):
        make_buckets(interval, *period, ZoneInfo("Europe/Berlin"))


def test_an_unknown_interval_is_rejected() -> None:
    with pytest.raises(BadRequest, match=r"\Ainterval: expected one of minute, hour, day, week"):
        make_buckets("year", 1, 0, UTC)


@given(
    interval=st.sampled_from(INTERVALS),
    moment=st.sampled_from(MOMENTS),
    zone=st.sampled_from((*ZONES, "Africa/Casablanca", "Africa/Cairo", "America/Santiago")),
    before_s=st.integers(0, 90_000),
    length_s=st.integers(0, 200_000),
)
@settings(max_examples=3 * settings.default.max_examples)
def test_buckets_match_the_wall_clock(
    interval: str, moment: datetime, zone: str, before_s: int, length_s: int
) -> None:
    length_s = length_s // 20 if interval == "minute" else length_s
    start_s = int(moment.timestamp()) - before_s // (20 if interval == "minute" else 1)
    buckets = make_buckets(interval, start_s * 1000, (start_s + length_s) * 1000, ZoneInfo(zone))
    found = list(zip((buckets.edges_ms[:-1] // 1000).tolist(), buckets.dates, strict=True))
    assert found == calendar(interval, start_s, start_s + length_s, ZoneInfo(zone))
