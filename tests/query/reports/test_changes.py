from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query.list_reader import ListReader
from support.query.naive_filters import Pairs
from support.query.oracle import Entry, Oracle
from support.query.random_queries import GOALS, MOMENTS, RandomTraffic
from support.query.readers import reader_of
from support.query.snapshots import SOURCES, Cuts, MadeDay, changes_between, query_from, snapshot_of

from medamad.domain.errors import BadRequest
from medamad.query.change_counts import METRICS, OF_GOAL
from medamad.query.request import Gap

MONDAY = datetime(2024, 4, 1, tzinfo=UTC)
WEEK = timedelta(days=7)
WEEKS = 12
UNCUT = Cuts()
WEEK_MS = 7 * 86_400_000


def content_of(
    views: list[Entry],
    events: list[Entry],
    query: Pairs,
    *,
    now_ms: int,
    cuts: Cuts = UNCUT,
    is_long: bool = False,
) -> Any:
    """Return what changed, as two engines and the oracle find it.

    Of long traffic, which would take them long, the oracle sees the last weeks, and one engine all.
    """
    seen = [view for view in views if not is_long or view["time_ms"] > now_ms - 3 * WEEK_MS]
    oracle = Oracle(seen, events, source_of=SOURCES.name_of, now_ms=now_ms, goals=GOALS)
    result = changes_between(snapshot_of(views, events, cuts), query, now_ms=now_ms)
    found = result.content
    expected = oracle.changes(query)
    if not is_long:
        reader = ListReader(oracle.views, events, SOURCES)
        in_lists = changes_between(reader, query, now_ms=now_ms).content
        assert without_chance(in_lists) == expected
        # Where a whole part has no visits, only the snapshot says that days are unknown.
        assert result.gaps or in_lists == found
    if result.gaps and len(found["dimensions"]) < len(expected["dimensions"]):
        # Which visits of such a day reached a goal is unknown, too.
        assert expected["dimensions"].pop()["dimension"] == "goal"
    assert without_chance(found) == expected
    for pair in found["pairs"]:
        parts = [(part["dimension"], part["name"]) for part in pair["parts"]]
        assert pair == {"parts": pair["parts"], **oracle.pair(query, parts)}
    return found


def without_chance(found: Any) -> Any:
    """Return what changed as far as the oracle knows it."""
    if isinstance(found, dict):
        left_out = ("by_chance", "pairs", "earlier_weeks", "compared_with")
        return {key: without_chance(each) for key, each in found.items() if key not in left_out}
    return [without_chance(each) for each in found] if isinstance(found, list) else found


def random_query(traffic: RandomTraffic) -> Pairs:
    rng = traffic.rng
    kept = [
        (name, text)
        for name, text in traffic.query("pages")
        if name not in {"start", "end", "limit", "offset", "conversions"}
    ]
    times_ms = sorted(traffic.time_ms() for _ in range(4))
    bounds = [("compare_start", 0), ("compare_end", 1), ("start", 2), ("end", 3)]
    chance = rng.random()
    if chance < 0.3:
        bounds = [("start", 0), ("end", 1), ("compare_start", 2), ("compare_end", 3)]
    elif chance < 0.6:
        # They overlap.
        bounds = [("compare_start", 0), ("compare_end", 2), ("start", 1), ("end", 3)]
    texts = {name: traffic.written(times_ms[place]) for name, place in bounds}
    if rng.random() < 0.5:
        del texts["compare_start"], texts["compare_end"]
    metric = rng.choice(METRICS)
    if metric in OF_GOAL or rng.random() < 0.4:
        goals = [goal for goal in GOALS.goals if goal.revenue or metric != "revenue"]
        kept.append(("conversions", rng.choice(goals).id))
    if rng.random() < 0.5:
        kept.append(("limit", rng.choice(("1", "2", "100"))))
    return [*texts.items(), ("metric", metric), *kept]


