"""Visits: which ones a query selects, where their views are, and what comes beside a page.

A view has the number of its visit, which is the sequence number of the visit's first view. So the
views of a visit are found by comparing numbers, also across parts, and the first view of a visit by
its own sequence number. Visits are known by their places: 0, 1 and so on, in the order in which
parts have their first views. What is computed for them are arrays in this order.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation
from medamad.query.scan import SelectedViews, Selection
from medamad.storage.segments.parts import Part, Rollup, ViewColumns
from medamad.storage.segments.snapshot import Snapshot

Places = NDArray[np.int32]
"""Places of visits; -1 stands for none."""
Numbers = NDArray[np.int64]
"""Numbers of visits, or sequence numbers of views."""

Rows: TypeAlias = NDArray[np.intp] | NDArray[np.bool_] | slice
"""Rows of a part."""

_NONE: Final[Numbers] = np.zeros(0, np.int64)
_NO_ROWS: Final = np.zeros(0, np.intp)
_TABLE_SPAN: Final = 16
"""Up to this many numbers for each view of a part, rows are looked up in a table."""


def visit_numbers(part: ViewColumns, rows: Rows = slice(None)) -> Numbers:
    """Return the number of the visit of each view, or of some rows; 0 if it is unknown."""
    offset = part.numbers(ViewNumber.VISIT_OFFSET)[rows]
    numbers = part.sequence[rows].astype(np.int64)
    numbers += 1
    numbers -= offset
    if not offset.all():
        numbers[offset == 0] = 0
    return numbers


def first_rows(part: ViewColumns) -> NDArray[np.intp]:
    """Return the rows of the views that begin a visit."""
    return np.flatnonzero(part.numbers(ViewNumber.VISIT_OFFSET) == 1)


@frozen(eq=False)
class VisitViews:
    """Views of some visits that one part has.

    `places` has the place of the visit of each view of the part, shape (n,). `rows` are those of
    the views that belong to the visits, and `visits` has the place of each, shape (m,).
    `own` are the places of the visits that begin in the part.
    """

    part: ViewColumns
    places: Places
    rows: NDArray[np.intp]
    visits: Places
    own: slice

    @property
    def begins(self) -> NDArray[np.intp]:
        """Which of the m views begin their visit, as indices."""
        return np.flatnonzero(self.part.numbers(ViewNumber.VISIT_OFFSET)[self.rows] == 1)


@frozen(eq=False)
class _Begun:
    """Some of the visits that begin in one part.

    Their numbers are `first`, which is the part's first sequence number, plus `distances`, which
    ascend. `base` is the place of the first of them.
    """

    first: int
    distances: NDArray[np.unsignedinteger[Any]]
    base: int

    @classmethod
    def of(cls, part: ViewColumns, numbers: Numbers, base: int) -> "_Begun":
        first, last = part.sequence_bounds
        return cls(first, (numbers - first).astype(np.min_scalar_type(last - first)), base)

    def __len__(self) -> int:
        return len(self.distances)

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the greatest number."""
        return self.first + int(self.distances[0]), self.first + int(self.distances[-1])

    @property
    def numbers(self) -> Numbers:
        """The numbers, ascending."""
        return self.distances.astype(np.int64) + self.first

    @property
    def places(self) -> slice:
        """Their places."""
        return slice(self.base, self.base + len(self))


