from typing import Any

import pytest
from support.query.hits import event, view
from support.query.snapshots import Cuts, answer, snapshot_of

VIEWS = [view(1, "p", path="/a", country="DE"), view(2, "p", path="/b")]
EVENTS = [
    event(1, 1, plan="free", size="1"),
    event(5, 1, plan="pro"),
    event(2, 2, plan="free"),
    event(3, None, size="1"),
    event(4, 99, size="2"),
]


def rows(*query: tuple[str, str]) -> list[tuple[Any, ...]]:
    for cuts in ((), (1, 3)):
        found = answer(snapshot_of(VIEWS, EVENTS, Cuts(cuts)), "properties", query)
        assert found == answer(snapshot_of(VIEWS, EVENTS), "properties", query)
    return [tuple(row.values()) for row in found]


def test_names() -> None:
    assert answer(snapshot_of(VIEWS, EVENTS), "properties", []) == [
        {"name": "plan", "events": 3, "events_percentage": 0.6},
        {"name": "size", "events": 3, "events_percentage": 0.6},
    ]


def test_values() -> None:
    assert answer(snapshot_of(VIEWS, EVENTS), "properties", [("prop_name", "PLAN")]) == [
        {"name": "plan", "value": "free", "events": 2, "events_percentage": 0.6667},
        {"name": "plan", "value": "pro", "events": 1, "events_percentage": 0.3333},
    ]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ([("prop_value", "1")], [("size", 2, 1.0)]),
        ([("prop_name[contains]", ""), ("prop_value", "1")], [("size", "1", 2, 1.0)]),
        ([("prop_name[neq]", "plan")], [("size", "1", 2, 0.6667), ("size", "2", 1, 0.3333)]),
        # One property has to match both.
        ([("prop_name", "plan"), ("prop_value", "1")], []),
        ([("path", "/a")], [("plan", 2, 1.0), ("size", 1, 0.5)]),
        # Without a view, every name is "".
        ([("path", "")], [("size", 2, 1.0)]),
        ([("country[neq]", "Germany")], [("size", 2, 0.6667), ("plan", 1, 0.3333)]),
        ([("country", "Unknown")], [("plan", 1, 1.0)]),
        ([("language[not_in]", "unknown")], [("size", 2, 1.0)]),
        ([("limit", "1"), ("offset", "1")], [("size", 3, 0.6)]),
        ([("path", "/nowhere")], []),
        # The event's own time decides.
        ([("start", "2024-01-01T12:00:05Z")], [("plan", 1, 1.0)]),
        ([("end", "2024-01-01T12:00:00.999Z")], []),
        ([("end", "2024-01-01T12:00:01Z")], [("plan", 1, 1.0), ("size", 1, 1.0)]),
        (
            [("start", "2024-01-01T12:00:03Z"), ("path", "/a")],
            [("plan", 1, 1.0)],
        ),
    ],
)
def test_filters(query: list[tuple[str, str]], found: list[tuple[Any, ...]]) -> None:
    assert rows(*query) == found


def test_rows_are_sorted_by_events_then_name_and_value() -> None:
    events = [event(1, None, a="\U0001f600"), event(2, None, a="\uffff"), event(3, None, ab="")]
    found = answer(snapshot_of([], events), "properties", [("prop_name[contains]", "a")])
    assert [(row["name"], row["value"]) for row in found] == [
        ("a", "\uffff"),
        ("a", "\U0001f600"),
        ("ab", ""),
    ]


def test_an_event_counts_once_per_name() -> None:
    twice = {**event(1), "properties": [("(other)", "(other)"), ("(other)", "(other)")]}
    assert answer(snapshot_of([], [twice, event(2, a="")]), "properties", []) == [
        {"name": "(other)", "events": 1, "events_percentage": 0.5},
        {"name": "a", "events": 1, "events_percentage": 0.5},
    ]


def test_nothing() -> None:
    assert answer(snapshot_of([], []), "properties", []) == []
    assert answer(snapshot_of([], []), "properties", [("prop_name", "x")]) == []


def test_names_added_later_are_counted_too() -> None:
    before = snapshot_of(VIEWS, EVENTS)
    assert len(answer(before, "properties", [])) == 2
    more = [*EVENTS, event(6, None, colour="red"), event(7, None, plan="free")]
    later = snapshot_of(VIEWS, more)
    later.texts.cache = before.texts.cache
    assert [(row["name"], row["events"]) for row in answer(later, "properties", [])] == [
        ("plan", 4),
        ("size", 3),
        ("colour", 1),
    ]
