"""The hours since a moment against the same hours of earlier weeks."""

from datetime import UTC, datetime
from itertools import count
from random import Random
from statistics import mean, median
from typing import Any

import pytest
from support.query.list_reader import ListReader
from support.query.oracle import Entry, Oracle
from support.query.readers import reader_of
from support.query.snapshots import SOURCES, Cuts, MadeDay, query_from, snapshot_of

from medamad.domain.errors import BadRequest
from medamad.domain.goals import Definitions, Goal
from medamad.query.comparison import (
    NOT_FOUND,
    PAGEVIEWS,
    TIME,
    USUAL,
    VISITS,
    ComparisonOptions,
    Metric,
    comparison,
    parse_metrics,
    parse_share,
)
from medamad.query.request import Query

SINCE = datetime(2024, 4, 10, 9, 30, tzinfo=UTC)
HOURS = 5
SINCE_MS = int(SINCE.timestamp() * 1000)
NOW_MS = SINCE_MS + HOURS * 3_600_000
WEEK_MS = 7 * 86_400_000
ORDER = Goal(id="order", name="Order", event="action", value="order")
GOALS = Definitions((ORDER, Goal(id="thanks", name="Thank you", path="/thanks")))
ALL = parse_metrics(None, GOALS, keeps_visits=True, has_visitors=True)


def traffic(
    per_week: list[int], *, orders: int = 3, lost: int = 0
) -> tuple[list[Entry], list[Entry]]:
    """Return views and events: so many visits in the hours of each week, of which the last is now.

    Every third visit has a second view, and some views are outside the hours. In the last week,
    there are so many orders and pages not found; before, there are 3 and none.
    """
    rng, ids = Random(5), count(1)  # noqa: S311 - the same each time
    views: list[Entry] = []
    events: list[Entry] = []
    for back, visits in enumerate(reversed(per_week)):
        begin_ms, is_now = SINCE_MS - back * WEEK_MS, back == 0
        times = [begin_ms + rng.randrange(1, HOURS * 3_600_000 - 60_000) for _ in range(visits)]
        times += [begin_ms - 3_600_000 - rng.randrange(3_600_000) for _ in range(7)]
        of_week = []
        for number, time_ms in enumerate(times):
            visit = {"time_ms": time_ms, "p": True, "q": True, "path": "/", "first": number}
            of_week.append({**visit, "duration_ms": rng.randrange(1_000, 90_000)})
            if number % 3 == 0:
                of_week.append(
                    {**visit, "time_ms": time_ms + 30_000, "p": False, "duration_ms": 2_000}
                )
        for event in range((orders if is_now else 3) + (lost if is_now else 0)):
            is_order = event < (orders if is_now else 3)
            properties = [("action", "order")] if is_order else [("404", "/gone")]
            events.append({"time_ms": begin_ms + 1_000, "view": None, "properties": properties})
        views += [{**view, "week": back} for view in of_week]
    views.sort(key=lambda view: view["time_ms"])
    events.sort(key=lambda event: event["time_ms"])
    firsts: dict[tuple[int, int], int] = {}
    for view in views:
        view["id"] = next(ids)
        key = (view.pop("week"), view.pop("first"))
        view["visit"] = firsts.setdefault(key, view["id"])
    return views, events


def compared(
    views: list[Entry],
    events: list[Entry],
    metrics: list[Metric] = ALL,
    worse_than: float | None = None,
) -> Any:
    """Return the content as two engines find it."""
    options = ComparisonOptions(
        since_ms=SINCE_MS, now_ms=NOW_MS, metrics=metrics, worse_than=worse_than
    )
    snapshot = snapshot_of(views, events, Cuts((20, 60), (True, False)))
    found = comparison(reader_of(snapshot, SOURCES), Query(), options=options).content
    seen = Oracle(views, events, now_ms=NOW_MS, goals=GOALS).views
    again = comparison(ListReader(seen, events, SOURCES), Query(), options=options).content
    assert again == found
    return found


def row(found: Any, name: str) -> Any:
    (wanted,) = (each for each in found["metrics"] if each["metric"] == name)
    return wanted


