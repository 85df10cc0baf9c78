import itertools

import pytest
from attrs import evolve
from support.query.hits import NOON, event, view
from support.query.snapshots import SOURCES, Cuts, query_from, snapshot_of

from medamad.domain.zones import DAY_MS
from medamad.query.embedded.selection import select
from medamad.query.period import Period
from medamad.query.request import Cancellation, Gap

VIEWS = [
    view(3, "p", referrer="google.de/search", os="Linux"),
    view(1, "p", referrer="google.com", os="Windows"),  # the clock was set back
    view(2, "p", os="Linux"),
]
for number, late in enumerate(VIEWS, 1):
    late["id"] = number
EVENTS = [event(0, 1, a="x", b="y"), event(0, 1, a="x"), event(0, 3, a="y"), event(0, None, a="x")]


CUTS = [
    Cuts(),
    Cuts((1,), (True, False), in_parts=1),
    Cuts((1, 2), (True, True, True), in_parts=3),
    Cuts((1, 2), (False, True, True), grouped=2, in_parts=2),
]


def selected(*query: tuple[str, str], period: Period | None = None) -> list[int]:
    """Return the sequence numbers of the selected views."""
    found = []
    for cuts in CUTS:
        selection = select(
            snapshot_of(VIEWS, EVENTS, cuts), query_from(query), SOURCES, Cancellation()
        )
        found.append(
            [
                number
                for views in (
                    selection if period is None else evolve(selection, period=period)
                ).all_candidates()
                for number in views.part.sequence[views.rows].tolist()
            ]
        )
    assert all(numbers == found[0] for numbers in found)
    return found[0]


@pytest.mark.parametrize(
    ("period", "numbers"),
    [
        (Period(), [1, 2, 3]),
        (Period(NOON + 1000, NOON + 3000), [1, 2, 3]),
        (Period(NOON + 1001, NOON + 3000), [1, 3]),
        (Period(NOON + 1000, NOON + 2999), [2, 3]),
        (Period(NOON + 2000, NOON + 2000), [3]),
        (Period(NOON + 3001, None), []),
        (Period(None, NOON + 999), []),
    ],
)
def test_a_period_includes_both_bounds(period: Period, numbers: list[int]) -> None:
    assert selected(period=period) == numbers


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ([("os", "linux")], [1, 3]),
        ([("os", "linux"), ("referrer", "google")], [1]),
        ([("referrer", "google.com")], [2]),
        ([("referrer", "")], [3]),
        ([("referrer[not_contains]", "google")], [3]),
        ([("prop_name", "A")], [1, 3]),
        ([("prop_name", "a"), ("prop_value", "y")], [3]),
        ([("prop_value", "y")], [1, 3]),
        ([("prop_name[neq]", "a")], [1]),
        ([("prop_value", "z")], []),
        ([("prop_name", "a"), ("os", "Linux"), ("referrer[neq]", "")], [1]),
    ],
)
def test_filters_select_views(query: list[tuple[str, str]], numbers: list[int]) -> None:
    assert selected(*query) == numbers


def test_a_part_entirely_in_the_period_is_not_masked() -> None:
    selection = select(
        snapshot_of(VIEWS, EVENTS, Cuts((1,))), query_from([]), SOURCES, Cancellation()
    )
    pieces = evolve(selection, period=Period(NOON + 2000, NOON + 3000)).all_candidates()
    views = [piece.views() for piece in pieces]
    assert [(each.begin, each.end, each.mask) for each in views] == [(0, 1, None), (1, 2, None)]


def test_a_part_selected_as_a_whole_returns_a_value_instead_of_its_views() -> None:
    def scanned(*query: tuple[str, str]) -> list[object]:
        cuts = Cuts((1, 2), (True, True, True))
        selection = select(
            snapshot_of(VIEWS, EVENTS, cuts), query_from(query), SOURCES, Cancellation()
        )
        return [value if isinstance(value, int) else "views" for value in selection.candidates(len)]

    assert scanned() == [1, 1, 1]
    assert scanned(("os", "linux")) == [1, 1]
    assert scanned(("os", "linux"), ("prop_value", "y")) == ["views", "views"]


def test_days_of_parts_without_visits_are_gaps_of_visits() -> None:
    later = [view(86_400, "p"), view(86_401, "p", visit=4)]
    parts = [[{**each, "visit": 0} for each in VIEWS], later]
    views = [{**each, "id": number} for number, each in enumerate(itertools.chain(*parts), 1)]
    snapshot = snapshot_of(views, [], Cuts((3,)))
    day = NOON // DAY_MS
    for period, days in (Period(), [day]), (Period(NOON + DAY_MS), []):
        selection = select(snapshot, query_from([]), SOURCES, Cancellation())
        assert evolve(selection, period=period).visit_gaps.days(Gap.VISITS) == days
