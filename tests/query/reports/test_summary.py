from typing import Any

import pytest
from support.query.hits import NOON, event, view
from support.query.readers import reader_of
from support.query.snapshots import SOURCES, Cuts, answer, query_from, snapshot_of

from medamad.domain.errors import BadRequest

VIEWS = [
    view(0, "pq", 5000),
    view(10, "q", 6001, path="/a"),
    view(3600, "pq", 6000, os="Linux"),
    view(3601, "", 0),
]
for number, each in enumerate(VIEWS, 1):
    each["id"] = number
NONE = {"visitors": 0, "pageviews": 0, "bounce_percentage": 0, "duration": 0}


def summary(*query: tuple[str, str]) -> dict[str, Any]:
    found = answer(snapshot_of(VIEWS, [], Cuts((1, 2))), "summary", query, now_ms=NOON + 7_200_000)
    assert isinstance(found, dict)
    return found


def test_the_whole_time() -> None:
    assert summary() == {
        "current": {"visitors": 2, "pageviews": 4, "bounce_percentage": 0.5, "duration": 6000}
    }


def test_visitors_of_a_page() -> None:
    assert summary(("path[contains]", "/"))["current"]["visitors"] == 3
    assert summary(("os", "linux"))["current"]["visitors"] == 1


def test_previous() -> None:
    period = [("start", "2024-01-01T13:00:00Z"), ("end", "2024-01-01T13:59:59Z")]
    assert summary(*period, ("previous", "true")) == {
        "current": {"visitors": 1, "pageviews": 2, "bounce_percentage": 0, "duration": 6000},
        "previous": {"visitors": 1, "pageviews": 2, "bounce_percentage": 1, "duration": 5500},
    }
    with pytest.raises(BadRequest, match=r"\Aprevious: expected start and end"):
        summary(period[0], ("previous", "true"))


@pytest.mark.parametrize(("interval", "end"), [("hour", "2024-04-20"), ("minute", "2024-01-03")])
@pytest.mark.parametrize("filters", [[], [("path[contains]", "/")]])
def test_many_buckets_that_begin_within_a_segment(
    interval: str, end: str, filters: list[tuple[str, str]]
) -> None:
    period = [("start", "2024-01-01T13:00:00Z"), ("end", f"{end}T12:59:59Z")]
    found = answer(
        snapshot_of(VIEWS, [], Cuts((4,))),
        "summary",
        [*period, *filters, ("interval", interval)],
        now_ms=NOON + 7_200_000,
    )
    assert isinstance(found, dict)
    first, *others = found["interval"]
    assert first["date"] == "2024-01-01T13:00:00+00:00"
    assert (first["pageviews"], first["duration"]) == (2, 6000)
    assert len(others) > 2_500
    assert not any(other["pageviews"] for other in others)


def test_a_series_that_ends_before_the_first_view_that_counts_is_empty() -> None:
    """Also where the part of that view has earlier ones, which a rule leaves out."""
    rules = [query_from([("os", "Unknown")])]
    reader = reader_of(snapshot_of(VIEWS, []), SOURCES, rules)
    query = [("end", "2024-01-01T12:30:00Z"), ("interval", "hour")]
    found = answer(reader, "summary", query, now_ms=NOON + 7_200_000)
    assert found == {"current": NONE, "interval": []}


def test_empty_buckets_are_included() -> None:
    assert summary(("interval", "hour"), ("end", "2024-01-01T14:30:00Z"))["interval"] == [
        {
            "date": "2024-01-01T12:00:00+00:00",
            "visitors": 1,
            "pageviews": 2,
            "bounce_percentage": 1,
            "duration": 5500,
        },
        {
            "date": "2024-01-01T13:00:00+00:00",
            "visitors": 1,
            "pageviews": 2,
            "bounce_percentage": 0,
            "duration": 6000,
        },
        {"date": "2024-01-01T14:00:00+00:00", **NONE},
    ]


def test_the_first_and_last_bucket_count_only_the_period() -> None:
    rows = summary(
        ("interval", "hour"), ("start", "2024-01-01T12:00:05Z"), ("end", "2024-01-01T13:00:00Z")
    )["interval"]
    assert [row["pageviews"] for row in rows] == [1, 1]


@pytest.mark.parametrize(
    ("query", "dates"),
    [
        # From the first hit, whether it passes or not, until now.
        ([("os", "Linux")], ["12:00:00+00:00", "13:00:00+00:00", "14:00:00+00:00"]),
        (
            [("start", "2024-01-01T16:00:00+03:30")],
            ["16:00:00+03:30", "17:00:00+03:30"],
        ),
        (
            [("start", "2024-01-01T16:00:00+03:30"), ("timezone", "Europe/Berlin")],
            ["13:00:00+01:00", "14:00:00+01:00", "15:00:00+01:00"],
        ),
        ([("end", "2024-01-01T11:00:00Z")], []),
        ([("start", "2024-01-01T15:00:00Z")], []),
    ],
)
def test_missing_bounds(query: list[tuple[str, str]], dates: list[str]) -> None:
    rows = summary(("interval", "hour"), *query)["interval"]
    assert [row["date"].removeprefix("2024-01-01T") for row in rows] == dates


def test_a_website_without_hits() -> None:
    empty = snapshot_of([], [])
    assert answer(empty, "summary", [("interval", "day")]) == {"current": NONE, "interval": []}
    period = [("start", "2024-01-01T00:00:00Z"), ("end", "2024-01-01T23:59:59Z")]
    assert answer(empty, "summary", [*period, ("interval", "day"), ("previous", "true")]) == {
        "current": NONE,
        "previous": NONE,
        "interval": [{"date": "2024-01-01T00:00:00+00:00", **NONE}],
    }


def test_a_view_with_matching_properties_counts_once() -> None:
    events = [event(0, 1, a="x", b="x"), event(1, 1, a="x")]
    found = answer(snapshot_of(VIEWS, events), "summary", [("prop_value", "x")])
    assert found["current"]["pageviews"] == 1


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        (("interval", "year"), "interval: expected one of minute, hour, day, week, month"),
        (("interval", ""), "interval: expected one of minute, hour, day, week, month"),
        (("timezone", "Mars"), "timezone: expected an IANA time zone such as Europe/Berlin"),
    ],
)
def test_unknown_values_are_rejected(parameter: tuple[str, str], message: str) -> None:
    with pytest.raises(BadRequest) as rejection:
        summary(parameter)
    assert str(rejection.value) == message
