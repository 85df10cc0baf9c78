"""The number of events by property name, or by property."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, Final

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.lookup.referrers import Sources
from medamad.query.embedded.goals import begin_events
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import CodeTable, OwnEvents, RowMask
from medamad.query.embedded.scan import Selection, loose_events
from medamad.query.embedded.view_filter import event_codes
from medamad.query.embedded.visit_groups import left_out_of, visits_in_groups
from medamad.query.filters import Mask, matches_without_view, property_mask
from medamad.query.names import display_names
from medamad.query.reader import Reader
from medamad.query.request import PROPERTY_FIELDS, DayGap, Gap, Gaps, Query
from medamad.query.sums import PropertyCounts
from medamad.storage.segments.parts import (
    EventColumns,
    EventCounts,
    EventRows,
    EventSums,
    MergedSegment,
    Part,
    Rollup,
    ViewColumns,
    joined,
)
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.visit_numbers import find_ascending

_AT_ONCE: Final = 32
"""The events of this many parts are counted at a time."""


def count_properties(
    reader: Reader, select: Callable[[Query], Selection], query: Query, *, by_value: bool
) -> PropertyCounts:
    """Return the number of events by property name or, with `by_value`, by name and value.

    An event counts by its own time. The filters on views look at its view. `select` returns the
    selection of a query: events of views that rules leave out do not count.
    """
    labels = _Labels.of(reader, query, by_value=by_value)
    # Filters on properties are about the events, not about others of their views.
    filters = tuple(each for each in query.filters if each.field not in PROPERTY_FIELDS)
    of_views = select(evolve(query, filters=filters))
    without_view = matches_without_view(query)
    filter_ = EventFilter(of_views, without_view)
    counter = _Counter(labels)
    gaps = left_out_of(of_views) | Gaps(_count_parts(filter_, counter))
    for rollup in of_views.snapshot.rollups:
        reader.cancellation.check()
        if not _count_rollup(rollup, filter_, counter):
            gaps |= Gaps({(Gap.FIGURES, rollup.day)})
    events, total = counter.result()
    visits = None
    if query.with_visits:
        selected = select(query)
        visits = _visits_by_label(selected, labels)
        gaps |= selected.visit_gaps
    return PropertyCounts(labels.texts, events, visits, total, gaps)


def _count_parts(filter_: "EventFilter", counter: "_Counter") -> set[DayGap]:
    """Count the events that match but for those of rollups; return the gaps."""
    snapshot = filter_.selection.snapshot
    loose: list[EventColumns] = []
    for part in snapshot.parts:
        loose += _count_part(part, filter_, counter)
    # Without a filter on views, counters have those of some segments.
    others = loose_events(snapshot, filter_.selection.cancellation)
    loose += snapshot.events if filter_.selection.filter.matches_all else others
    selected, gaps = filter_.loose(loose, counter.labels.mask)
    counter.add(selected, None, has_distinct_names=False)
    return gaps


def _visits_by_label(selection: Selection, labels: "_Labels") -> NDArray[np.int64]:
    """Return in how many selected visits there were events with each label, shape (n,)."""
    counts, mask = np.zeros(labels.size, np.int64), labels.table.mask
    for visits in visits_in_groups(selection):
        own = visits.part.own
        rows = np.flatnonzero(mask.take(own.property))
        places = visits.places_of_rows(own.view[rows].astype(np.intp))
        is_in = places >= 0
        of_visits = places[is_in].astype(np.int64) * labels.size
        pairs = np.unique(of_visits + labels.of_code[own.property[rows[is_in]]])
        counts += np.bincount(pairs % labels.size, minlength=labels.size)
    return counts


def _count_part(part: Part, filter_: "EventFilter", counter: "_Counter") -> Iterator[EventColumns]:
    """Count a part's events of its own views, by its counters if these are enough.

    Without a filter on views, return the loose events that are still to be counted.
    """
    selection, bounds = filter_.selection, part.event_time_bounds
    selection.cancellation.check()
    if bounds[0] > bounds[1] or selection.period.is_outside(*bounds):
        return
    if selection.period.contains(*bounds):
        counts = _event_counts(part, selection, counter.labels)
        if counts is not None and counter.add_counts(counts):
            return
    if isinstance(part, MergedSegment):
        for member in part.members:
            yield from _count_part(member, filter_, counter)
    else:
        matching = filter_.matching_own(part)
        if matching is None:
            has_distinct_names = event_codes(part) is not None
            counter.add(part.own, filter_.own(part), has_distinct_names=has_distinct_names)
        else:
            counter.add_own(matching)
        if selection.filter.matches_all and len(part.loose):
            yield part.loose


def _event_counts(part: Part, selection: Selection, labels: "_Labels") -> EventCounts | None:
    """Return the counts of a part's events, or of its own ones that rules do not leave out.

    The latter are cached for segments. None if that takes a scan, or is not enough.
    """
    snapshot, filter_ = selection.snapshot, selection.filter
    if filter_.matches_all:
        return part.event_counts()
    if (
        filter_.excluded is None
        or not filter_.matches_all_included
        or not isinstance(part, OpenSegment | OpenMergedSegment)
        or (codes := event_codes(part)) is None
        or not (labels.mask is None or labels.are_enough(labels.mask.take(codes)))
        or part.segment.number in snapshot.overlays
    ):
        return None
    key = (EventCounts, filter_.excluded.state_of([part.segment]))
    of_segment = evolve(selection, snapshot=snapshot.with_segments([part.segment]))
    return of_segment.snapshot.cached(key, partial(_count_own, of_segment))


def _count_own(of_segment: Selection) -> EventCounts:
    """Return the counts of the own events of a segment that match."""
    snapshot, filter_ = of_segment.snapshot, EventFilter(of_segment, without_view=False)
    size = len(snapshot.texts(Dimension.PROPERTY))
    found = map(filter_.matching_own, snapshot.leaves())
    own = [events for events in found if events is not None]
    counts, total = LOOPS.count_events(own, CodeTable(np.ones(size, np.bool_)), size)
    codes = np.flatnonzero(counts)
    return EventCounts(codes, counts[codes], total)


def _count_rollup(rollup: Rollup, filter_: "EventFilter", counter: "_Counter") -> bool:
    """Count the events of a day. Return False if it is unknown which of them match."""
    bounds = rollup.event_time_bounds
    period = filter_.selection.period
    if bounds[0] > bounds[1] or period.is_outside(*bounds):
        return True
    sums, mask = rollup.event_sums(), counter.labels.mask
    if mask is not None and not mask.take(sums.codes).any():
        return True
    if not filter_.selection.filter.matches_all_included or not period.contains(*bounds):
        return False
    counts = rollup.event_counts()
    return counter.add_sums(sums) if counts is None else counter.add_counts(counts)


@frozen(eq=False)
class _Labels:
    """What events are counted by: property names, or whole properties, which sort by name first.

    The labels are the first `size` of `texts`. `of_code` has the number of the label of each
    property. `mask` has the properties that match, or is None for all of them; `table` has them in
    any case; `is_one_name` is true if those have the same name.
    """

    texts: Sequence[str]
    of_code: NDArray[np.int64]
    size: int
    mask: Mask | None
    table: CodeTable
    is_one_name: bool
    by_value: bool

    @classmethod
    def of(cls, reader: Reader, query: Query, *, by_value: bool) -> "_Labels":
        """Return the labels of a website's properties."""
        names, _ = display_names(reader, Dimension.PROPERTY, _name)
        size = len(names.number_of)
        mask = property_mask(reader.texts, query, reader.cancellation)[:size]
        numbers = names.number_of.astype(np.int64)
        matched = numbers[np.flatnonzero(mask)]
        return cls(
            texts=reader.texts(Dimension.PROPERTY) if by_value else names.names,
            of_code=np.arange(size) if by_value else numbers,
            size=size if by_value else len(names.names),
            mask=mask if query.has_property_filter else None,
            table=CodeTable(mask),
            is_one_name=len(matched) > 0 and bool(matched.min() == matched.max()),
            by_value=by_value,
        )

    def are_enough(self, matches: Mask) -> bool:
        """Return whether counts of events with some properties tell how many events match.

        `matches` has which of the properties match. None of the events may have a name twice. How
        many have any of several names is unknown.
        """
        return self.is_one_name or bool(matches.all()) or not matches.any()


