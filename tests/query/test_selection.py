"""Filters on visits, over hits in the order of time: most parts are outside of the period."""

import numpy as np
import pytest
from support.query.hits import event, view
from support.query.snapshots import SOURCES, Cuts, answer, query_from, snapshot_of

from medamad.lookup.referrers import Sources
from medamad.query.embedded.selection import filter_key, matching_visits
from medamad.query.embedded.visit_groups import FoundVisits
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import sequences_of, visit_numbers

HOUR_MS = 3_600_000
PATHS = {1: "/a", 2: "/b", 3: "/c", 4: "/d", 5: "/b", 6: "/a", 7: "/e"}
VISITS = {1: 1, 2: 1, 3: 3, 4: 1, 5: 3, 6: 6, 7: 3}
VIEWS = [
    {
        **view(number, "p", 5000 * (number == 5), path=path),
        "time_ms": number * HOUR_MS,
        "visit": VISITS[number],
    }
    for number, path in PATHS.items()
]
EVENTS = [{**event(0, number, a="x"), "time_ms": 6 * HOUR_MS} for number in (2, 3)]
PERIOD = [("start", "1970-01-01T04:00:00Z"), ("end", "1970-01-01T06:00:00Z")]


def snapshot() -> Snapshot:
    return snapshot_of(VIEWS, EVENTS, Cuts((1, 2, 3, 4, 5, 6), (True,) * 7, grouped=2))


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ([("entry_page", "/a")], ["/a", "/d"]),
        ([("entry_page[neq]", "/a")], ["/b"]),
        ([("exit_page", "/e")], ["/b"]),
        ([("exit_page", "/b")], []),
        ([("exit_page[in]", "/a,/d")], ["/a", "/d"]),
        ([("entry_page", "/a"), ("exit_page", "/d")], ["/d"]),
        ([("entry_page", "/a"), ("path", "/a")], ["/a"]),
        ([("visit_referrer[neq]", "")], []),
        ([("visit_views[gte]", "2")], ["/b", "/d"]),
        ([("visit_views[gte]", "3"), ("entry_page", "/a")], ["/d"]),
        ([("visit_views[lte]", "2")], ["/a"]),
        ([("visit_views[gte]", "2"), ("visit_views[lte]", "1")], []),
        ([("visit_bounce", "true")], ["/a"]),
        ([("visit_bounce", "false"), ("exit_page", "/e")], ["/b"]),
        ([("visit_bounce", "true"), ("visit_bounce", "false")], []),
        ([("visit_duration[gte]", "5000")], ["/b"]),
        ([("visit_duration[gte]", "5001")], []),
        ([("visit_duration[lte]", "4999")], ["/a", "/d"]),
        ([("duration[gte]", "1")], ["/b"]),
        ([("duration[lte]", "9000")], ["/b"]),
        ([("duration[gte]", "1"), ("visit_bounce", "true")], []),
    ],
)
def test_a_visit_is_known_by_views_before_and_after_the_period(
    filters: list[tuple[str, str]], paths: list[str]
) -> None:
    rows = answer(snapshot(), "pages", [*PERIOD, *filters])
    assert [row["path"] for row in rows] == paths


def test_an_event_passes_by_its_view_before_the_period() -> None:
    (row,) = answer(
        snapshot(), "properties", [("start", "1970-01-01T06:00:00Z"), ("entry_page", "/a")]
    )
    assert row["events"] == 1


def test_only_visits_that_can_have_views_or_events_in_the_period_are_looked_for() -> None:
    def numbers(*filters: tuple[str, str]) -> list[int]:
        query = query_from([("start", "1970-01-01T06:00:00Z"), *filters])
        found = matching_visits(snapshot(), query, SOURCES, Cancellation())
        groups = [] if found is None else found.groups(ALWAYS)
        return sorted(
            number
            for visits in groups
            for number in sequences_of(visits.part, visits.begins).tolist()
        )

    assert numbers(("entry_page[starts_with]", "/")) == [1, 3, 6]
    assert numbers(("path", "/a")) == []


@pytest.mark.parametrize("views_first", [False, True])
def test_visits_are_the_same_in_groups_and_by_their_views(*, views_first: bool) -> None:
    query = query_from([("exit_page[starts_with]", "/")])
    found = matching_visits(snapshot(), query, SOURCES, Cancellation())
    assert isinstance(found, FoundVisits)

    def numbers_of_views() -> set[int]:
        return {
            number
            for part in snapshot().leaves()
            for number in visit_numbers(part, np.flatnonzero(found.mask(part))).tolist()
        }

    if views_first:
        assert numbers_of_views() == {1, 3, 6}
    begins = [
        sorted(
            number
            for visits in found.groups(period)
            for number in sequences_of(visits.part, visits.begins).tolist()
        )
        for period in (ALWAYS, ALWAYS, Period(4 * HOUR_MS, 6 * HOUR_MS))
    ]
    assert begins == [[1, 3, 6], [1, 3, 6], [6]]
    assert numbers_of_views() == {1, 3, 6}


def test_the_key_of_filters_is_short() -> None:
    def key(*filters: tuple[str, str]) -> object:
        return filter_key(query_from(filters), SOURCES)

    long = "/" + "a" * 5_000
    assert key(("path", long)) == key(("path", long), ("entry_page", "/"), ("limit", "3"))
    assert len(repr(key(("path", long)))) < 200
    others = [("path", long + "a"), ("path[neq]", long), ("referrer", long), ("prop_name", long)]
    assert len({key(("path", long)), *map(key, others)}) == 5
    query = query_from([("referrer", "Google")])
    assert filter_key(query, SOURCES) != filter_key(query, Sources({"google.com": "Ads"}))
