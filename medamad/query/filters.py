"""The filters of a query: how they are written, and which texts and dictionary codes match."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import BadRequest, NotFound
from medamad.domain.goals import Definitions, Goal
from medamad.domain.paths import PathPattern
from medamad.lookup.referrers import Sources
from medamad.query import rows
from medamad.query.request import PROPERTY_FIELDS, Cancellation, Filter, Query
from medamad.query.rows import Naming
from medamad.storage.dictionary.decode import CodeTexts

Mask: TypeAlias = NDArray[np.bool_]
"""Which of n things match, shape (n,)."""


@frozen
class FilterField:
    """The names that a filter compares with: one of the names of a dimension's text must match."""

    dimension: Dimension
    namings: tuple[Naming, ...] = (rows.as_stored,)


VIEW_FIELDS: Final[Mapping[str, FilterField]] = MappingProxyType(
    {
        "path": FilterField(Dimension.PATH),
        "referrer": FilterField(Dimension.REFERRER, (rows.source, rows.as_stored)),
        "utm_source": FilterField(Dimension.UTM_SOURCE),
        "utm_medium": FilterField(Dimension.UTM_MEDIUM),
        "utm_campaign": FilterField(Dimension.UTM_CAMPAIGN),
        "utm_term": FilterField(Dimension.UTM_TERM),
        "utm_content": FilterField(Dimension.UTM_CONTENT),
        "browser": FilterField(Dimension.BROWSER),
        "os": FilterField(Dimension.OS),
        "device": FilterField(Dimension.DEVICE),
        "country": FilterField(Dimension.COUNTRY, (rows.country,)),
        "language": FilterField(Dimension.LOCALE, (rows.language, rows.locale)),
    }
)
"""The fields of a view that can be filtered by."""

VISITOR_FIELD: Final = "visitor"
"""Filters by new and by returning visitors; there is only the operator eq."""
VISITORS: Final = ("new", "returning")

ENTRY_FIELDS: Final[Mapping[str, FilterField]] = MappingProxyType(
    {
        "entry_page": VIEW_FIELDS["path"],
        "visit_referrer": VIEW_FIELDS["referrer"],
        "visit_utm_source": VIEW_FIELDS["utm_source"],
        "visit_utm_medium": VIEW_FIELDS["utm_medium"],
        "visit_utm_campaign": VIEW_FIELDS["utm_campaign"],
        VISITOR_FIELD: FilterField(Dimension.SINCE, (rows.visitor,)),
    }
)
"""The fields of a visit's first view by which all views of the visit can be filtered."""

EXIT_FIELDS: Final[Mapping[str, FilterField]] = MappingProxyType({"exit_page": VIEW_FIELDS["path"]})
"""The fields of a visit's last view by which all views of the visit can be filtered."""

GOAL_FIELD: Final = "goal"
"""Filters by the visits that reached a goal, which its id names; there is only the operator eq."""

BOUNCE_FIELD: Final = "visit_bounce"
"""Filters by visits with one view and no event after its load, and by others.

There is only the operator eq.
"""
TRUTHS: Final = ("true", "false")
"""The values of filters by what is so, or is not."""

VISIT_VIEWS_FIELD: Final = "visit_views"
VISIT_DURATION_FIELD: Final = "visit_duration"
DURATION_FIELD: Final = "duration"
"""Filters by the time on the page of a view, ms. Views whose time is unknown match no bounds."""

HOSTING_FIELD: Final = "hosting"
"""Filters by views from networks of hosting providers, and by others; there is only eq."""

NUMBER_FIELDS: Final = (VISIT_VIEWS_FIELD, VISIT_DURATION_FIELD, DURATION_FIELD)
"""The fields that are compared as whole numbers, with BOUNDS."""
BOUNDS: Final = ("gte", "lte")
_MAX_DIGITS: Final = 15

BEHAVIOUR_FIELDS: Final = (BOUNCE_FIELD, VISIT_VIEWS_FIELD, VISIT_DURATION_FIELD)
"""What a visit consists of, by which all views of the visit can be filtered."""

