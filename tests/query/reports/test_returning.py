from datetime import UTC, datetime, tzinfo
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from support.query.oracle import Entry
from support.query.snapshots import Cuts, MadeDay, answer, snapshot_of

BERLIN = ZoneInfo("Europe/Berlin")
NOW = "2024-08-07T15:00:00Z"
"""A Wednesday."""
DAY_MS = 86_400_000

VISITORS = {
    # Three people: one comes every day, one each Thursday, and one once.
    "2024-07-29": ["new"],
    "2024-07-30": ["day"],
    "2024-08-01": ["midweek", "new"],
    "2024-08-03": ["day", "new"],
    "2024-08-05": ["week"],
    "2024-08-07": ["day", "week"],
}


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def views(visitors: dict[str, list[str]] = VISITORS, **texts: Any) -> list[Entry]:
    numbers = count(1)
    return [
        {
            "id": number,
            "visit": number,
            "time_ms": ms(f"{day}T12:00:00Z") + number,
            "p": True,
            "q": True,
            "duration_ms": 0,
            "path": "/",
            "since": since,
            **texts,
        }
        for day, classes in visitors.items()
        for since in classes
        for number in [next(numbers)]
    ]


def summary(
    *query: tuple[str, str],
    of: list[Entry] | None = None,
    zone: tzinfo | None = UTC,
    **snapshot: Any,
) -> dict[str, Any]:
    found = answer(
        snapshot_of(views() if of is None else of, [], **snapshot),
        "summary",
        [("visits", "true"), *query],
        now_ms=ms(NOW),
        returning_zone=zone,
    )
    assert isinstance(found, dict)
    return found


def period(start: str, end: str) -> list[tuple[str, str]]:
    return [("start", start), ("end", end)]


def visitors(figures: dict[str, Any]) -> dict[str, int]:
    return {
        name.removesuffix("_visitors"): value
        for name, value in figures.items()
        if name.endswith("_visitors")
    }


@pytest.mark.parametrize(
    ("start", "end", "zone", "expected"),
    [
        # A week, whose month begins on Thursday.
        (
            "2024-07-29T00:00:00Z",
            "2024-08-04T23:59:59Z",
            UTC,
            {"new": 3, "returning": 3, "week": 3},
        ),
        ("2024-07-29T00:00:00Z", "2024-08-04T23:59:59.998Z", UTC, {"new": 3, "returning": 3}),
        ("2024-07-29T00:00:01Z", "2024-08-04T23:59:59Z", UTC, {"new": 3, "returning": 3}),
        ("2024-07-29T00:00:00Z", "2024-08-05T00:00:00Z", UTC, {"new": 3, "returning": 3}),
        ("2024-07-29T00:00:00Z", "2024-08-04T23:59:59Z", BERLIN, {"new": 3, "returning": 3}),
        (
            "2024-07-29T00:00:00+02:00",
            "2024-08-04T23:59:59+02:00",
            BERLIN,
            {"new": 3, "returning": 3, "week": 3},
        ),
        # A month.
        (
            "2024-07-01T00:00:00Z",
            "2024-07-31T23:59:59Z",
            UTC,
            {"new": 1, "returning": 1, "month": 1},
        ),
        # The present week and month, so far.
        (
            "2024-08-05T00:00:00Z",
            "2024-08-07T14:00:00Z",
            UTC,
            {"new": 0, "returning": 3, "week": 2},
        ),
        (
            "2024-08-01T00:00:00Z",
            "2024-08-31T23:59:59Z",
            UTC,
            {"new": 2, "returning": 5, "month": 3},
        ),
        ("2024-08-05T00:00:00Z", "2024-08-06T12:00:00Z", UTC, {"new": 0, "returning": 1}),
        # All days.
        ("2024-01-01T00:00:00Z", "2024-12-31T23:59:59Z", UTC, {"new": 3, "returning": 6}),
    ],
)
@pytest.mark.parametrize("cuts", [Cuts(), Cuts((3, 6)), Cuts((3, 6), (True,) * 3, 2)])
def test_the_visitors_of_a_week_or_month_count_once(
    start: str, end: str, zone: tzinfo, expected: dict[str, int], cuts: Cuts
) -> None:
    found = summary(*period(start, end), zone=zone, cuts=cuts)
    assert visitors(found["current"]) == expected


def test_without_bounds_there_is_no_week() -> None:
    assert visitors(summary()["current"]) == {"new": 3, "returning": 6}


def test_the_period_before_has_its_own_figures() -> None:
    week = period("2024-07-29T00:00:00Z", "2024-08-04T23:59:59Z")
    found = summary(*week, ("previous", "true"))
    assert visitors(found["previous"]) == {"new": 0, "returning": 0, "week": 0}


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (
            "week",
            [
                {"new": 2, "returning": 1},
                {"new": 0, "returning": 0, "week": 0},
                {"new": 0, "returning": 0, "week": 0},
                {"new": 0, "returning": 0, "week": 0},
                {"new": 3, "returning": 3, "week": 3},
                {"new": 0, "returning": 3, "week": 2},
            ],
        ),
        ("month", [{"new": 3, "returning": 2, "month": 1}, {"new": 2, "returning": 5, "month": 3}]),
    ],
)
def test_weeks_and_months_of_a_chart(interval: str, expected: list[dict[str, int]]) -> None:
    of = views({"2024-07-05": ["new", "new", "month"], **VISITORS})
    if interval == "month":
        of = [view for view in of if view["id"] > 3]
        start = "2024-07-01T00:00:00Z"
        expected = [{"new": 1, "returning": 1, "month": 1}, expected[1]]
    else:
        start = "2024-07-05T00:00:00Z"
    for cuts in (Cuts(), Cuts((2, 5), (True,) * 3), Cuts((2, 5), (True,) * 3, 2)):
        found = summary(
            ("interval", interval), *period(start, "2024-08-31T23:59:59Z"), of=of, cuts=cuts
        )
        assert [visitors(row) for row in found["interval"]][: len(expected)] == expected
        later = [visitors(row) for row in found["interval"]][len(expected) :]
        assert later == [{"new": 0, "returning": 0, "week": 0}] * len(later)


