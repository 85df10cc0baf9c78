"""The rows of a result: display names, order, page and fractions."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from medamad.domain.dimensions import Since
from medamad.lookup.countries import country_name
from medamad.lookup.languages import language_name, locale_name
from medamad.lookup.referrers import Sources
from medamad.storage.dictionary.decode import TextList

Row: TypeAlias = msgspec.Struct
"""A row. It is encoded as an object of its attributes."""
Columns: TypeAlias = dict[str, Sequence[str] | NDArray[Any]]
"""The columns of rows by name, all of equal length."""

_AT_ONCE: Final = 1_000
"""How many names are sorted, or rows made, at a time. No other thread can run meanwhile."""
_FEW: Final = 100
"""So few rows are ordered faster without the order of all names."""


def fractions(
    parts: NDArray[np.int64], whole: NDArray[np.int64], *, decimals: int = 4
) -> NDArray[np.float64]:
    """Return part / whole rounded to 4 decimals, as Python's `round` does, or 0 if whole is 0."""
    quotients = np.zeros(len(parts), np.float64)
    np.divide(parts, whole, out=quotients, where=whole > 0)
    scale = float(10**decimals)
    scaled = quotients * scale
    rounded = np.rint(scaled) / scale
    # Close to a half, the product is too inexact to decide which way to round.
    for place in np.flatnonzero(np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6):  # noqa: PLR2004
        rounded[place] = round(float(quotients[place]), decimals)
    return rounded


def rows_in_reach(
    numbers: NDArray[np.integer], descending: NDArray[Any], row_slice: slice
) -> tuple[NDArray[np.integer], slice]:
    """Return the numbers that can be on a page, and the slice of those that the page is.

    The numbers are in descending order of a column (`descending[number]`). Any of those with equal
    values can be on the page.
    """
    column = descending[numbers]
    ordered = np.sort(column)[::-1]
    stop = min(row_slice.stop, len(ordered))
    if row_slice.start >= stop:
        return numbers[:0], slice(0, 0)
    greatest, least = ordered[row_slice.start], ordered[stop - 1]
    skipped = int(np.count_nonzero(column > greatest))
    left = numbers[(column <= greatest) & (column >= least)]
    return left, slice(row_slice.start - skipped, row_slice.stop - skipped)


def page_of_rows(
    numbers: NDArray[np.integer],
    descending: Sequence[NDArray[Any]],
    names: Sequence[str],
    row_slice: slice,
    order: Callable[[], NDArray[np.integer] | None] = lambda: None,
) -> tuple[NDArray[np.intp], list[str]]:
    """Return a page of ordered numbers, and their names.

    The order is descending by each column (`column[number]`), then ascending by name, by code
    point. `order` may return the numbers of all names in that order. Without it, only names that
    are on the page, or tied with one that is, are looked up.
    """
    numbers, row_slice = rows_in_reach(numbers, descending[0], row_slice)
    by_name = order() if len(numbers) > _FEW else None
    if by_name is not None:
        is_wanted = np.zeros(len(by_name), np.bool_)
        is_wanted[numbers] = True
        numbers = by_name[is_wanted[by_name]]
    columns = [column[numbers] for column in descending]
    in_order = _descending(columns)
    if by_name is not None:
        page = np.asarray(numbers[in_order[row_slice]], np.intp)
        return page, _names_of(names, page)
    differs = np.zeros(max(len(in_order) - 1, 0), np.bool_)
    for column in columns:
        ordered = column[in_order]
        differs |= ordered[1:] != ordered[:-1]
    # Runs of equal values: run i is bounds[i] ≤ place < bounds[i + 1].
    bounds = np.concatenate(([0], np.flatnonzero(differs) + 1, [len(in_order)]))
    first = int(np.searchsorted(bounds, row_slice.start, side="right")) - 1
    last = int(np.searchsorted(bounds, min(row_slice.stop, len(in_order)), side="left"))
    begin = int(bounds[first])
    candidates = np.asarray(numbers[in_order[begin : bounds[last]]], np.intp)
    names = _names_of(names, candidates)
    shown = slice(row_slice.start - begin, row_slice.stop - begin)
    for run in np.flatnonzero(np.diff(bounds[first : last + 1]) > 1).tolist():
        tied = slice(bounds[first + run] - begin, bounds[first + run + 1] - begin)
        ordered = first_in_order(names[tied], shown.stop - tied.start)
        filled = slice(tied.start, tied.start + len(ordered))
        candidates[filled] = candidates[tied][ordered]
        names[filled] = [names[tied.start + place] for place in ordered]
    return candidates[shown], names[shown]


def _descending(columns: Sequence[NDArray[Any]]) -> NDArray[np.intp]:
    """Return the stable order that is descending by each column, as `np.lexsort` of negated ones.

    It takes half the time.
    """
    in_order = np.argsort(-columns[-1], kind="stable")
    for column in columns[-2::-1]:
        in_order = in_order[np.argsort(-column[in_order], kind="stable")]
    return in_order


def _names_of(names: Sequence[str], numbers: NDArray[np.intp]) -> list[str]:
    if isinstance(names, TextList):
        return names.take(numbers.tolist())
    return [names[number] for number in numbers.tolist()]


def first_in_order(names: Sequence[str], count: int) -> list[int]:
    """Return the places of the first `count` names in ascending order."""
    pieces = (
        sorted(range(begin, min(begin + _AT_ONCE, len(names))), key=names.__getitem__)
        for begin in range(0, len(names), _AT_ONCE)
    )
    return list(islice(merge(*pieces, key=names.__getitem__), count))


def make_rows(columns: Columns) -> list[Row]:
    """Return rows of columns of equal length. Making structs takes a third of the time of dicts."""
    values = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    make, rows = _row_of(tuple(columns)), list[Row]()
    for begin in range(0, len(values[0]), _AT_ONCE):
        rows += map(make, *(column[begin : begin + _AT_ONCE] for column in values))
    return rows


@cache
def _row_of(names: tuple[str, ...]) -> type[msgspec.Struct]:
    # Rows have only texts and numbers, so the garbage collector need not track thousands of them.
    return msgspec.defstruct("Row", names, gc=False)


Naming: TypeAlias = Callable[[str, Sources], str]
"""Returns the display name of a stored text. Several texts may have the same name."""


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


_VISITORS: Final[Mapping[str, str]] = {
    since: "new" if since is Since.NEW else "returning" for since in Since
}


def visitor(text: str, _sources: Sources) -> str:
    """Return `new` or `returning` by when a visitor was here last, "" if unknown."""
    return _VISITORS.get(text, "")


def locale(text: str, _sources: Sources) -> str:
    """Return the name of a locale: `British English` for `en-GB`."""
    return locale_name(text)
