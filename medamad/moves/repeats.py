"""Which hits an earlier file of an import has already: copies overlap, and exports of all so far.

Where a file does not name its hits they are told by what they say: of those that say the same as
many count as the file has that has most of them. So logs of several servers all come in. Time on
page is said later than the view is: the longest counts, in whatever order the files are.
"""

from array import array
from typing import Any, Final

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.moves.rows import Row, ViewRow, said_by

_NOTHING: Final = np.zeros(0, np.int64)


def _int64s() -> "array[int]":
    return array("q")


def _uint32s() -> "array[int]":
    return array("I")


@define(eq=False)
class Repeats:
    """Hits that are noted while files are read, and told of when they are read again.

    In memory alone: 24 bytes for each, of what it says a hash that no other process could make.
    """

    hits: int = 0
    """How many come again, when all is decided."""
    is_decided: bool = False
    _said: "array[int]" = field(factory=_int64s)
    _files: "array[int]" = field(factory=_uint32s)
    _durations_ms: "array[int]" = field(factory=_uint32s)
    _numbers: "array[int]" = field(factory=_int64s)
    _is_again: bytes = b""
    """Of the hits, by their numbers, as far as any come again."""
    _instead: tuple[NDArray[np.int64], NDArray[np.int64]] = (_NOTHING, _NOTHING)
    """The numbers of those that come again, ascending, and of those that count."""

    def is_again(self, file: int, row: Row) -> bool:
        """Tell whether a hit comes again, of which it is a row of the file of that place.

        Never, as long as not all are noted. The rows of an event follow each other: the first
        stands for it.
        """
        if self.is_decided:
            return row.number < len(self._is_again) and bool(self._is_again[row.number])
        if not self._numbers or self._numbers[-1] != row.number:
            self._said.append(hash((row.identity, *said_by(row))))
            self._files.append(file)
            self._durations_ms.append(row.duration_ms if isinstance(row, ViewRow) else 0)
            self._numbers.append(row.number)
        return False

    def decide(self) -> None:
        """Decide which come again, when all are noted."""
        said = np.frombuffer(self._said, np.int64)
        order = np.argsort(said, kind="stable")
        begins = _begins(said[order])
        order = order[~(begins & np.append(begins[1:], [True])[: len(begins)])]
        files = np.frombuffer(self._files, np.uint32)
        shortness = ~np.frombuffer(self._durations_ms, np.uint32)
        order = order[np.lexsort((shortness[order], files[order], said[order]))]
        said, files, shortness = said[order], files[order], shortness[order]
        numbers = np.frombuffer(self._numbers, np.int64)[order]
        places = np.arange(len(order))
        # How many of the same file are before it that say the same.
        before = places - _last(places, _begins(said) | _begins(files))
        alike = np.lexsort((shortness, before, said))
        counts = _begins(said[alike]) | _begins(before[alike])
        again, first = numbers[alike][~counts], numbers[alike[_last(places, counts)]][~counts]
        self.hits = len(again)
        if self.hits:
            is_again = np.zeros(int(again.max()) + 1, np.uint8)
            is_again[again] = 1
            self._is_again = is_again.tobytes()
            ascending = np.argsort(again)
            self._instead = again[ascending], first[ascending]
        self._said, self._numbers = _int64s(), _int64s()
        self._files, self._durations_ms = _uint32s(), _uint32s()
        self.is_decided = True

    def counting(self, number: int) -> int:
        """Give the number of a hit, or where it comes again, of the one that counts."""
        again, first = self._instead
        at = int(np.searchsorted(again, number))
        return int(first[at]) if at < len(again) and int(again[at]) == number else number


def _begins(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which values are others than those before."""
    return np.append([True], values[1:] != values[:-1])[: len(values)]


def _last(places: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give of each place the last that is chosen, of it and those before."""
    return np.maximum.accumulate(np.where(chosen, places, 0))
