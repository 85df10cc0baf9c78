from typing import Any

import msgspec
import pytest
from support.query.hits import NOON, event, view
from support.query.list_reader import ListReader
from support.query.oracle import Entry, Oracle
from support.query.readers import reader_of
from support.query.snapshots import SOURCES, Cuts, snapshot_of

from medamad.query.live import live

MINUTE_S = 60
NOW_S = 60 * MINUTE_S
NOW_MS = NOON + NOW_S * 1000


def shown(views: list[Entry], events: list[Entry], *, keeps_visits: bool = True) -> Any:
    """Return what is going on at NOW, as two engines find it."""
    complete = Oracle(views, events, now_ms=NOW_MS).views
    readers = (
        reader_of(snapshot_of(views, events, Cuts((2,))), SOURCES),
        ListReader(complete, events, SOURCES),
    )
    first, second = (
        msgspec.to_builtins(live(reader, now_ms=NOW_MS, keeps_visits=keeps_visits).content)
        for reader in readers
    )
    assert first == second
    return first


def test_pages_are_open_for_five_minutes_and_listed_for_thirty() -> None:
    views = [
        view(NOW_S - 30 * MINUTE_S - 1, "p", path="/early"),
        view(NOW_S - 30 * MINUTE_S, "p", path="/listed"),
        view(NOW_S - 5 * MINUTE_S - 1, "p", path="/listed"),
        view(NOW_S - 5 * MINUTE_S, "p", path="/open"),
        view(NOW_S - 1, "p", 4_000, path="/left"),
        view(NOW_S, "p", path="/open"),
        view(NOW_S + 1, "p", path="/future"),
    ]
    found = shown(views, [])
    assert found["visitors"] == 2
    assert [(row["path"], row["pageviews"]) for row in found["pages"]] == [
        ("/listed", 2),
        ("/open", 2),
        ("/left", 1),
    ]


@pytest.mark.parametrize(
    ("keeps_visits", "figure", "sources"),
    [(True, "visits", [("Google", 1), ("", 0)]), (False, "pageviews", [("", 3), ("Google", 1)])],
)
def test_sources_are_those_of_visits_that_began_or_of_views(
    figure: str, sources: list[tuple[str, int]], *, keeps_visits: bool
) -> None:
    first = NOW_S - 31 * MINUTE_S
    begun = NOW_S - 10 * MINUTE_S
    views = [
        view(first, "p", visit=first, referrer="news.example", country="AT"),
        # Of a visit that began before.
        view(begun - 1, "", visit=first, country="AT"),
        view(begun, "p", visit=begun, referrer="google.com", country="DE"),
        view(begun + 1, "", visit=begun, country="DE"),
        view(begun + 2, "", visit=begun, country="DE"),
    ]
    found = shown(views, [], keeps_visits=keeps_visits)
    assert [(row["referrer"], row[figure]) for row in found["sources"]] == sources
    assert found["countries"][0]["country"] == "Germany"


def test_events_are_listed_by_name_and_value() -> None:
    events = [
        event(NOW_S - 31 * MINUTE_S, None, event="order"),
        event(NOW_S - 2, None, event="order", total="9.90"),
        event(NOW_S - 1, None, event="order"),
        event(NOW_S - 1, None, event="signup"),
    ]
    found = shown([view(NOW_S - 3, "p")], events)
    assert [(row["name"], row["value"], row["events"]) for row in found["events"]] == [
        ("event", "order", 2),
        ("event", "signup", 1),
        ("total", "9.90", 1),
    ]


def test_the_first_ten_rows_are_listed() -> None:
    views = [view(NOW_S - 60 + n, "p", path=f"/{n:02}") for n in range(12)]
    events = [event(NOW_S - 1, None, number=f"{n:02}") for n in range(12)]
    found = shown(views, events)
    assert [row["path"] for row in found["pages"]] == [f"/{n:02}" for n in range(10)]
    assert [row["value"] for row in found["events"]] == [f"{n:02}" for n in range(10)]