@given(
    traffic=st.builds(
        RandomTraffic,
        rng=st.randoms(use_true_random=False),
        moment=st.sampled_from(MOMENTS),
        interval=st.sampled_from(("hour", "day", "week", "month")),
    ),
    sizes=st.tuples(st.integers(0, 25), st.integers(0, 10)),
    cuts=st.builds(
        Cuts,
        places=st.lists(st.integers(1, 24), max_size=3).map(tuple),
        counted=st.tuples(*[st.booleans()] * 4),
        grouped=st.integers(0, 3),
        in_parts=st.integers(0, 4),
    ),
)
@settings(max_examples=settings.default.max_examples * 3)
def test_parts_add_up_to_the_whole_for_all_filters_and_periods(
    traffic: RandomTraffic, sizes: tuple[int, int], cuts: Cuts
) -> None:
    views = traffic.views(sizes[0])
    events = traffic.events(sizes[1], views)
    query = random_query(traffic)
    try:
        found = content_of(views, events, query, now_ms=traffic.now_ms, cuts=cuts)
    except BadRequest:
        # Whole seconds may make periods overlap, and a period may not have begun.
        return
    for dimension in found["dimensions"]:
        listed = [*dimension["parts"], dimension["others"]]
        for figure in ("before", "now", "difference"):
            assert sum(part[figure] for part in listed) == found[figure]


# A website with a change


def week(number: int) -> dict[str, datetime]:
    """Return the bounds of a week; that of number 0 begins on MONDAY."""
    return {"start": MONDAY + number * WEEK, "end": MONDAY + (number + 1) * WEEK}


def bounds(number: int, prefix: str = "") -> Pairs:
    span = week(number)
    return [
        (f"{prefix}start", span["start"].isoformat()),
        (f"{prefix}end", (span["end"] - timedelta(milliseconds=1)).isoformat()),
    ]


NOW_MS = int((MONDAY + WEEK).timestamp() * 1000)


def visits_of_week(
    rng: Random, number: int, per_hundred: dict[tuple[str, str], int]
) -> Iterator[Entry]:
    """Return visits of one view, as many as there are for each referrer and page."""
    begin_ms = int(week(number)["start"].timestamp() * 1000)
    for (referrer, path), count in per_hundred.items():
        for _ in range(count):
            yield {
                "time_ms": begin_ms + rng.randrange(WEEK_MS),
                "p": True,
                "q": True,
                "duration_ms": 0,
                "path": path,
                "referrer": referrer,
                "browser": "Firefox",
                "os": "Linux",
                "device": rng.choice(("Mobile", "Desktop")),
                "country": rng.choice(("DE", "AT")),
            }


USUAL = {
    ("google.com", "/guide"): 50,
    ("google.de", "/"): 40,
    ("t.co", "/"): 40,
    ("", "/"): 60,
    ("", "/guide"): 20,
}
CHANGED = {**USUAL, ("google.com", "/guide"): 4}


def traffic(
    now: dict[tuple[str, str], int],
    weeks: int = WEEKS,
    usual: Mapping[tuple[str, str], int] = USUAL,
) -> list[Entry]:
    """Return the views of some weeks as usual, and of one more."""
    rng = Random(3)  # noqa: S311 - the same each time
    hits = [
        hit
        for number in range(-weeks - 1, 1)
        for hit in visits_of_week(
            rng,
            number,
            now
            if number == 0
            else {what: max(count + rng.randint(-4, 4), 0) for what, count in usual.items()},
        )
    ]
    hits.sort(key=lambda hit: hit["time_ms"])
    first = {**hits[0], "time_ms": int(week(-weeks - 1)["start"].timestamp() * 1000)}
    return [{**hit, "id": id_, "visit": id_} for id_, hit in enumerate([first, *hits], 1)]


def part(found: Any, dimension: str, name: str) -> Any:
    (parts,) = (each["parts"] for each in found["dimensions"] if each["dimension"] == dimension)
    (wanted,) = (each for each in parts if each["name"] == name)
    return wanted


def told(
    now: dict[tuple[str, str], int], query: Pairs, *, now_ms: int = NOW_MS, weeks: int = WEEKS
) -> Any:
    cuts = Cuts((500, 1500), (True, False))
    return content_of(traffic(now, weeks), [], query, now_ms=now_ms, cuts=cuts, is_long=True)


