"""Make the visits of a part from its views: in the memtable, at a flush, and for queries."""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from attrs import define
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.storage.segments.parts import Codes, ViewColumns, distinct


class CachedArrays(Protocol):
    """Returns an array that was computed from a snapshot, or computes it and may cache it."""

    def __call__(self, what: Hashable, compute: Callable[[], NDArray[Any]], /) -> NDArray[Any]:
        """Return the array of a name."""


def cache_nothing(_what: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """Compute an array."""
    return compute()


@define(eq=False)
class MadeVisits:
    """The visits that begin in a part, in memory: `parts.VisitColumns`.

    Each column is made when it is first asked for: some take columns of the views that are slow to
    read.
    """

    _sequence: NDArray[np.unsignedinteger[Any]]
    visit_offset: NDArray[np.unsignedinteger[Any]]
    _paths: Callable[[], Codes]
    _duration_ms: Callable[[], NDArray[np.unsignedinteger[Any]]]
    _with_late_event: Callable[[], NDArray[np.integer[Any]]]
    _cached: CachedArrays = cache_nothing

    @cached_property
    def offsets(self) -> NDArray[np.unsignedinteger[Any]]:
        return self._cached("offsets", lambda: _row_offsets(self._sequence, self.visit_offset))

    @cached_property
    def begins(self) -> NDArray[np.intp]:
        return self._cached("begins", lambda: np.flatnonzero(self.offsets == 1))

    @cached_property
    def spans(self) -> NDArray[np.integer[Any]]:
        return self._cached("spans", self._make_spans)

    def _make_spans(self) -> NDArray[np.intp]:
        rows, visits = self._views
        ends = np.zeros(len(self.begins), np.intp)
        # Of several views of a visit, the last one remains.
        ends[visits] = rows
        spans: NDArray[np.intp] = ends - self.begins
        return spans

    @cached_property
    def views(self) -> NDArray[np.integer[Any]]:
        return self._cached(
            "views", lambda: np.bincount(self._views[1], minlength=len(self.begins))
        )

    @cached_property
    def duration_ms(self) -> NDArray[np.integer[Any]]:
        return self._cached("duration", self._add_durations)

    def _add_durations(self) -> NDArray[np.int64]:
        rows, visits = self._views
        # Weights are floats; they are exact, as the total stays far below 2**53 ms.
        return np.bincount(visits, self._duration_ms()[rows], len(self.begins)).astype(np.int64)

    @cached_property
    def has_event(self) -> NDArray[np.bool_]:
        return self._cached("has_event", self._find_events)

    def _find_events(self) -> NDArray[np.bool_]:
        late = self._with_late_event().astype(np.intp)
        offsets = self.offsets[late].astype(np.intp)
        visits = self._place_of[(late + 1 - offsets)[offsets > 0]]
        has_event = np.zeros(len(self.begins), np.bool_)
        has_event[visits[visits >= 0]] = True
        return has_event

    @cached_property
    def repeats(self) -> NDArray[np.integer[Any]]:
        return self._cached("repeats", self._find_repeats)

    def _find_repeats(self) -> NDArray[np.intp]:
        rows, visits = self._views
        return _repeats(self._paths()[rows], rows, visits)

    @cached_property
    def elsewhere(self) -> NDArray[np.int64]:
        others = np.flatnonzero((self.offsets == 0) & (self.visit_offset > 0))
        numbers = self._sequence[others].astype(np.int64) + 1 - self.visit_offset[others]
        return distinct(numbers[numbers > 0])

    @cached_property
    def _place_of(self) -> NDArray[np.intp]:
        """The place of the visit that each view begins, -1 for none."""
        place_of = np.full(len(self.offsets), -1)
        place_of[self.begins] = np.arange(len(self.begins))
        return place_of

    @cached_property
    def _views(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows of the views of visits that begin in the part, and the place of each's visit."""
        rows = np.flatnonzero(self.offsets)
        visits = self._place_of[rows + 1 - self.offsets[rows].astype(np.intp)]
        # Only damage can make a view the first of a visit that is not.
        are_sound = visits >= 0
        return rows[are_sound], visits[are_sound]


def visits_of(part: ViewColumns, cached: CachedArrays = cache_nothing) -> MadeVisits:
    """Return the visits that begin in a part, whose columns may be cached."""
    return MadeVisits(
        part.sequence,
        part.numbers(ViewNumber.VISIT_OFFSET),
        lambda: part.codes(Dimension.PATH),
        lambda: part.duration_ms,
        part.views_with_late_events,
        cached,
    )


def numbers_elsewhere(
    visit_offset: NDArray[np.unsignedinteger[Any]], offsets: NDArray[np.unsignedinteger[Any]]
) -> NDArray[np.unsignedinteger[Any]]:
    """Return the VISIT_OFFSET of the views of a part that its `offsets` leave unknown, else 0."""
    return np.where(offsets > 0, visit_offset.dtype.type(0), visit_offset)


def visit_offsets(part: ViewColumns) -> NDArray[np.uint32]:
    """Return the VISIT_OFFSET of all views of a part, by its visits."""
    visits = part.visits()
    offsets = visits.offsets
    here = offsets
    if not is_dense(part.sequence_bounds, len(part)):
        sequence, rows = part.sequence, np.arange(len(part))
        first_rows = np.where(offsets > 0, rows + 1 - offsets.astype(np.intp), rows)
        here = sequence - sequence[first_rows] + np.uint64(1)
    return np.where(offsets > 0, here, visits.visit_offset).astype(np.uint32)


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
        return np.where(visit_offset > np.arange(1, len(sequence) + 1), 0, visit_offset)
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
