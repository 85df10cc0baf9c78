"""Where hits are from: this store, or another one that they were imported out of.

A view, and an event, is named for good by the store that counted it first and its number there.
What was imported keeps that name: in its own place it has a number of this store, at a fixed
distance from the one it came with.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from attrs import frozen
from numpy.typing import NDArray


class Span(msgspec.Struct, frozen=True, array_like=True):
    """The hits that another store has given the numbers from `first` to `last`.

    Here their numbers begin at `at`.
    """

    store: str
    first: int
    last: int
    at: int

    @property
    def end(self) -> int:
        """The greatest number that they can have here."""
        return self.at + self.last - self.first


@frozen
class Origins:
    """The names of a website's hits. `store` is this one's."""

    store: str
    spans: Sequence[Span] = ()

    def of(self, numbers: NDArray[np.integer]) -> tuple[list[str], list[int]]:
        """Give the store that each hit is from, and its number there, by its numbers here."""
        found = numbers.astype(np.uint64)
        which = np.zeros(len(found), np.intp)
        for place, span in enumerate(self.spans, 1):
            inside = (numbers >= span.at) & (numbers <= span.end)
            found[inside] = (
                numbers[inside].astype(np.uint64) - np.uint64(span.at) + np.uint64(span.first)
            )
            which[inside] = place
        stores = [self.store, *(span.store for span in self.spans)]
        return [stores[place] for place in which.tolist()], found.tolist()