@frozen(eq=False)
class Visits:
    """Some visits of a snapshot, in the order in which parts have their first views."""

    snapshot: Snapshot
    cancellation: Cancellation
    _begun: Sequence[_Begun]
    _bounds: NDArray[np.int64] = field(init=False)
    """The least and the greatest number of those that begin in each part, shape (2, parts)."""
    _places_in_last: dict[int, Places] = field(factory=dict, init=False)
    """The places in the part that was looked at last, by its first sequence number."""

    @_bounds.default
    def _find_bounds(self) -> NDArray[np.int64]:
        return np.array([begun.bounds for begun in self._begun], np.int64).reshape(-1, 2).T

    def __len__(self) -> int:
        return self._begun[-1].places.stop if self._begun else 0

    @property
    def number_bounds(self) -> tuple[int, int]:
        """The least and the greatest number, (1, 0) without visits."""
        if not self._begun:
            return 1, 0
        return int(self._bounds[0].min()), int(self._bounds[1].max())

    def numbers(self) -> Numbers:
        """Return the numbers of the visits, shape (n,)."""
        return np.concatenate([_NONE, *(begun.numbers for begun in self._begun)])

    def places_of(self, numbers: Numbers) -> Places:
        """Return the place of each visit by its number, -1 for those that are not among these."""
        places = np.full(len(numbers), -1, np.int32)
        if not len(numbers):
            return places
        for begun in self._within(int(numbers.min()), int(numbers.max())):
            distances = numbers - begun.first
            found = np.minimum(np.searchsorted(begun.distances, distances), len(begun) - 1)
            is_here = begun.distances[found] == distances
            places[is_here] = begun.base + found[is_here]
        return places

    def places_in(self, part: ViewColumns) -> Places:
        """Return the place of each view's visit, -1 for those that are not among these."""
        numbers = visit_numbers(part)
        first, last = part.sequence_bounds
        span = last - first + 1
        if span > _TABLE_SPAN * len(part):
            return self.places_of(numbers)
        # Most visits begin in the part where they go on.
        table = np.full(span, -1, np.int32)
        for begun in self._within(first, last):
            distances = begun.numbers - first
            is_in = (distances >= 0) & (distances < span)
            places_there = np.arange(begun.base, begun.places.stop, dtype=np.int32)
            table[distances[is_in]] = places_there[is_in]
        numbers -= first
        places: Places = table.take(numbers, mode="clip")
        before = np.flatnonzero(numbers < 0)
        places[before] = self.places_of(numbers[before] + first)
        return places

    def places_of_rows(self, part: ViewColumns, rows: NDArray[np.intp]) -> Places:
        """Return the place of the visit of each of some views of a part, -1 for none."""
        if len(rows) <= len(part) // _TABLE_SPAN:
            return self.places_of(visit_numbers(part, rows))
        first = part.sequence_bounds[0]
        if first not in self._places_in_last:
            self._places_in_last.clear()
            self._places_in_last[first] = self.places_in(part)
        return self._places_in_last[first][rows]

    def views(self, *, backwards: bool = False) -> Iterator[VisitViews]:
        """Return the views of the visits part by part; those of a visit by sequence number.

        With `backwards`, the last part comes first.
        """
        own = {begun.first: begun.places for begun in self._begun}
        for part in reversed(list(self.parts())) if backwards else self.parts():
            places = self.places_in(part)
            rows = np.flatnonzero(places >= 0)
            if len(rows):
                own_places = own.get(part.sequence_bounds[0], slice(0, 0))
                yield VisitViews(part, places, rows, places[rows], own_places)

    def first_views(self) -> Iterator[tuple[ViewColumns, NDArray[np.intp], slice]]:
        """Return the first view of each visit, part by part: the part, its rows, and the places."""
        by_part = {begun.first: begun for begun in self._begun}
        for part in self.parts():
            begun = by_part.get(part.sequence_bounds[0])
            if begun is not None:
                yield part, _rows_of(part, begun.numbers), begun.places

    def codes_of_last_views(self, dimension: Dimension) -> NDArray[np.int64]:
        """Return the code of each visit's last view."""
        codes = np.zeros(len(self), np.int64)
        for views in self.views():
            # Of several views of a visit, the last one remains.
            codes[views.visits] = views.part.codes(dimension)[views.rows]
        return codes

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a view of the visits, without looking at its views."""
        if isinstance(part, Rollup):
            return True
        return bool(part.first_visit and self._within(part.first_visit, part.sequence_bounds[1]))

    def mask(self, part: ViewColumns) -> NDArray[np.bool_]:
        """Return which views of a part belong to the visits, shape (n,)."""
        return self.places_in(part) >= 0

    def take(self, mask: NDArray[np.bool_]) -> "Visits":
        """Return some of the visits."""
        taken: list[_Begun] = []
        base = 0
        for begun in self._begun:
            distances = begun.distances[mask[begun.places]]
            if len(distances):
                taken.append(_Begun(begun.first, distances, base))
                base += len(distances)
        return Visits(self.snapshot, self.cancellation, taken)

    def parts(self) -> Iterator[ViewColumns]:
        """Return the parts that may have views of the visits, by their first sequence number."""
        for part in self.snapshot.leaves(self.number_bounds):
            self.cancellation.check()
            if self.may_match(part):
                yield part

    def _within(self, least: int, greatest: int) -> list[_Begun]:
        """Return the parts that may begin visits with numbers in some bounds."""
        least_here, greatest_here = self._bounds
        places = np.flatnonzero((least_here <= greatest) & (greatest_here >= least))
        return [self._begun[place] for place in places.tolist()]


def find_visits(
    snapshot: Snapshot,
    cancellation: Cancellation,
    numbers: Numbers,
    period: Period = ALWAYS,
) -> Visits:
    """Return the visits with some numbers, in any order, that began in a period.

    0 is the number of none. Visits whose first view has been deleted are left out.
    """
    wanted = distinct([numbers])
    begun: list[_Begun] = []
    base = 0
    bounds = (int(wanted[0]), int(wanted[-1])) if len(wanted) else (1, 0)
    for part in snapshot.leaves(bounds):
        cancellation.check()
        if not part.first_visit or period.is_outside(*part.time_bounds):
            continue
        _, rows = find_ascending(part, wanted)
        is_in = part.numbers(ViewNumber.VISIT_OFFSET)[rows] == 1
        if not period.contains(*part.time_bounds):
            is_in &= period.mask(part.time_ms[rows])
        rows = rows[is_in]
        if len(rows):
            begun.append(_Begun.of(part, part.sequence[rows].astype(np.int64), base))
            base += len(rows)
    return Visits(snapshot, cancellation, begun)


def find_ascending(
    part: ViewColumns, sequences: Numbers
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find views by sequence numbers, which must ascend.

    Return the indices of those in `sequences` that the part has, and their rows in the part.
    """
    first, last = part.sequence_bounds
    begin, end = np.searchsorted(sequences, [first, last + 1]).tolist()
    if begin == end:
        return _NO_ROWS, _NO_ROWS
    rows = _rows_of(part, sequences[begin:end])
    is_here = rows >= 0
    return np.flatnonzero(is_here) + begin, rows[is_here]


