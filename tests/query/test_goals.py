"""Goals in detail; their figures over any hits are compared with the oracle."""

from decimal import Decimal

import pytest
from support.query.hits import event, view
from support.query.snapshots import Cuts, answer, snapshot_of

from medamad.query.goal_reports import revenue_of

HOUR_MS = 3_600_000
VIEWS = [
    {**view(number, "p", path=path), "time_ms": number * HOUR_MS, "visit": number}
    for number, path in ((1, "/a"), (2, "/b"), (3, "/a"))
]
EVENTS = [
    {**event(0, 1, plan="pro", Plan="2"), "time_ms": 3 * HOUR_MS},
    {**event(0, None, plan="pro"), "time_ms": 3 * HOUR_MS},
]


def test_under_a_filter_the_conversions_of_the_selected_visits_count() -> None:
    """Wherever they happened in the visit, even if the view that matches is not in the period."""
    views = [
        {**view(1, "p", path="/product"), "visit": 1},
        {**view(2, "", path="/a"), "visit": 1},
        {**view(3, "p", path="/a"), "visit": 3},
        {**view(4, "p", path="/product"), "visit": 0},
    ]
    events = [event(number + 5, number, plan="pro") for number in (2, 3, 4)]
    for cuts in (Cuts(), Cuts((1, 2, 3), (True,) * 4, in_parts=3)):
        for start in ("2024-01-01T12:00:00Z", "2024-01-01T12:00:02Z"):
            query = [("path", "/product"), ("start", start)]
            rows = answer(snapshot_of(views, events, cuts), "goals", query)
            assert {row["id"]: row["conversions"] for row in rows}["plan"] == 1
    rows = answer(snapshot_of(views, events), "goals", [("prop_name", "plan")])
    assert {row["id"]: row["conversions"] for row in rows}["plan"] == 2


@pytest.mark.parametrize(
    ("filters", "conversions"),
    [
        ([], 2),
        ([("entry_page", "/a")], 1),
        ([("entry_page", "/b")], 0),
        ([("path[neq]", "/b")], 1),
        ([("prop_value", "pro")], 1),
        ([("goal", "plan")], 1),
    ],
)
@pytest.mark.parametrize("cuts", [Cuts(), Cuts((1, 2), (True,) * 3, in_parts=3)])
def test_an_event_counts_by_its_own_time_and_by_its_visit(
    cuts: Cuts, filters: list[tuple[str, str]], conversions: int
) -> None:
    query = [("start", "1970-01-01T03:00:00Z"), *filters]
    rows = answer(snapshot_of(VIEWS, EVENTS, cuts), "goals", query)
    assert {row["id"]: row["conversions"] for row in rows}["plan"] == conversions


@pytest.mark.parametrize("cuts", [Cuts(), Cuts((1, 2), (True,) * 3, in_parts=3)])
@pytest.mark.parametrize(("event_ms", "visits"), [(1, [1, 1]), (2, [1, 0]), (3, [1, 0])])
def test_the_steps_of_a_funnel_are_in_order_of_time(
    cuts: Cuts, event_ms: int, visits: list[int]
) -> None:
    views = [
        {**view(number, "p", path=path), "time_ms": number, "visit": 1}
        for number, path in ((1, "/b"), (2, "/a"), (3, "/b"))
    ]
    # Imports number all events of a file after its views.
    events = [{**event(0, None), "time_ms": 9} for _ in range(2)]
    logged_in = {**event(0, 1, logged_in="true"), "time_ms": event_ms}
    found = answer(snapshot_of(views, [*events, logged_in], cuts), "funnels/mixed", [])
    assert [step["visits"] for step in found["steps"][:2]] == visits


@pytest.mark.parametrize(
    ("amounts", "total", "mean", "median"),
    [
        ({}, "0", "0", "0"),
        ({"0.1": 3}, "0.3", "0.10", "0.1"),
        ({"1E+3": 1}, "1000", "1000.00", "1000"),
        ({"10": 1, "5": 2}, "20", "6.67", "5"),
        ({"1": 1, "2": 1, "-0.125": 2}, "2.750", "0.688", "0.4375"),
        ({"1E+300": 1, "1E-300": 1}, f"1{'0' * 300}.{'0' * 299}1", None, None),
    ],
)
def test_revenue_is_exact(
    amounts: dict[str, int], total: str, mean: str | None, median: str | None
) -> None:
    found = revenue_of([(Decimal(amount), times) for amount, times in amounts.items()])
    assert f"{found['sum']:f}" == total
    if mean is not None:
        assert [str(found["mean"]), str(found["median"])] == [mean, median]
