"""Visits: which ones a query selects, where their views are, and what comes beside a page.

A view has the number of its visit, which is the sequence number of the visit's first view. So the
views of a visit are found by comparing numbers, also across parts, and the first view of a visit by
its own sequence number. Visits are known by their places: 0, 1 and so on, in the order in which
parts have their first views. What is computed for them are arrays in this order.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import ViewNumber
from medamad.query.embedded.gathered import GatheredViews
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.view_filter import SelectedViews
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation
from medamad.storage.segments.parts import Part, Rollup, ViewColumns
from medamad.storage.segments.snapshot import Snapshot

Places = NDArray[np.int32]
"""Places of visits; -1 stands for none."""
Numbers = NDArray[np.int64]
"""Numbers of visits, or sequence numbers of views."""

Rows: TypeAlias = NDArray[np.intp] | slice
"""Rows of a part."""

_NONE: Final[Numbers] = np.zeros(0, np.int64)
_NO_ROWS: Final = np.zeros(0, np.intp)
_TABLE_SPAN: Final = 16
"""Up to this many numbers for each view of a part, rows are looked up in a table."""


def visit_numbers(part: ViewColumns, rows: Rows = slice(None)) -> Numbers:
    """Return the number of the visit of each view, or of some rows; 0 if it is unknown."""
    offset = part.numbers(ViewNumber.VISIT_OFFSET)[rows]
    numbers = sequences_of(part, rows)
    numbers += 1
    numbers -= offset
    if not offset.all():
        numbers[offset == 0] = 0
    return numbers


def sequences_of(part: ViewColumns, rows: Rows = slice(None)) -> Numbers:
    """Return the sequence numbers of views."""
    if not _is_dense(part):
        return part.sequence[rows].astype(np.int64)
    first, last = part.sequence_bounds
    if isinstance(rows, np.ndarray):
        return rows + first
    return np.arange(first, last + 1)[rows]


def rows_of_first_views(part: ViewColumns, rows: Rows = slice(None)) -> NDArray[np.intp]:
    """Return the row of the first view of the visit of each view, or of some rows.

    It is -1 if the part does not have it, or the visit is unknown.
    """
    if _is_dense(part) or isinstance(part, GatheredViews):
        return LOOPS.first_rows(row_offsets(part), rows)
    return _find_first_rows(part, rows)


def row_offsets(part: ViewColumns) -> NDArray[np.unsignedinteger[Any]]:
    """Return how many rows before each view of a part its visit's first view is, plus 1.

    If the part does not have it, or it is unknown, the number is 0 or greater than that of the row.
    """
    if _is_dense(part):
        return part.numbers(ViewNumber.VISIT_OFFSET)

    def find() -> NDArray[np.uint32]:
        first_rows = _find_first_rows(part, slice(None))
        offsets = np.arange(1, len(part) + 1) - first_rows
        offsets[first_rows < 0] = 0
        return offsets.astype(np.uint32)

    return part.column("row offsets", find) if isinstance(part, GatheredViews) else find()


def _find_first_rows(part: ViewColumns, rows: Rows) -> NDArray[np.intp]:
    numbers = visit_numbers(part, rows)
    is_here = numbers >= part.sequence_bounds[0]
    if is_here.all():
        return _rows_of(part, numbers)
    found = np.full(len(numbers), -1, np.intp)
    found[is_here] = _rows_of(part, numbers[is_here])
    return found


def _is_dense(part: ViewColumns) -> bool:
    """Return whether a part has a view for each sequence number in its bounds."""
    first, last = part.sequence_bounds
    return last - first + 1 == len(part)


@frozen(eq=False)
class VisitViews:
    """Views of some visits that one part has.

    `rows` are those of the views that belong to the visits, and `visits` has the place of each,
    shape (n,).
    `own` are the places of the visits that begin in the part, and `begins` the rows of their first
    views.
    """

    part: ViewColumns
    rows: NDArray[np.intp]
    visits: Places
    own: slice
    begins: NDArray[np.intp]


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

    @classmethod
    def at_rows(cls, part: ViewColumns, rows: NDArray[np.intp], base: int) -> "_Begun":
        if not _is_dense(part):
            return cls.of(part, sequences_of(part, rows), base)
        return cls(part.sequence_bounds[0], rows.astype(np.min_scalar_type(len(part))), base)

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
    _begun_by_part: dict[int, _Begun] = field(init=False)
    """The same, by the first sequence number of the part."""
    _tables: dict[int, Places] = field(factory=dict, init=False)
    """What `_table_of` returned of the part that was looked at last."""
    _places_in_last: dict[int, Places] = field(factory=dict, init=False)
    """The places in the part that was looked at last, by its first sequence number."""
    _masks: dict[int, NDArray[np.uint8]] = field(factory=dict, init=False)
    """What `mask` returned of parts, in bits: a report may ask for several sums of each."""

    @_bounds.default
    def _find_bounds(self) -> NDArray[np.int64]:
        return np.array([begun.bounds for begun in self._begun], np.int64).reshape(-1, 2).T

    @_begun_by_part.default
    def _index_begun(self) -> dict[int, _Begun]:
        return {begun.first: begun for begun in self._begun}

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
        first = part.sequence_bounds[0]
        if first not in self._places_in_last:
            self._places_in_last.clear()
            self._places_in_last[first] = self._places_by_first(part, rows_of_first_views(part))
        return self._places_in_last[first]

    def places_of_rows(self, part: ViewColumns, rows: NDArray[np.intp]) -> Places:
        """Return the place of the visit of each of some views of a part, -1 for none."""
        return self._places_by_first(part, rows_of_first_views(part, rows), rows)

    def views(self) -> Iterator[VisitViews]:
        """Return the views of the visits part by part; those of a visit by sequence number."""
        for part in self.parts():
            rows, visits = self._views_in(part)
            if len(rows):
                own, begins = self._begun_in(part)
                yield VisitViews(part, rows, visits, own, begins)

    def first_views(self) -> Iterator[tuple[ViewColumns, NDArray[np.intp], slice]]:
        """Return the first view of each visit, part by part: the part, its rows, and the places."""
        for part in self.parts():
            own, begins = self._begun_in(part)
            if len(begins):
                yield part, begins, own

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a view of the visits, without looking at its views."""
        if isinstance(part, Rollup):
            return True
        return bool(part.first_visit and self._within(part.first_visit, part.sequence_bounds[1]))

    def begins_in(self, part: ViewColumns) -> NDArray[np.intp]:
        """Return the rows of the first views that a part has, ascending."""
        if isinstance(part, GatheredViews):
            return np.flatnonzero(self._table_of_gathered(part)[:-1] >= 0)
        return self._begun_in(part)[1]

    def mask(self, part: ViewColumns) -> NDArray[np.bool_]:
        """Return which views of a part belong to the visits, shape (n,)."""
        if isinstance(part, GatheredViews):
            places = self._table_of_gathered(part).take(rows_of_first_views(part), mode="wrap")
            return places >= 0
        first = part.sequence_bounds[0]
        if first not in self._masks:
            self._masks[first] = np.packbits(self.places_in(part) >= 0)
        return np.unpackbits(self._masks[first], count=len(part)).view(np.bool_)

    def mask_of(self, part: ViewColumns, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Return which of some views of a part belong to the visits."""
        if isinstance(part, GatheredViews):
            return self.mask(part)[rows]
        return self.places_of_rows(part, rows) >= 0

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

    def _views_in(self, part: ViewColumns) -> tuple[NDArray[np.intp], Places]:
        """Return the rows of the views of the visits, and the place of the visit of each."""
        if _is_dense(part) and not self._begin_elsewhere(part):
            return LOOPS.views_of_visits(
                part.numbers(ViewNumber.VISIT_OFFSET), self._table_of(part)
            )
        places = self.places_in(part)
        rows = np.flatnonzero(places >= 0)
        return rows, places[rows]

    def _begin_elsewhere(self, part: ViewColumns) -> bool:
        """Return whether some of the visits begin in other parts."""
        return len(self._begun) > (part.sequence_bounds[0] in self._begun_by_part)

    def _begun_in(self, part: ViewColumns) -> tuple[slice, NDArray[np.intp]]:
        """Return the places of the visits that begin in a part, and the rows of their views."""
        begun = self._begun_by_part.get(part.sequence_bounds[0])
        if begun is None:
            return slice(0, 0), _NO_ROWS
        return begun.places, _rows_of(part, begun.numbers)

    def _table_of(self, part: ViewColumns) -> Places:
        """Return the place of the visit that each view of a part begins, -1 if it begins none.

        One more place, the last, is that of -1.
        """
        first = part.sequence_bounds[0]
        if first not in self._tables:
            table = np.full(len(part) + 1, -1, np.int32)
            own, begins = self._begun_in(part)
            table[begins] = np.arange(own.start, own.stop, dtype=np.int32)
            self._tables.clear()
            self._tables[first] = table
        return self._tables[first]

    def _table_of_gathered(self, part: GatheredViews) -> Places:
        """Return the same of a part that has all views of its visits, and may have others'."""
        begins = part.column(
            "begins", lambda: np.flatnonzero(part.numbers(ViewNumber.VISIT_OFFSET) == 1)
        )
        # Ascending, as the views are.
        numbers = sequences_of(part, begins)
        table = np.full(len(part) + 1, -1, np.int32)
        for begun in self._begun:
            low, high = np.searchsorted(numbers, begun.bounds)
            high += 1
            distances = (numbers[low:high] - begun.first).astype(np.int64)
            found = np.minimum(np.searchsorted(begun.distances, distances), len(begun) - 1)
            is_here = begun.distances[found] == distances
            table[begins[low:high][is_here]] = begun.base + found[is_here]
        return table

    def _places_by_first(
        self,
        part: ViewColumns,
        first_rows: NDArray[np.intp],
        rows: NDArray[np.intp] | None = None,
    ) -> Places:
        """Return the place of the visit of each view, or of some rows, by that of its first."""
        # Most visits begin in the part where they go on.
        places: Places = self._table_of(part).take(first_rows, mode="wrap")
        if self._begin_elsewhere(part):
            elsewhere = np.flatnonzero(first_rows < 0)
            numbers = visit_numbers(part, elsewhere if rows is None else rows[elsewhere])
            places[elsewhere] = self.places_of(numbers)
        return places

    def _within(self, least: int, greatest: int) -> list[_Begun]:
        """Return the parts that may begin visits with numbers in some bounds."""
        least_here, greatest_here = self._bounds
        places = np.flatnonzero((least_here <= greatest) & (greatest_here >= least))
        return [self._begun[place] for place in places.tolist()]


def visits_begun(
    snapshot: Snapshot,
    cancellation: Cancellation,
    begins: Iterable[tuple[ViewColumns, NDArray[np.intp]]],
) -> Visits:
    """Return the visits that begin with some views of each part; their rows ascend."""
    found = [(part.sequence_bounds[0], part, rows) for part, rows in begins if len(rows)]
    begun: list[_Begun] = []
    base = 0
    for _, part, rows in sorted(found, key=itemgetter(0)):
        begun.append(_Begun.at_rows(part, rows, base))
        base += len(rows)
    return Visits(snapshot, cancellation, begun)


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
            begun.append(_Begun.of(part, sequences_of(part, rows), base))
            base += len(rows)
    return Visits(snapshot, cancellation, begun)


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


def distinct(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the different numbers of pieces in ascending order, which they mostly are in."""
    numbers = np.concatenate(pieces)
    if np.all(numbers[1:] > numbers[:-1]):
        return numbers
    numbers.sort(kind="stable")
    return distinct_sorted(numbers)


def distinct_sorted(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the different numbers of those in ascending order."""
    is_first = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    return numbers[is_first]


def select_visits(selection: Selection) -> Visits:
    """Return the visits that have a selected view and began in the period."""
    if not selection.filter.matches_all:
        numbers = np.concatenate(
            [_NONE, *(_numbers_of(selected) for selected in selection.views())]
        )
        return find_visits(selection.snapshot, selection.cancellation, numbers, selection.period)
    # The views that begin a visit select all visits that began in the period.
    begun: list[_Begun] = []
    base = 0
    for selected in selection.views():
        part = selected.part
        offset = selected.of(part.numbers(ViewNumber.VISIT_OFFSET))
        numbers_here = sequences_of(part, selected.rows)[offset == 1]
        if len(numbers_here):
            begun.append(_Begun.of(part, numbers_here, base))
            base += len(numbers_here)
    return Visits(selection.snapshot, selection.cancellation, begun)


def _numbers_of(selected: SelectedViews) -> Numbers:
    """Return the numbers of the visits that selected views belong to, ascending, each once."""
    part = selected.part
    first_rows = rows_of_first_views(part, selected.rows)
    # The last place is that of -1.
    is_begin = np.zeros(len(part) + 1, np.bool_)
    is_begin[first_rows] = True
    numbers = sequences_of(part, np.flatnonzero(is_begin[:-1]))
    if not is_begin[-1]:
        return numbers
    elsewhere = selected.of(np.arange(len(part)))[first_rows < 0]
    return np.concatenate([distinct([visit_numbers(part, elsewhere)]), numbers])