VISIT_FIELDS: Final = (*ENTRY_FIELDS, *EXIT_FIELDS, *BEHAVIOUR_FIELDS, GOAL_FIELD)
"""The fields of visits: a filter on one lets through all views of the visits that match."""

VIEW_CONDITIONS: Final = (*VIEW_FIELDS, DURATION_FIELD, HOSTING_FIELD, *PROPERTY_FIELDS)
"""The fields of single views."""

FIELDS: Final = (
    *VIEW_FIELDS,
    *(field for field in (*ENTRY_FIELDS, *EXIT_FIELDS) if field != VISITOR_FIELD),
    *PROPERTY_FIELDS,
)
"""The fields that can be filtered by with every operator on texts."""

_TEXTS_AT_ONCE: Final = 5_000
"""Texts are matched in pieces, between which other threads can run."""
_LETTERS_AT_ONCE: Final = 250_000
"""Pieces of long texts are smaller: they have about this many letters."""

_FEW_COMPARISONS: Final = 4_096


def _containing(names: Sequence[str], value: str) -> Iterable[bool]:
    """Return which names contain a value.

    When Python searches a short text for a long value, it may compare all of it at each position,
    which takes seconds for many long names. Regular expressions never do, but are slower otherwise.
    """
    if sum(map(len, names)) * len(value) <= _FEW_COMPARISONS * len(names):
        return (value in name for name in names)
    search = re.compile(re.escape(value)).search
    return (search(name) is not None for name in names)


_Test: TypeAlias = Callable[[Sequence[str], tuple[str, ...]], Iterable[bool]]

_TESTS: Final[Mapping[tuple[str, str], _Test]] = MappingProxyType(
    {
        ("eq", "neq"): lambda names, values: (name == values[0] for name in names),
        ("contains", "not_contains"): lambda names, values: _containing(names, values[0]),
        ("starts_with", "not_starts_with"): lambda names, values: (
            name.startswith(values[0]) for name in names
        ),
        ("ends_with", "not_ends_with"): lambda names, values: (
            name.endswith(values[0]) for name in names
        ),
        ("in", "not_in"): lambda names, values: map(frozenset(values).__contains__, names),
    }
)
"""The positive operators, each with the negative one. Names and values are casefolded."""

OPERATORS: Final = tuple(chain.from_iterable(_TESTS))
_LISTS: Final = ("in", "not_in")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {VISITOR_FIELD: VISITORS, BOUNCE_FIELD: TRUTHS, HOSTING_FIELD: TRUTHS}
)
"""The fields that have few values, with these."""
_OPERATORS_OF: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        **dict.fromkeys(FIELDS, OPERATORS),
        **dict.fromkeys((*_CHOICES, GOAL_FIELD), ("eq",)),
        **dict.fromkeys(NUMBER_FIELDS, BOUNDS),
    }
)
"""All fields, each with its operators."""

MAX_FILTERS: Final = len(FIELDS) * len(OPERATORS)
"""The most filters of a query: each operator on each field.

There is a limit because every text of a dimension is compared with each filter on it.
"""


