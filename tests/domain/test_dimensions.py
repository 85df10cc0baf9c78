from attrs import fields

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, property_text, split_property
from medamad.domain.hits import View


def test_every_dimension_is_an_attribute_of_a_view() -> None:
    assert {dimension.attribute for dimension in VIEW_DIMENSIONS} <= {
        attribute.name for attribute in fields(View)
    }


def test_the_numbers_that_are_stored_never_change() -> None:
    assert [dimension.value for dimension in VIEW_DIMENSIONS] == list(range(1, 16))
    assert (Dimension.PROPERTY, Dimension.PROPERTY_NAME) == (16, 17)


def test_a_dimension_is_of_views_unless_it_is_of_events() -> None:
    assert set(Dimension) - set(VIEW_DIMENSIONS) == {Dimension.PROPERTY, Dimension.PROPERTY_NAME}
    assert list(VIEW_DIMENSIONS) == sorted(VIEW_DIMENSIONS)


def test_a_property_is_split_as_it_was_joined() -> None:
    for pair in (("name", "value"), ("name", ""), ("a=b", "c=d")):
        assert split_property(property_text(*pair)) == pair
