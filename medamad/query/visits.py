"""Visits: which ones a query selects, and their figures.

A view has the number of its visit, which is the sequence number of the visit's first view. So the
views of a visit are found by comparing numbers, also across parts, and the first view of a visit by
its own sequence number. Visits are handled as an ascending array of such numbers. What is computed
for them are arrays in the same order, in which a visit is known by its place.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.query.period import Period
from medamad.query.request import Cancellation
from medamad.query.scan import Selection, leaves, loose_events
from medamad.storage.segments.parts import Part, Rollup, ViewColumns
from medamad.storage.segments.snapshot import Snapshot

Places = NDArray[np.intp]
"""Places of visits in `Visits.numbers`."""

_NONE = np.zeros(0, np.uint64)
_TABLE_SPAN = 16
"""Up to this many numbers for each view of a part, rows are looked up in a table."""


def visit_numbers(part: ViewColumns) -> NDArray[np.uint64]:
    """Return the number of each view's visit, 0 if it is unknown, shape (n,)."""
    offset = part.numbers(ViewNumber.VISIT_OFFSET).astype(np.uint64)
    numbers: NDArray[np.uint64] = part.sequence + np.uint64(1) - offset
    numbers[offset == 0] = 0
    return numbers


@frozen(eq=False)
class VisitViews:
    """Views of some visits that one part has: their rows in the part, and the visit of each."""

    part: ViewColumns
    rows: NDArray[np.intp]
    visits: Places


@frozen(eq=False)
class Visits:
    """Some visits of a snapshot, by their numbers in ascending order."""

    snapshot: Snapshot
    cancellation: Cancellation
    numbers: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.numbers)

    def places_of(self, numbers: NDArray[np.uint64]) -> Places:
        """Return the place of each visit by its number, -1 for those that are not among these."""
        if not len(self):
            return np.full(len(numbers), -1, np.intp)
        places: Places = np.minimum(np.searchsorted(self.numbers, numbers), len(self) - 1)
        places[self.numbers[places] != numbers] = -1
        return places

    def places_in(self, part: ViewColumns) -> Places:
        """Return the place of each view's visit, -1 for those that are not among these."""
        places = np.full(len(part), -1, np.intp)
        visits, begins = _find_ascending(part, self.numbers)
        places[begins] = visits
        # Most visits begin in the part where they go on, so each is looked up only once.
        others = np.flatnonzero(part.numbers(ViewNumber.VISIT_OFFSET) > 1)
        numbers = visit_numbers(part)[others]
        rows = _rows_of(part, numbers)
        is_here = rows >= 0
        places[others[is_here]] = places[rows[is_here]]
        places[others[~is_here]] = self.places_of(numbers[~is_here])
        return places

    def views(self) -> Iterator[VisitViews]:
        """Return the views of the visits part by part; within a part by their sequence numbers."""
        for part in leaves(self.snapshot.parts):
            self.cancellation.check()
            if not self.may_match(part):
                continue
            places = self.places_in(part)
            rows = np.flatnonzero(places >= 0)
            if len(rows):
                yield VisitViews(part, rows, places[rows])

    def first_views(self) -> Iterator[VisitViews]:
        """Return the first view of each visit, part by part."""
        for part in leaves(self.snapshot.parts):
            self.cancellation.check()
            visits, rows = _find_ascending(part, self.numbers)
            if len(visits):
                yield VisitViews(part, rows, visits)

    def codes_of_first_views(self, dimension: Dimension) -> NDArray[np.int64]:
        """Return the code of each visit's first view."""
        codes = np.zeros(len(self), np.int64)
        for first in self.first_views():
            codes[first.visits] = first.part.codes(dimension)[first.rows]
        return codes

    def codes_of_last_views(self, dimension: Dimension) -> NDArray[np.int64]:
        """Return the code of each visit's last view."""
        codes, last = np.zeros(len(self), np.int64), np.zeros(len(self), np.uint64)
        for views in self.views():
            sequence = views.part.sequence[views.rows]
            later = sequence > last[views.visits]
            # Of several views of a visit, the last one remains.
            last[views.visits[later]] = sequence[later]
            codes[views.visits[later]] = views.part.codes(dimension)[views.rows[later]]
        return codes

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a view of the visits, without looking at its views."""
        if isinstance(part, Rollup):
            return True
        if not len(self):
            return False
        first, last = int(self.numbers[0]), int(self.numbers[-1])
        return 0 < part.first_visit <= last and part.sequence_bounds[1] >= first

    def mask(self, part: ViewColumns) -> NDArray[np.bool_]:
        """Return which views of a part belong to the visits, shape (n,)."""
        return self.places_in(part) >= 0

    def take(self, mask: NDArray[np.bool_]) -> "Visits":
        """Return some of the visits."""
        return Visits(self.snapshot, self.cancellation, self.numbers[mask])


def _find_ascending(
    part: ViewColumns, sequences: NDArray[np.uint64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find views by sequence numbers, which must ascend. Returns what `scan.find_views` does."""
    low, high = part.sequence_bounds
    begin, end = np.searchsorted(sequences, np.array([low, high + 1], np.uint64)).tolist()
    rows = _rows_of(part, sequences[begin:end])
    is_here = rows >= 0
    return np.flatnonzero(is_here) + begin, rows[is_here]


