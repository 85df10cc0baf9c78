import pytest

from medamad.query.filters import conditions_of
from medamad.query.request import Question


@pytest.mark.parametrize(
    ("limit", "offset", "rows"),
    [(None, 0, slice(0, 5000)), (None, 7, slice(7, 5007)), (10, 20, slice(20, 30))],
)
def test_the_page_of_rows(limit: int | None, offset: int, rows: slice) -> None:
    assert Question(limit=limit, offset=offset).rows == rows


@pytest.mark.parametrize(
    ("key", "names_page", "names_property"),
    [
        ("path", True, False),
        ("path[not_in]", True, False),
        ("prop_name", False, True),
        ("prop_value[neq]", False, True),
        ("referrer", False, False),
    ],
)
def test_what_the_filters_are_on(key: str, names_page: bool, names_property: bool) -> None:
    question = Question(conditions=conditions_of([(key, "x")]))
    assert (question.names_page, question.names_property) == (names_page, names_property)