def parse_filters(
    parameters: Iterable[tuple[str, str]], definitions: Callable[[], Definitions] = Definitions
) -> tuple[Filter, ...]:
    """Return the filters among the decoded parameters of a query string.

    `path[neq]=/x`, or `path=/x` for `eq`. All filters must hold. The lists of one operator on
    one field form one list. Parameters without brackets that name no field are ignored.
    `definitions` returns the goals that filters can name. Raises BadRequest for an unknown field in
    front of brackets, operator or goal and for the first filter beyond MAX_FILTERS.
    """
    filters: dict[Filter, None] = {}
    lists: dict[tuple[str, str], list[str]] = {}
    for key, value in parameters:
        field, bracket, rest = key.partition("[")
        operators = _OPERATORS_OF.get(field)
        if operators is None:
            if rest.endswith("]"):
                raise BadRequest(f"{key}: there is no such filter")
            continue
        operator = rest.removesuffix("]") if bracket else "eq"
        if operator not in operators or (bracket and key != f"{field}[{operator}]"):
            one_of = "one of the operators" if len(operators) > 1 else "the operator"
            raise BadRequest(f"{key}: expected {one_of} {', '.join(operators)}")
        if operator in _LISTS:
            lists.setdefault((field, operator), []).extend(value.split(","))
        else:
            goal = _checked_goal(field, key, value, definitions)
            filters[Filter(field, operator, (value,), goal)] = None
        if len(filters) + len(lists) > MAX_FILTERS:
            raise BadRequest(f"{key}: expected at most {MAX_FILTERS} filters in all")
    return (
        *filters,
        *(Filter(*key, tuple(values)) for key, values in lists.items()),
    )


def _checked_goal(
    field: str, key: str, value: str, definitions: Callable[[], Definitions]
) -> Goal | None:
    """Check the value of a filter, and return the goal that it names, if any. Raises BadRequest."""
    if field in _CHOICES and value not in _CHOICES[field]:
        raise BadRequest(f"{key}: expected one of {', '.join(_CHOICES[field])}")
    is_whole = value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS
    if field in NUMBER_FIELDS and not is_whole:
        raise BadRequest(f"{key}: expected a whole number")
    if field != GOAL_FIELD:
        return None
    try:
        return definitions().goal(value)
    except NotFound as error:
        raise BadRequest(f"{key}: {error}") from None


@frozen
class Bounds:
    """The least and the greatest number that match all filters on a field, both included."""

    least: int
    greatest: int

    @classmethod
    def of(cls, query: Query, field: str) -> "Bounds | None":
        """Return the bounds of one of NUMBER_FIELDS, or None if there is no filter on it.

        Of a field with TRUTHS, "true" is 1 and "false" 0. A duration of 0 is unknown, and in no
        bounds.
        """
        filters = query.filters_on((field,))
        least, greatest = int(field == DURATION_FIELD), 10**_MAX_DIGITS
        for each in filters:
            (value,) = each.values
            number = int(value == TRUTHS[0]) if value in TRUTHS else int(value)
            if each.operator != "lte":
                least = max(least, number)
            if each.operator != "gte":
                greatest = min(greatest, number)
        return cls(least, greatest) if filters else None

    def mask(self, numbers: NDArray[np.integer[Any]]) -> Mask:
        """Return which numbers are within the bounds, shape (n,)."""
        return (numbers >= self.least) & (numbers <= self.greatest)


def matching(filters: Iterable[Filter], names: Sequence[Sequence[str]]) -> Mask:
    """Return which of n things match all filters on a field, shape (n,).

    `names` has one or more sequences of n names. A thing matches if any of its names does.
    """
    casefolded = [[name.casefold() for name in sequence] for sequence in names]
    mask = np.ones(len(casefolded[0]), np.bool_)
    for filter_ in filters:
        operators = next(pair for pair in _TESTS if filter_.operator in pair)
        values = tuple(value.casefold() for value in filter_.values)
        matches = np.zeros(len(mask), np.bool_)
        for sequence in casefolded:
            matches |= np.fromiter(_TESTS[operators](sequence, values), np.bool_, len(mask))
        mask &= matches ^ (filter_.operator == operators[1])
    return mask


def code_masks(
    texts: CodeTexts,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    fields: Mapping[str, FilterField] = VIEW_FIELDS,
) -> dict[Dimension, Mask]:
    """Return for each filtered dimension which codes match all filters on it, by code.

    No two of the fields may have the same dimension.
    """
    masks: dict[Dimension, Mask] = {}
    for name, field in fields.items():
        filters = tuple(query.filters_on((name,)))
        if filters:
            match = partial(_matching_texts, field, filters, sources, cancellation)
            key = (filters, sources)
            masks[field.dimension] = text_mask(texts, field.dimension, key, match, cancellation)
    return masks


