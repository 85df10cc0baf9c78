"""Texts in a row that only ever become more."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, overload

from attrs import define, field

_BITS: Final = 12
_SIZE: Final = 1 << _BITS


@define(eq=False)
class Growing(Sequence[str]):
    """A list of texts in pieces, each a tuple once it is full.

    The garbage collector does not go through a tuple of texts; a list of a million would hold all
    threads up for tens of milliseconds each time. One thread may add while others read.
    """

    _pieces: list[Sequence[str]] = field(factory=list, init=False)
    _open: list[str] = field(factory=list, init=False)
    nbytes: int = field(default=0, init=False)
    """About how many bytes of memory the texts take."""

    def append(self, text: str) -> None:
        """Add a text."""
        if not self._open:
            self._pieces.append(self._open)
        self._open.append(text)
        self.nbytes += sys.getsizeof(text)
        if len(self._open) == _SIZE:
            self._pieces[-1] = tuple(self._open)
            self._open = []

    def extend(self, texts: Iterable[str]) -> None:
        """Add several texts."""
        for text in texts:
            self.append(text)

    def pieces(self) -> list[Sequence[str]]:
        """Give the texts in pieces."""
        return list(self._pieces)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._some(*index.indices(len(self)))
        # A code may be a number of numpy's, too narrow to reckon with.
        place = int(index)
        if place < 0:
            place += len(self)
        if place < 0:
            raise IndexError(index)
        return self._pieces[place >> _BITS][place & _SIZE - 1]

    def __len__(self) -> int:
        pieces = self._pieces
        count = len(pieces)
        return (count - 1) * _SIZE + len(pieces[count - 1]) if count else 0

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._pieces)

    def _some(self, start: int, stop: int, step: int) -> list[str]:
        if step != 1 or start >= stop:
            return [self[place] for place in range(start, stop, step)]
        first = start >> _BITS
        pieces = self._pieces[first : (stop - 1 >> _BITS) + 1]
        begin = first << _BITS
        return list(chain.from_iterable(pieces))[start - begin : stop - begin]
