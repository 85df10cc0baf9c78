"""The filters of a query: how they are written, and which names match them."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, count
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import BadRequest
from medamad.query import rows
from medamad.query.rows import Naming

Mask: TypeAlias = NDArray[np.bool_]
"""Which of n things match, shape (n,)."""


@frozen
class Field:
    """The names that a filter compares with: one of the names of a dimension's text must match."""

    dimension: Dimension
    namings: tuple[Naming, ...] = (rows.as_stored,)


VIEW_FIELDS: Final[Mapping[str, Field]] = MappingProxyType(
    {
        "path": Field(Dimension.PATH),
        "referrer": Field(Dimension.REFERRER, (rows.source, rows.as_stored)),
        "utm_source": Field(Dimension.UTM_SOURCE),
        "utm_medium": Field(Dimension.UTM_MEDIUM),
        "utm_campaign": Field(Dimension.UTM_CAMPAIGN),
        "utm_term": Field(Dimension.UTM_TERM),
        "utm_content": Field(Dimension.UTM_CONTENT),
        "browser": Field(Dimension.BROWSER),
        "os": Field(Dimension.OS),
        "device": Field(Dimension.DEVICE),
        "country": Field(Dimension.COUNTRY, (rows.country,)),
        "language": Field(Dimension.LOCALE, (rows.language, rows.locale)),
    }
)
"""The fields of a view that can be filtered by."""

PROPERTY_FIELDS: Final = ("prop_name", "prop_value")
"""The fields of a property that can be filtered by."""

FIELDS: Final = (*VIEW_FIELDS, *PROPERTY_FIELDS)

_FEW_COMPARISONS: Final = 4_096
_LETTERS_AT_ONCE: Final = 40_000
"""Python searches a text of this length in linear time and within a millisecond. No other thread
can run meanwhile."""


def _containing(names: Sequence[str], value: str) -> Iterable[bool]:
    """Return which names contain a value.

    When Python searches a short text for a long value, it may compare all of it at each position,
    which takes seconds for many long names. It does not do so in a long text, so the names are
    joined.
    """
    letters = sum(map(len, names))
    if letters * len(value) <= _FEW_COMPARISONS * len(names):
        return (value in name for name in names)
    at_once = len(names) * _LETTERS_AT_ONCE // letters + 1
    return chain.from_iterable(
        _containing_joined(names[begin : begin + at_once], value)
        for begin in range(0, len(names), at_once)
    )


def _containing_joined(names: Sequence[str], value: str) -> list[bool]:
    between = next(letter for letter in map(chr, count()) if letter not in value)
    joined = between.join(names)
    ends = list(accumulate(len(name) + 1 for name in names))
    contains = [False] * len(names)
    place = joined.find(value)
    while place >= 0:
        which = bisect_right(ends, place)
        contains[which] = True
        place = joined.find(value, ends[which])
    return contains


_Test: TypeAlias = Callable[[Sequence[str], tuple[str, ...]], Iterable[bool]]

_TESTS: Final[Mapping[str, _Test]] = MappingProxyType(
    {
        "eq": lambda names, values: (name == values[0] for name in names),
        "contains": lambda names, values: _containing(names, values[0]),
        "starts_with": lambda names, values: (name.startswith(values[0]) for name in names),
        "ends_with": lambda names, values: (name.endswith(values[0]) for name in names),
        "in": lambda names, values: map(frozenset(values).__contains__, names),
    }
)
"""The positive operators. Names and values are casefolded."""

_NEGATIVES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "neq": "eq",
        "not_contains": "contains",
        "not_starts_with": "starts_with",
        "not_ends_with": "ends_with",
        "not_in": "in",
    }
)
"""The negative operators, each with the positive one that it negates."""

OPERATORS: Final = tuple(
    name
    for positive in _TESTS
    for name in (positive, *(no for no, yes in _NEGATIVES.items() if yes == positive))
)
_LISTS: Final = ("in", "not_in")


MAX_FILTERS: Final = len(FIELDS) * len(OPERATORS)
"""The most filters of a query: each operator on each field.

There is a limit because every text of a dimension is compared with each filter on it.
"""


@frozen
class Filter:
    """One filter: `operator` is one of OPERATORS, `values` one value, or those of a list."""

    field: str
    operator: str
    values: tuple[str, ...]


def parse_filters(parameters: Iterable[tuple[str, str]]) -> tuple[Filter, ...]:
    """Return the filters among the decoded parameters of a query string.

    `path[neq]=/x`, or `path=/x` for `eq`. All filters must hold. The lists of one operator on
    one field form one list. Other parameters are ignored. Raise BadRequest for an unknown operator
    and for the first filter beyond MAX_FILTERS.
    """
    filters: dict[Filter, None] = {}
    lists: dict[tuple[str, str], list[str]] = {}
    for key, value in parameters:
        field, bracket, rest = key.partition("[")
        if field not in FIELDS:
            continue
        operator = rest.removesuffix("]") if bracket else "eq"
        if operator not in OPERATORS or (bracket and key != f"{field}[{operator}]"):
            raise BadRequest(f"{key}: expected one of the operators {', '.join(OPERATORS)}")
        if operator in _LISTS:
            lists.setdefault((field, operator), []).extend(value.split(","))
        else:
            filters[Filter(field, operator, (value,))] = None
        if len(filters) + len(lists) > MAX_FILTERS:
            raise BadRequest(f"{key}: expected at most {MAX_FILTERS} filters in all")
    return (
        *filters,
        *(Filter(*key, tuple(values)) for key, values in lists.items()),
    )


def matching(filters: Iterable[Filter], names: Sequence[Sequence[str]]) -> Mask:
    """Return which of n things match all filters on a field, shape (n,).

    `names` has one or more sequences of n casefolded names. A thing matches if any of its names
    does.
    """
    mask = np.ones(len(names[0]), np.bool_)
    for filter_ in filters:
        test = _TESTS[_NEGATIVES.get(filter_.operator, filter_.operator)]
        values = tuple(value.casefold() for value in filter_.values)
        matches = np.zeros(len(mask), np.bool_)
        for sequence in names:
            matches |= np.fromiter(test(sequence, values), np.bool_, len(mask))
        mask &= matches ^ (filter_.operator in _NEGATIVES)
    return mask


def casefolded(names: Iterable[str]) -> list[str]:
    """Return names in the form in which they are compared."""
    return [name.casefold() for name in names]