def _rows_of(part: ViewColumns, sequences: Numbers) -> NDArray[np.intp]:
    """Return the rows of views by sequence numbers in the part's bounds, -1 for those it lacks."""
    first, last = part.sequence_bounds
    known, size = part.sequence, len(part)
    span = last - first + 1
    distances = sequences - first
    if span == size:
        return distances.astype(np.intp)
    if span > _TABLE_SPAN * size or len(sequences) < size // _TABLE_SPAN:
        rows: NDArray[np.intp] = np.searchsorted(known, sequences.astype(np.uint64))
        rows[known[rows] != sequences.astype(np.uint64)] = -1
        return rows
    # A table of rows by number is several times as fast as a search for each.
    row_of = np.full(span, -1, np.int32)
    row_of[(known - np.uint64(first)).astype(np.intp)] = np.arange(size, dtype=np.int32)
    return row_of[distances].astype(np.intp)


def distinct(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the different numbers of pieces in ascending order, which they mostly are in."""
    numbers = np.concatenate(pieces)
    if np.all(numbers[1:] > numbers[:-1]):
        return numbers
    numbers.sort(kind="stable")
    return numbers[np.concatenate(([True], numbers[1:] != numbers[:-1]))]


def select_visits(selection: Selection) -> Visits:
    """Return the visits that have a selected view and began in the period."""
    if not selection.filter.matches_all:
        pieces = [_NONE, *(_numbers_of(selected) for selected in selection.views())]
        numbers = np.concatenate(pieces)
        return find_visits(selection.snapshot, selection.cancellation, numbers, selection.period)
    # The views that begin a visit select all visits that began in the period.
    begun: list[_Begun] = []
    base = 0
    for selected in selection.views():
        part = selected.part
        offset = selected.of(part.numbers(ViewNumber.VISIT_OFFSET))
        numbers = selected.of(part.sequence)[offset == 1].astype(np.int64)
        if len(numbers):
            begun.append(_Begun.of(part, numbers, base))
            base += len(numbers)
    return Visits(selection.snapshot, selection.cancellation, begun)


def _numbers_of(selected: SelectedViews) -> Numbers:
    """Return the numbers of the visits that selected views belong to, ascending, each once."""
    part = selected.part
    numbers = visit_numbers(part, slice(None) if selected.index is None else selected.index)
    numbers = numbers[numbers > 0]
    first, last = part.sequence_bounds
    span = last - first + 1
    if span > _TABLE_SPAN * len(part):
        return distinct([numbers])
    here = numbers >= first
    is_there = np.zeros(span, np.bool_)
    is_there[numbers[here] - first] = True
    return np.concatenate([distinct([numbers[~here]]), np.flatnonzero(is_there) + first])


def count_pages_beside(
    visits: Visits, views: Mapping[int, NDArray[np.intp]], *, step: Literal[1, -1], size: int
) -> NDArray[np.int64]:
    """Count the pages that come next after some views of visits or, with a step of -1, before them.

    `views` has the rows of the views by the first sequence number of their part. Returns the counts
    by code of Dimension.PATH, and at `size` that of views which end, or begin, their visit.
    """
    counts = np.zeros(size + 1, np.int64)
    # Of each visit, whether its latest of the views in question had no other after it so far.
    is_waiting = np.zeros(len(visits), np.bool_)
    for some in visits.views(backwards=step < 0):
        part = some.part
        keys = some.visits.astype(np.int64)
        keys <<= 32
        keys |= some.rows
        # The views of each visit follow each other. Sorting keys is faster than sorting rows.
        keys.sort()
        keys = keys[::step]
        rows, of_rows = keys & 0xFFFF_FFFF, keys >> 32
        codes = part.codes(Dimension.PATH)[rows]
        is_first = np.concatenate(([True], of_rows[1:] != of_rows[:-1], [True]))
        firsts = np.flatnonzero(is_first[:-1])
        awaited = firsts[is_waiting[of_rows[firsts]]]
        is_waiting[of_rows[awaited]] = False
        is_in_question = np.zeros(len(part), np.bool_)
        is_in_question[views.get(part.sequence_bounds[0], _NO_ROWS)] = True
        found = np.flatnonzero(is_in_question[rows])
        is_last = is_first[found + 1]
        is_waiting[of_rows[found[is_last]]] = True
        beside = np.concatenate([awaited, found[~is_last] + 1])
        counts[:size] += np.bincount(codes[beside], minlength=size)
    counts[size] = np.count_nonzero(is_waiting)
    return counts