def hours(entries: list[Entry], back: int) -> list[Entry]:
    begin_ms, end_ms = SINCE_MS - back * WEEK_MS, NOW_MS - back * WEEK_MS
    return [entry for entry in entries if begin_ms <= entry["time_ms"] <= end_ms]


def test_each_metric_is_set_against_the_mean_of_the_same_hours() -> None:
    views, events = traffic([40, 42, 39, 41, 38, 43, 40, 40, 40, 44], orders=5, lost=2)
    found = compared(views, events)
    assert (found["since"], found["until"]) == ("2024-04-10T09:30:00Z", "2024-04-10T14:30:00Z")
    assert found["earlier_weeks"] == 8
    assert [each["metric"] for each in found["metrics"]] == [
        *("visits", "visitors", "pageviews", "bounces", "time", "not-found"),
        *("Order", "Thank you"),
    ]
    spans = [hours(views, back) for back in range(9)]
    for name, of in {
        "visits": lambda span: len({view["visit"] for view in span}),
        "visitors": lambda span: sum(view["p"] for view in span),
        "pageviews": len,
        "time": lambda span: median(view["duration_ms"] for view in span),
    }.items():
        now, *earlier = map(of, spans)
        before = mean(earlier)
        told = row(found, name)
        assert told["now"] == pytest.approx(now, abs=1)
        assert told["before"] == pytest.approx(before, abs=1)
        assert told["change"] == pytest.approx((now - before) / before, abs=0.001)
        assert "is_worse" not in told
    assert row(found, "Order") == {
        "metric": "Order",
        "goal": "order",
        "now": 5,
        "before": 3.0,
        "change": 0.6667,
        "by_chance": True,
    }
    assert row(found, "not-found") == {
        "metric": "not-found",
        "now": 2,
        "before": 0.0,
        "change": None,
        "by_chance": True,
    }
    assert row(found, "time")["by_chance"] is None


USUALLY = [100, 104, 97, 101, 99, 103, 98, 100]


@pytest.mark.parametrize(
    ("now", "by_chance", "worse"),
    [(100, True, []), (88, True, []), (60, False, ["visits", "pageviews"]), (160, False, [])],
)
def test_less_is_worse_beyond_the_share_unless_chance_explains_it(
    now: int, by_chance: bool, worse: list[str]
) -> None:
    found = compared(*traffic([*USUALLY, now]), metrics=[VISITS, PAGEVIEWS], worse_than=0.1)
    assert row(found, "visits")["by_chance"] is by_chance
    assert [each["metric"] for each in found["metrics"] if each["is_worse"]] == worse


def test_a_change_within_the_share_is_not_worse() -> None:
    found = compared(*traffic([*USUALLY, 60]), metrics=[VISITS], worse_than=0.45)
    assert row(found, "visits") == {
        "metric": "visits",
        "now": 60,
        "before": 100.25,
        "change": -0.4015,
        "by_chance": False,
        "is_worse": False,
    }


def test_more_pages_not_found_are_worse_although_there_were_none() -> None:
    found = compared(*traffic([*USUALLY, 100], lost=30), metrics=[NOT_FOUND], worse_than=0.2)
    assert row(found, "not-found") == {
        "metric": "not-found",
        "now": 30,
        "before": 0.0,
        "change": None,
        "by_chance": False,
        "is_worse": True,
    }


def test_time_is_worse_without_a_test() -> None:
    views, events = traffic([*USUALLY, 100])
    for view in hours(views, 0):
        view["duration_ms"] = 1_000
    found = compared(views, events, metrics=[TIME], worse_than=0.2)
    told = row(found, "time")
    assert (told["now"], told["by_chance"], told["is_worse"]) == (1_000, None, True)


def test_with_few_weeks_what_is_beyond_poissons_variance_is_unknown() -> None:
    found = compared(*traffic([100, 100, 20]), metrics=[VISITS], worse_than=0.2)
    assert found["earlier_weeks"] == 2
    assert (row(found, "visits")["by_chance"], row(found, "visits")["is_worse"]) == (None, True)


