from datetime import UTC, timedelta

import pytest

from medamad.domain.errors import BadRequest
from medamad.query.period import ALWAYS, Period, parse_instant, parse_period, previous_period

NEW_YEAR = 1_704_067_200_000  # 2024-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "first_ms", "last_ms"),
    [
        ("2024-01-01T00:00:00Z", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01t00:00:00z", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01 00:00:00Z", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01T00:00:00-00:00", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01T02:00:00+02:00", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01T02:00:00 02:00", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01 02:00:00 02:00", NEW_YEAR, NEW_YEAR + 999),
        ("2023-12-31T20:15:00-03:45", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01T23:59:00+23:59", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01T00:00:00.000Z", NEW_YEAR, NEW_YEAR),
        ("2024-01-01T00:00:00.25Z", NEW_YEAR + 250, NEW_YEAR + 250),
        ("2024-01-01T00:00:00.0015Z", NEW_YEAR + 2, NEW_YEAR + 1),
        ("2024-01-01T00:00:00.001000Z", NEW_YEAR + 1, NEW_YEAR + 1),
        (f"2024-01-01T00:00:00.{'9' * 400}Z", NEW_YEAR + 1000, NEW_YEAR + 999),
        ("2023-12-31T23:59:60Z", NEW_YEAR, NEW_YEAR + 999),
        ("2024-01-01T05:29:60+05:30", NEW_YEAR, NEW_YEAR + 999),
        ("2024-02-29T00:00:00Z", NEW_YEAR + 59 * 86_400_000, NEW_YEAR + 59 * 86_400_000 + 999),
        ("1970-01-01T00:00:00Z", 0, 999),
        ("1969-12-31T23:59:59.999Z", -1, -1),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000, -62_135_647_199_001),
        ("9999-12-31T23:59:59.9-12:00", 253_402_343_999_900, 253_402_343_999_900),
    ],
)
def test_instants(text: str, first_ms: int, last_ms: int) -> None:
    instant = parse_instant(text, "start")
    assert (instant.first_ms, instant.last_ms) == (first_ms, last_ms)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-01",
        "2024-01-01T00:00:00",
        "2024-01-01T00:00Z",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00+0200",
        "2024-01-01T00:00:00+02",
        "2024-01-01T00:00:00+24:00",
        "2024-01-01T00:00:00+02:60",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:60:00Z",
        "2024-01-01T00:00:61Z",
        "2024-01-01T12:30:60Z",
        "2024-01-01T23:59:60+01:00",
        "2024-02-30T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2024-13-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "-2024-01-01T00:00:00Z",
        "24-01-01T00:00:00Z",
        "2024-W01-1T00:00:00Z",
        "2024-01-01_00:00:00Z",
        "2024-01-01T00:00:00Z\n",
        " 2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00 Z",
        "٢٠٢٤-01-01T00:00:00Z",
        "2024-01-01T00:00:00\N{MINUS SIGN}02:00",
        "1704067200",
        "now",
    ],
)
def test_anything_else_is_rejected_by_name(text: str) -> None:
    with pytest.raises(BadRequest, match=r"\Aend: expected "):
        parse_instant(text, "end")


def test_the_time_zone_is_that_of_the_start() -> None:
    assert parse_period("2024-01-01T00:00:00-03:30", "2024-01-02T00:00:00+01:00").zone.utcoffset(
        None
    ) == timedelta(hours=-3.5)
    assert parse_period(None, "2024-01-02T00:00:00+01:00").zone is UTC
    assert parse_period(None, None) == ALWAYS


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.999Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.5004Z", "2024-01-01T00:00:00.5006Z"),
        ("2024-01-01T01:00:00+02:00", "2023-12-31T23:00:00Z"),
    ],
)
def test_a_start_at_or_before_the_end(start: str, end: str) -> None:
    assert parse_period(start, end) is not None


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024-01-01T00:00:01Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T00:00:00.001Z", "2024-01-01T00:00:00.000Z"),
        ("2024-01-01T00:00:00.00002Z", "2024-01-01T00:00:00.00001Z"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00+01:00"),
    ],
)
def test_a_start_after_the_end_is_rejected(start: str, end: str) -> None:
    with pytest.raises(BadRequest, match=r"\Astart: expected a date-time that is not after end"):
        parse_period(start, end)


def test_the_previous_period_is_as_long_and_ends_just_before() -> None:
    day = parse_period("2024-01-01T00:00:00Z", "2024-01-01T23:59:59Z")
    assert previous_period(day) == Period(NEW_YEAR - 86_400_000, NEW_YEAR - 1)
    moment = parse_period("2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00.000Z")
    assert previous_period(moment) == Period(NEW_YEAR - 1, NEW_YEAR - 1)


@pytest.mark.parametrize("period", [ALWAYS, Period(start_ms=1), Period(end_ms=1)])
def test_the_previous_period_needs_both_bounds(period: Period) -> None:
    with pytest.raises(BadRequest, match=r"\Aprevious: expected start and end"):
        previous_period(period)
