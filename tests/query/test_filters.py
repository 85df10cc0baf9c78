import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.query.hits import event, view
from support.query.snapshots import SOURCES, query_from, snapshot_of

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import BadRequest
from medamad.query.filters import (
    FIELDS,
    MAX_FILTERS,
    OPERATORS,
    Mask,
    code_masks,
    matches_without_view,
    matching,
    parse_filters,
    property_mask,
)
from medamad.query.request import Cancellation, Filter
from medamad.storage.dictionary.decode import CodeTexts

NAMES = ("", "/", "/About", "/about/us", "/straße", "/50%_*", "/a,b")
ABOUT = {"/About", "/about/us"}
REST = {"/about/us", "/50%_*", "/a,b"}


def test_fields_and_operators_match_the_openapi_document() -> None:
    assert set(FIELDS) == {
        "path",
        "referrer",
        *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"),
        *("browser", "os", "device", "country", "language"),
        *("prop_name", "prop_value"),
        *("entry_page", "exit_page", "visit_referrer"),
        *("visit_utm_source", "visit_utm_medium", "visit_utm_campaign"),
    }
    assert set(OPERATORS) == {
        *("eq", "contains", "starts_with", "ends_with", "in"),
        *("neq", "not_contains", "not_starts_with", "not_ends_with", "not_in"),
    }


@pytest.mark.parametrize(
    ("parameters", "filters"),
    [
        ([], ()),
        ([("path", "/x")], (Filter("path", "eq", ("/x",)),)),
        ([("path[eq]", "/x"), ("path", "/x")], (Filter("path", "eq", ("/x",)),)),
        (
            [("path[neq]", "/x"), ("path[neq]", "/y")],
            (Filter("path", "neq", ("/x",)), Filter("path", "neq", ("/y",))),
        ),
        (
            [("os[in]", "a,b"), ("os[in]", ""), ("os[in]", "c,")],
            (Filter("os", "in", ("a", "b", "", "c", "")),),
        ),
        (
            [("os[in]", "a"), ("os[not_in]", "b")],
            (Filter("os", "in", ("a",)), Filter("os", "not_in", ("b",))),
        ),
        ([("path[contains]", "a,b")], (Filter("path", "contains", ("a,b",)),)),
        ([("limit", "1"), ("colour", "red"), ("pathology", "x"), ("colour[", "x")], ()),
    ],
)
def test_filters(parameters: list[tuple[str, str]], filters: tuple[Filter, ...]) -> None:
    assert parse_filters(parameters) == filters


@pytest.mark.parametrize(
    "key",
    [
        "path[foo]",
        "path[]",
        "path[",
        "path[eq",
        "path[eq]]",
        "path[eq][in]",
        "path[EQ]",
        "prop_name[like]",
    ],
)
def test_an_unknown_operator_is_rejected_by_name(key: str) -> None:
    with pytest.raises(BadRequest) as rejection:
        parse_filters([(key, "x")])
    assert str(rejection.value).startswith(f"{key}: expected one of the operators eq, neq, ")


@pytest.mark.parametrize("key", ["colour[eq]", "exit_pages[starts_with]", "limit[eq]", "[eq]"])
def test_a_filter_on_an_unknown_field_is_rejected_by_name(key: str) -> None:
    with pytest.raises(BadRequest) as rejection:
        parse_filters([(key, "x")])
    assert str(rejection.value) == f"{key}: there is no such filter"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("visit_bounce", "yes", "expected one of true, false"),
        ("visit_bounce[eq]", "", "expected one of true, false"),
        ("visit_bounce[neq]", "true", "expected the operator eq"),
        ("visit_views", "2", "expected one of the operators gte, lte"),
        ("visit_views[eq]", "2", "expected one of the operators gte, lte"),
        ("visit_duration[gte", "2", "expected one of the operators gte, lte"),
        ("visit_views[gte]", "-1", "expected a whole number"),
        ("visit_duration[lte]", "1.5", "expected a whole number"),
        ("duration[lte]", "", "expected a whole number"),
        ("duration[gte]", "٣", "expected a whole number"),
        ("duration[gte]", "1" * 16, "expected a whole number"),
    ],
)
def test_filters_on_behaviour_take_bounds_and_true_or_false(
    key: str, value: str, message: str
) -> None:
    with pytest.raises(BadRequest) as rejection:
        parse_filters([(key, value)])
    assert str(rejection.value) == f"{key}: {message}"


def test_there_can_be_as_many_bounds_as_other_filters() -> None:
    parameters = [("duration[gte]", str(number)) for number in range(MAX_FILTERS)]
    assert len(parse_filters(parameters)) == MAX_FILTERS
    with pytest.raises(BadRequest, match=f"duration.lte.: expected at most {MAX_FILTERS} filters"):
        parse_filters([*parameters, ("duration[lte]", "0")])


def test_one_filter_too_many_is_rejected_by_name() -> None:
    parameters = [("path[contains]", str(number)) for number in range(MAX_FILTERS - 1)]
    # A list is one filter, however long, and a repeated value counts once.
    parameters += [("os[in]", str(number)) for number in range(MAX_FILTERS)]
    parameters += [("path[contains]", "0")]
    assert len(parse_filters(parameters)) == MAX_FILTERS
    for key in ("browser", "path[contains]", "country[in]"):
        with pytest.raises(BadRequest) as rejection:
            parse_filters([*parameters, (key, "x"), ("device", "y")])
        assert str(rejection.value) == f"{key}: expected at most {MAX_FILTERS} filters in all"


