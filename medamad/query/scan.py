"""Which views of each part a query selects: filters as masks of codes, the period as times."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.filters import Mask
from medamad.query.kernel import LOOPS, NO_COLUMN, ONES, CodeTable, PartViews, same_number
from medamad.query.period import Period
from medamad.query.request import Cancellation, Gap, Gaps
from medamad.storage.segments.format import Integers, Segment, SegmentHeader
from medamad.storage.segments.parts import (
    Codes,
    EventColumns,
    MergedSegment,
    Part,
    Rollup,
    ViewColumns,
)
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.snapshot import Snapshot

T = TypeVar("T")

_ZERO: Final = same_number(0)


@frozen(eq=False)
class SelectedViews:
    """The selected views of one part, as columns of equal length.

    `index` has their places in the part. None selects all of them.
    """

    part: ViewColumns
    index: NDArray[np.intp] | slice | None = None

    @property
    def rows(self) -> NDArray[np.intp] | slice:
        """Their places in the part, as an index."""
        return slice(None) if self.index is None else self.index

    def rows_of(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places in the part of some of the selected views."""
        rows = self.index
        if isinstance(rows, slice):
            rows = np.arange(len(self.part))[rows]
        return places if rows is None else rows[places]

    def of(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the selected views from a column of the part."""
        if self.index is None:
            return column
        return (
            column[self.index]
            if isinstance(self.index, slice)
            else column.take(self.index, mode="clip")
        )

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """Unix milliseconds."""
        return self.of(self.part.time_ms)

    @property
    def flags(self) -> NDArray[np.uint8]:
        """The flags that medamad.storage.segments.format defines."""
        return self.of(self.part.flags)

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        """Milliseconds on the page, 0 if unknown."""
        return self.of(self.part.duration_ms)

    def codes(self, dimension: Dimension) -> Codes:
        """Return the codes of the views' texts in one of VIEW_DIMENSIONS, of any unsigned dtype."""
        return self.of(self.part.codes(dimension))


@frozen(eq=False)
class PropertyFilter:
    """Matches the views that have an event with a matching property.

    `properties` has the matching codes of Dimension.PROPERTY; `loose_views`, ascending, the
    sequence numbers of the views of matching events that are not stored with their view.
    """

    properties: Mask
    loose_views: NDArray[np.uint64]
    _table: CodeTable = field(init=False)

    @_table.default
    def _make_table(self) -> CodeTable:
        return CodeTable(self.properties)

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a matching view, without looking at its views."""
        codes = _event_codes(part)
        if codes is None or self.properties.take(codes).any():
            return True
        loose, bounds = self.loose_views, part.sequence_bounds
        low, high = np.searchsorted(loose, np.array(bounds, np.uint64))
        return bool(low < high or (low < len(loose) and loose[low] in bounds))

    def mask(self, part: ViewColumns) -> Mask:
        """Return which views of a part match, shape (n,)."""
        mask = np.zeros(len(part), np.bool_)
        own = part.own
        if len(own):
            LOOPS.mark_views(own.property, own.view, self._table, mask)
        first, last = part.sequence_bounds
        begin, end = np.searchsorted(self.loose_views, np.array((first, last + 1), np.uint64))
        if begin < end:
            mask[find_views(part, self.loose_views[begin:end])[1]] = True
        return mask

    def mask_of(self, part: ViewColumns, rows: NDArray[np.intp]) -> Mask:
        """Return which of some views of a part match."""
        return self.mask(part)[rows]


class VisitFilter(Protocol):
    """Matches the views of some visits."""

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a matching view, without looking at its views."""

    def mask(self, part: ViewColumns) -> Mask:
        """Return which views of a part match, shape (n,)."""

    def mask_of(self, part: ViewColumns, rows: NDArray[np.intp]) -> Mask:
        """Return which of some views of a part match."""


@frozen(eq=False)
class ViewFilter:
    """All filters of a query on views: which codes match, by dimension, properties and visits."""

    codes: Mapping[Dimension, Mask]
    properties: PropertyFilter | None = None
    visits: VisitFilter | None = None
    _tables: dict[Dimension, CodeTable] = field(factory=dict)
    """The masks of `codes` as tables, those that were needed."""

    @property
    def matches_all(self) -> bool:
        """Whether every view matches."""
        return not self.codes and not self._by_view

    @property
    def is_by_view(self) -> bool:
        """Whether no counters decide which views match."""
        return bool(self._by_view)

    @property
    def _by_view(self) -> list[PropertyFilter | VisitFilter]:
        """The filters that no counters decide."""
        return [each for each in (self.properties, self.visits) if each is not None]

    @property
    def only_visits(self) -> VisitFilter | None:
        """The filter on visits, if there is no other."""
        return None if self.codes or self.properties else self.visits

    def without(self, dimension: Dimension) -> "ViewFilter":
        """Return the filter without the one on a dimension."""
        return evolve(
            self, codes={key: mask for key, mask in self.codes.items() if key != dimension}
        )

    def mask(self, part: ViewColumns, window: slice = slice(None)) -> Mask | None:
        """Return which views in a slice of a part match, or None if there is no filter."""
        mask = self._mask_by_view(part)
        if mask is not None:
            mask = mask[window]
        for dimension in self.codes:
            matches = self.table(dimension).matches(part.codes(dimension)[window])
            mask = matches if mask is None else mask & matches
        return mask

    @property
    def tables(self) -> list[CodeTable]:
        """The tables of the filtered dimensions, and one for a mask of the others."""
        return [*map(self.table, self.codes), ONES]

    def table(self, dimension: Dimension) -> CodeTable:
        """Return which codes of one of the filtered dimensions match."""
        table = self._tables.get(dimension)
        if table is None:
            table = self._tables[dimension] = CodeTable(self.codes[dimension])
        return table

    def _mask_by_view(self, part: ViewColumns) -> Mask | None:
        mask: Mask | None = None
        for filter_ in self._by_view:
            matches = filter_.mask(part)
            mask = matches if mask is None else mask & matches
        return mask

    def mask_of(self, part: ViewColumns, rows: NDArray[np.intp]) -> Mask:
        """Return which of some views of a part match, which is fast for few of them."""
        mask = np.ones(len(rows), np.bool_)
        for dimension, matching_codes in self.codes.items():
            mask &= matching_codes.take(part.codes(dimension)[rows])
        for filter_ in self._by_view:
            mask &= filter_.mask_of(part, rows)
        return mask

    def remaining(self, part: Part | Rollup) -> "ViewFilter | None":
        """Return what must still be compared view by view, or None if no view can match."""
        if not all(filter_.may_match(part) for filter_ in self._by_view):
            return None
        remaining: ViewFilter = self
        for dimension, matching_codes in self.codes.items():
            codes = _counted_codes(part, dimension)
            if codes is not None:
                matches = matching_codes.take(codes)
                if not matches.any():
                    return None
                if matches.all():
                    remaining = remaining.without(dimension)
        return remaining

    def candidates(self, part: ViewColumns, period: Period) -> "Candidates":
        """Return the views of a part, of which those that match and are in a period count."""
        window, mask = slice(0, len(part)), self._mask_by_view(part)
        if not period.contains(*part.time_bounds):
            if part.ascends:
                window = period.slice_of(part.time_ms)
            else:
                is_in = period.mask(part.time_ms)
                mask = is_in if mask is None else mask & is_in
        return Candidates(part, self, window, mask)

    def select(self, part: ViewColumns, period: Period) -> SelectedViews | None:
        """Return the views of a part that match and are in a period, or None if there are none."""
        return self.candidates(part, period).selected()


@frozen(eq=False)
class Candidates:
    """Views of one part, which count if they match the codes of a filter and a mask of the part."""

    part: ViewColumns
    filter: ViewFilter
    window: slice
    mask: Mask | None

    def selected(self) -> SelectedViews | None:
        """Return the views that match, or None if there are none."""
        part, window = self.part, self.window
        if self.filter.codes or self.mask is not None:
            index = LOOPS.select(self.views(self.filter), self.filter.tables)
            return SelectedViews(part, index) if len(index) else None
        if window.stop - window.start == len(part):
            return SelectedViews(part)
        return SelectedViews(part, window) if window.stop > window.start else None

    def views(
        self,
        filter_: ViewFilter,
        numbers: Integers = NO_COLUMN,
        flags: NDArray[np.uint8] = NO_COLUMN,
        duration_ms: Integers | None = None,
    ) -> PartViews:
        """Return the views for the tables of a filter, with columns of the part."""
        codes = self.filter.codes
        matching = [self.part.codes(each) if each in codes else None for each in filter_.codes]
        begin, end = self.window.start, self.window.stop
        return PartViews(begin, end, [*matching, self.mask], numbers, flags, duration_ms)


@frozen
class WantedColumns:
    """What the views of parts are wanted with: codes of a dimension, or 0, and other columns."""

    dimension: Dimension | None
    flags: bool
    durations: bool

    def of(self, part: ViewColumns) -> tuple[Integers, NDArray[np.uint8], Integers | None]:
        """Return the columns of a part."""
        return (
            _ZERO if self.dimension is None else part.codes(self.dimension),
            part.flags if self.flags else NO_COLUMN,
            part.duration_ms if self.durations else None,
        )


@frozen(eq=False)
class MergedCandidates:
    """All views of the members of a merged segment, which count if they match codes of a filter."""

    snapshot: Snapshot
    part: OpenMergedSegment
    filter: ViewFilter

    def views(self, filter_: ViewFilter, wanted: WantedColumns) -> Sequence[PartViews]:
        """Return the views for the tables of a filter.

        They are kept: to look all columns up takes as long as to read them.
        """
        used = tuple(each for each in filter_.codes if each in self.filter.codes)
        alone = self.snapshot.only([self.part.segment])
        what = (MergedCandidates, tuple(filter_.codes), used, wanted)
        compute = partial(self._find, filter_, wanted)
        return alone.kept(what, compute, lambda found: sum(map(PartViews.size_bytes, found)))

    def _find(self, filter_: ViewFilter, wanted: WantedColumns) -> Sequence[PartViews]:
        return [
            Candidates(part, self.filter, slice(0, len(part)), None).views(
                filter_, *wanted.of(part)
            )
            for part in leaves(self.part.members)
        ]


@frozen(eq=False)
class Selection:
    """The views of a snapshot that match a filter and are in a period."""

    snapshot: Snapshot
    period: Period
    filter: ViewFilter
    cancellation: Cancellation
    gap: Gap = Gap.FIGURES
    """What the result lacks if a rollup has selected views and others."""
    with_durations: bool | None = None
    """If set, only rollups with (True), or without (False), single durations are selected."""

    def scan(self, whole: Callable[[Part], T | None]) -> Iterator[SelectedViews | T]:
        """Return the selected views of each part that has any.

        If all views of a part are selected, `whole` may return a value for the part, which takes
        the place of the views. If it returns None for a merged segment, its members are scanned.
        """
        for scanned in self.candidates(whole):
            if not isinstance(scanned, Candidates):
                yield scanned
            elif (selected := scanned.selected()) is not None:
                yield selected

    def candidates(self, whole: Callable[[Part], T | None]) -> Iterator[Candidates | T]:
        """Return the same as `scan`, with candidates in the place of selected views."""
        for scanned in self._scan(self.snapshot.parts, self.filter, whole):
            if not isinstance(scanned, MergedCandidates):
                yield scanned

    def all_candidates(self) -> Iterator[Candidates]:
        """Return the candidates of each part that may have selected views."""
        return self.candidates(_no_value)

    def part_views(
        self, wanted: WantedColumns, whole: Callable[[Part], T | None]
    ) -> Iterator[PartViews | T]:
        """Return the same as `candidates`, as views of parts for the tables of the filter."""
        for scanned in self._scan(self.snapshot.parts, self.filter, whole, with_merged=True):
            if isinstance(scanned, Candidates):
                yield scanned.views(self.filter, *wanted.of(scanned.part))
            elif isinstance(scanned, MergedCandidates):
                yield from scanned.views(self.filter, wanted)
            else:
                yield scanned

    def all_part_views(self, wanted: WantedColumns) -> Iterator[PartViews]:
        """Return the views of each part that may have selected ones."""
        return self.part_views(wanted, _no_value)

    def views(self) -> Iterator[SelectedViews]:
        """Return the selected views of each part that has any."""
        return self.scan(_no_value)

    def parts_in_period(self) -> Iterator[ViewColumns]:
        """Return each part, none of them merged, that may have views in the period."""
        for part in leaves(self.snapshot.parts):
            self.cancellation.check()
            if self._is_in_period(part):
                yield part

    def rollups(self, value_of: Callable[[Rollup], T | None]) -> Iterator[tuple[Rollup, T | None]]:
        """Return each rollup that may have selected views, with a value of it.

        The value is None if only some of its views are selected, or may be: then the result has a
        gap of the kind `gap`, and so if `value_of` returns None.
        """
        for rollup in self.rollups_in_period():
            if self.with_durations is not None and rollup.has_durations is not self.with_durations:
                continue
            remaining = self.filter.remaining(rollup)
            if remaining is None:
                continue
            is_whole = remaining.matches_all and self.period.contains(*rollup.time_bounds)
            yield rollup, value_of(rollup) if is_whole else None

    @property
    def left_out(self) -> Gaps:
        """The days in the period of which damaged data is left out, or what a filter cannot see."""
        damaged = damaged_days(self.snapshot, self.period)
        if self.filter.visits is None:
            return damaged
        return damaged | self.visit_gaps

    @property
    def visit_gaps(self) -> Gaps:
        """The days in the period without views of known visits: of rollups, and imported views."""
        days = ((Gap.VISITS, rollup.day) for rollup in self.rollups_in_period())
        return self.gaps_without_visits | Gaps(days)

    @property
    def gaps_without_visits(self) -> Gaps:
        """The days in the period of which there are views that belong to no visit."""
        return Gaps(
            (Gap.VISITS, day)
            for part in self.snapshot.parts
            if not part.first_visit and self._is_in_period(part)
            for day in self.period.days_of(*part.time_bounds)
        )

    def rollups_in_period(self) -> Iterator[Rollup]:
        """Return each rollup that has views, and whose day is at least in part in the period."""
        for rollup in self.snapshot.rollups:
            self.cancellation.check()
            if self._is_in_period(rollup):
                yield rollup

    def _is_in_period(self, part: Part | Rollup) -> bool:
        least_ms, greatest_ms = part.time_bounds
        return least_ms <= greatest_ms and not self.period.is_outside(least_ms, greatest_ms)

    def without(self, dimension: Dimension) -> "Selection":
        """Return the selection without the filter on a dimension."""
        return evolve(self, filter=self.filter.without(dimension))

    def _scan(
        self,
        parts: Iterable[Part],
        filter_: ViewFilter,
        whole: Callable[[Part], T | None],
        *,
        with_merged: bool = False,
    ) -> Iterator[Candidates | MergedCandidates | T]:
        for part in parts:
            self.cancellation.check()
            least_ms, greatest_ms = part.time_bounds
            if least_ms > greatest_ms or self.period.is_outside(least_ms, greatest_ms):
                continue
            remaining = filter_.remaining(part)
            if remaining is None:
                continue
            if remaining.matches_all and self.period.contains(least_ms, greatest_ms):
                value = whole(part)
                if value is not None:
                    yield value
                    continue
            # A protocol is slow to ask.
            if not isinstance(part, OpenSegment) and isinstance(part, MergedSegment):
                if (
                    with_merged
                    and isinstance(part, OpenMergedSegment)
                    and part.is_of_leaves
                    and not remaining.is_by_view
                    and self.period.contains(least_ms, greatest_ms)
                ):
                    yield MergedCandidates(self.snapshot, part, remaining)
                    continue
                yield from self._scan(part.members, remaining, whole, with_merged=with_merged)
            else:
                yield remaining.candidates(part, self.period)


def damaged_days(snapshot: Snapshot, period: Period) -> Gaps:
    """Return the days in a period of which a snapshot leaves out damaged data."""
    return Gaps(
        (Gap.DAMAGED, day) for span in snapshot.left_out_ms for day in period.days_of(*span)
    )


def _counted_codes(part: Part | Rollup, dimension: Dimension) -> Integers | None:
    """Return the codes that a part's views have, None where that takes a scan."""
    if isinstance(part, OpenSegment | OpenMergedSegment):
        return part.counted_codes(dimension)
    counters = part.counters(dimension)
    return None if counters is None else counters.codes


def _event_codes(part: Part | Rollup) -> Integers | None:
    """Return the properties that a part's events have, None where that takes a scan."""
    if isinstance(part, OpenSegment | OpenMergedSegment):
        return part.event_codes()
    counts = part.event_counts()
    return None if counts is None else counts.codes


def _no_value(_part: Part) -> None:
    """Return no value of a part."""


def loose_events(
    snapshot: Snapshot, cancellation: Cancellation, first_view: int = 0
) -> Iterator[EventColumns]:
    """Return the events that are not stored with their view, or have none.

    With the sequence number of a view, only those that may belong to it or to later ones.
    """
    for events in snapshot.loose_events(first_view):
        cancellation.check()
        yield events


def divide(
    snapshot: Snapshot, period: Period, bounds_of: Callable[[SegmentHeader], tuple[int, int]]
) -> tuple[Snapshot, Snapshot]:
    """Divide a snapshot into the segments that never change and are in a period, and all else.

    `bounds_of` returns the times of a segment that are to be in the period.
    """
    whole: list[Segment] = []
    others: list[Segment] = []

    def add(segment: Segment) -> None:
        bounds = bounds_of(segment.header)
        if bounds[0] > bounds[1] or period.is_outside(*bounds):
            others.append(segment)
        elif period.contains(*bounds) and segment.number not in snapshot.overlays:
            whole.append(segment)
        elif segment.members:
            for member in segment.members:
                add(member)
        else:
            others.append(segment)

    for segment in snapshot.segments:
        add(segment)
    return snapshot.only(whole), evolve(snapshot, segments=tuple(others))


def leaves(parts: Iterable[Part]) -> Iterator[ViewColumns]:
    """Return the parts, with the members of merged segments in their place."""
    for part in parts:
        if isinstance(part, MergedSegment):
            yield from leaves(part.members)
        else:
            yield part


def find_views(
    part: ViewColumns, sequences: NDArray[np.uint64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find views by their sequence numbers.

    Return the indices of those in `sequences` that the part has, and their places in the part.
    """
    low, high = part.sequence_bounds
    near = np.flatnonzero((sequences >= low) & (sequences <= high))
    if not len(part) or not len(near):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    wanted = sequences[near]
    if high - low + 1 == len(part):
        return near, (wanted - np.uint64(low)).astype(np.intp)
    known = part.sequence
    places = np.searchsorted(known, wanted)
    is_found = known[places] == wanted
    return near[is_found], places[is_found]
