"""What the rules of a website find, by tables and on simulated traffic."""

from collections.abc import Iterable
from datetime import UTC
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from attrs import evolve
from support.query.hits import NOON
from support.query.oracle import Entry
from support.query.snapshots import SOURCES, Cuts, MadeDay, snapshot_of

from medamad.alerts.conditions import UNKNOWN, Findings, Looked, look
from medamad.domain.alerts import Cause, ChangedPart, Facts, Part, Rule
from medamad.domain.goals import Definitions, Exclusion, Goal
from medamad.query.embedded.reader import EmbeddedReader
from medamad.query.exclusions import rules_of
from medamad.query.request import Cancellation
from medamad.storage.segments.snapshot import Snapshot

HOUR = 3_600_000
DAY = 24 * HOUR
WEEK = 7 * DAY
CART = Goal(id="cart", name="Cart", path="/cart")
SILENT_SINCE = (NOON - 9 * HOUR) // 1000
BERLIN = ZoneInfo("Europe/Berlin")
LOOKED = Looked(
    now_ms=NOON,
    listening_since_ms=0,
    quiet_since=None,
    zone=UTC,
    definitions=Definitions((CART,)),
    keeps_visits=True,
)


def rule_of(kind: str, **members: object) -> Rule:
    return Rule(id="rule", kind=kind, url="https://example.com/", **members)


def found(snapshot: Snapshot, rule: Rule, looked: Looked = LOOKED) -> Findings:
    reader = EmbeddedReader(snapshot, SOURCES, Cancellation(), rules_of(looked.definitions))
    return look(reader, [rule], looked)["rule"]


def views(times: Iterable[int], **members: object) -> list[Entry]:
    return [
        {"time_ms": time_ms, "p": True, "q": True, "duration_ms": 0, **members} for time_ms in times
    ]


def made(*parts: list[Entry]) -> Snapshot:
    entries = sorted((entry for part in parts for entry in part), key=lambda each: each["time_ms"])
    for number, entry in enumerate(entries, 1):
        entry |= {"id": number, "visit": number}
    return snapshot_of(entries, [], Cuts())