def test_days_and_weeks_elsewhere_have_no_visitors_of_a_week() -> None:
    query = period("2024-07-29T00:00:00Z", "2024-08-04T23:59:59Z")
    for interval, zone in (("day", UTC), ("month", UTC), ("week", BERLIN)):
        found = summary(*query, ("interval", interval), zone=zone)["interval"]
        assert {name for row in found for name in visitors(row)} == {"new", "returning"}


@pytest.mark.parametrize(("unknown", "is_defined"), [(0, True), (1, True), (2, False)])
def test_one_visitor_in_a_hundred_may_be_unknown(unknown: int, *, is_defined: bool) -> None:
    of = views({"2024-07-29": ["new"] * (198 - unknown) + [""] * unknown})
    found = summary(*period("2024-07-29T00:00:00Z", "2024-08-04T23:59:59Z"), of=of)
    names = {"new", "returning", "week"} if is_defined else set()
    assert visitors(found["current"]).keys() == names


def test_only_the_first_view_of_the_day_counts() -> None:
    of = [*views(), *({**view, "p": False, "id": view["id"] + 100} for view in views())]
    of[-1]["since"] = ""
    assert visitors(summary(of=of)["current"]) == {"new": 3, "returning": 6}


@pytest.mark.parametrize(
    ("name", "has_figures"),
    [
        ("path", False),
        ("entry_page", False),
        ("exit_page[contains]", False),
        ("prop_name", False),
        ("prop_value", False),
        ("goal", False),
        ("visit_bounce", False),
        ("visit_views[gte]", False),
        ("visit_duration[gte]", False),
        ("duration[lte]", False),
        ("country", True),
        ("visit_utm_source", True),
    ],
)
def test_there_are_no_figures_under_filters_on_pages_properties_goals_and_behaviour(
    name: str, *, has_figures: bool
) -> None:
    values = {"country": "unknown", "visit_utm_source": "", "goal": "a", "visit_bounce": "true"}
    value = "1" if name.endswith("te]") else values.get(name, "/")
    found = summary((name, value), *period("2024-07-29T00:00:00Z", "2024-08-04T23:59:59Z"))
    assert bool(visitors(found["current"])) is has_figures


def test_new_visitors_are_those_whose_visit_began_with_their_first_view() -> None:
    of = views()
    later = {**of[0], "id": 50, "time_ms": ms("2024-07-29T12:05:00Z"), "p": False, "since": "day"}
    of.append(later)
    for which, found_visitors, pageviews in (("new", 3, 4), ("returning", 6, 6)):
        current = summary(("visitor[eq]", which), of=of)["current"]
        assert (current["visitors"], current["pageviews"]) == (found_visitors, pageviews)
        assert current["visits"] == found_visitors


def test_rollups_know_the_visitors_of_a_week() -> None:
    of = views()
    of.append({**of[1], "id": 50, "p": False, "country": "DE"})
    days = []
    for day in ("2024-07-29", "2024-07-30"):
        first_ms = ms(f"{day}T00:00:00Z")
        gone = [view for view in of if view["time_ms"] // DAY_MS == first_ms // DAY_MS]
        days.append(MadeDay(first_ms // DAY_MS, (first_ms, first_ms + DAY_MS - 1), gone, []))
    rest = [view for view in of if view["time_ms"] >= ms("2024-08-01T00:00:00Z")]
    week = period("2024-07-29T00:00:00Z", "2024-08-04T23:59:59Z")
    found = summary(("interval", "week"), *week, of=rest, days=days)
    expected = {"new": 3, "returning": 3, "week": 3}
    assert visitors(found["current"]) == visitors(found["interval"][0]) == expected
    cut = period("2024-07-29T12:00:00Z", "2024-08-04T23:59:59Z")
    assert visitors(summary(*cut, of=rest, days=days)["current"]) == {}
    by_country = summary(("country", "unknown"), *week, of=rest, days=days)["current"]
    assert visitors(by_country) == {}


def test_there_are_no_figures_where_returning_visitors_are_off() -> None:
    assert visitors(summary(zone=None)["current"]) == {}


def test_visitors_of_many_short_spans() -> None:
    of = [view for view in views() if view["since"] != "midweek"]
    bounds = period("2024-07-29T00:00:00Z", "2024-08-07T23:59:59Z")
    for cuts in (Cuts(), Cuts((3,), (True, True), 2)):
        found = summary(("interval", "hour"), *bounds, of=of, cuts=cuts)["interval"]
        assert len(found) == 240
        counted = {row["date"][:13]: visitors(row) for row in found if row["visitors"]}
        assert counted == {
            f"{day}T12": {
                "new": classes.count("new"),
                "returning": len(classes) - classes.count("new") - classes.count("midweek"),
            }
            for day, classes in VISITORS.items()
        }
