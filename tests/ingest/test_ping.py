from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.dimensions import Since
from medamad.domain.errors import BadRequest
from medamad.domain.zones import DAY_S
from medamad.ingest.ping import answer, http_date

NOW = datetime(2024, 3, 15, 13, 37, tzinfo=UTC).timestamp()
FIRST = ("0", "Fri, 15 Mar 2024 00:00:00 GMT")


def ping_of(since: str | None, now: float, zone: tzinfo) -> tuple[str, str]:
    """Return the body and Last-Modified of a ping's response."""
    ping = answer(since, now, zone)
    return ping.body, ping.last_modified


@pytest.mark.parametrize(
    ("since", "ping"),
    [
        (None, FIRST),
        # Of today: one second more.
        ("Fri, 15 Mar 2024 00:00:00 GMT", ("1", "Fri, 15 Mar 2024 00:00:01 GMT")),
        ("Fri, 15 Mar 2024 00:00:07 GMT", ("1", "Fri, 15 Mar 2024 00:00:08 GMT")),
        ("Fri, 15 Mar 2024 00:59:58 GMT", ("1", "Fri, 15 Mar 2024 00:59:59 GMT")),
        ("Fri, 15 Mar 2024 00:59:59 GMT", ("1", "Fri, 15 Mar 2024 01:00:00 GMT")),
        # The count stops; later and future dates stand for its end.
        ("Fri, 15 Mar 2024 01:00:00 GMT", ("1", "Fri, 15 Mar 2024 01:00:00 GMT")),
        ("Fri, 15 Mar 2024 13:00:00 GMT", ("1", "Fri, 15 Mar 2024 01:00:00 GMT")),
        ("Sat, 16 Mar 2024 00:00:00 GMT", ("1", "Fri, 15 Mar 2024 01:00:00 GMT")),
        ("Fri, 31 Dec 9999 23:59:59 GMT", ("1", "Fri, 15 Mar 2024 01:00:00 GMT")),
        # Of an earlier day: as if there were none.
        ("Thu, 14 Mar 2024 23:59:59 GMT", FIRST),
        ("Thu, 14 Mar 2024 00:00:03 GMT", FIRST),
        ("Thu, 01 Jan 1970 00:00:00 GMT", FIRST),
        ("Mon, 01 Jan 0001 00:00:00 GMT", FIRST),
        # The other two forms of an HTTP date.
        ("Friday, 15-Mar-24 00:00:07 GMT", ("1", "Fri, 15 Mar 2024 00:00:08 GMT")),
        ("Friday, 15-Mar-74 00:00:07 GMT", ("1", "Fri, 15 Mar 2024 01:00:00 GMT")),
        ("Friday, 15-Mar-75 00:00:07 GMT", FIRST),
        ("Fri Mar 15 00:00:07 2024", ("1", "Fri, 15 Mar 2024 00:00:08 GMT")),
        ("Fri Mar  1 00:00:07 2024", FIRST),
        (" fri, 15 mar 2024 00:00:00 gmt ", ("1", "Fri, 15 Mar 2024 00:00:01 GMT")),
    ],
)
def test_last_modified_counts_views_in_seconds_past_midnight(
    since: str | None, ping: tuple[str, str]
) -> None:
    assert ping_of(since, NOW, UTC) == ping


@pytest.mark.parametrize(
    "since",
    [
        "",
        "0",
        "yesterday",
        "2024-03-15T00:00:00Z",
        "Fri, 15 Mar 2024 00:00:00",
        "Fri, 15 Mar 2024 00:00:00 UTC",
        "Fri, 15 Mar 2024 00:00:00 +0000",
        "Fri, 15 Mar 2024 00:00:00 GMT; length=1",
        "Fri, 32 Mar 2024 00:00:00 GMT",
        "Fri, 30 Feb 2024 00:00:00 GMT",
        "Fri, 15 Mar 2024 24:00:00 GMT",
        "Fri, 15 Mar 0000 00:00:00 GMT",
        "Fri, 15 Xxx 2024 00:00:00 GMT",
        "Xxx, 15 Mar 2024 00:00:00 GMT",
        "Fri, 15 Mar 99999 00:00:00 GMT",
        "Fri, \u0661\u0665 Mar 2024 00:00:00 GMT",
        "Fri, 15 Mar 2024 00:00:00 GMT\nX",
    ],
)
def test_an_invalid_http_date_is_rejected(since: str) -> None:
    with pytest.raises(BadRequest, match=r"^If-Modified-Since: expected an HTTP date$"):
        answer(since, NOW, UTC)