def test_a_change_is_told_by_its_parts_and_the_pair_that_explains_it() -> None:
    found = told(CHANGED, bounds(0))
    assert found["by_chance"] is False
    assert found["earlier_weeks"] == WEEKS
    assert found["compared_with"] == {
        "start": "2024-03-25T00:00:00+00:00",
        "end": "2024-03-31T23:59:59.999+00:00",
    }
    assert part(found, "source", "Google")["by_chance"] is False
    assert part(found, "entry_page", "/guide")["by_chance"] is False
    assert part(found, "source", "Twitter")["by_chance"] is True
    assert part(found, "device", "Mobile")["by_chance"] is True
    (pair,) = found["pairs"]
    assert {each["dimension"]: each["name"] for each in pair["parts"]} == {
        "source": "Google",
        "entry_page": "/guide",
    }
    assert pair["now"] == 4


def test_parts_with_nearly_all_visits_explain_nothing() -> None:
    # All visits are without a campaign, and fall as much as those of Google to the guide.
    usual = {what: 10 * count for what, count in USUAL.items()}
    found = content_of(
        traffic({**usual, ("google.com", "/guide"): 40}, usual=usual),
        [],
        bounds(0),
        now_ms=NOW_MS,
        is_long=True,
    )
    assert part(found, "campaign", "")["by_chance"] is False
    first = found["pairs"][0]["parts"]
    assert {each["dimension"]: each["name"] for each in first} == {
        "source": "Google",
        "entry_page": "/guide",
    }


def test_nothing_is_told_of_a_week_as_usual() -> None:
    found = told(USUAL, bounds(0))
    assert found["by_chance"] is True
    assert not found["pairs"]
    parts = [each for dimension in found["dimensions"] for each in dimension["parts"]]
    assert {each["by_chance"] for each in parts} == {True}


def test_parts_can_change_although_the_total_does_not() -> None:
    moved = {**USUAL, ("google.de", "/"): 0, ("t.co", "/"): 80}
    found = told(moved, bounds(0))
    assert found["by_chance"] is True
    assert part(found, "source", "Twitter")["by_chance"] is False


def test_with_few_earlier_weeks_it_is_unknown_whether_chance_explains_a_large_difference() -> None:
    found = told(CHANGED, bounds(0), weeks=3)
    assert found["earlier_weeks"] == 3
    assert part(found, "source", "Google")["by_chance"] is None
    assert part(found, "device", "Desktop")["by_chance"] is True
    assert not found["pairs"]


def test_as_much_of_the_previous_period_is_compared_as_has_passed_of_this_one() -> None:
    noon_ms = int((MONDAY + timedelta(days=2, hours=12)).timestamp() * 1000) - 1
    found = told(USUAL, bounds(0), now_ms=noon_ms)
    assert found["compared_with"] == {
        "start": "2024-03-25T00:00:00+00:00",
        "end": "2024-03-27T11:59:59.999+00:00",
    }


