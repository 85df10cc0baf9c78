import pytest
from stats.hits import NOON, event, view
from stats.made import SOURCES, question_of, snapshot_of

from medamad.stats.period import Period
from medamad.stats.selecting import view_filter

VIEWS = [
    view(3, "p", referrer="google.de/search", os="Linux"),
    view(1, "p", referrer="google.com", os="Windows"),  # the clock was set back
    view(2, "p", os="Linux"),
]
for number, late in enumerate(VIEWS, 1):
    late["id"] = number
EVENTS = [event(0, 1, a="x", b="y"), event(0, 1, a="x"), event(0, 3, a="y"), event(0, None, a="x")]


def chosen(*query: tuple[str, str], period: Period | None = None) -> list[int]:
    """Give the sequence numbers of the views that are chosen, whatever the parts."""
    found = []
    for cuts in ((), (1,), (1, 2)):
        snapshot = snapshot_of(VIEWS, EVENTS, cuts)
        question = question_of(query)
        selection = view_filter(snapshot, question, SOURCES)
        found.append(
            [
                number
                for views in selection.choose(snapshot.parts, period or question.period)
                for number in (
                    views.part.sequence if views.index is None else views.part.sequence[views.index]
                ).tolist()
            ]
        )
    assert found[0] == found[1] == found[2]
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
def test_both_bounds_are_in_the_period(period: Period, numbers: list[int]) -> None:
    assert chosen(period=period) == numbers


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
def test_filters_choose_views(query: list[tuple[str, str]], numbers: list[int]) -> None:
    assert chosen(*query) == numbers


def test_a_part_that_lies_whole_in_the_period_is_not_masked() -> None:
    snapshot = snapshot_of(VIEWS, EVENTS, (1,))
    selection = view_filter(snapshot, question_of([]), SOURCES)
    pieces = list(selection.choose(snapshot.parts, Period(NOON + 2000, NOON + 3000)))
    assert [piece.index is None for piece in pieces] == [True, False]
