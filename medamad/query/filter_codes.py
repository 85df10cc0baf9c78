"""Which dictionary codes of a website match the filters of a query."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from medamad.domain.dimensions import Dimension, split_property
from medamad.lookup.referrers import Sources
from medamad.query.filters import (
    PROPERTY_FIELDS,
    VIEW_FIELDS,
    Condition,
    Field,
    Passing,
    passing,
    without_case,
)
from medamad.query.request import Question
from medamad.storage.segments.snapshot import Snapshot

_REMEMBERED: Final = 64
_TOLD_AT_ONCE: Final = 5_000
"""How many texts are gone through at a time: by fewer, it waits for the threads' turns."""
_LETTERS_AT_ONCE: Final = 250_000
"""Of long texts there are fewer: about so many letters at a time."""


def dimension_filters(
    snapshot: Snapshot, question: Question, sources: Sources
) -> dict[Dimension, Passing]:
    """Return which codes of each filtered dimension pass the filters on it."""
    found: dict[Dimension, Passing] = {}
    for name, field in VIEW_FIELDS.items():
        conditions = tuple(question.conditions_on((name,)))
        if conditions:
            of = partial(_passing_texts, snapshot, field, conditions, sources)
            key = (conditions, sources)
            found[field.dimension] = _remembered(snapshot, field.dimension, key, of)
    return found


def _passing_texts(
    snapshot: Snapshot,
    field: Field,
    conditions: Iterable[Condition],
    sources: Sources,
    texts: Sequence[str],
) -> Passing:
    names = [without_case(naming(text, sources) for text in texts) for naming in field.namings]
    return passing(_while_wanted(snapshot, conditions), names)


def _while_wanted(snapshot: Snapshot, conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        snapshot.check()
        yield condition


def _remembered(
    snapshot: Snapshot,
    dimension: Dimension,
    key: Hashable,
    of: Callable[[Sequence[str]], Passing],
) -> Passing:
    """Return what `of` tells of each text of a dimension, asking only of those not asked of before.

    The questions of a dashboard all have the same filters.
    """
    memo = snapshot.memo
    known: Passing = memo.pop(key, np.zeros(0, np.bool_))
    pieces = [of(texts) for texts in texts_from(snapshot, dimension, len(known))]
    if pieces:
        known = np.concatenate([known, *pieces])
    memo[key] = known
    # Another question may be at the same: what is gone through is a copy.
    for oldest in list(memo)[:-_REMEMBERED]:
        memo.pop(oldest, None)
    return known


def texts_from(snapshot: Snapshot, dimension: Dimension, begin: int) -> Iterator[Sequence[str]]:
    """Return the texts of a dimension from a code on, some at a time."""
    texts = snapshot.texts(dimension)
    size = len(texts)
    for first in range(begin, size, _TOLD_AT_ONCE):
        some = texts[first : min(first + _TOLD_AT_ONCE, size)]
        pieces = sum(map(len, some)) // _LETTERS_AT_ONCE + 1
        at_once = -(-len(some) // pieces)
        for place in range(0, len(some), at_once):
            snapshot.check()
            yield some[place : place + at_once]


def passes_without_view(question: Question) -> bool:
    """Return whether an event that belongs to no view passes: it has the name "" everywhere."""
    return all(
        bool(passing(question.conditions_on((name,)), [[""]] * len(field.namings))[0])
        for name, field in VIEW_FIELDS.items()
    )


def property_filter(snapshot: Snapshot, question: Question) -> Passing:
    """Return which codes of properties match every filter on their name and their value."""
    conditions = [tuple(question.conditions_on((field,))) for field in PROPERTY_FIELDS]

    def of(texts: Sequence[str]) -> Passing:
        parted = [split_property(text) for text in texts]
        matching = np.ones(len(parted), np.bool_)
        for place, asked in enumerate(conditions):
            if asked:
                names = without_case(pair[place] for pair in parted)
                matching &= passing(_while_wanted(snapshot, asked), [names])
        return matching

    return _remembered(snapshot, Dimension.PROPERTY, tuple(conditions), of)
