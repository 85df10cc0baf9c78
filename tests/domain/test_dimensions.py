import pytest

from medamad.domain.dimensions import (
    VIEW_DIMENSIONS,
    Dimension,
    Since,
    ViewFlag,
    ViewNumber,
    WidthClass,
    major_version,
    property_text,
    split_property,
)
from medamad.domain.hits import NUMBERS_OF_HITS


def test_the_numbers_that_are_stored_never_change() -> None:
    assert [dimension.value for dimension in VIEW_DIMENSIONS] == [*range(1, 16), 18]
    assert (Dimension.PROPERTY, Dimension.PROPERTY_NAME) == (16, 17)
    assert [(number.column, number.bytes) for number in ViewNumber] == [(38, 1), (39, 4)]
    assert tuple(ViewNumber) == (*NUMBERS_OF_HITS, ViewNumber.VISIT_OFFSET)
    assert [flag.value for flag in ViewFlag] == [1, 2, 16]
    assert [(width.name, width.value) for width in WidthClass] == [
        ("UNKNOWN", 0),
        ("PHONE", 1),
        ("TABLET", 2),
        ("LAPTOP", 3),
        ("DESKTOP", 4),
        ("WIDE", 5),
    ]
    assert list(Since) == ["new", "month", "midweek", "week", "day"]


@pytest.mark.parametrize(
    ("width_class", "narrowest_px", "widest_px"),
    [
        (WidthClass.UNKNOWN, 0, 0),
        (WidthClass.PHONE, 1, 575),
        (WidthClass.TABLET, 576, 991),
        (WidthClass.LAPTOP, 992, 1_439),
        (WidthClass.DESKTOP, 1_440, 1_919),
        (WidthClass.WIDE, 1_920, 65_535),
    ],
)
def test_the_class_of_a_width(width_class: WidthClass, narrowest_px: int, widest_px: int) -> None:
    assert WidthClass.of(narrowest_px) is WidthClass.of(widest_px) is width_class


@pytest.mark.parametrize(
    ("version", "major"), [("", ""), ("17", "17"), ("10.15", "10"), ("XP", "XP"), ("44.1.2", "44")]
)
def test_the_major_version(version: str, major: str) -> None:
    assert major_version(version) == major


def test_a_dimension_is_of_views_unless_it_is_of_events() -> None:
    assert set(Dimension) - set(VIEW_DIMENSIONS) == {Dimension.PROPERTY, Dimension.PROPERTY_NAME}
    assert list(VIEW_DIMENSIONS) == sorted(VIEW_DIMENSIONS)


def test_a_property_is_split_as_it_was_joined() -> None:
    for pair in (("name", "value"), ("name", ""), ("a=b", "c=d")):
        assert split_property(property_text(*pair)) == pair