def test_what_two_periods_share_is_no_change_and_makes_none_likelier() -> None:
    # Of eight days each, seven are in both; the test is that of the two others.
    start = (MONDAY - timedelta(days=1)).isoformat()
    overlapping = [
        *[("start", start), bounds(0)[1]],
        ("compare_start", (MONDAY - timedelta(days=2)).isoformat()),
        ("compare_end", (MONDAY + timedelta(days=6, milliseconds=-1)).isoformat()),
    ]
    usual = {what: 10 * count for what, count in USUAL.items()}
    views = traffic(usual, usual=usual)
    # No visits on the first of the two days, and half as many more on the last.
    first_ms, last_ms = (int((MONDAY + timedelta(days=d)).timestamp() * 1000) for d in (-2, 6))
    day_ms = WEEK_MS // 7
    views = [view for view in views if not first_ms <= view["time_ms"] < first_ms + day_ms // 2]
    found = content_of(views, [], overlapping, now_ms=NOW_MS, is_long=True)
    alone = [
        ("start", datetime.fromtimestamp(last_ms / 1000, UTC).isoformat()),
        bounds(0)[1],
        ("compare_start", (MONDAY - timedelta(days=2)).isoformat()),
        ("compare_end", (MONDAY - timedelta(days=1, milliseconds=1)).isoformat()),
    ]
    of_days = content_of(views, [], alone, now_ms=NOW_MS, is_long=True)
    assert found["difference"] == of_days["difference"] > 0
    assert found["now"] > 5 * of_days["now"]
    assert found["by_chance"] is of_days["by_chance"] is False


def test_a_longer_period_is_expected_to_have_more() -> None:
    two_weeks = [bounds(-1)[0], bounds(0)[1]]
    one_week = bounds(-2, "compare_")
    found = told(USUAL, [*two_weeks, *one_week])
    assert found["difference"] > 150
    assert found["by_chance"] is True


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ([], "start: required, as two periods are compared"),
        (bounds(0)[:1], "end: required, as two periods are compared"),
        ([*bounds(0), *bounds(-1, "compare_")[:1]], "compare_end: required, since the other bound"),
        ([*bounds(0), *bounds(-1, "compare_")[1:]], "compare_start: required, since the other"),
        (
            [*bounds(0), ("compare_start", "x"), ("compare_end", "x")],
            "compare_start: expected an RFC",
        ),
        (
            [*bounds(0), bounds(-1, "compare_")[0], bounds(0, "compare_")[1]],
            "compare_start: expected a period of which neither contains the other",
        ),
        (
            [*bounds(0), bounds(-1, "compare_")[0], bounds(-2, "compare_")[1]],
            "compare_start: expected a date-time that is not after compare_end",
        ),
        (bounds(1), "start: expected a date-time that is not in the future"),
        (
            [("start", "0001-01-01T00:00:00Z"), ("end", "2024-01-01T00:00:00Z")],
            "start: expected a previous period in the years 0001 to 9999",
        ),
        ([*bounds(0), ("metric", "conversions")], "conversions: required with this metric"),
        ([*bounds(0), ("metric", "revenue")], "conversions: required with this metric"),
        (
            [*bounds(0), ("metric", "revenue"), ("conversions", "a")],
            "conversions: expected a goal with revenue",
        ),
    ],
)
def test_periods_that_cannot_be_compared_are_rejected(query: Pairs, message: str) -> None:
    with pytest.raises(BadRequest, match=f"^{message}"):
        changes_between(snapshot_of([], []), query, now_ms=NOW_MS - 1)


def test_a_goal_is_reached_or_not() -> None:
    views = [{**view, "path": "/a" if view["id"] % 5 == 0 else "/"} for view in traffic(USUAL)]
    found = content_of(views, [], [*bounds(0), ("conversions", "a")], now_ms=NOW_MS, is_long=True)
    (goal,) = (each for each in found["dimensions"] if each["dimension"] == "goal")
    assert {each["name"] for each in goal["parts"]} == {"reached", "not reached"}
    query = [*bounds(0), ("conversions", "a"), ("metric", "conversions")]
    of_goal = content_of(views, [], query, now_ms=NOW_MS, is_long=True)
    assert of_goal["now"] == part(found, "goal", "reached")["now"] > 0


def orders(views: list[Entry], *amounts: str) -> list[Entry]:
    """Return an order in the visit of each view, with one of some amounts in turn."""
    return [
        {
            "view": view["id"],
            "time_ms": view["time_ms"] + 1,
            "properties": [("plan", amounts[number % len(amounts)])],
        }
        for number, view in enumerate(views)
    ]


REVENUE: Pairs = [("metric", "revenue"), ("conversions", "plan")]


def test_revenue_changes_with_the_visits_that_bring_it_in() -> None:
    views = traffic(CHANGED)
    found = content_of(
        views, orders(views, "12.50", "9.99"), [*bounds(0), *REVENUE], now_ms=NOW_MS, is_long=True
    )
    assert (found["currency"], found["by_chance"]) == ("EUR", False)
    assert part(found, "source", "Google")["by_chance"] is False
    assert part(found, "source", "Twitter")["by_chance"] is True
    (pair,) = found["pairs"]
    assert {each["name"] for each in pair["parts"]} == {"Google", "/guide"}


