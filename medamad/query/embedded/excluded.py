"""What the rules of a website leave out: whole visits, and views and events that have none.

A visit is left out if it matches a rule as in statistics of visits, and began in its period. What
matches in a segment is found by looking at that segment alone, since nearly all visits are in one;
the shared ones are found where they are gathered. So the mask of a segment stays the same as long
as its shared visits do, and is cached.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
from attrs import define, evolve, field
from numpy.typing import NDArray

from medamad.lookup.referrers import Sources
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import RowMask
from medamad.query.embedded.scan import Selection, leaves
from medamad.query.embedded.selection import select
from medamad.query.embedded.visit_groups import (
    Gathered,
    SharedVisits,
    find_shared,
    snapshot_of_part,
)
from medamad.query.embedded.visits import visits_with
from medamad.query.filters import (
    NUMBER_FIELDS,
    VISIT_FIELDS,
    Mask,
    matches_without_view,
    property_mask,
)
from medamad.query.period import ALWAYS
from medamad.query.request import Cancellation, Query
from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.segments.gathered import GatheredViews
from medamad.storage.segments.parts import (
    NO_NUMBERS,
    EventColumns,
    MergedSegment,
    Numbers,
    Part,
    Rollup,
    ViewColumns,
    joined_numbers,
)
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import find_ascending, rows_of_visits, visit_numbers


@define(eq=False)
class ExcludedViews:
    """The views of a snapshot that rules leave out, found part by part when first needed.

    Each rule is a query, of which the filters and the period count. It is a `VisitFilter` that
    matches what is left out.
    """

    snapshot: Snapshot
    rules: Sequence[Query]
    sources: Sources
    cancellation: Cancellation
    _shared: SharedVisits | None = field(default=None, init=False)
    _selections: Sequence[Selection] | None = field(default=None, init=False)
    """What each rule selects at all times."""
    _others: Numbers | None = field(default=None, init=False)
    """The visits that several parts have something of."""
    _numbers: Numbers | None = field(default=None, init=False)
    """The visits that are left out, among those that several parts have something of."""
    _digest: Any = field(default=None, init=False)
    _states: dict[int, bytes] = field(factory=dict, init=False)
    """What `left_out` depends on, by the first sequence number of segments."""
    _masks: dict[int, RowMask | None] = field(factory=dict, init=False)
    """What `left_out` returned of parts, by the first sequence number."""

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether views of a part are left out. Rollups have none of them."""
        if isinstance(part, Rollup):
            return False
        if isinstance(part, MergedSegment):
            return any(self.left_out(leaf) is not None for leaf in leaves(part.members))
        return self.left_out(part) is not None

    def applies_to(self, rollup: Rollup) -> bool:
        """Return whether a rule may be about the day of a rollup, which has what it leaves out."""
        return any(not rule.period.is_outside(*rollup.time_bounds) for rule in self.rules)

    def mask(self, part: ViewColumns) -> RowMask:
        """Return which views of a part are left out."""
        found = self.left_out(part)
        return RowMask.of_none(len(part)) if found is None else found

    def left_out(self, part: ViewColumns) -> RowMask | None:
        """Return which views of a part are left out, None if none are."""
        if isinstance(part, GatheredViews):
            return self._find(part)
        first = part.sequence_bounds[0]
        if first not in self._masks:
            self._masks[first] = self._find_cached(part)
        return self._masks[first]

    def events(self, events: EventColumns) -> Mask:
        """Return which rows of loose events are left out if they have no view, shape (n,)."""
        found = np.zeros(len(events), np.bool_)
        for rule in self.rules if len(events) else ():
            if not matches_without_view(rule):
                continue
            matches = rule.period.mask(events.time_ms)
            if rule.has_property_filter:
                properties = property_mask(self.snapshot.texts, rule, self.cancellation)
                with_property = events.event[properties.take(events.property)]
                matches &= np.isin(events.event, with_property)
            found |= matches
        return found

    def _find_cached(self, part: ViewColumns) -> RowMask | None:
        """Return `left_out`, cached for segments."""
        if not isinstance(part, OpenSegment) or (
            part.segment.number in self.snapshot.overlays
            and any(rule.filters_on(NUMBER_FIELDS) for rule in self.rules)
        ):
            return self._find(part)
        key = (ExcludedViews, self._state_of(part.segment.header), self.sources)
        found = self.snapshot.cached_mask(part, key, partial(self._find_any, part))
        return found if found.bits.any() else None

    def _find_any(self, part: ViewColumns) -> RowMask:
        return self._find(part) or RowMask.of_none(0)

    def state_of(self, segments: Iterable[Segment]) -> Hashable:
        """Return what depends on the views of segments that are left out, and on no others.

        None of the segments may have an overlay.
        """
        states = blake2b(digest_size=16)
        for segment in segments:
            for leaf in segment.leaves():
                states.update(self._state_of(leaf.header))
        return states.digest(), self.sources

    def _state_of(self, header: SegmentHeader) -> bytes:
        first, last = header.sequence_bounds
        if first not in self._states:
            state = self._rules_digest().copy()
            bounds = (header.first_visit or 1, last + 1)
            for numbers in (self._numbers_shared(), self._numbers_left_out()):
                begin, end = np.searchsorted(numbers, bounds)
                state.update(np.int64(end - begin).tobytes() + numbers[begin:end].tobytes())
            for selection in self._rule_selections():
                properties = selection.filter.properties
                if properties is not None:
                    loose = properties.loose_views
                    begin, end = np.searchsorted(loose, np.array((first, last + 1), np.uint64))
                    state.update(loose[begin:end].tobytes() + b".")
            self._states[first] = state.digest()
        return self._states[first]

    def _rules_digest(self) -> Any:
        """Return the hash of the rules, to which more can be added."""
        if self._digest is None:
            self._digest = blake2b(digest_size=16)
            for rule in self.rules:
                period = (rule.period.start_ms, rule.period.end_ms)
                self._digest.update(repr((rule.filters, period)).encode())
        return self._digest

    def _find(self, part: ViewColumns) -> RowMask | None:
        """Return which views of a part are left out, None if none are."""
        self.cancellation.check()
        rows = [rows_of_visits(part, self._numbers_left_out())]
        mask = None
        if not isinstance(part, GatheredViews):
            if part.first_visit:
                mask = self._whole_visits(part)
            rows.append(self._without_visit(part))
        found = np.concatenate(rows)
        if len(found):
            mask = (mask or RowMask.of_none(len(part))).with_rows(found)
        return mask

    def _whole_visits(self, part: ViewColumns) -> RowMask | None:
        """Return the views of the visits that a part has all of, None if none is left out."""
        if isinstance(part, OpenSegment):
            alone = self.snapshot.only([part.segment])
        else:
            alone = snapshot_of_part(self.snapshot, part)
        begins = self._begins(alone)
        shared = find_ascending(part, self._numbers_shared())[1]
        begins = np.setdiff1d(begins, shared, assume_unique=True)
        return LOOPS.mask_visits(part.visits().offsets, begins) if len(begins) else None

    def _begins(self, alone: Snapshot) -> NDArray[np.intp]:
        """Return the rows of the first views of the visits that match in the one part, ascending.

        Visits that go on elsewhere match by what the part has of them.
        """
        found = [np.zeros(0, np.intp)]
        for rule in self.rules:
            selection = select(alone, evolve(rule, period=ALWAYS), self.sources, self.cancellation)
            for selected in selection.views():
                visits = visits_with(alone, selected, NO_NUMBERS).begun_in(rule.period)
                found.append(visits.begins)
        return np.unique(np.concatenate(found))

    def _without_visit(self, part: ViewColumns) -> NDArray[np.intp]:
        """Return the rows of the views that belong to no known visit and are left out."""
        rows = np.arange(len(part))
        if part.first_visit:
            rows = np.flatnonzero(part.visits().offsets == 0)
            shared = self._numbers_shared()
            rows = rows[~np.isin(visit_numbers(part, rows), shared)]
        if not len(rows):
            return rows
        mask = np.zeros(len(rows), np.bool_)
        for rule, selection in zip(self.rules, self._rule_selections(), strict=True):
            if not rule.filters_on(VISIT_FIELDS) and not rule.period.is_outside(*part.time_bounds):
                matching = selection.filter.mask_of(part, rows)
                mask |= matching & rule.period.mask(part.time_ms[rows])
        return rows[mask]

    def _rule_selections(self) -> Sequence[Selection]:
        if self._selections is None:
            self._selections = [
                select(self.snapshot, evolve(rule, period=ALWAYS), self.sources, self.cancellation)
                for rule in self.rules
            ]
        return self._selections

    def _find_shared(self) -> SharedVisits:
        if self._shared is None:
            self._shared = find_shared(self.snapshot, ALWAYS, self.cancellation, by_leaf=True)
        return self._shared

    def _numbers_shared(self) -> Numbers:
        if self._others is None:
            shared = self._find_shared()
            self._others = joined_numbers([shared.in_whole.numbers, shared.in_others.numbers])
        return self._others

    def _numbers_left_out(self) -> Numbers:
        if self._numbers is None:
            shared = self._find_shared()
            in_whole = NO_NUMBERS
            if shared.whole.segments:
                key = (ExcludedViews, self._rules_digest().digest(), self.sources)
                find = partial(self._numbers_in, shared.in_whole)
                in_whole = shared.whole.cached(key, find)
            # What goes on in others is found there, as a whole.
            in_whole = in_whole[~np.isin(in_whole, shared.in_others.numbers)]
            self._numbers = joined_numbers([in_whole, self._numbers_in(shared.in_others)])
        return self._numbers

    def _numbers_in(self, gathered: Gathered) -> Numbers:
        """Return the numbers of the gathered visits that are left out."""
        if not len(gathered.numbers):
            return NO_NUMBERS
        views = gathered.views
        return visit_numbers(views, self._begins(snapshot_of_part(self.snapshot, views)))
