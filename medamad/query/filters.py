"""The filters of a question: how they are written, and which names they let pass."""

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

Passing: TypeAlias = NDArray[np.bool_]


@frozen
class Field:
    """What a filter looks at: the names of a dimension's text, one of which has to match."""

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
"""The filters that look at a view."""

PROPERTY_FIELDS: Final = ("prop_name", "prop_value")
"""The filters that look at a property."""

FIELDS: Final = (*VIEW_FIELDS, *PROPERTY_FIELDS)

_LABORIOUS: Final = 4_096
_JOINED_LETTERS: Final = 40_000
"""In a text of this length Python finds by an algorithm that is linear, and within a millisecond:
meanwhile no other thread can run."""


def _containing(names: Sequence[str], value: str) -> Iterable[bool]:
    """Return which names have a value in them.

    To look for a long value in a short text Python may compare all of it at each place, which for
    many long names takes seconds. In one long text it does not, so they are looked through joined.
    """
    letters = sum(map(len, names))
    if letters * len(value) <= _LABORIOUS * len(names):
        return (value in name for name in names)
    at_once = len(names) * _JOINED_LETTERS // letters + 1
    return chain.from_iterable(
        _containing_joined(names[begin : begin + at_once], value)
        for begin in range(0, len(names), at_once)
    )


def _containing_joined(names: Sequence[str], value: str) -> list[bool]:
    between = next(letter for letter in map(chr, count()) if letter not in value)
    joined = between.join(names)
    ends = list(accumulate(len(name) + 1 for name in names))
    found = [False] * len(names)
    place = joined.find(value)
    while place >= 0:
        which = bisect_right(ends, place)
        found[which] = True
        place = joined.find(value, ends[which])
    return found


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
"""The positive operators. Names and values come without case."""

_NEGATIVES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "neq": "eq",
        "not_contains": "contains",
        "not_starts_with": "starts_with",
        "not_ends_with": "ends_with",
        "not_in": "in",
    }
)
"""The negative operators, each passing what its positive one does not."""

OPERATORS: Final = tuple(
    name
    for positive in _TESTS
    for name in (positive, *(no for no, yes in _NEGATIVES.items() if yes == positive))
)
_LISTS: Final = ("in", "not_in")


MAX_CONDITIONS: Final = len(FIELDS) * len(OPERATORS)
"""How many filters one question may have: each is held against every text of what it is on.

So many that each operator on each field may be there.
"""


@frozen
class Condition:
    """One filter: `operator` is one of OPERATORS, `values` one value, or those of a list."""

    field: str
    operator: str
    values: tuple[str, ...]


def conditions_of(parameters: Iterable[tuple[str, str]]) -> tuple[Condition, ...]:
    """Read the filters out of the decoded parameters of a query.

    `path[neq]=/x`, or `path=/x` for `eq`. All conditions must hold; the lists of one operator
    on one field count as one list. Other parameters are passed over; BadRequest for an operator
    that there is not, and for the first filter beyond MAX_CONDITIONS.
    """
    conditions: dict[Condition, None] = {}
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
            conditions[Condition(field, operator, (value,))] = None
        if len(conditions) + len(lists) > MAX_CONDITIONS:
            raise BadRequest(f"{key}: expected at most {MAX_CONDITIONS} filters in all")
    return (
        *conditions,
        *(Condition(*key, tuple(values)) for key, values in lists.items()),
    )


def passing(conditions: Iterable[Condition], names: Sequence[Sequence[str]]) -> Passing:
    """Return the things that pass all of some conditions on one field, boolean, shape (n,).

    `names` are one or more sequences of n names of these n things, as `without_case` gives them.
    """
    passed = np.ones(len(names[0]), np.bool_)
    for condition in conditions:
        test = _TESTS[_NEGATIVES.get(condition.operator, condition.operator)]
        values = tuple(value.casefold() for value in condition.values)
        found = np.zeros(len(passed), np.bool_)
        for sequence in names:
            found |= np.fromiter(test(sequence, values), np.bool_, len(passed))
        passed &= found ^ (condition.operator in _NEGATIVES)
    return passed


def without_case(names: Iterable[str]) -> list[str]:
    """Return names as they are compared."""
    return [name.casefold() for name in names]