def test_a_few_large_amounts_are_no_change_of_revenue() -> None:
    # Orders of this week are as many, and as large, but for one of a thousand times the amount.
    views = traffic(USUAL)
    events = orders(views, "10")
    events[-1]["properties"] = [("plan", "10000")]
    found = content_of(views, events, [*bounds(0), *REVENUE], now_ms=NOW_MS, is_long=True)
    assert found["difference"] > found["before"]
    assert found["by_chance"] is True


def test_amounts_of_any_size_add_up_exactly() -> None:
    views = traffic(USUAL, weeks=4)
    events = orders(views, "1e300", "-0.000000000000001", "3", "no amount")
    found = content_of(views, events, [*bounds(0), *REVENUE], now_ms=NOW_MS, is_long=True)
    assert Fraction(found["now"]) % 1 != 0
    for dimension in found["dimensions"]:
        listed = [*dimension["parts"], dimension["others"]]
        assert sum(Fraction(each["now"]) for each in listed) == Fraction(found["now"])


# Days that are not known as a whole


def by_day(views: list[Entry], gone: range) -> tuple[list[Entry], list[MadeDay]]:
    """Return the views that are left when only totals are left of some days, and these days."""
    begin = int(MONDAY.timestamp()) // 86_400
    days = {
        begin + number: ((begin + number) * 86_400_000, (begin + number + 1) * 86_400_000 - 1)
        for number in gone
    }
    made = [
        MadeDay(day, span, [view for view in views if span[0] <= view["time_ms"] <= span[1]], [])
        for day, span in days.items()
    ]
    removed = {view["id"] for day in made for view in day.views}
    return [view for view in views if view["id"] not in removed], made


def test_totals_of_days_are_as_good_as_their_views() -> None:
    views = traffic(CHANGED)
    whole = changes_between(snapshot_of(views, []), bounds(0), now_ms=NOW_MS)
    left, days = by_day(views, range(-7, -4))
    found = changes_between(snapshot_of(left, [], days=days), bounds(0), now_ms=NOW_MS)
    assert {**found.content, "pairs": []} == {**whole.content, "pairs": []}
    # Pairs are unknown on these days.
    assert not found.content["pairs"]
    assert found.gaps


def test_nothing_is_said_of_chance_if_days_are_unknown() -> None:
    left, days = by_day(traffic(CHANGED), range(-7, -4))
    snapshot = snapshot_of(left, [], days=days)
    query = [*bounds(0), ("visit_referrer", "Google")]
    found = changes_between(snapshot, query, now_ms=NOW_MS)
    assert found.gaps
    assert found.content["by_chance"] is None
    for dimension in found.content["dimensions"]:
        listed = [*dimension["parts"], dimension["others"]]
        assert sum(each["difference"] for each in listed) == found.content["difference"]
        assert {each["by_chance"] for each in dimension["parts"]} == {None}


def test_days_to_which_exclusions_do_not_apply_cannot_be_compared() -> None:
    rules = [query_from([("browser", "None of them")])]
    left, days = by_day(traffic(CHANGED), range(-7, -4))
    reader = reader_of(snapshot_of(left, [], days=days), SOURCES, rules)
    found = changes_between(reader, bounds(0), now_ms=NOW_MS)
    assert found.gaps.days(Gap.EXCLUSIONS) == [day.number for day in days]
    assert found.content["by_chance"] is None
    left, days = by_day(traffic(CHANGED), range(-21, -18))
    reader = reader_of(snapshot_of(left, [], days=days), SOURCES, rules)
    found = changes_between(reader, bounds(0), now_ms=NOW_MS)
    assert found.content["by_chance"] is False
    assert found.content["earlier_weeks"] == WEEKS - 1


def test_earlier_weeks_with_unknown_days_do_not_count() -> None:
    left, days = by_day(traffic(USUAL), range(-21, -18))
    query = [*bounds(0), ("visit_referrer", "Google")]
    found = changes_between(snapshot_of(left, [], days=days), query, now_ms=NOW_MS)
    assert found.content["earlier_weeks"] == WEEKS - 1