@pytest.mark.parametrize(
    ("now", "zone", "midnight"),
    [
        ("2024-07-01T12:00+00:00", "UTC", "2024-07-01T00:00+00:00"),
        ("2024-07-01T22:30+00:00", "Europe/Berlin", "2024-07-02T00:00+02:00"),
        ("2024-07-01T02:30+00:00", "America/New_York", "2024-06-30T00:00-04:00"),
        ("2024-07-01T18:15+00:00", "Asia/Kathmandu", "2024-07-02T00:00+05:45"),
        # The day on which the clock is put forward, and the one on which it is put back.
        ("2024-03-31T12:00+00:00", "Europe/Berlin", "2024-03-31T00:00+01:00"),
        ("2024-10-27T12:00+00:00", "Europe/Berlin", "2024-10-27T00:00+02:00"),
        # Midnight does not exist, and exists twice.
        ("2024-04-26T12:00+00:00", "Africa/Cairo", "2024-04-26T01:00+03:00"),
        ("2024-11-03T05:30+00:00", "America/Havana", "2024-11-03T00:00-04:00"),
    ],
)
def test_a_day_begins_at_midnight_in_its_time_zone(now: str, zone: str, midnight: str) -> None:
    at = datetime.fromisoformat(now).timestamp()
    begins = int(datetime.fromisoformat(midnight).timestamp())
    assert ping_of(None, at, ZoneInfo(zone)) == ("0", http_date(begins))
    assert ping_of(http_date(begins), at, ZoneInfo(zone)) == ("1", http_date(begins + 1))
    assert answer(http_date(begins - 1), at, ZoneInfo(zone)).body == "0"


# 2024-07-01 is a Monday; 2024-07-31 is a Wednesday.
@pytest.mark.parametrize(
    ("now", "zone", "last", "since"),
    [
        # Within the day, up to its first second, and in the future.
        ("2024-07-10T12:00+00:00", "UTC", "2024-07-10T00:00:03+00:00", "day"),
        ("2024-07-10T12:00+00:00", "UTC", "2024-07-10T00:00+00:00", "day"),
        ("2024-07-10T12:00+00:00", "UTC", "2024-08-10T00:00+00:00", "day"),
        # From Monday on it is this week, before it is this month only, before that neither.
        ("2024-07-10T12:00+00:00", "UTC", "2024-07-09T23:59:59+00:00", "day"),
        ("2024-07-10T12:00+00:00", "UTC", "2024-07-08T00:00+00:00", "day"),
        ("2024-07-10T12:00+00:00", "UTC", "2024-07-07T23:59:59+00:00", "week"),
        ("2024-07-10T12:00+00:00", "UTC", "2024-07-01T00:00+00:00", "week"),
        ("2024-07-10T12:00+00:00", "UTC", "2024-06-30T23:59:59+00:00", "month"),
        ("2024-07-08T00:00+00:00", "UTC", "2024-07-07T23:59:59+00:00", "week"),
        ("2024-07-01T00:00+00:00", "UTC", "2024-06-30T23:59:59+00:00", "month"),
        # The month begins in the middle of the week.
        ("2024-08-01T12:00+00:00", "UTC", "2024-07-31T12:00+00:00", "midweek"),
        ("2024-08-04T23:59:59+00:00", "UTC", "2024-07-29T00:00+00:00", "midweek"),
        ("2024-08-04T23:59:59+00:00", "UTC", "2024-08-01T00:00+00:00", "day"),
        ("2024-08-04T23:59:59+00:00", "UTC", "2024-07-28T23:59:59+00:00", "month"),
        ("2024-08-05T00:00+00:00", "UTC", "2024-08-04T00:00+00:00", "week"),
        ("2024-08-05T00:00+00:00", "UTC", "2024-07-31T00:00+00:00", "month"),
        # The turn of the year, in the middle of a week.
        ("2025-01-01T00:00+00:00", "UTC", "2024-12-31T00:00+00:00", "midweek"),
        # A year ago.
        ("2024-07-10T12:00+00:00", "UTC", "2023-07-12T00:00+00:00", "month"),
        ("2024-07-10T12:00+00:00", "UTC", "2023-07-11T23:59:59+00:00", "new"),
        ("2024-07-10T12:00+00:00", "UTC", "1970-01-01T00:00+00:00", "new"),
        # In other zones the day, the week and the month begin elsewhere.
        ("2024-06-30T22:30+00:00", "Europe/Berlin", "2024-06-29T22:00:05+00:00", "month"),
        ("2024-06-30T22:30+00:00", "UTC", "2024-06-29T22:00:05+00:00", "day"),
        ("2024-07-08T03:00+00:00", "America/New_York", "2024-07-07T04:00+00:00", "day"),
        ("2024-07-08T05:00+00:00", "America/New_York", "2024-07-07T04:00+00:00", "week"),
        ("2024-07-07T18:15+00:00", "Asia/Kathmandu", "2024-07-06T18:15+00:00", "week"),
        ("2024-07-07T18:14:59+00:00", "Asia/Kathmandu", "2024-07-05T18:15+00:00", "day"),
        # Weeks in which a clock is put forward, or back.
        ("2024-04-01T00:00+02:00", "Europe/Berlin", "2024-03-31T00:00+01:00", "month"),
        ("2024-03-31T23:59+02:00", "Europe/Berlin", "2024-03-25T00:00+01:00", "day"),
        ("2024-10-28T00:00+01:00", "Europe/Berlin", "2024-10-27T00:00+02:00", "week"),
        ("2024-10-27T23:59+01:00", "Europe/Berlin", "2024-10-21T00:00+02:00", "day"),
    ],
)
def test_the_date_of_an_earlier_day_says_when_the_visitor_was_here_last(
    now: str, zone: str, last: str, since: str
) -> None:
    at, received = (datetime.fromisoformat(text).timestamp() for text in (now, last))
    ping = answer(http_date(int(received)), at, ZoneInfo(zone))
    assert ping.since is Since(since)
    assert (ping.views_before > 0) <= (ping.since is Since.DAY)


