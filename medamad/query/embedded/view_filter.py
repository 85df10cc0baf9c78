"""The filters of a query on the views of one part, and the views that they select."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any, Protocol

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import CodeTable, PartViews, RowMask
from medamad.query.filters import Mask
from medamad.query.period import Period
from medamad.storage.segments.format import Integers, Segment
from medamad.storage.segments.parts import EventColumns, Numbers, Part, Rollup, ViewColumns
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import are_any_between, find_ascending


@frozen(eq=False)
class PropertyFilter:
    """Matches the views that have an event with a matching property.

    `properties` has the matching codes of Dimension.PROPERTY; `loose_views`, ascending, the
    sequence numbers of the views of matching events that are not stored with their view.
    """

    properties: Mask
    loose_views: Numbers

    @cached_property
    def _table(self) -> CodeTable:
        return CodeTable(self.properties)

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a matching view, without looking at its views."""
        return self.may_match_events(part) or self.has_loose(part)

    def may_match_events(self, part: Part | Rollup) -> bool:
        """Return whether any of a part's events may match."""
        codes = event_codes(part)
        return codes is None or bool(self.properties.take(codes).any())

    def has_loose(self, part: Part | Rollup) -> bool:
        """Return whether a view of a part may match by events that are not stored with it."""
        return are_any_between(self.loose_views, *part.sequence_bounds)

    def own(self, part: ViewColumns) -> RowMask:
        """Return which views of a part match by events that are stored with them."""
        mask, own = RowMask.of_none(len(part)), part.own
        if len(own):
            LOOPS.mark_views(own.property, own.view, self._table, mask)
        return mask

    def loose(self, part: ViewColumns) -> NDArray[np.intp]:
        """Return the rows of a part that match by other events."""
        return find_ascending(part, self.loose_views)[1]


