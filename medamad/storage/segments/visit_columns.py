"""Make the visits of a part from its views: in the memtable, at a flush, and for queries."""

from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.storage.segments.parts import Codes, ViewColumns


@frozen(eq=False)
class MadeVisits:
    """The visits that begin in a part, in memory: `parts.VisitColumns`."""

    offsets: NDArray[np.unsignedinteger[Any]]
    begins: NDArray[np.intp]
    spans: NDArray[np.integer[Any]]
    views: NDArray[np.integer[Any]]
    duration_ms: NDArray[np.integer[Any]]
    has_event: NDArray[np.bool_]
    repeats: NDArray[np.integer[Any]]
    elsewhere: NDArray[np.int64]


def visits_of(part: ViewColumns) -> MadeVisits:
    """Return the visits that begin in a part."""
    return make_visits(
        sequence=part.sequence,
        visit_offset=part.numbers(ViewNumber.VISIT_OFFSET),
        paths=part.codes(Dimension.PATH),
        duration_ms=part.duration_ms,
        with_late_event=part.views_with_late_events(),
    )


def make_visits(
    *,
    sequence: NDArray[np.unsignedinteger[Any]],
    visit_offset: NDArray[np.unsignedinteger[Any]],
    paths: Codes,
    duration_ms: NDArray[np.unsignedinteger[Any]],
    with_late_event: NDArray[np.integer[Any]],
) -> MadeVisits:
    """Return the visits that begin with some of n views, given by columns of shape (n,).

    `with_late_event` has the rows of those that have an event later than their load.
    """
    rows = np.arange(len(sequence))
    offsets = _row_offsets(sequence, visit_offset)
    first_rows = rows + 1 - offsets.astype(np.intp)
    begins = np.flatnonzero(offsets == 1)
    place_of = np.full(len(rows), -1)
    place_of[begins] = np.arange(len(begins))
    are_here = (offsets > 0) & (first_rows >= 0)
    here = np.flatnonzero(are_here)
    visits = place_of[first_rows[here]]
    if not np.all(visits >= 0):
        # Only damage can make a view the first of a visit that is not.
        here, visits = here[visits >= 0], visits[visits >= 0]
    ends = np.zeros(len(begins), np.intp)
    # Of several views of a visit, the last one remains.
    ends[visits] = here
    has_event = np.zeros(len(begins), np.bool_)
    late = with_late_event.astype(np.intp)
    late = place_of[first_rows[late[are_here[late]]]]
    has_event[late[late >= 0]] = True
    others = np.flatnonzero(~are_here & (visit_offset > 0))
    elsewhere = np.unique(sequence[others].astype(np.int64) + 1 - visit_offset[others])
    return MadeVisits(
        offsets=offsets,
        begins=begins,
        spans=ends - begins,
        views=np.bincount(visits, minlength=len(begins)),
        # Weights are floats; they are exact, as the total stays far below 2**53 ms.
        duration_ms=np.bincount(visits, duration_ms[here], len(begins)).astype(np.int64),
        has_event=has_event,
        repeats=_repeats(paths[here], here, visits),
        elsewhere=elsewhere[elsewhere > 0],
    )


def is_dense(sequence_bounds: tuple[int, int], views: int) -> bool:
    """Return whether a part has a view for each sequence number in its bounds.

    Then, distances of numbers are those of rows.
    """
    first, last = sequence_bounds
    return last - first + 1 == views


def _row_offsets(
    sequence: NDArray[np.unsignedinteger[Any]], visit_offset: NDArray[np.unsignedinteger[Any]]
) -> NDArray[np.unsignedinteger[Any]]:
    """Return the `offsets` of the visits of a part."""
    if not len(sequence) or is_dense((int(sequence[0]), int(sequence[-1])), len(sequence)):
        return visit_offset
    known = sequence.astype(np.int64)
    numbers = known + 1 - visit_offset
    first_rows = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    offsets = np.arange(1, len(known) + 1) - first_rows
    offsets[(visit_offset == 0) | (known[first_rows] != numbers)] = 0
    return offsets.astype(np.uint32)


def _repeats(paths: Codes, rows: NDArray[np.intp], visits: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows of those of some views, in their order, whose page their visit saw before."""
    pairs = visits << 32 | paths
    order = np.argsort(pairs, kind="stable")
    ordered = pairs[order]
    again: NDArray[np.intp] = rows[order[1:][ordered[1:] == ordered[:-1]]]
    again.sort()
    return again
