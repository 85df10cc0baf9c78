import pytest
from support.query.hits import event, view
from support.query.snapshots import SOURCES, query_from, snapshot_of

from medamad.domain.dimensions import Dimension
from medamad.query.filter_codes import code_masks, matches_without_view, property_mask
from medamad.query.filters import Mask
from medamad.query.request import Cancellation
from medamad.storage.segments.parts import Texts

VIEWS = [view(1, "p", os="Linux", browser="Firefox"), view(2, "p", os="Windows")]
EVENTS = [event(0, 1, a="x", b="y"), event(0, None, a="z")]


def masks_of(texts: Texts, *parameters: tuple[str, str]) -> dict[Dimension, Mask]:
    return code_masks(texts, query_from(parameters), SOURCES, Cancellation())


def test_there_is_a_mask_of_codes_for_each_filtered_dimension() -> None:
    texts = snapshot_of(VIEWS, EVENTS).texts
    masks = masks_of(texts, ("os", "LINUX"))
    assert masks.keys() == {Dimension.OS}
    (mask,) = masks.values()
    matching = [text for text, is_in in zip(texts(Dimension.OS), mask, strict=True) if is_in]
    assert matching == ["Linux"]


def test_name_and_value_are_of_one_property() -> None:
    texts = snapshot_of(VIEWS, EVENTS).texts
    query = query_from([("prop_name", "a"), ("prop_value", "y")])
    mask = property_mask(texts, query, Cancellation())
    assert len(mask) == len(texts(Dimension.PROPERTY))
    assert not mask.any()


@pytest.mark.parametrize(
    ("name", "matches"),
    [("os", False), ("os[neq]", True), ("referrer[not_contains]", True), ("prop_name", True)],
)
def test_an_event_without_a_view_has_no_text_in_any_dimension(name: str, matches: bool) -> None:
    assert matches_without_view(query_from([(name, "x")])) is matches


def test_a_mask_is_extended_when_texts_are_added() -> None:
    few, more = snapshot_of(VIEWS[:1], []), snapshot_of(VIEWS, [])
    before = masks_of(few.texts, ("os[contains]", "x"))[Dimension.OS]
    assert before.tolist() == [False, True]
    more.texts.cache = few.texts.cache
    after = masks_of(more.texts, ("os[contains]", "x"))[Dimension.OS]
    assert after.tolist() == [False, True, False]
    assert before.tolist() == [False, True]


def test_many_different_filters_give_the_right_masks() -> None:
    texts = snapshot_of(VIEWS, EVENTS).texts
    for number in range(200):
        mask = masks_of(texts, ("os[contains]", "n" * (number % 100)))[Dimension.OS]
        assert mask.any() == (number % 100 < 2)