@pytest.mark.parametrize(
    ("operator", "value", "passed"),
    [
        ("eq", "/ABOUT", {"/About"}),
        ("eq", "/STRASSE", {"/straße"}),
        ("eq", "", {""}),
        ("contains", "ABOUT", {"/About", "/about/us"}),
        ("contains", "%_*", {"/50%_*"}),
        ("contains", "*", {"/50%_*"}),
        ("contains", "", set(NAMES)),
        ("starts_with", "/a", {"/About", "/about/us", "/a,b"}),
        ("starts_with", "", set(NAMES)),
        ("ends_with", "US", {"/about/us"}),
        ("ends_with", "", set(NAMES)),
        ("in", "/,/ABOUT", {"/", "/About"}),
        ("in", "", {""}),
        ("in", "/,", {"", "/"}),
        ("in", "/a,b", set()),
    ],
)
def test_operators_and_their_opposites(operator: str, value: str, passed: set[str]) -> None:
    def those(operator: str) -> set[str]:
        found = matching(parse_filters([(f"path[{operator}]", value)]), [NAMES])
        return {name for name, passes in zip(NAMES, found, strict=True) if passes}

    assert those(operator) == passed
    opposite = "neq" if operator == "eq" else f"not_{operator}"
    assert those(opposite) == set(NAMES) - passed


@pytest.mark.parametrize(
    ("parameters", "passed"),
    [
        ([("path[starts_with]", "/a"), ("path[ends_with]", "us")], {"/about/us"}),
        (
            [("path[contains]", "a"), ("path[contains]", "b"), ("path[neq]", "/a,b")],
            {"/About", "/about/us"},
        ),
        ([("path", "/"), ("path", "/about")], set()),
        ([("path[in]", "/"), ("path[in]", "/about")], {"/", "/About"}),
        (
            [("path[not_in]", "/,/about"), ("path[not_in]", ",/straße")],
            {"/about/us", "/50%_*", "/a,b"},
        ),
    ],
)
def test_all_filters_must_match(parameters: list[tuple[str, str]], passed: set[str]) -> None:
    found = matching(parse_filters(parameters), [NAMES])
    assert {name for name, passes in zip(NAMES, found, strict=True) if passes} == passed


@pytest.mark.parametrize(
    ("parameter", "passed"),
    [
        (("referrer", "google"), [True, True, False]),
        (("referrer", "google.de/search"), [False, True, False]),
        (("referrer[neq]", "google"), [False, False, True]),
        (("referrer[neq]", "google.de/search"), [True, False, True]),
        (("referrer[not_contains]", ".de"), [True, False, True]),
        (("referrer[in]", "google.com,other"), [True, False, True]),
    ],
)
def test_a_filter_with_two_names_matches_either(
    parameter: tuple[str, str], passed: list[bool]
) -> None:
    names = [["google", "google", "other"], ["google.com", "google.de/search", "other"]]
    assert matching(parse_filters([parameter]), names).tolist() == passed


def held_by_each(names: list[str], value: str) -> list[bool]:
    """Return which names contain a value, through a filter."""
    return matching(parse_filters([("path[contains]", value)]), [names]).tolist()


@given(
    names=st.lists(st.text("ab\n", max_size=9), min_size=1),
    value=st.text("ab\n", max_size=5),
    longer=st.sampled_from([1, 400]),
)
def test_long_texts_are_searched_like_short_ones(names: list[str], value: str, longer: int) -> None:
    names, value = [name * longer for name in names], value * longer
    assert held_by_each(names, value) == [value in name for name in names]


class Laborious(str):
    """A text that must only be searched as part of a joined one."""

    __slots__ = ()

    def casefold(self) -> "Laborious":
        return self

    def __contains__(self, _value: object) -> bool:
        raise AssertionError


def test_long_values_are_searched_in_joined_texts() -> None:
    names = [Laborious("a" * 2_000), Laborious("a" * 999 + "b" + "a" * 1_000)]
    assert held_by_each(names, "a" * 500 + "b" + "a" * 500) == [False, True]
    with pytest.raises(AssertionError):
        held_by_each([Laborious("/about")], "about")


VIEWS = [view(1, "p", os="Linux", browser="Firefox"), view(2, "p", os="Windows")]
EVENTS = [event(0, 1, a="x", b="y"), event(0, None, a="z")]


def masks_of(texts: CodeTexts, *parameters: tuple[str, str]) -> dict[Dimension, Mask]:
    return code_masks(texts, query_from(parameters), SOURCES, Cancellation())


def test_each_filtered_dimension_has_a_mask_of_codes() -> None:
    texts = snapshot_of(VIEWS, EVENTS).texts
    masks = masks_of(texts, ("os", "LINUX"))
    assert masks.keys() == {Dimension.OS}
    (mask,) = masks.values()
    matching = [text for text, is_in in zip(texts(Dimension.OS), mask, strict=True) if is_in]
    assert matching == ["Linux"]


def test_name_and_value_must_match_the_same_property() -> None:
    texts = snapshot_of(VIEWS, EVENTS).texts
    query = query_from([("prop_name", "a"), ("prop_value", "y")])
    mask = property_mask(texts, query, Cancellation())
    assert len(mask) == len(texts(Dimension.PROPERTY))
    assert not mask.any()


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        ("os", False),
        ("os[neq]", True),
        ("referrer[not_contains]", True),
        ("prop_name", True),
        ("entry_page[neq]", False),
        ("duration[gte]", False),
        ("visit_views[gte]", False),
    ],
)
def test_an_event_without_a_view_has_no_text_in_any_dimension(name: str, matches: bool) -> None:
    value = "0" if name.endswith("[gte]") else "x"
    assert matches_without_view(query_from([(name, value)])) is matches


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
