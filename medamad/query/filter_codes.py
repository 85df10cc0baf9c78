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
    Field,
    Filter,
    Mask,
    casefolded,
    matching,
)
from medamad.query.request import Cancellation, Query
from medamad.storage.segments.parts import Texts

_TEXTS_AT_ONCE: Final = 5_000
"""Texts are matched in pieces, between which other threads can run."""
_LETTERS_AT_ONCE: Final = 250_000
"""Pieces of long texts are smaller: they have about this many letters."""


def code_masks(
    texts: Texts, query: Query, sources: Sources, cancellation: Cancellation
) -> dict[Dimension, Mask]:
    """Return for each filtered dimension which codes match all filters on it, by code."""
    masks: dict[Dimension, Mask] = {}
    for name, field in VIEW_FIELDS.items():
        filters = tuple(query.filters_on((name,)))
        if filters:
            match = partial(_matching_texts, field, filters, sources, cancellation)
            key = (filters, sources)
            masks[field.dimension] = _cached_mask(texts, field.dimension, key, match, cancellation)
    return masks


def property_mask(texts: Texts, query: Query, cancellation: Cancellation) -> Mask:
    """Return which properties match every filter on their name and their value, by code."""
    filters = [tuple(query.filters_on((field,))) for field in PROPERTY_FIELDS]

    def match(piece: Sequence[str]) -> Mask:
        pairs = [split_property(text) for text in piece]
        mask = np.ones(len(pairs), np.bool_)
        for place, on_field in enumerate(filters):
            if on_field:
                names = casefolded(pair[place] for pair in pairs)
                mask &= matching(_checking(on_field, cancellation), [names])
        return mask

    return _cached_mask(texts, Dimension.PROPERTY, tuple(filters), match, cancellation)


def matches_without_view(query: Query) -> bool:
    """Return whether an event that has no view matches: it has the text "" in every dimension."""
    return all(
        bool(matching(query.filters_on((name,)), [[""]] * len(field.namings))[0])
        for name, field in VIEW_FIELDS.items()
    )


def text_pieces(
    texts: Texts, dimension: Dimension, begin: int, cancellation: Cancellation
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


def _cached_mask(
    texts: Texts,
    dimension: Dimension,
    key: Hashable,
    match: Callable[[Sequence[str]], Mask],
    cancellation: Cancellation,
) -> Mask:
    """Return which texts of a dimension match; only those that are not in the cache are matched.

    All queries of a dashboard have the same filters.
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
    field: Field,
    filters: Iterable[Filter],
    sources: Sources,
    cancellation: Cancellation,
    piece: Sequence[str],
) -> Mask:
    names = [casefolded(naming(text, sources) for text in piece) for naming in field.namings]
    return matching(_checking(filters, cancellation), names)


def _checking(filters: Iterable[Filter], cancellation: Cancellation) -> Iterator[Filter]:
    for filter_ in filters:
        cancellation.check()
        yield filter_