def _rows_of(part: ViewColumns, sequences: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the rows of views by sequence numbers, -1 for those that the part does not have."""
    low, high = part.sequence_bounds
    known, size = part.sequence, len(part)
    rows = np.full(len(sequences), -1, np.intp)
    is_near = (sequences >= low) & (sequences <= high)
    near = sequences[is_near]
    if not len(near):
        return rows
    span = high - low + 1
    if span > _TABLE_SPAN * size:
        found = np.searchsorted(known, near)
        found[known[found] != near] = -1
    elif span == size:
        found = (near - np.uint64(low)).astype(np.intp)
    else:
        # A table of rows by number is several times as fast as a search for each.
        row_of = np.full(span, -1, np.int32)
        row_of[(known - np.uint64(low)).astype(np.intp)] = np.arange(size, dtype=np.int32)
        found = row_of[(near - np.uint64(low)).astype(np.intp)].astype(np.intp)
    rows[is_near] = found
    return rows


def distinct(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """Return the different numbers of pieces in ascending order, which they mostly are in."""
    numbers = np.concatenate(pieces)
    if np.all(numbers[1:] > numbers[:-1]):
        return numbers
    numbers.sort(kind="stable")
    return numbers[np.concatenate(([True], numbers[1:] != numbers[:-1]))]


def select_visits(selection: Selection) -> Visits:
    """Return the visits that have a selected view and began in the period."""
    found = [_NONE]
    selects_all = selection.filter.matches_all
    for selected in selection.views():
        part = selected.part
        if selects_all:
            # The views that begin a visit select all visits that began in the period.
            sequence = selected.of(part.sequence)
            found.append(sequence[selected.of(part.numbers(ViewNumber.VISIT_OFFSET)) == 1])
        else:
            found.append(distinct([selected.of(visit_numbers(part))]))
    numbers = distinct(found)
    visits = Visits(selection.snapshot, selection.cancellation, numbers[numbers > 0])
    return visits if selects_all else visits.take(_began_in(visits, selection.period))


def _began_in(visits: Visits, period: Period) -> NDArray[np.bool_]:
    """Return which visits have their first view in a period."""
    began = np.zeros(len(visits), np.bool_)
    for first in visits.first_views():
        if period.contains(*first.part.time_bounds):
            began[first.visits] = True
        else:
            began[first.visits] = period.mask(first.part.time_ms[first.rows])
    return began


@frozen(eq=False)
class VisitFigures:
    """What is known of each visit, in arrays of shape (n,).

    `began_ms` in Unix milliseconds; `views`; the visible time of its views in milliseconds; and
    whether it had an event after the load of a view.
    """

    began_ms: NDArray[np.int64]
    views: NDArray[np.int64]
    duration_ms: NDArray[np.int64]
    has_events: NDArray[np.bool_]

    @property
    def bounced(self) -> NDArray[np.bool_]:
        """Which visits have one view and no event."""
        bounced: NDArray[np.bool_] = (self.views == 1) & ~self.has_events
        return bounced


def figures_of(visits: Visits) -> VisitFigures:
    """Return the figures of visits, from all of their views."""
    size = len(visits)
    began_ms, views = np.zeros(size, np.int64), np.zeros(size, np.int64)
    duration_ms, has_events = np.zeros(size, np.int64), np.zeros(size, np.bool_)
    for some in visits.views():
        part, rows, places = some.part, some.rows, some.visits
        _add_at(views, places, None)
        _add_at(duration_ms, places, part.duration_ms[rows])
        begins = part.numbers(ViewNumber.VISIT_OFFSET)[rows] == 1
        began_ms[places[begins]] = part.time_ms[rows[begins]]
        own = part.own
        if len(own):
            place_of_row = np.full(len(part), -1, np.intp)
            place_of_row[rows] = places
            # A page states its own properties as it loads, at the time of the view.
            after = own.view[own.time_ms > part.time_ms[own.view]]
            engaged = place_of_row[after]
            has_events[engaged[engaged >= 0]] = True
    _mark_loose_events(visits, has_events)
    return VisitFigures(began_ms, views, duration_ms, has_events)


def _mark_loose_events(visits: Visits, has_events: NDArray[np.bool_]) -> None:
    """Mark the visits of events that are not stored with their view."""
    pieces = [
        (events.view.astype(np.uint64), events.time_ms)
        for events in loose_events(visits.snapshot, visits.cancellation)
    ]
    if not pieces or not len(visits):
        return
    view, time_ms = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    order = np.argsort(view, kind="stable")
    view, time_ms = view[order], time_ms[order]
    for some in visits.views():
        found, rows = _find_ascending(some.part, view)
        after = time_ms[found] > some.part.time_ms[rows]
        places = np.full(len(some.part), -1, np.intp)
        places[some.rows] = some.visits
        engaged = places[rows[after]]
        has_events[engaged[engaged >= 0]] = True


def _add_at(total: NDArray[np.int64], places: Places, values: NDArray[Any] | None) -> None:
    """Add values, or 1, at places, most of which are close to each other."""
    low, high = int(places.min()), int(places.max()) + 1
    if high - low <= 4 * len(places):
        total[low:high] += np.bincount(places - low, values, high - low).astype(np.int64)
    else:
        np.add.at(total, places, 1 if values is None else values)


@frozen(eq=False)
class VisitTotals:
    """The sums of groups of visits, shape (n,) each."""

    visits: NDArray[np.int64]
    views: NDArray[np.int64]
    bounces: NDArray[np.int64]
    duration_ms: NDArray[np.int64]

    def total(self) -> "VisitTotals":
        """Return the sums of all groups, shape (1,)."""
        columns = (self.visits, self.views, self.bounces, self.duration_ms)
        return VisitTotals(*(column.sum(keepdims=True) for column in columns))

    def take(self, groups: NDArray[np.integer[Any]]) -> "VisitTotals":
        """Return the sums of some groups."""
        return VisitTotals(
            self.visits[groups], self.views[groups], self.bounces[groups], self.duration_ms[groups]
        )

    @property
    def mean_duration_ms(self) -> NDArray[np.int64]:
        """The mean visible time of a visit in whole milliseconds, rounded; 0 without visits."""
        visits = np.maximum(self.visits, 1)
        mean: NDArray[np.int64] = (2 * self.duration_ms + visits) // (2 * visits)
        return mean


def totals_of(
    figures: VisitFigures, groups: NDArray[np.integer[Any]] | None = None, size: int = 1
) -> VisitTotals:
    """Return the sums of visits by group: `groups` has the number of each visit's, 0 to size - 1.

    Without groups, the sums of all visits.
    """
    if groups is None:
        groups = np.zeros(len(figures.views), np.intp)

    def summed(values: NDArray[Any] | None) -> NDArray[np.int64]:
        # Weights are floats, which are exact for these sums.
        return np.bincount(groups, values, size).astype(np.int64)

    return VisitTotals(
        summed(None), summed(figures.views), summed(figures.bounced), summed(figures.duration_ms)
    )


@frozen(eq=False)
class PageViews:
    """The views of some visits, in the order of visits and then of sequence numbers.

    `visits` has the place of each view's visit, `codes` those of Dimension.PATH, and `sequence`
    the sequence number; shape (n,) each.
    """

    visits: Places
    codes: NDArray[np.int64]
    sequence: NDArray[np.uint64]


def page_views(visits: Visits) -> PageViews:
    """Return the views of visits with their pages."""
    found = [
        (
            some.visits,
            some.part.codes(Dimension.PATH)[some.rows].astype(np.int64),
            some.part.sequence[some.rows],
        )
        for some in visits.views()
    ]
    if not found:
        return PageViews(np.zeros(0, np.intp), np.zeros(0, np.int64), _NONE)
    places, codes, sequence = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.lexsort((sequence, places))
    return PageViews(places[order], codes[order], sequence[order])


def pages_of_visits(visits: Visits) -> tuple[Places, NDArray[np.int64]]:
    """Return each visit with each page that it saw, once: the visit's place and the page's code."""
    keys = [np.zeros(0, np.int64)]
    goes_on = np.zeros(len(visits), np.bool_)
    for some in visits.views():
        codes = some.part.codes(Dimension.PATH)[some.rows].astype(np.int64)
        keys.append(distinct([some.visits.astype(np.int64) << 32 | codes]))
        goes_on[some.visits[visits.numbers[some.visits] < some.part.sequence_bounds[0]]] = True
    pairs = np.concatenate(keys)
    # Only a visit that goes on in another part can have a page there again.
    again = goes_on[pairs >> 32]
    pairs = np.concatenate([pairs[~again], distinct([pairs[again]])])
    return (pairs >> 32).astype(np.intp), pairs & 0xFFFF_FFFF