def _name(text: str, _sources: Sources) -> str:
    """Return the name of a property."""
    return split_property(text)[0]


@define(eq=False)
class _Counter:
    """The number of events with each label, and of those with any."""

    labels: _Labels
    _by_code: NDArray[np.int64] = field(init=False)
    _by_label: NDArray[np.int64] = field(init=False)
    _total: int = 0
    _own: list[OwnEvents] = field(factory=list)
    """Events that are still to be counted, several parts at a time."""

    def __attrs_post_init__(self) -> None:
        # One more takes what is out of bounds.
        self._by_code = np.zeros(len(self.labels.of_code) + 1, np.int64)
        self._by_label = np.zeros(self.labels.size, np.int64)

    def add_counts(self, counts: EventCounts) -> bool:
        """Add counters. Return False, and add nothing, if they are not enough."""
        codes, events, total = counts.codes, counts.events, counts.total
        if self.labels.mask is not None:
            matches = self.labels.mask.take(codes)
            if not self.labels.are_enough(matches):
                return False
            if not matches.all():
                codes, events = codes[matches], events[matches]
                total = int(events.sum(dtype=np.int64))
        self._by_code[codes] += events
        self._total += total
        return True

    def add_sums(self, sums: EventSums) -> bool:
        """Add the sums of a day. Return False, and add nothing, if they are not enough."""
        matches = None if self.labels.mask is None else self.labels.mask.take(sums.codes)
        if matches is not None and not matches.all():
            events = sums.events[matches]
            if len(events) == 1:
                self._by_code[sums.codes[matches]] += events
                self._total += int(events[0])
            # Whether an event has several of them is unknown.
            return len(events) == 1
        if self.labels.by_value:
            self._by_code[sums.codes] += sums.events
        else:
            self._by_label[self.labels.of_code[sums.names]] += sums.events_of_names
        self._total += sums.total
        return True

    def add(self, events: EventColumns, mask: Mask | None, *, has_distinct_names: bool) -> None:
        """Add the events of which `mask` selects rows.

        The rows of an event must follow each other. `has_distinct_names` says that no event has a
        name twice.
        """
        codes, event, matching = events.property, events.event, self.labels.mask
        if matching is not None:
            matches = matching.take(codes)
            mask = matches if mask is None else mask & matches
        if mask is not None:
            codes, event = codes.compress(mask), event.compress(mask)
        self._total += int(np.count_nonzero(begin_events(event)))
        if has_distinct_names:
            self._by_code += np.bincount(codes, minlength=len(self._by_code))
            return
        labels = self.labels.of_code[codes]
        # An event may have a label twice: that of values past a limit.
        is_repeated = np.zeros(len(event), np.bool_)
        for distance in count(1):
            is_same = event[distance:] == event[:-distance]
            if not is_same.any():
                break
            is_repeated[distance:] |= is_same & (labels[distance:] == labels[:-distance])
        self._by_label += np.bincount(labels[~is_repeated], minlength=len(self._by_label))

    def add_own(self, events: OwnEvents) -> None:
        """Add the events of views that match, none of which has a name twice."""
        self._own.append(events)
        if len(self._own) == _AT_ONCE:
            self._count_own()

    def _count_own(self) -> None:
        counts, total = LOOPS.count_events(self._own, self.labels.table, len(self.labels.of_code))
        self._by_code += counts
        self._total += total
        self._own.clear()

    def result(self) -> tuple[NDArray[np.int64], int]:
        """Return the number of events with each label, shape (n,), and of those with any."""
        self._count_own()
        counts = self._by_label.copy()
        np.add.at(counts, self.labels.of_code, self._by_code[:-1])
        return counts, self._total