def test_without_earlier_weeks_nothing_is_told() -> None:
    found = compared(*traffic([50]), metrics=[VISITS, TIME], worse_than=0.2)
    assert row(found, "visits") == {
        "metric": "visits",
        "now": 50,
        "before": None,
        "change": None,
        "by_chance": None,
        "is_worse": False,
    }


def test_days_to_which_exclusions_do_not_apply_are_compared_with_nothing() -> None:
    views, events = traffic([40, 42, 39, 41, 40])
    number = SINCE_MS // 86_400_000 - 1
    span = (number * 86_400_000, (number + 1) * 86_400_000 - 1)
    gone = [{**views[-1], "id": len(views) + 1, "visit": len(views) + 1, "time_ms": span[0]}]
    snapshot = snapshot_of(views, events, days=[MadeDay(number, span, gone, [])])
    options = ComparisonOptions(since_ms=span[0], now_ms=NOW_MS, metrics=ALL[:3])

    def weeks(*rules: Query) -> int:
        reader = reader_of(snapshot, SOURCES, rules)
        found = comparison(reader, Query(), options=options).content
        return int(found["earlier_weeks"])

    assert weeks() == 3
    assert weeks(query_from([("browser", "None of them"), ("end", "2024-01-01T00:00:00Z")])) == 3
    assert weeks(query_from([("browser", "None of them")])) == 0


def test_at_most_one_in_twenty_comparisons_without_a_change_is_worse() -> None:
    rng = Random(11)  # noqa: S311 - the same each time
    seen = 0
    for _ in range(60):
        visits = [sum(rng.random() < 0.03 for _ in range(1_000)) for _ in range(10)]
        metrics = [VISITS]
        options = ComparisonOptions(
            since_ms=SINCE_MS, now_ms=NOW_MS, metrics=metrics, worse_than=0.0
        )
        reader = ListReader(Oracle(*traffic(visits), now_ms=NOW_MS).views, [], SOURCES)
        (told,) = comparison(reader, Query(), options=options).content["metrics"]
        seen += told["by_chance"] is not True
    assert seen <= 3 + 5  # beyond, by three standard deviations


@pytest.mark.parametrize(
    ("since_ms", "reason"),
    [
        (NOW_MS + 1_000, "since: expected a time that is not in the future"),
        (NOW_MS - WEEK_MS, "since: expected a time in the last seven days"),
    ],
)
def test_other_moments_are_rejected(since_ms: int, reason: str) -> None:
    reader = ListReader([], [], SOURCES)
    options = ComparisonOptions(since_ms=since_ms, now_ms=NOW_MS, metrics=[VISITS])
    with pytest.raises(BadRequest, match=f"^{reason}$"):
        comparison(reader, Query(), options=options)


def test_metrics_are_named() -> None:
    def named(text: str, **counted: bool) -> list[str]:
        what = {"keeps_visits": True, "has_visitors": True} | counted
        return [each.name for each in parse_metrics(text, GOALS, **what)]

    assert named("order, time,THANK YOU,thanks") == ["Order", "time", "Thank you"]
    assert named("not-found") == ["not-found"]
    assert [
        each.name
        for each in parse_metrics(None, Definitions(), keeps_visits=False, has_visitors=False)
    ] == ["pageviews", "time", "not-found"]
    names = ", ".join(each.name for each in USUAL)
    with pytest.raises(
        BadRequest, match=f"^metric: expected some of {names}, or goals by their names: x$"
    ):
        named("time,x")
    with pytest.raises(BadRequest, match=r"^metric: visits are not counted \(see the config"):
        named("bounces", keeps_visits=False)
    with pytest.raises(BadRequest, match=r"^metric: visitors are not counted \(see the config"):
        named("visitors", has_visitors=False)


def test_shares() -> None:
    assert [parse_share(text, "worse_than") for text in ("20%", "0.2", "0", "150%", "12.5%")] == [
        *(0.2, 0.2, 0.0, 1.5, 0.125)
    ]
    for text in ("", "%", "-1", "1e3", "20 %", "x", "20", "1.5"):
        with pytest.raises(BadRequest, match=r"^worse_than: expected a share such as 20% or 0\.2$"):
            parse_share(text, "worse_than")
