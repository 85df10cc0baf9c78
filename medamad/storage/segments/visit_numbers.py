"""How views are found by their numbers, and by those of their visits.

A view has the number of its visit, which is the sequence number of the visit's first view.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medamad.storage.segments.format import SegmentHeader
from medamad.storage.segments.parts import Numbers, Part, ViewColumns, joined_numbers

_NO_ROWS: Final = np.zeros(0, np.intp)
_TABLE_SPAN: Final = 16
"""Up to this many numbers for each view of a part, rows are looked up in a table."""


def may_have_visits(part: SegmentHeader | Part, visits: tuple[int, int] | None) -> bool:
    """Return whether a part may have views of visits with numbers in some bounds."""
    if visits is None:
        return True
    least, greatest = visits
    return 0 < part.first_visit <= greatest and part.sequence_bounds[1] >= least


def are_any_between(numbers: Numbers, first: int, last: int) -> bool:
    """Return whether any of some numbers, ascending, is from the first to the last of two."""
    place = int(numbers.searchsorted(first))
    return place < len(numbers) and int(numbers[place]) <= last


def visits_of_views(parts: Iterable[ViewColumns], views: Numbers) -> Numbers:
    """Return the numbers of the visits of those views that parts have, of some in order."""

    def pieces() -> Iterator[Numbers]:
        for part in parts:
            rows = find_ascending(part, views)[1]
            if len(rows):
                yield visit_numbers(part, rows)

    found = joined_numbers(pieces())
    return found[found > 0]


def begun_in(parts: Iterable[ViewColumns], numbers: Numbers) -> Numbers:
    """Return those of some numbers, ascending, whose visits begin in parts."""

    def pieces() -> Iterator[Numbers]:
        for part in parts:
            if part.first_visit:
                near, rows = find_ascending(part, numbers)
                if len(rows):
                    yield numbers[near[part.visits().offsets[rows] == 1]]

    return joined_numbers(pieces())


def rows_of_visits(part: ViewColumns, numbers: Numbers) -> NDArray[np.intp]:
    """Return the rows of the views of a part that belong to visits of some numbers, ascending."""
    if not part.first_visit or not len(numbers):
        return _NO_ROWS
    visits, begins = part.visits(), find_ascending(part, numbers)[1]
    rows = [_NO_ROWS]
    if len(begins):
        # They are not far from each other, as the visits go on in other parts.
        ends = begins + visits.spans[np.searchsorted(visits.begins, begins)]
        first, end = int(begins[0]), int(ends.max()) + 1
        offsets = visits.offsets[first:end].astype(np.intp)
        is_begin = np.zeros(end + 1, np.bool_)
        is_begin[begins] = True
        mask = is_begin[np.arange(first + 1, end + 1) - offsets]
        rows.append(first + np.flatnonzero(mask & (offsets > 0)))
    elsewhere = visits.elsewhere
    if len(elsewhere):
        near = np.minimum(numbers.searchsorted(elsewhere), len(numbers) - 1)
        elsewhere = elsewhere[numbers[near] == elsewhere]
    if len(elsewhere):
        others = np.flatnonzero(visits.offsets == 0)
        of_others = visit_numbers(part, others)
        near = np.minimum(elsewhere.searchsorted(of_others), len(elsewhere) - 1)
        rows.append(others[elsewhere[near] == of_others])
    found: NDArray[np.intp] = np.sort(np.concatenate(rows))
    return found


def visit_numbers(part: ViewColumns, rows: NDArray[np.intp]) -> Numbers:
    """Return the number of the visit of each of some views; 0 if it is unknown."""
    visits = part.visits()
    offsets = visits.offsets[rows].astype(np.intp)
    numbers = sequences_of(part, np.where(offsets > 0, rows + 1 - offsets, rows))
    others = np.flatnonzero(offsets == 0)
    if len(others):
        elsewhere = visits.visit_offset[rows[others]]
        numbers[others] = np.where(elsewhere > 0, numbers[others] + 1 - elsewhere, 0)
    return numbers


def sequences_of(part: ViewColumns, rows: NDArray[np.intp]) -> Numbers:
    """Return the sequence numbers of views."""
    first, last = part.sequence_bounds
    if last - first + 1 == len(part):
        return rows + first
    return part.sequence[rows].astype(np.int64)


def find_ascending(
    part: ViewColumns, sequences: Numbers
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find views by sequence numbers, which must ascend.

    Return the indices of those in `sequences` that the part has, and their rows in the part.
    """
    first, last = part.sequence_bounds
    begin, end = (int(np.searchsorted(sequences, bound)) for bound in (first, last + 1))
    if begin == end:
        return _NO_ROWS, _NO_ROWS
    rows = _rows_of(part, sequences[begin:end])
    is_here = rows >= 0
    return np.flatnonzero(is_here) + begin, rows[is_here]


def _rows_of(part: ViewColumns, sequences: Numbers) -> NDArray[np.intp]:
    """Return the rows of views by sequence numbers in the part's bounds, -1 for those it lacks."""
    first, last = part.sequence_bounds
    span, size = last - first + 1, len(part)
    distances = sequences - first
    if span == size:
        return distances
    known = part.sequence
    if span > _TABLE_SPAN * size or len(sequences) < size // _TABLE_SPAN:
        rows: NDArray[np.intp] = np.searchsorted(known, sequences.astype(np.uint64))
        rows[known[rows] != sequences.astype(np.uint64)] = -1
        return rows
    # A table of rows by number is several times as fast as a search for each.
    row_of = np.full(span, -1, np.int32)
    row_of[(known - np.uint64(first)).astype(np.intp)] = np.arange(size, dtype=np.int32)
    return row_of[distances].astype(np.intp)
