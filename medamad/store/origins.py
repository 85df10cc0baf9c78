"""Where hits are from: this store, or another one that they were imported out of.

A view, and an event, is named for good by the store that counted it first and its number there.
What was imported keeps that name: in its own place it has a number of this store, at a fixed
distance from the one it came with. That number is the same in whatever import of a website it
comes: so a view and its events find each other that came in different ones, in whatever order.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

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

    def place(self, number: int) -> int:
        """Give the number here of a hit that has one there; 0 for none of these."""
        return self.at + number - self.first if self.first <= number <= self.last else 0


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


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """Give as few spans as say the same."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.store, span.at - span.first, span.first)):
        before = found[-1] if found else None
        if (
            before is not None
            and (before.store, before.at - before.first) == (span.store, span.at - span.first)
            and span.first <= before.last + 1
        ):
            last = max(before.last, span.last)
            found[-1] = Span(span.store, before.first, last, before.at)
        else:
            found.append(span)
    return found


def spans_of(
    known: Sequence[Span], store: str, first: int, last: int, reserve: Callable[[int], int]
) -> Iterator[Span]:
    """Give the numbers here of the hits of a store: those that are known, and new ones.

    `reserve` gives the first of so many new ones. Hits of no store have no numbers for good.
    """
    known = [span for span in known if store and span.store == store]
    while first <= last:
        has = next((span for span in known if span.place(first)), None)
        if has is not None:
            end = min(last, has.last)
            yield Span(store, first, end, has.place(first))
        else:
            end = min([last, *(span.first - 1 for span in known if span.first > first)])
            yield Span(store, first, end, reserve(end - first + 1))
        first = end + 1
