"""Visits that are alone in what is stored of their browsers, compared with a naive count."""

import random
from collections import Counter
from datetime import tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from support.query.hits import view
from support.query.random_queries import INTERVALS, MOMENTS, ZONES, RandomTraffic
from support.query.snapshots import Cuts, snapshot_of

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewFlag
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.domain.zones import day_at
from medamad.query.embedded.uniqueness import COLUMNS, Uniqueness, count_alone
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation

Entry = dict[str, Any]
FIELDS = {name: [column.attribute for column in columns] for name, columns in COLUMNS.items()}
UTC = ZoneInfo("UTC")
OF_PAGES = {
    *(Dimension.PATH, Dimension.REFERRER, Dimension.UTM_SOURCE, Dimension.UTM_MEDIUM),
    *(Dimension.UTM_CAMPAIGN, Dimension.UTM_TERM, Dimension.UTM_CONTENT),
    *(ViewFlag.FIRST_TODAY, ViewFlag.FIRST_OF_PAGE),
}
"""What is stored of a view that describes what was visited, not the browser."""


def test_all_that_is_stored_of_a_browser_is_compared() -> None:
    compared = {column for columns in COLUMNS.values() for column in columns}
    assert compared | OF_PAGES == {*VIEW_DIMENSIONS, *NUMBERS_OF_HITS, *ViewFlag}
    assert not compared & OF_PAGES


def naive(views: list[Entry], period: Period, zone: tzinfo) -> Uniqueness:
    begins = [
        each
        for each in views
        if each.get("visit") == each["id"]
        and (period.start_ms is None or each["time_ms"] >= period.start_ms)
        and (period.end_ms is None or each["time_ms"] <= period.end_ms)
    ]

    def alone(columns: list[str]) -> int:
        counts = Counter(
            (
                day_at(zone, each["time_ms"] // 1000),
                *(each.get(field, "") for name in columns for field in FIELDS[name]),
            )
            for each in begins
        )
        return sum(count == 1 for count in counts.values())

    return Uniqueness(
        len(begins),
        alone([*FIELDS]),
        {name: alone([other for other in FIELDS if other != name]) for name in FIELDS},
    )


@pytest.mark.parametrize("seed", range(12))
def test_as_many_are_alone_as_a_naive_count_finds(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311
    traffic = RandomTraffic(rng, rng.choice(MOMENTS[:-1]), rng.choice(INTERVALS))
    views = traffic.views(rng.choice((0, 5, 60)))
    for each in views:
        # So that some are alike.
        each |= {field: rng.choice(("", "x")) for field in ("browser", "os", "locale", "since")}
        each |= {"device": "Desktop", "country": "DE"}
    zone = ZoneInfo(rng.choice(ZONES))
    snapshot = snapshot_of(views, [], Cuts((2, 20, 40), (True, True, False), grouped=2))
    bounds = sorted((traffic.time_ms(), traffic.time_ms()))
    for period in (ALWAYS, Period(bounds[0], bounds[1])):
        found = count_alone(snapshot, period, zone, Cancellation())
        assert found == naive(views, period, zone)


def test_a_column_adds_what_is_alone_by_it() -> None:
    views = [
        {**view(number, "p", browser=browser, country=country), "visit": number}
        for number, (browser, country) in enumerate(
            [("Firefox", "DE"), ("Firefox", "DE"), ("Firefox", "AT"), ("Chrome", "AT")], 1
        )
    ]
    # A later view of a visit does not count, whatever it has.
    views.append({**view(9, "", browser="Opera"), "visit": 1})
    found = count_alone(snapshot_of(views, []), ALWAYS, UTC, Cancellation())
    assert (found.visits, found.alone) == (4, 2)
    assert (found.without["browser"], found.without["country"], found.without["os"]) == (0, 1, 2)


def test_the_kind_of_network_is_one_of_the_columns() -> None:
    views = [
        {**view(number, "p", hosting=is_hosting), "visit": number}
        for number, is_hosting in enumerate([True, False, False], 1)
    ]
    found = count_alone(snapshot_of(views, []), ALWAYS, UTC, Cancellation())
    assert (found.alone, found.without["hosting"], found.without["os"]) == (1, 0, 1)


def test_without_visits_nothing_is_alone() -> None:
    views = [{**view(1, "p"), "visit": 0}]
    found = count_alone(snapshot_of(views, []), ALWAYS, UTC, Cancellation())
    assert found == Uniqueness(0, 0, dict.fromkeys(COLUMNS, 0))