class VisitFilter(Protocol):
    """Matches the views of some visits."""

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a matching view, without looking at its views."""

    def mask(self, part: ViewColumns) -> RowMask:
        """Return which views of a part match."""

    def state_of(self, segments: Iterable[Segment]) -> Hashable:
        """Return what decides which views of segments match, None if that may change."""


class Exclusions(VisitFilter, Protocol):
    """Matches the views that rules of the website leave out of all figures."""

    @property
    def gathered(self) -> dict[Snapshot, Any]:
        """What `Selection` has as such: the same for all of them."""

    def left_out(self, part: ViewColumns) -> RowMask | None:
        """Return which views of a part are left out, None if none are."""

    def applies_to(self, rollup: Rollup) -> bool:
        """Return whether a rule may be about the day of a rollup, which has what it leaves out."""

    def events(self, events: EventColumns) -> Mask:
        """Return which rows of loose events are left out if they have no view, shape (n,)."""

    def are_decided(self, events: EventColumns) -> Mask:
        """Return which rows of events were decided on when the day of their view expired."""


@frozen(eq=False)
class ViewFilter:
    """All filters of a query on views: codes by dimension, properties, visits and columns.

    And what the website's rules leave out, whatever the query. `columns` return which views of a
    part match by columns of numbers.

    `key` is equal for equal filters on codes and properties, as long as the same names stand for
    referrers. What matches in segments is cached by it; without a key, nothing is cached.
    """

    codes: Mapping[Dimension, Mask]
    properties: PropertyFilter | None = None
    visits: VisitFilter | None = None
    key: Hashable = None
    columns: Sequence[Callable[[ViewColumns], Mask]] = ()
    excluded: Exclusions | None = None
    _tables: dict[Dimension, CodeTable] = field(factory=dict)
    """The masks of `codes` as tables, those that were needed."""

    @property
    def matches_all(self) -> bool:
        """Whether every view matches."""
        return self.excluded is None and self.matches_all_included

    @property
    def matches_all_included(self) -> bool:
        """Whether every view matches that no rule leaves out."""
        return not self.codes and not self.is_by_view

    @property
    def is_by_view(self) -> bool:
        """Whether no counters decide which of the views match that no rule leaves out."""
        return bool(self.properties or self.visits or self.columns)

    def state_of(self, segments: Iterable[Segment]) -> Hashable:
        """Return what decides which views of segments match, but for the filters of a query.

        None if there are no rules, or for filters of a query on visits.
        """
        decide = self.visits or self.excluded
        return None if decide is None else decide.state_of(segments)

    @property
    def is_settled(self) -> bool:
        """Whether `state_of` alone decides which views of segments match."""
        return self.matches_all or (self.only_visits is not None and self.state_of(()) is not None)

    @property
    def only_visits(self) -> VisitFilter | None:
        """The filter on visits, if there is no other."""
        is_alone = not (self.codes or self.properties or self.columns or self.excluded)
        return self.visits if is_alone else None

    def without(self, dimension: Dimension) -> "ViewFilter":
        """Return the filter without the one on a dimension."""
        return evolve(
            self, codes={key: mask for key, mask in self.codes.items() if key != dimension}
        )

    def mask(self, part: ViewColumns, snapshot: Snapshot) -> RowMask | None:
        """Return which views of a part of a snapshot match, or None if all do."""
        left_out = None if self.excluded is None else self.excluded.left_out(part)
        return _in_all(
            self.matching(part, snapshot),
            None if self.visits is None else self.visits.mask(part),
            None if left_out is None else left_out.inverted(),
            *(RowMask.packed(test(part)) for test in self.columns),
        )

    def matching(self, part: ViewColumns, snapshot: Snapshot) -> RowMask | None:
        """Return which views of a part match codes and properties, or None if all do.

        It is cached for segments: the requests of a dashboard have the same filters.
        """
        if not self.codes and self.properties is None:
            return None
        if self.key is not None and isinstance(part, OpenSegment):
            what = (self.key, *self.codes, self.properties is None)
            mask = snapshot.cached_of_segment(part, what, partial(self._matching, part))
        else:
            mask = self._matching(part)
        if self.properties is not None:
            rows = self.properties.loose(part)
            for dimension, matching_codes in self.codes.items() if len(rows) else ():
                rows = rows[matching_codes.take(part.codes(dimension)[rows])]
            if len(rows):
                return mask.with_rows(rows)
        return mask

    def _matching(self, part: ViewColumns) -> RowMask:
        """Return which views of a part match codes, and properties by their own events."""
        own = RowMask.of_none(0) if self.properties is None else self.properties.own(part)
        if not self.codes:
            return own
        columns, tables = map(part.codes, self.codes), map(self.table, self.codes)
        found = LOOPS.match([*columns], [*tables])
        return found if self.properties is None else found.within(own)

    def table(self, dimension: Dimension) -> CodeTable:
        """Return which codes of one of the filtered dimensions match."""
        table = self._tables.get(dimension)
        if table is None:
            table = self._tables[dimension] = CodeTable(self.codes[dimension])
        return table

    def mask_of(self, part: ViewColumns, rows: NDArray[np.intp], snapshot: Snapshot) -> Mask:
        """Return which of some views of a part of a snapshot match."""
        mask = self.mask(part, snapshot)
        return np.ones(len(rows), np.bool_) if mask is None else mask.of(rows)

    def remaining(self, part: Part | Rollup) -> "ViewFilter | None":
        """Return what must still be compared view by view, or None if no view can match."""
        decide = (self.properties, self.visits)
        if not all(each is None or each.may_match(part) for each in decide):
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

    def candidates(self, part: ViewColumns, period: Period, snapshot: Snapshot) -> "Candidates":
        """Return the views of a part, of which those that match and are in a period count."""
        window, is_in = slice(0, len(part)), None
        is_whole = period.contains(*part.time_bounds)
        if not is_whole and part.ascends:
            window = period.slice_of(part.time_ms)
        elif not is_whole:
            is_in = RowMask.packed(period.mask(part.time_ms))
        return Candidates(
            part,
            window,
            lambda: _in_all(self.mask(part, snapshot), is_in),
            lambda: self._key_of(part, snapshot) if is_whole else None,
        )

    def _key_of(self, part: ViewColumns, snapshot: Snapshot) -> Hashable:
        """Return what decides which views of a segment match, None if that may change."""
        if (
            self.key is None
            or self.visits is not None
            or self.columns
            or not isinstance(part, OpenSegment)
            or part.segment.number in snapshot.overlays
            or (self.properties is not None and len(self.properties.loose(part)))
        ):
            return None
        state = self.state_of([part.segment])
        return (self.key, *self.codes, self.properties is None, state)


@frozen(eq=False)
class Candidates:
    """Views of one part, which count if they are in a mask of the part, where there is one."""

    part: ViewColumns
    window: slice
    _find_mask: Callable[[], RowMask | None]
    find_key: Callable[[], Hashable] = lambda: None
    """Returns what is equal for the same views of a segment, None of views that may change."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """The places of those that count."""
        rows: NDArray[np.intp] = np.arange(self.window.start, self.window.stop)
        mask = self._find_mask()
        return rows if mask is None else rows[mask.unpacked()[self.window]]

    def views(
        self,
        numbers: Integers | None = None,
        flags: NDArray[np.uint8] | None = None,
        duration_ms: Integers | None = None,
    ) -> PartViews:
        """Return the views, with columns of the part."""
        begin, end = self.window.start, self.window.stop
        return PartViews(begin, end, self._find_mask(), numbers, flags, duration_ms)


def _in_all(*masks: RowMask | None) -> RowMask | None:
    """Return which rows are in all masks of a part, None if there are none."""
    return reduce(lambda one, other: one.within(other) if one and other else one or other, masks)


def _counted_codes(part: Part | Rollup, dimension: Dimension) -> Integers | None:
    """Return the codes that a part's views have, None where that takes a scan."""
    if isinstance(part, OpenSegment | OpenMergedSegment):
        return part.counted_codes(dimension)
    counters = part.counters(dimension)
    return None if counters is None else counters.codes


def greatest_code(part: ViewColumns, dimension: Dimension) -> int:
    """Return the greatest code of a part's views, 0 if it has none."""
    codes = _counted_codes(part, dimension)
    if codes is None:
        return int(part.codes(dimension).max(initial=0))
    return int(codes[-1]) if len(codes) else 0


def event_codes(part: Part | Rollup) -> Integers | None:
    """Return the properties that a part's events have, None where that takes a scan."""
    if isinstance(part, OpenSegment | OpenMergedSegment):
        return part.event_codes()
    counts = part.event_counts()
    return None if counts is None else counts.codes
