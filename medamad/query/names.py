"""The names of rows: display names of a dimension's texts, and the order of names, both cached."""

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Final, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.filters import text_pieces
from medamad.query.reader import Reader
from medamad.query.rows import Naming, first_in_order
from medamad.storage.dictionary.decode import CodeTexts, TextCache

NameOrder: TypeAlias = Callable[[], NDArray[np.uint32] | None]
"""Returns the numbers of all names in ascending order of these, None if that would take long."""

_ORDERED: Final = 1 << 16
"""Up to this many names, the order of all of them is cached."""


@frozen(eq=False)
class DisplayNames:
    """The display names of a dimension's texts: that of a code is `names[numbers_of(code)]`."""

    names: tuple[str, ...] = ()
    number_of: NDArray[np.uint32] = field(factory=lambda: np.zeros(0, np.uint32))
    """That of each code's name among them."""

    def numbers_of(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the number of the name of each code."""
        return self.number_of[codes].astype(np.intp)


def display_names(
    reader: Reader, dimension: Dimension, naming: Naming
) -> tuple[DisplayNames, NameOrder]:
    """Return the display names of all texts of a dimension, and their order.

    Only texts that are not in the cache are named.
    """
    texts, sources = reader.texts, reader.sources
    key = (DisplayNames, dimension, naming, sources)
    found: DisplayNames = texts.cache.get(key) or DisplayNames()
    known = len(found.number_of)
    if known < len(texts(dimension)):
        numbers = {name: number for number, name in enumerate(found.names)}
        pieces = [found.number_of]
        for piece in text_pieces(texts, dimension, known, reader.cancellation):
            places = (numbers.setdefault(naming(text, sources), len(numbers)) for text in piece)
            pieces.append(np.fromiter(places, np.uint32, len(piece)))
        found = DisplayNames(tuple(numbers), np.concatenate(pieces))
    texts.cache.put(key, found)
    return found, partial(_order, texts.cache, key, found.names)


def order_of_texts(texts: CodeTexts, dimension: Dimension) -> NameOrder:
    """Return the order of the texts of a dimension."""
    return partial(_order, texts.cache, dimension, texts(dimension))


def _order(cache: TextCache, key: Hashable, names: Sequence[str]) -> NDArray[np.uint32] | None:
    """Return the order of names; only those that are not in the cache are sorted."""
    size = len(names)
    if size > _ORDERED:
        return None
    key = (_order, key)
    order: NDArray[np.uint32] | None = cache.get(key)
    if order is None:
        order = np.zeros(0, np.uint32)
    known = len(order)
    if known < size:
        added = names[known:size]
        places = first_in_order(added, len(added))
        before = [bisect_right(order, added[place], key=names.__getitem__) for place in places]
        order = np.insert(order, before, np.array(places, np.uint32) + np.uint32(known))
    cache.put(key, order)
    return order
