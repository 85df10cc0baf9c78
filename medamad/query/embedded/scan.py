"""Which views of a snapshot a query selects, part by part."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import SETTLED_MS, Dimension
from medamad.query.embedded.loops import PartViews, same_number
from medamad.query.embedded.view_filter import Candidates, PropertyFilter, ViewFilter
from medamad.query.period import Period
from medamad.query.request import Cancellation, Gap, Gaps
from medamad.storage.segments.format import Integers, MappedColumn, Segment, SegmentHeader
from medamad.storage.segments.parts import (
    NO_TIME,
    EventColumns,
    MergedSegment,
    Part,
    Rollup,
    ViewColumns,
    enclosing_bounds,
)
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import may_have_visits

T = TypeVar("T")
_ZERO: Final = same_number(0)
_OBJECTS_BYTES: Final = 300
"""What a column takes besides its numbers."""
Columns: TypeAlias = tuple[Integers, NDArray[np.uint8] | None, Integers | None]
"""What views are added up by, their flags and their durations."""


@frozen
class WantedColumns:
    """What the views of parts are wanted with: codes of a dimension, or 0, and other columns."""

    dimension: Dimension | None
    flags: bool
    durations: bool

    def of(self, part: ViewColumns) -> Columns:
        """Return the columns of a part."""
        return (
            _ZERO if self.dimension is None else part.codes(self.dimension),
            part.flags if self.flags else None,
            part.duration_ms if self.durations else None,
        )


@frozen(eq=False)
class MergedCandidates:
    """All views of the members of a merged segment, which count if they match a filter."""

    snapshot: Snapshot
    part: OpenMergedSegment
    filter: ViewFilter

    def views(self, wanted: WantedColumns) -> Iterator[PartViews]:
        """Return the views. Their columns are cached: to look them up takes as long as to read."""
        of_segment = self.snapshot.with_segments([self.part.segment])
        found = of_segment.cached((MergedCandidates, wanted), partial(self._find, wanted))
        for part, columns in zip(self.part.leaves, found.columns, strict=True):
            mask = self.filter.mask(part, self.snapshot)
            yield PartViews(0, len(part), mask, *columns)

    def _find(self, wanted: WantedColumns) -> "_MergedColumns":
        return _MergedColumns(list(map(wanted.of, self.part.leaves)))


@frozen(eq=False)
class _MergedColumns:
    """The columns of the members of a merged segment."""

    columns: Sequence[Columns]

    @property
    def nbytes(self) -> int:
        """About the memory that they take, but for the mapped file."""
        return sum(
            _OBJECTS_BYTES
            if column is None or type(column) is MappedColumn or not any(column.strides)
            else column.nbytes
            for columns in self.columns
            for column in columns
        )


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
    gathered: dict[Snapshot, Any] = field(factory=dict)
    """What `visits_in_groups` gathers from a snapshot: the same for all periods of a request."""
    visits: tuple[int, int] | None = None
    """Bounds of the numbers of visits: other parts than those that may have views of them count
    nowhere."""

    def candidates(self, value_of: Callable[[Part], T | None]) -> Iterator[Candidates | T]:
        """Return the candidates of each part that may have selected views.

        If the selected views of a part have counters, `value_of` may return a value of them, which
        takes their place. If it returns None for a merged segment, its members are scanned.
        """
        for scanned in self._scan(self.snapshot.parts, self.filter, value_of):
            if not isinstance(scanned, MergedCandidates):
                yield scanned

    def all_candidates(self) -> Iterator[Candidates]:
        """Return the candidates of each part that may have selected views."""
        return self.candidates(no_value)

    def part_views(
        self, wanted: WantedColumns, value_of: Callable[[Part], T | None]
    ) -> Iterator[PartViews | T]:
        """Return the same as `candidates`, as views of parts."""
        for scanned in self._scan(self.snapshot.parts, self.filter, value_of, with_merged=True):
            if isinstance(scanned, Candidates):
                yield scanned.views(*wanted.of(scanned.part))
            elif isinstance(scanned, MergedCandidates):
                yield from scanned.views(wanted)
            else:
                yield scanned

    def parts(self) -> Iterator[ViewColumns]:
        """Return each part, none of them merged, that may have views of the visits."""
        for part in self.snapshot.leaves(self.visits):
            self.cancellation.check()
            yield part

    def rollups(self, value_of: Callable[[Rollup], T | None]) -> Iterator[tuple[Rollup, T | None]]:
        """Return each rollup that may have selected views, with a value of it.

        The value is None if only some of its views are selected, or may be: then the result has a
        gap of the kind `gap`, and so if `value_of` returns None.
        """
        properties = self.filter.properties
        # Rollups are divided by what rules leave out.
        filter_ = evolve(self.filter, properties=None, excluded=None)
        days_ms = None if properties is None else self._days_of_events(properties)
        for rollup in self.rollups_in_period():
            if self.with_durations is not None and rollup.has_durations is not self.with_durations:
                continue
            first_ms, last_ms = rollup.time_bounds
            if properties is not None and days_ms is not None and not properties.has_loose(rollup):
                begin_ms, end_ms = days_ms
                if not np.any((begin_ms <= last_ms + SETTLED_MS) & (end_ms >= first_ms)):
                    continue
            remaining = filter_.remaining(rollup)
            if remaining is None:
                continue
            is_whole = (
                properties is None
                and remaining.matches_all
                and self.period.contains(first_ms, last_ms)
            )
            yield rollup, value_of(rollup) if is_whole else None

    def _days_of_events(self, properties: PropertyFilter) -> NDArray[np.int64]:
        """Return the bounds of the days of rollups that have events which may match, shape (2, n).

        Those of them that views of rollups in the period may have: an event of a view may be of a
        later day, and is in the rollup of that.
        """
        bounds = enclosing_bounds(rollup.time_bounds for rollup in self.rollups_in_period())
        near = Period(bounds[0], bounds[1] + SETTLED_MS)
        days = [
            rollup.event_time_bounds
            for rollup in self.snapshot.rollups
            if rollup.event_time_bounds != NO_TIME
            and not near.is_outside(*rollup.event_time_bounds)
            and properties.may_match_events(rollup)
        ]
        return np.array(days, np.int64).reshape(-1, 2).T

    @property
    def left_out(self) -> Gaps:
        """The days in the period of which damaged data is left out, or what a filter cannot see.

        Also those of which there is what rules leave out.
        """
        damaged = damaged_days(self.snapshot, self.period)
        excluded = self.filter.excluded
        if self.filter.properties is not None or excluded is not None:
            damaged |= self._days_before_damage()
        if excluded is not None:
            damaged |= Gaps(
                (Gap.EXCLUSIONS, rollup.day)
                for rollup in self.rollups_in_period()
                if excluded.applies_to(rollup)
            )
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
        """The days in the period of which there are views that belong to no visit.

        Or of which visits may go on in damaged data.
        """
        return self._days_before_damage() | Gaps(
            (Gap.VISITS, day)
            for part in self.snapshot.headers
            if not part.first_visit and self._is_in_period(part)
            for day in self.period.days_of(*part.time_bounds)
        )

    def _days_before_damage(self) -> Gaps:
        """Return the days in the period of views that may have events, or visits, in damaged data.

        These are up to SETTLED_MS later.
        """
        return Gaps(
            (Gap.DAMAGED, day)
            for first_ms, _ in self.snapshot.left_out_ms
            for part in self.snapshot.headers
            for day in self.period.days_of(
                max(part.time_bounds[0], first_ms - SETTLED_MS),
                min(part.time_bounds[1], first_ms - 1),
            )
        )

    def rollups_in_period(self) -> Iterator[Rollup]:
        """Return each rollup that has views, and whose day is at least in part in the period."""
        for rollup in self.snapshot.rollups:
            self.cancellation.check()
            if self._is_in_period(rollup):
                yield rollup

    def _is_in_period(self, part: SegmentHeader | ViewColumns | Rollup) -> bool:
        least_ms, greatest_ms = part.time_bounds
        return least_ms <= greatest_ms and not self.period.is_outside(least_ms, greatest_ms)

    def apart(self) -> "tuple[Selection, Selection] | None":
        """Return the selections of all views, and of those that rules leave out.

        None if there are no rules, or other filters. Sums are found fast as the difference of both.
        """
        excluded = self.filter.excluded
        if excluded is None or not self.filter.matches_all_included:
            return None
        left_out = evolve(self, filter=ViewFilter({}, visits=excluded))
        return evolve(self, filter=ViewFilter({})), left_out

    def without(self, dimension: Dimension) -> "Selection":
        """Return the selection without the filter on a dimension."""
        return evolve(self, filter=self.filter.without(dimension))

    def _scan(
        self,
        parts: Iterable[Part],
        filter_: ViewFilter,
        value_of: Callable[[Part], T | None],
        *,
        with_merged: bool = False,
    ) -> Iterator[Candidates | MergedCandidates | T]:
        for part in parts:
            self.cancellation.check()
            least_ms, greatest_ms = part.time_bounds
            if least_ms > greatest_ms or self.period.is_outside(least_ms, greatest_ms):
                continue
            if not may_have_visits(part, self.visits):
                continue
            remaining = filter_.remaining(part)
            if remaining is None:
                continue
            if self.period.contains(least_ms, greatest_ms):
                value = value_of(part) if remaining.matches_all else None
                if value is not None:
                    yield value
                    continue
            # A protocol is slow to ask.
            if not isinstance(part, OpenSegment) and isinstance(part, MergedSegment):
                if (
                    with_merged
                    and isinstance(part, OpenMergedSegment)
                    and part.is_of_leaves
                    and self.period.contains(least_ms, greatest_ms)
                ):
                    yield MergedCandidates(self.snapshot, part, remaining)
                    continue
                yield from self._scan(part.members, remaining, value_of, with_merged=with_merged)
            else:
                yield remaining.candidates(part, self.period, self.snapshot)


def damaged_days(snapshot: Snapshot, period: Period) -> Gaps:
    """Return the days in a period of which a snapshot leaves out damaged data."""
    return Gaps(
        (Gap.DAMAGED, day) for span in snapshot.left_out_ms for day in period.days_of(*span)
    )


def no_value(_part: Part) -> None:
    """Return no value of views."""


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
    snapshot: Snapshot,
    period: Period,
    bounds_of: Callable[[SegmentHeader], tuple[int, int]] = lambda header: header.time_bounds,
) -> tuple[Snapshot, Snapshot]:
    """Divide a snapshot into the segments that never change and are in a period, and all else.

    `bounds_of` returns the times of a segment that are to be in the period.
    """
    covered: list[Segment] = []
    others: list[Segment] = []

    def add(segment: Segment) -> None:
        bounds = bounds_of(segment.header)
        if bounds[0] > bounds[1] or period.is_outside(*bounds):
            others.append(segment)
        elif period.contains(*bounds) and segment.number not in snapshot.overlays:
            covered.append(segment)
        elif segment.members:
            for member in segment.members:
                add(member)
        else:
            others.append(segment)

    for segment in snapshot.segments:
        add(segment)
    return snapshot.with_segments(covered), evolve(snapshot, segments=tuple(others))