@frozen(eq=False)
class EventFilter:
    """Which events match: by their time and by their view; `without_view` is for those of none."""

    selection: Selection
    without_view: bool

    def matching_own(self, part: ViewColumns) -> OwnEvents | None:
        """Return the own events of a segment, with the views whose events match.

        None if not all are in the period, or some may have a name twice.
        """
        if (
            not isinstance(part, OpenSegment)
            or not self.selection.period.contains(*part.event_time_bounds)
            or event_codes(part) is None
        ):
            return None
        snapshot, own = self.selection.snapshot, part.own
        matching = self.selection.filter.mask(part, snapshot)
        matching = matching or RowMask.of_none(len(part)).inverted()
        begins = snapshot.cached_of_segment(
            part, OwnEvents, lambda: RowMask.packed(begin_events(own.event))
        )
        return OwnEvents(own.property, own.view, begins, matching)

    def own(self, part: ViewColumns) -> Mask | None:
        """Return which rows of a part's own events match, or None for all."""
        events, selection = part.own, self.selection
        mask = None
        if len(events) and not selection.period.contains(*part.event_time_bounds):
            mask = selection.period.mask(events.time_ms)
        views = selection.filter.mask(part, selection.snapshot) if len(events) else None
        if views is not None:
            matches = views.unpacked().take(events.view)
            mask = matches if mask is None else mask & matches
        return mask

    def loose(
        self, pieces: Sequence[EventColumns], properties: Mask | None
    ) -> tuple[EventColumns, set[DayGap]]:
        """Return the matching events among loose ones, and the gaps of those whose view is gone."""
        selection, views = self.selection, self.selection.filter
        joined_events = joined(pieces)
        chosen = selection.period.mask(joined_events.time_ms)
        if properties is not None:
            chosen &= properties.take(joined_events.property)
        events = _some(joined_events, chosen)
        if views.matches_all or not len(events):
            return events, set()
        mask = np.full(len(events), self.without_view)
        is_found = np.zeros(len(events), np.bool_)
        for part, places, rows in views_of(selection, events.view):
            is_found[places] = True
            mask[places] = views.mask_of(part, rows, selection.snapshot)
        is_gone, gaps = self._views_gone(events, is_found)
        if views.matches_all_included:
            gaps = set()
        else:
            mask &= ~is_gone
        if views.excluded is not None:
            is_decided = ~is_gone | views.excluded.are_decided(events)
            mask &= ~(views.excluded.events(joined_events)[chosen] & is_decided & ~is_found)
        return _some(events, mask), gaps

    def _views_gone(self, events: EventColumns, is_found: Mask) -> tuple[Mask, set[DayGap]]:
        """Return which events are of views of which a rollup is left, and the gaps of its days.

        Also those of views that may be damaged, with the gaps of their own days.
        """
        snapshot, gone, gaps = self.selection.snapshot, np.zeros(len(events), np.bool_), set()
        for rollup in snapshot.rollups:
            low, high = rollup.sequence_bounds
            is_gone = ~is_found & (events.view >= max(low, 1)) & (events.view <= high)
            if is_gone.any():
                gone |= is_gone
                gaps.add((Gap.FIGURES, rollup.day))
        if snapshot.left_out_ms:
            is_lost = ~is_found & ~gone & (events.view > 0)
            gone |= is_lost
            times_ms = np.unique(events.time_ms[is_lost]).tolist()
            gaps |= {
                (Gap.DAMAGED, day)
                for time_ms in times_ms
                for day in self.selection.period.days_of(time_ms, time_ms)
            }
        return gone, gaps


def views_of(
    selection: Selection, sequences: NDArray[np.integer[Any]]
) -> Iterator[tuple[ViewColumns, NDArray[np.intp], NDArray[np.intp]]]:
    """Find views by their sequence numbers, which are 0 for none.

    Return parts, the places of those numbers whose views they have, and the rows of these views.
    """
    known = np.flatnonzero(sequences)
    order = known[np.argsort(sequences[known], kind="stable")]
    ascending = sequences[order].astype(np.int64)
    for part in selection.snapshot.leaves() if len(order) else ():
        selection.cancellation.check()
        found, rows = find_ascending(part, ascending)
        if len(found):
            yield part, order[found], rows


def _some(events: EventColumns, mask: NDArray[np.bool_]) -> EventColumns:
    if mask.all():
        return events
    event, view, code = (column[mask] for column in (events.event, events.view, events.property))
    return EventRows(event, events.time_ms[mask], view, code)
