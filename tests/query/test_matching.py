import pytest
from support.query.hits import event, view
from support.query.snapshots import SOURCES, question_of, snapshot_of

from medamad.domain.dimensions import Dimension
from medamad.query.filter_codes import dimension_filters, passes_without_view, property_filter

VIEWS = [view(1, "p", os="Linux", browser="Firefox"), view(2, "p", os="Windows")]
EVENTS = [event(0, 1, a="x", b="y"), event(0, None, a="z")]


def test_it_tells_of_each_filtered_dimension_which_codes_pass() -> None:
    snapshot = snapshot_of(VIEWS, EVENTS)
    found = dimension_filters(snapshot, question_of([("os", "LINUX")]), SOURCES)
    (passing,) = found.values()
    texts = snapshot.texts(Dimension.OS)
    assert [text for text, passes in zip(texts, passing, strict=True) if passes] == ["Linux"]
    assert found.keys() == {Dimension.OS}


def test_name_and_value_are_of_one_property() -> None:
    snapshot = snapshot_of(VIEWS, EVENTS)
    passing = property_filter(snapshot, question_of([("prop_name", "a"), ("prop_value", "y")]))
    assert len(passing) == len(snapshot.texts(Dimension.PROPERTY))
    assert not passing.any()


@pytest.mark.parametrize(
    ("name", "passes"),
    [("os", False), ("os[neq]", True), ("referrer[not_contains]", True), ("prop_name", True)],
)
def test_an_event_without_a_view_has_no_text_anywhere(name: str, passes: bool) -> None:
    assert passes_without_view(question_of([(name, "x")])) is passes


def test_what_is_remembered_has_a_bound() -> None:
    snapshot = snapshot_of(VIEWS, EVENTS)
    for number in range(200):
        question = question_of([("os[contains]", "n" * (number % 100))])
        passing = dimension_filters(snapshot, question, SOURCES)[Dimension.OS]
        assert passing.any() == (number % 100 < 2)
    assert len(snapshot.memo) <= 64