def spread(begun_ms: int, count: int) -> list[int]:
    """Return the times of some views in an hour."""
    return [begun_ms + place * HOUR // max(count, 1) for place in range(count)]


def hours(latest: int, *earlier: int, until_ms: int = NOON) -> list[Entry]:
    """Return views of the hour before a moment, and of the same hour of the weeks before."""
    return [
        entry
        for week, count in enumerate((latest, *earlier))
        for entry in views(spread(until_ms - HOUR - week * WEEK, count))
    ]


def known_for(weeks: int, entries: list[Entry], until_ms: int = NOON) -> Snapshot:
    """Return a website with a view just before the hour so many weeks ago."""
    return made(entries, views([until_ms - HOUR - weeks * WEEK - 1]))


USUAL = (100, 104, 95, 99, 101, 97, 103, 101)


@pytest.mark.parametrize(
    ("kind", "threshold", "latest", "earlier", "expected"),
    [
        ("spike", 50, 180, USUAL, {"views": 180, "usual": 100, "percent": 80}),
        ("spike", 100, 180, USUAL, None),
        ("spike", 1, 110, USUAL, None),
        ("drop", 50, 20, USUAL, {"views": 20, "usual": 100, "percent": 80}),
        ("drop", 90, 20, USUAL, None),
        ("drop", 50, 180, USUAL, None),
        ("spike", 50, 20, USUAL, None),
        ("drop", 100, 0, USUAL, {"views": 0, "usual": 100, "percent": 100}),
        # Four weeks are the least from which the variance is known.
        ("spike", 50, 5000, USUAL[:4], {"views": 5000, "usual": 100, "percent": 4925}),
        # They vary so much themselves that this is no wonder.
        ("spike", 50, 180, (20, 180, 40, 160, 20, 180, 30, 170), None),
        # Too few views for a test.
        ("spike", 50, 15, (0, 1, 0, 0, 1, 0, 0, 1), None),
    ],
)
def test_an_hour_is_compared_with_the_same_hour_of_earlier_weeks(
    kind: str, threshold: int, latest: int, earlier: tuple[int, ...], expected: Facts | None
) -> None:
    snapshot = known_for(len(earlier), hours(latest, *earlier))
    begun_s = (NOON - HOUR) // 1000
    wanted = {} if expected is None else {"": {"hour": begun_s, **expected}}
    without_visits = evolve(LOOKED, keeps_visits=False)
    rule = rule_of(kind, threshold=threshold)
    assert found(snapshot, rule, without_visits) == Findings(wanted)


def test_what_is_left_out_is_no_spike() -> None:
    flood = views(spread(NOON - HOUR, 500), browser="Flood")
    snapshot = known_for(8, [*hours(180, *USUAL), *flood])
    rule = rule_of("spike", threshold=50)
    without_visits = evolve(LOOKED, keeps_visits=False)
    assert found(snapshot, rule, without_visits).facts[""]["views"] == 680
    left_out = Exclusion(id="x", name="Flood", filters=(("browser", "Flood"),), created=0)
    without_flood = evolve(without_visits, definitions=Definitions((), (), (left_out,)))
    begun_s = (NOON - HOUR) // 1000
    facts = {"hour": begun_s, "views": 180, "usual": 100, "percent": 80}
    assert found(snapshot, rule, without_flood) == Findings({"": facts})


def test_it_says_which_parts_changed_when_it_begins() -> None:
    entries = hours(100, *USUAL) + views(spread(NOON - HOUR, 200), referrer="news.example")
    for week in range(1, 9):
        entries += views(spread(NOON - HOUR - week * WEEK, 5), referrer="news.example")
    snapshot, rule = known_for(8, entries), rule_of("spike", threshold=50)
    facts = found(snapshot, rule).facts[""]
    assert facts["parts"] == [
        ChangedPart(parts=(Part("source", "news.example"),), before=5, now=200)
    ]
    begun = evolve(rule, causes=(Cause("", 1, facts),))
    assert "parts" not in found(snapshot, begun).facts[""], "they are said once"
    # All have more: no part explains it.
    assert found(known_for(8, hours(500, *USUAL)), rule).facts[""]["parts"] == []


@pytest.mark.parametrize(
    ("earlier", "since_ms"),
    [
        # Three weeks tell nothing of the variance,
        (USUAL[:3], 0),
        # nor does a daemon that was not there at the beginning of the hour.
        (USUAL, NOON - HOUR + 1),
    ],
)
def test_what_is_not_known_is_not_reported(earlier: tuple[int, ...], since_ms: int) -> None:
    snapshot = known_for(len(earlier), hours(300, *earlier))
    looked = evolve(LOOKED, listening_since_ms=since_ms)
    assert found(snapshot, rule_of("spike", threshold=50), looked) == UNKNOWN


@pytest.mark.parametrize("left", [4, 3])
def test_weeks_of_which_only_totals_are_left_are_unknown(left: int) -> None:
    entries = hours(5000, *USUAL)
    for number, entry in enumerate(sorted(entries, key=lambda each: each["time_ms"]), 1):
        entry |= {"id": number, "visit": number}
    gone = [(NOON - HOUR - week * WEEK) // DAY for week in range(8, left, -1)]
    by_day = {day: [each for each in entries if each["time_ms"] // DAY == day] for day in gone}
    days = [MadeDay(day, (day * DAY, (day + 1) * DAY - 1), by_day[day], []) for day in gone]
    views_left = [each for each in entries if each["time_ms"] // DAY not in gone]
    snapshot = snapshot_of(views_left, [], Cuts(), days)
    findings = found(snapshot, rule_of("spike", threshold=50), evolve(LOOKED, keeps_visits=False))
    if left == 4:
        assert findings.facts[""]["usual"] == round(sum(USUAL[:4]) / 4)
    else:
        assert findings == UNKNOWN, "three weeks tell nothing of the variance"


def test_only_hours_that_are_over_are_compared() -> None:
    snapshot = known_for(8, hours(100, *USUAL) + views(spread(NOON, 500)))
    rule = rule_of("spike", threshold=50)
    assert found(snapshot, rule, evolve(LOOKED, now_ms=NOON + HOUR - 1)) == Findings()
    later = found(snapshot, rule, evolve(LOOKED, now_ms=NOON + HOUR))
    assert later.facts[""]["views"] == 500


def test_hours_are_those_of_the_clock_of_the_zone() -> None:
    """At 8 in the morning by a clock that was set back a week ago, there are always many views."""
    moment_ms = 1_698_652_800_000  # 2023-10-30T08:00:00Z, 9:00 in Berlin
    in_summer = [
        entry
        for week in range(1, 9)
        for entry in views(spread(moment_ms - 2 * HOUR - week * WEEK, 100))
    ]
    snapshot = made(views(spread(moment_ms - HOUR, 100)), in_summer, views([moment_ms - 9 * WEEK]))
    looked = evolve(LOOKED, now_ms=moment_ms + 60_000)
    rule = rule_of("spike", threshold=50)
    assert found(snapshot, rule, evolve(looked, zone=BERLIN)) == Findings()
    assert found(snapshot, rule, looked).facts[""]["usual"] == 0


@pytest.mark.parametrize("per_hour", [4, 60])
def test_hours_seem_to_have_changed_as_rarely_as_the_documentation_says(per_hour: int) -> None:
    """Of a hundred weeks without a change, about five have an hour that seems to have one."""
    chance = np.random.default_rng(1)
    alarms = 0
    for _ in range(400):
        counts = chance.poisson(per_hour, 9).tolist()
        snapshot = known_for(8, hours(*counts))
        alarms += any(
            found(snapshot, rule_of(kind, threshold=1)).facts for kind in ("spike", "drop")
        )
    assert alarms <= 2


@pytest.mark.parametrize(
    ("since", "last_ms", "expected"),
    [
        (
            NOON // 1000 - 9 * 3600,
            NOON - 9 * HOUR,
            Findings({"": {"last": NOON // 1000 - 9 * 3600}}),
        ),
        (None, NOON - 9 * HOUR, UNKNOWN),
        (None, NOON - HOUR, Findings()),
    ],
)
def test_silence_ends_with_a_view(since: int | None, last_ms: int, expected: Findings) -> None:
    """After a restart, it is not known whether a website is quiet."""
    known = Cause("", 1, {"last": SILENT_SINCE})
    rule = rule_of("quiet", causes=(known,))
    looked = evolve(LOOKED, quiet_since=since)
    assert found(made(views([last_ms])), rule, looked) == expected


def visits_from(referrer: str, count: int, hours_ago: int) -> list[Entry]:
    return views(spread(NOON - hours_ago * HOUR, count), referrer=referrer)


@pytest.mark.parametrize("keeps_visits", [True, False])
@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([visits_from("news.example/item", 11, 3)], {"news.example": 11}),
        ([visits_from("news.example/item", 10, 3)], {}),
        ([visits_from("", 50, 3)], {}),
        ([visits_from("(other)", 50, 3)], {}),
        # Known: by its name, whatever the page, within eight weeks.
        ([visits_from("google.de/a", 11, 3), visits_from("google.com/b", 1, 30)], {}),
        ([visits_from("News.example/a", 11, 3), visits_from("news.example/b", 1, 25)], {}),
        (
            [visits_from("google.de/a", 11, 3), visits_from("google.com", 1, 58 * 24)],
            {"Google": 11},
        ),
        # More than a day ago.
        ([visits_from("news.example/item", 50, 26)], {}),
        (
            [visits_from("a.example", 12, 3), visits_from("b.example", 13, 2)],
            {"a.example": 12, "b.example": 13},
        ),
    ],
)
def test_new_referrers(
    parts: list[list[Entry]], expected: dict[str, int], keeps_visits: bool
) -> None:
    looked = evolve(LOOKED, keeps_visits=keeps_visits)
    facts = found(made(*parts), rule_of("referrer", threshold=10), looked).facts
    assert facts == {
        name: {"referrer": name, "visits": visits} for name, visits in expected.items()
    }


def test_a_referrer_that_was_reported_goes_on_while_it_has_as_many_visits() -> None:
    snapshot = made(visits_from("news.example/a", 20, 30), visits_from("news.example/a", 11, 3))
    rule = rule_of("referrer", threshold=10, causes=(Cause("news.example", 1, {}),))
    assert list(found(snapshot, rule).facts) == ["news.example"]
    assert found(snapshot, evolve(rule, threshold=11)) == Findings()


@pytest.mark.parametrize(
    ("kind", "reached", "since_ms", "expected"),
    [
        ("goal", 3, 0, Findings({"": {"goal": "Cart", "count": 3, "hours": 2}})),
        ("goal", 2, 0, Findings()),
        ("no-goal", 0, 0, Findings({"": {"goal": "Cart", "count": 0, "hours": 2}})),
        ("no-goal", 1, 0, Findings()),
        # Hits may have been missed.
        ("no-goal", 0, NOON - 2 * HOUR + 1, UNKNOWN),
        ("no-goal", 1, NOON - 2 * HOUR + 1, Findings()),
    ],
)
def test_goals(kind: str, reached: int, since_ms: int, expected: Findings) -> None:
    snapshot = made(
        views(spread(NOON - HOUR, reached), path="/cart"),
        views(spread(NOON - 4 * HOUR, 9), path="/cart"),
        views(spread(NOON - HOUR, 9), path="/"),
    )
    threshold = 3 if kind == "goal" else None
    rule = rule_of(kind, threshold=threshold, goal="cart", hours=2)
    looked = evolve(LOOKED, listening_since_ms=since_ms)
    assert found(snapshot, rule, looked) == expected
    assert found(snapshot, evolve(rule, goal="gone"), looked) == UNKNOWN