def test_a_browser_without_a_date_is_a_new_visitor() -> None:
    assert answer(None, NOW, UTC).since is Since.NEW


@pytest.mark.parametrize("every_days", [1, 6, 27, 90])
def test_a_date_ends_a_year_after_it_was_first_set(every_days: int) -> None:
    """However often its visitor comes back."""
    date = tag = None
    for day in range(0, 3 * 365, every_days):
        ping = answer(date, NOW + day * DAY_S, UTC, tag)
        if ping.since is Since.NEW:
            first = day
        assert day - first < 365
        assert ping.remaining_s == (first + 365 - day) * DAY_S
        date, tag = ping.last_modified, ping.entity_tag
        again = answer(date, NOW + day * DAY_S, UTC, tag)
        assert (again.views_before, again.entity_tag) == (1, tag)
    assert first > 365


@pytest.mark.parametrize(
    ("tag", "since"),
    [
        # The last day was the one before. A tag cannot prolong the date.
        (None, Since.MIDWEEK),
        ('W/"0"', Since.NEW),
        ('W/"19700"', Since.MIDWEEK),
        ('W/"19700-gzip"', Since.MIDWEEK),
        ('W/"99999"', Since.MIDWEEK),
        ("*", Since.MIDWEEK),
        ('"text"', Since.MIDWEEK),
    ],
)
def test_the_entity_tag_is_the_day_on_which_a_date_was_first_set(
    tag: str | None, since: Since
) -> None:
    now = datetime(2024, 8, 1, 12, tzinfo=UTC).timestamp()
    ping = answer("Wed, 31 Jul 2024 00:00:00 GMT", now, UTC, tag)
    assert ping.since is since
    assert 1 <= ping.remaining_s // DAY_S <= 365


@given(
    st.integers(1, 4_000_000_000),
    st.integers(1, 30),
    st.sampled_from([UTC, *map(ZoneInfo, ["Asia/Kolkata", "America/St_Johns", "Africa/Cairo"])]),
)
def test_each_ping_of_a_day_counts_one_more_view(now: int, views: int, zone: tzinfo) -> None:
    first = since = answer(None, now, zone).last_modified
    for number in range(1, views):
        ping = answer(since, now, zone)
        assert (ping.body, ping.views_before) == ("1", number)
        since = ping.last_modified
        assert _seconds(since) - _seconds(first) == number


def _seconds(date: str) -> float:
    return datetime.strptime(date, "%a, %d %b %Y %H:%M:%S %Z").replace(tzinfo=UTC).timestamp()


@given(st.text() | st.text("FriSat, 0123456789:MarJanGMT-"))
def test_any_date_parses_or_raises_bad_request(text: str) -> None:
    try:
        answer(text, NOW, UTC)
    except BadRequest as refusal:
        assert str(refusal).startswith("If-Modified-Since: ")  # noqa: PT017 - it may be a date