def property_mask(texts: CodeTexts, query: Query, cancellation: Cancellation) -> Mask:
    """Return which properties match every filter on their name and their value, by code."""
    filters = [tuple(query.filters_on((field,))) for field in PROPERTY_FIELDS]

    def match(piece: Sequence[str]) -> Mask:
        pairs = [split_property(text) for text in piece]
        mask = np.ones(len(pairs), np.bool_)
        for place, on_field in enumerate(filters):
            if on_field:
                names = [pair[place] for pair in pairs]
                mask &= matching(_checking(on_field, cancellation), [names])
        return mask

    return text_mask(texts, Dimension.PROPERTY, tuple(filters), match, cancellation)


def goal_mask(texts: CodeTexts, goal: Goal, cancellation: Cancellation) -> Mask:
    """Return which codes reach a goal: of Dimension.PATH if it is a page, else of PROPERTY."""
    if goal.path is not None:
        pattern = PathPattern.of(goal.path)
        return text_mask(
            texts,
            Dimension.PATH,
            pattern,
            lambda piece: np.array([pattern.matches(path) for path in piece], np.bool_),
            cancellation,
        )

    def has_property(piece: Sequence[str]) -> Mask:
        pairs = map(split_property, piece)
        return np.array(
            [name == goal.event and goal.value in (None, value) for name, value in pairs], np.bool_
        )

    key = (goal.event, goal.value)
    return text_mask(texts, Dimension.PROPERTY, key, has_property, cancellation)


def matches_without_view(query: Query) -> bool:
    """Return whether an event that has no view matches: it has the text "" in every dimension.

    It is not from a hosting network. It belongs to no visit and has no duration, so no filter on
    these lets it through.
    """
    hosting = Bounds.of(query, HOSTING_FIELD)
    return (
        not query.filters_on((*VISIT_FIELDS, DURATION_FIELD))
        and (hosting is None or hosting.least == 0)
        and all(
            bool(matching(query.filters_on((name,)), [[""]] * len(field.namings))[0])
            for name, field in VIEW_FIELDS.items()
        )
    )


def text_pieces(
    texts: CodeTexts, dimension: Dimension, begin: int, cancellation: Cancellation
) -> Iterator[Sequence[str]]:
    """Return the texts of a dimension from a code on, in pieces."""
    all_texts = texts(dimension)
    size = len(all_texts)
    for first in range(begin, size, _TEXTS_AT_ONCE):
        some = all_texts[first : min(first + _TEXTS_AT_ONCE, size)]
        pieces = sum(map(len, some)) // _LETTERS_AT_ONCE + 1
        at_once = -(-len(some) // pieces)
        for place in range(0, len(some), at_once):
            cancellation.check()
            yield some[place : place + at_once]


def text_mask(
    texts: CodeTexts,
    dimension: Dimension,
    key: Hashable,
    match: Callable[[Sequence[str]], Mask],
    cancellation: Cancellation,
) -> Mask:
    """Return which texts of a dimension match; only those that are not in the cache are matched.

    The mask of some texts has the same key each time: all queries of a dashboard have the same
    filters.
    """
    mask: Mask | None = texts.cache.get(key)
    if mask is None:
        mask = np.zeros(0, np.bool_)
    added = [match(piece) for piece in text_pieces(texts, dimension, len(mask), cancellation)]
    if added:
        mask = np.concatenate([mask, *added])
    texts.cache.put(key, mask)
    return mask


def _matching_texts(
    field: FilterField,
    filters: Iterable[Filter],
    sources: Sources,
    cancellation: Cancellation,
    piece: Sequence[str],
) -> Mask:
    names = [[naming(text, sources) for text in piece] for naming in field.namings]
    return matching(_checking(filters, cancellation), names)


def _checking(filters: Iterable[Filter], cancellation: Cancellation) -> Iterator[Filter]:
    for filter_ in filters:
        cancellation.check()
        yield filter_
