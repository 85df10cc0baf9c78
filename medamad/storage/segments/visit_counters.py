"""Counters of visits: by what their first and last views have, by the slot in which they began.

The sums of a code are those of groups of visits which have no visit in common: FIRST, whose first
view has the code; LATER, which have it only in later views; and OUTSIDE, which only rollups know:
which have it only in views of other days. Each group has VISITS to DURATION_MS, from the row of its
own number on. Segments have the rows of FIRST and, of pages, EXITS and the number of LATER.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.storage.segments.counters import SLOT_MS, Counters, merge
from medamad.storage.segments.format import SLOTS
from medamad.storage.segments.parts import Codes, ViewColumns, VisitColumns

VISITS, VIEWS, BOUNCES, DURATION_MS = range(4)
OF_GROUP: Final = 4
FIRST, LATER, OUTSIDE = 0, OF_GROUP, 2 * OF_GROUP
EXITS: Final = 3 * OF_GROUP
"""The row of the visits whose last view has a path."""
VISIT_SUMS: Final = EXITS + 1

_SPARSE: Final = 4


def count_visits(
    visits: VisitColumns, first: NDArray[np.integer[Any]], pages: Codes | None = None
) -> Counters:
    """Return the counters of the n visits of a part by the numbers in `first`, shape (n,).

    These are the codes of the paths of their first views if `pages`, those of all views of the
    part, are given to count the visits by the other pages as well.
    """
    given = [first]
    if pages is not None:
        of_visits = visits.offsets > 0
        of_visits[visits.repeats] = False
        given += [pages[visits.begins + visits.spans], pages[of_visits]]
    numbers, codes = numbered(given)
    size = len(codes)
    sums = np.zeros((VISIT_SUMS, size), np.int64)
    sums[FIRST + VISITS] = np.bincount(numbers[0], minlength=size)
    bounced = (visits.views == 1) & ~visits.has_event
    for row, column in (
        (VIEWS, visits.views),
        (BOUNCES, bounced),
        (DURATION_MS, visits.duration_ms),
    ):
        # Weights are floats; they are exact, as the total stays far below 2**53 ms.
        sums[FIRST + row] = np.bincount(numbers[0], column, size)
    if pages is not None:
        sums[EXITS] = np.bincount(numbers[1], minlength=size)
        sums[LATER + VISITS] = np.bincount(numbers[2], minlength=size) - sums[FIRST + VISITS]
    used = np.flatnonzero(sums[FIRST + VISITS] + sums[LATER + VISITS])
    return Counters(codes[used], tuple(sums[:, used]))


def numbered(
    numbers: Sequence[NDArray[np.integer[Any]]],
) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
    """Return the places of some numbers among different ones, and these, ascending.

    These are all from the least to the greatest of the numbers, unless they are far apart.
    """
    least = min((int(each.min()) for each in numbers if len(each)), default=0)
    greatest = max((int(each.max()) for each in numbers if len(each)), default=-1)
    if greatest - least < _SPARSE * sum(map(len, numbers)):
        places = [np.subtract(each, least, dtype=np.int64) for each in numbers]
        return places, np.arange(least, greatest + 1)
    different, joined = np.unique(np.concatenate(numbers), return_inverse=True)
    ends = np.cumsum([len(each) for each in numbers])[:-1]
    return np.split(joined, ends), different.astype(np.int64)


def counters_of_visits(part: ViewColumns, kind: int) -> Counters:
    """Return the counters of the visits of a part: a dimension, or SLOTS."""
    visits = part.visits()
    if kind == SLOTS:
        return count_visits(visits, part.time_ms[visits.begins] // SLOT_MS)
    codes = part.codes(Dimension(kind))
    first = codes[visits.begins]
    return count_visits(visits, first, codes if kind == Dimension.PATH else None)


def without_some(counters: list[Counters], counted_twice: Counters) -> Counters:
    """Add up counters, of which some visits count too often."""
    negative = Counters(
        counted_twice.codes, tuple(-row.astype(np.int64) for row in counted_twice.sums)
    )
    total = merge([*counters, negative])
    used = np.flatnonzero(total.sums[FIRST + VISITS] + total.sums[LATER + VISITS])
    return total.take(used)
