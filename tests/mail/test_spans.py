from datetime import UTC, date, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest

from medamad.domain.subscriptions import Every
from medamad.mail.spans import Span

BERLIN, APIA = ZoneInfo("Europe/Berlin"), ZoneInfo("Pacific/Apia")


@pytest.mark.parametrize(
    ("every", "day", "days", "beside"),
    [
        (Every.WEEK, "2026-11-16", ("2026-11-16", "2026-11-22"), ("2026-11-09", "2026-11-23")),
        (Every.WEEK, "2026-11-22", ("2026-11-16", "2026-11-22"), ("2026-11-09", "2026-11-23")),
        (Every.WEEK, "2027-01-01", ("2026-12-28", "2027-01-03"), ("2026-12-21", "2027-01-04")),
        (Every.MONTH, "2026-12-31", ("2026-12-01", "2026-12-31"), ("2026-11-01", "2027-01-01")),
        (Every.MONTH, "2024-02-10", ("2024-02-01", "2024-02-29"), ("2024-01-01", "2024-03-01")),
        (Every.MONTH, "2026-03-31", ("2026-03-01", "2026-03-31"), ("2026-02-01", "2026-04-01")),
    ],
)
def test_weeks_and_months_are_those_of_the_calendar(
    every: Every, day: str, days: tuple[str, str], beside: tuple[str, str]
) -> None:
    span = Span.with_day(every, date.fromisoformat(day), UTC)
    assert (span.first.isoformat(), span.last.isoformat()) == days
    assert (span.previous.first.isoformat(), span.following.first.isoformat()) == beside
    assert span.previous.following == span.following.previous == span


@pytest.mark.parametrize(
    ("zone", "at", "first"),
    [
        (UTC, "2026-11-22T23:59:59+00:00", "2026-11-09"),
        (UTC, "2026-11-23T00:00:00+00:00", "2026-11-16"),
        (BERLIN, "2026-11-22T22:59:59+00:00", "2026-11-09"),
        (BERLIN, "2026-11-22T23:00:00+00:00", "2026-11-16"),
    ],
)
def test_a_week_is_over_at_midnight_in_its_zone(zone: tzinfo, at: str, first: str) -> None:
    unix_s = int(datetime.fromisoformat(at).timestamp())
    assert Span.last_over(Every.WEEK, unix_s, zone).first.isoformat() == first


@pytest.mark.parametrize(
    ("zone", "day", "start", "end"),
    [
        (BERLIN, "2026-10-25", "2026-10-19T00:00:00+02:00", "2026-10-26T00:00:00+01:00"),
        # Its Friday was left out.
        (APIA, "2011-12-28", "2011-12-26T00:00:00-10:00", "2012-01-02T00:00:00+14:00"),
    ],
)
def test_a_period_has_every_moment_of_its_days(
    zone: tzinfo, day: str, start: str, end: str
) -> None:
    span = Span.with_day(Every.WEEK, date.fromisoformat(day), zone)
    assert span.period.start_ms == datetime.fromisoformat(start).timestamp() * 1000
    assert span.end_s == datetime.fromisoformat(end).timestamp()
    assert span.period.end_ms == span.end_s * 1000 - 1
