"""The rows of a response: display names, order, page and fractions."""

from collections.abc import Callable, Sequence
from functools import cache
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from medamad.lookup.countries import country_name
from medamad.lookup.languages import language_name, locale_name
from medamad.lookup.referrers import Sources

Row: TypeAlias = msgspec.Struct
"""A row of an answer; encoded it is an object of its attributes."""
Columns: TypeAlias = dict[str, Sequence[str] | NDArray[Any]]
"""Values of the rows, all of equal length, by the name they have there."""

_AT_ONCE: Final = 1_000
"""How many names are sorted, or rows made, in one go: meanwhile no other thread can run."""


def fractions(parts: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return part / whole rounded to 4 decimals, as Python's `round` does; 0 for a whole of 0."""
    quotients = np.zeros(len(parts), np.float64)
    np.divide(parts, whole, out=quotients, where=whole > 0)
    scaled = quotients * 10_000
    rounded = np.rint(scaled) / 10_000
    # Close to a half, the product is too coarse to tell to which side to round.
    for place in np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6):  # noqa: PLR2004
        rounded[place] = round(float(quotients[place]), 4)
    return rounded


def within_reach(
    numbers: NDArray[np.integer], falling: NDArray[Any], stretch: slice
) -> tuple[NDArray[np.integer], slice]:
    """Return the numbers that a stretch can show, however those are ordered that have equal columns.

    The numbers are ordered falling by a column (`falling[number]`). Gives also where the stretch
    lies among those that are left.
    """
    column = falling[numbers]
    ordered = np.sort(column)[::-1]
    stop = min(stretch.stop, len(ordered))
    if stretch.start >= stop:
        return numbers[:0], slice(0, 0)
    greatest, least = ordered[stretch.start], ordered[stop - 1]
    skipped = int(np.count_nonzero(column > greatest))
    left = numbers[(column <= greatest) & (column >= least)]
    return left, slice(stretch.start - skipped, stretch.stop - skipped)


def page(
    numbers: NDArray[np.integer],
    falling: Sequence[NDArray[Any]],
    name_of: Callable[[int], str],
    stretch: slice,
) -> tuple[NDArray[np.intp], list[str]]:
    """Order numbers and give a stretch of them, with their names.

    Falling by each of some columns (`column[number]`), then by name, by code point. Names are
    looked up only where the stretch or a tie that reaches into it needs them.
    """
    columns = [column[numbers] for column in falling]
    order = np.lexsort([-column for column in reversed(columns)])
    differs = np.zeros(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        ordered = column[order]
        differs |= ordered[1:] != ordered[:-1]
    # Runs of equal columns: run i is bounds[i] ≤ place < bounds[i + 1].
    bounds = np.concatenate(([0], np.flatnonzero(differs) + 1, [len(order)]))
    first = int(np.searchsorted(bounds, stretch.start, side="right")) - 1
    last = int(np.searchsorted(bounds, min(stretch.stop, len(order)), side="left"))
    begin = int(bounds[first])
    shown = np.asarray(numbers[order[begin : bounds[last]]], np.intp)
    names = [name_of(number) for number in shown.tolist()]
    wanted = slice(stretch.start - begin, stretch.stop - begin)
    for run in np.flatnonzero(np.diff(bounds[first : last + 1]) > 1).tolist():
        tied = slice(bounds[first + run] - begin, bounds[first + run + 1] - begin)
        ordered = _first_of(names[tied], wanted.stop - tied.start)
        filled = slice(tied.start, tied.start + len(ordered))
        shown[filled] = shown[tied][ordered]
        names[filled] = [names[tied.start + place] for place in ordered]
    return shown[wanted], names[wanted]


def _first_of(names: Sequence[str], count: int) -> list[int]:
    """Return the places of the first of some names in ascending order, that many if there are."""
    pieces = (
        sorted(range(begin, min(begin + _AT_ONCE, len(names))), key=names.__getitem__)
        for begin in range(0, len(names), _AT_ONCE)
    )
    return list(islice(merge(*pieces, key=names.__getitem__), count))


def records(columns: Columns) -> list[Row]:
    """Turn columns of equal length into rows: structs, for they take a third of a dict's time."""
    values = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    make, rows = _row_of(tuple(columns)), list[Row]()
    for begin in range(0, len(values[0]), _AT_ONCE):
        rows += map(make, *(column[begin : begin + _AT_ONCE] for column in values))
    return rows


@cache
def _row_of(names: tuple[str, ...]) -> type[msgspec.Struct]:
    # Of nothing but texts and numbers: the garbage collector need not go through thousands of them.
    return msgspec.defstruct("Row", names, gc=False)


Naming: TypeAlias = Callable[[str, Sources], str]
"""Gives the name of a stored text. Several texts may share one."""


def as_stored(text: str, _sources: Sources) -> str:
    """Return the text itself."""
    return text


def source(text: str, sources: Sources) -> str:
    """Return the source of a referrer: `Google` for `google.co.uk/search`."""
    return sources.name_of(text)


def country(text: str, _sources: Sources) -> str:
    """Return the name of a country by its ISO code."""
    return country_name(text)


def language(text: str, _sources: Sources) -> str:
    """Return the language of a locale: `English` for `en-GB`."""
    return language_name(text)


def locale(text: str, _sources: Sources) -> str:
    """Return the name of a locale: `British English` for `en-GB`."""
    return locale_name(text)
