"""The selected visits in groups, of which each is in one part.

What is computed for each visit by itself can be computed group by group: within one part, that
takes arrays of the size of the part, and no search. Almost all visits are in one part anyway; the
views of those that several parts have something of, the shared ones, are gathered to one more part.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from attrs import define, evolve, field
from numpy.typing import NDArray

from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import RowMask
from medamad.query.embedded.scan import Selection, divide, loose_events
from medamad.query.embedded.visits import PartVisits, all_visits, visits_with
from medamad.query.period import ALWAYS, Period
from medamad.query.request import NO_GAPS, Cancellation, Gap, Gaps
from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.segments.gathered import GatheredViews, gather
from medamad.storage.segments.parts import (
    NO_NUMBERS,
    Elsewhere,
    MergedSegment,
    Numbers,
    Part,
    Rollup,
    ViewColumns,
    joined_numbers,
    outer_bounds,
)
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import (
    are_any_between,
    begun_in,
    find_ascending,
    may_have_visits,
    rows_of_visits,
    sequences_of,
    visits_of_views,
)


def visits_in_groups(selection: Selection) -> Iterator[PartVisits]:
    """Return the visits that have a selected view and began in the period, in groups.

    Each visit is in one group, which is of one part with all views and events of the visits.
    """
    found = selection.filter.only_visits
    if isinstance(found, FoundVisits):
        yield from found.groups(selection.period)
        return
    for among, others in of_whole_visits(selection):
        yield from visits_among(among, others)


def visits_among(among: Selection, others: Numbers) -> Iterator[PartVisits]:
    """Return the same for a selection of `of_whole_visits`, without the visits of some numbers."""
    for candidates in among.all_candidates():
        # A visit that began in the period has a selected view then.
        if among.filter.matches_all:
            visits = all_visits(among.snapshot, candidates.part, others)
        else:
            visits = visits_with(among.snapshot, candidates, others)
        visits = visits.begun_in(among.period)
        if not visits.chosen.is_empty:
            yield visits


def of_whole_visits(selection: Selection) -> Iterator[tuple[Selection, Numbers]]:
    """Return selections whose parts have all of their visits, but for some: these, ascending.

    Each visit is in one of them.
    """
    shared = shared_by_leaf(selection.snapshot, selection.gathered, selection.cancellation)
    for snapshot, others in shared.snapshots():
        is_all = snapshot is selection.snapshot
        yield selection if is_all else evolve(selection, snapshot=snapshot), others


def shared_by_leaf(
    snapshot: Snapshot, gathered: dict[Snapshot, Any], cancellation: Cancellation
) -> "SharedVisits":
    """Return the visits that several leaves of a snapshot have something of, found once."""
    if snapshot not in gathered:
        gathered[snapshot] = find_shared(snapshot, ALWAYS, cancellation, by_leaf=True)
    shared: SharedVisits = gathered[snapshot]
    return shared


def left_out_of(selection: Selection) -> Gaps:
    """Return `Selection.left_out`, with the days of visits that filters and rules cannot see.

    On visits of which a part has expired, rules were decided then.
    """
    filter_, gaps = selection.filter, selection.left_out
    if filter_.visits or (filter_.excluded and selection.snapshot.left_out_ms):
        gaps |= gaps_without_beginning(selection)
    return gaps


def gaps_without_beginning(selection: Selection) -> Gaps:
    """Return the days in the period of what belongs to visits whose first view is gone.

    It is damaged, or has expired before the rest. What such visits are like is unknown.
    """
    snapshot, period, cancellation = selection.snapshot, selection.period, selection.cancellation
    numbers = NO_NUMBERS
    if snapshot.rollup_segments or snapshot.left_out_ms:
        numbers = find_elsewhere(snapshot, cancellation).visits
    if not snapshot.left_out_ms:
        last = max((each.header.sequence_bounds[1] for each in snapshot.rollup_segments), default=0)
        numbers = numbers[: numbers.searchsorted(last, side="right")]
    numbers = np.setdiff1d(numbers, _begun(snapshot, numbers, cancellation), assume_unique=True)
    if not len(numbers):
        return NO_GAPS
    times_ms, views = [NO_NUMBERS], [NO_NUMBERS]
    for part in _leaves_near(snapshot, numbers, cancellation):
        rows = rows_of_visits(part, numbers)
        own = np.flatnonzero(np.isin(part.own.view, rows))
        times_ms += [part.time_ms[rows], part.own.time_ms[own]]
        views.append(sequences_of(part, rows))
    for events in loose_events(snapshot, cancellation, int(numbers[0])):
        of_views = np.isin(events.view.astype(np.int64), np.concatenate(views))
        times_ms.append(events.time_ms[of_views])
    found = np.concatenate(times_ms)
    return Gaps(
        (Gap.VISITS, day)
        for time_ms in np.unique(found[period.mask(found)]).tolist()
        for day in period.days_of(time_ms, time_ms)
    )


@define(eq=False)
class SharedVisits:
    """The visits that several units of a snapshot have something of, with their views gathered.

    The segments of `covered` are units, and so are all other parts. `in_covered` has the visits
    that several segments of `covered` have something of, as far as these see, and `in_others` those
    that other parts have something of, in full.
    """

    snapshot: Snapshot
    cancellation: Cancellation
    covered: Snapshot
    """Segments that never change, whose views are in a period."""
    others: Snapshot
    """What else may have views in the period."""
    in_covered: GatheredViews
    in_others: GatheredViews

    @property
    def numbers(self) -> Numbers:
        """The numbers of all of the visits, ascending."""
        return joined_numbers([self.in_covered.visit_numbers, self.in_others.visit_numbers])

    def snapshots(self) -> Iterator[tuple[Snapshot, Numbers]]:
        """Return snapshots whose units have all of their visits, but for some: these, ascending.

        Each visit is in one of them.
        """
        yield self.snapshot, self.numbers
        yield snapshot_of_part(self.snapshot, self.in_covered), self.in_others.visit_numbers
        yield snapshot_of_part(self.snapshot, self.in_others), NO_NUMBERS


def find_shared(
    snapshot: Snapshot, period: Period, cancellation: Cancellation, *, by_leaf: bool
) -> SharedVisits:
    """Return the visits that several units have something of, and that may begin in a period.

    Units are segments that no other contains or, `by_leaf`, those that are not merged. What
    segments that never change, and are in the period, have of each other's visits is cached.
    """
    covered, others = divide(snapshot, period)
    if by_leaf:
        covered = evolve(covered, segments=tuple(covered.leaf_segments()))
    # Where units are not merged, nobody asks for what each of them sees.
    units = (
        [covered] if by_leaf else [covered.with_segments([segment]) for segment in covered.segments]
    )
    in_covered = gather((), NO_NUMBERS)
    elsewhere = find_elsewhere(others, cancellation)
    numbers = [elsewhere.visits, _visits_of(snapshot, elsewhere.views, cancellation)]
    if covered.segments:
        of_covered = find_elsewhere(covered, cancellation)

        def cached(what: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
            return covered.cached((gather, len(units), what), compute)

        def find() -> Numbers:
            of_views = _visits_of(covered, of_covered.views, cancellation)
            return _begun(covered, joined_numbers([of_covered.visits, of_views]), cancellation)

        in_covered = gather(units, cached("shared", find), cached)
        # What both have something of.
        numbers.append(_begun(others, of_covered.visits, cancellation))
        numbers.append(_visits_of(others, of_covered.views, cancellation))
    in_period = (
        each for each in others.segments if not period.is_outside(*each.header.time_bounds)
    )
    near = evolve(others, segments=tuple(in_period))
    begun_near = evolve(near, segments=(*covered.segments, *near.segments))
    found = _begun(begun_near, joined_numbers(numbers), cancellation)
    in_others = gather([*_units_near(units, found), others], found)
    return SharedVisits(snapshot, cancellation, covered, near, in_covered, in_others)


def settled_in(snapshot: Snapshot, period: Period, cancellation: Cancellation) -> Snapshot | None:
    """Return the segments that may have something of visits which began in a period.

    None if the memtable may have something of them, or a correction of one of these segments: then
    what is computed of the visits may be something else a moment later.
    """
    if period.start_ms is None or period.end_ms is None:
        return None

    def is_near(part: SegmentHeader | ViewColumns) -> bool:
        return not period.is_outside(*part.time_bounds)

    if any(map(is_near, snapshot.chunks)):
        return None
    found = {segment.number for segment in snapshot.segments if is_near(segment.header)}
    begins = _bounds_of(
        leaf.header
        for segment in snapshot.segments
        if segment.number in found
        for leaf in segment.leaves()
        if is_near(leaf.header)
    )
    if any(may_have_visits(chunk, begins) for chunk in snapshot.chunks):
        return None
    # Views of these visits may be in other segments, and events of those views in others again.
    elsewhere = {}
    for segment in snapshot.segments:
        cancellation.check()
        of_segment = elsewhere[segment.number] = _elsewhere_of(snapshot, segment)
        if are_any_between(of_segment.visits, *begins):
            found.add(segment.number)
    views = _bounds_of(each.header for each in snapshot.segments if each.number in found)
    if any(are_any_between(events.views, *views) for events in snapshot.events):
        return None
    settled = [
        segment
        for segment in snapshot.segments
        if segment.number in found or are_any_between(elsewhere[segment.number].views, *views)
    ]
    if not settled or any(segment.number in snapshot.overlays for segment in settled):
        return None
    return snapshot.with_segments(settled)


def _bounds_of(headers: Iterable[SegmentHeader]) -> tuple[int, int]:
    """Return the first and the last sequence number of some segments, (1, 0) without any."""
    bounds = [header.sequence_bounds for header in headers]
    return min((first for first, _ in bounds), default=1), max(
        (last for _, last in bounds), default=0
    )


def _elsewhere_of(snapshot: Snapshot, segment: Segment) -> Elsewhere:
    """Return what a segment has of visits that begin in any other, which is cached."""
    of_segment = snapshot.with_segments([segment])
    if segment.number in snapshot.overlays:
        return _read_elsewhere(of_segment)
    return of_segment.cached(Elsewhere, partial(_read_elsewhere, of_segment))


def find_elsewhere(snapshot: Snapshot, cancellation: Cancellation) -> Elsewhere:
    """Return what each unit of a snapshot has of visits that begin in any other.

    What segments have that never change is cached.
    """
    changing = [each for each in snapshot.segments if each.number in snapshot.overlays]
    settled = snapshot.with_segments(each for each in snapshot.segments if each not in changing)

    def find() -> Elsewhere:
        found = []
        for segment in settled.segments:
            cancellation.check()
            found.append(_elsewhere_of(settled, segment))
        return Elsewhere.of(found)

    found = _read_elsewhere(evolve(snapshot, segments=tuple(changing)))
    if not settled.segments:
        return found
    return Elsewhere.of([found, settled.cached(find_elsewhere, find)])


def _read_elsewhere(snapshot: Snapshot) -> Elsewhere:
    of_parts = [
        part.elsewhere() if isinstance(part, MergedSegment) else Elsewhere.of_views(part)
        for part in snapshot.parts
    ]
    of_memtable = [Elsewhere(NO_NUMBERS, events.views) for events in snapshot.events]
    return Elsewhere.of([*of_parts, *of_memtable])


def _visits_of(snapshot: Snapshot, views: Numbers, cancellation: Cancellation) -> Numbers:
    """Return the numbers of the visits of those views that a snapshot has, of some in order."""
    return visits_of_views(_leaves_near(snapshot, views, cancellation), views)


def _begun(snapshot: Snapshot, numbers: Numbers, cancellation: Cancellation) -> Numbers:
    """Return those of some numbers, ascending, whose visit begins in a snapshot.

    The first view of others has been deleted.
    """
    return begun_in(_leaves_near(snapshot, numbers, cancellation), numbers)


def _units_near(units: Iterable[Snapshot], numbers: Numbers) -> Iterator[Snapshot]:
    """Return those of some units that may have views or events of visits of some numbers."""
    bounds = outer_bounds(numbers)
    for unit in units:
        may_have_views = any(may_have_visits(segment.header, bounds) for segment in unit.segments)
        if may_have_views or any(map(len, unit.loose_events(bounds[0]))):
            yield unit


def _leaves_near(
    snapshot: Snapshot, numbers: Numbers, cancellation: Cancellation
) -> Iterator[ViewColumns]:
    for part in snapshot.leaves(outer_bounds(numbers)):
        cancellation.check()
        yield part


@define(eq=False)
class FoundVisits:
    """Visits of a snapshot that match a filter, found in groups when they are first needed.

    They are looked for once, and filter views as a `VisitFilter` then.
    """

    snapshot: Snapshot
    cancellation: Cancellation
    _find_groups: Callable[[], Iterable[PartVisits]]
    _own: dict[int, RowMask] = field(factory=dict, init=False)
    """`PartVisits.chosen` of those that are in one part, by its first sequence number.

    To keep parts open would keep what they read.
    """
    _shared: list[PartVisits] = field(factory=list, init=False)
    """The groups of gathered views."""
    _views: Numbers = field(default=NO_NUMBERS, init=False)
    """The sequence numbers of the views of their visits, ascending."""
    _masks: dict[int, RowMask] = field(factory=dict, init=False)
    """What `mask` returned of parts: a report may ask for several sums of each."""
    _is_complete: bool = field(default=False, init=False)

    def groups(self, period: Period) -> Iterator[PartVisits]:
        """Return the visits that began in a period, in groups as `visits_in_groups` has them."""
        for visits in self._again(period) if self._is_complete else self._look():
            begun = visits.begun_in(period)
            if not begun.chosen.is_empty:
                yield begun

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a view of the visits, without looking at its views."""
        if isinstance(part, Rollup):
            return True
        self._complete()
        first, last = part.sequence_bounds
        has_own = any(first <= begin <= last for begin in self._own)
        low, high = np.searchsorted(self._views, (first, last + 1))
        return has_own or bool(low < high)

    def mask(self, part: ViewColumns) -> RowMask:
        """Return which views of a part belong to the visits."""
        self._complete()
        if isinstance(part, GatheredViews):
            return self._find_mask(part, None)
        first = part.sequence_bounds[0]
        found = self._masks.get(first)
        if found is None:
            found = self._masks[first] = self._find_cached(part, self._own.get(first))
        return found

    def _find_cached(self, part: ViewColumns, own: RowMask | None) -> RowMask:
        """Return which views of a part belong to its own visits, or the others, cached."""
        find = partial(self._find_mask, part, own)
        if not isinstance(part, OpenSegment):
            return find()
        first, last = part.sequence_bounds
        begin, end = self._views.searchsorted((first, last + 1)).tolist()
        state = blake2b(self._views[begin:end].tobytes(), digest_size=16)
        state.update(b"" if own is None else own.digest)
        return self.snapshot.cached_of_segment(part, (FoundVisits, state.digest()), find)

    def _find_mask(self, part: ViewColumns, own: RowMask | None) -> RowMask:
        rows = find_ascending(part, self._views)[1]
        if own is None:
            return RowMask.of_rows(len(part), rows)
        found = LOOPS.mask_visits(part.visits().offsets, own)
        return found.with_rows(rows) if len(rows) else found

    def state_of(self, _segments: Iterable[Segment]) -> None:
        """Return None: what visits match is found anew by each request."""

    def _complete(self) -> None:
        if not self._is_complete:
            for _ in self._look():
                pass

    def _look(self) -> Iterator[PartVisits]:
        own: dict[int, RowMask] = {}
        shared: list[PartVisits] = []
        for visits in self._find_groups():
            if isinstance(visits.part, GatheredViews):
                shared.append(visits)
            else:
                own[visits.part.sequence_bounds[0]] = visits.chosen
            yield visits
        self._own, self._shared = own, shared
        self._views = joined_numbers(
            sequences_of(visits.part, visits.mask().rows) for visits in shared
        )
        self._is_complete = True

    def _again(self, period: Period) -> Iterator[PartVisits]:
        """Return the groups that were found, as far as they may have visits of a period."""
        for part in self.snapshot.leaves():
            self.cancellation.check()
            own = self._own.get(part.sequence_bounds[0])
            if own is not None and not period.is_outside(*part.time_bounds):
                yield PartVisits(self.snapshot, part, part.visits(), own)
        yield from self._shared


def snapshot_of_part(snapshot: Snapshot, part: ViewColumns) -> Snapshot:
    """Return the snapshot of one part alone."""
    return Snapshot(
        texts=snapshot.texts, chunks=(part,), overlays=snapshot.overlays, reader=snapshot.reader
    )
