"""What the rules of a website leave out: whole visits, and views and events that have none.

A visit is left out if it matches a rule as in statistics of visits, and began in its period. What
matches in a segment is found by looking at that segment alone, since nearly all visits are in one;
the shared ones are found where they are gathered. So the mask of a segment stays the same as long
as its shared visits do, and is cached. On visits of which a part has expired it was decided then.
"""

from collections.abc import Generator, Hashable, Iterable, Sequence
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
from attrs import define, evolve, field
from numpy.typing import NDArray

from medamad.domain.dimensions import COMPLETE_MS, VISIT_MS
from medamad.domain.goals import Definitions, Goal
from medamad.lookup.referrers import Sources
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import RowMask
from medamad.query.embedded.properties import EventFilter
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.selection import loose_views, select
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.embedded.visit_groups import (
    find_elsewhere,
    shared_by_leaf,
    snapshot_of_part,
)
from medamad.query.embedded.visits import PartVisits, all_visits, visits_with
from medamad.query.exclusions import rules_of
from medamad.query.filters import (
    NUMBER_FIELDS,
    VISIT_FIELDS,
    Mask,
    matches_without_view,
    property_mask,
)
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation, Query
from medamad.storage.compaction.division import LeftOut
from medamad.storage.segments.format import Day, Segment, SegmentHeader
from medamad.storage.segments.gathered import GatheredViews, SomeGatheredViews
from medamad.storage.segments.parts import (
    NO_NUMBERS,
    NO_TIME,
    EventColumns,
    Numbers,
    Part,
    Rollup,
    ViewColumns,
    enclosing_bounds,
    joined,
    joined_numbers,
)
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import (
    find_ascending,
    rows_of_visits,
    sequences_of,
    visit_numbers,
)


def number_of(rule: Query) -> int:
    """Return what stands for a rule in rollups: the same for the same filters and period.

    Names of goals do not count. It is part of the format of the store.
    """
    filters = sorted(
        (each.field, each.operator, each.values if each.goal is None else (), *_meaning(each.goal))
        for each in rule.filters
    )
    meaning = msgspec.json.encode((filters, rule.period.start_ms, rule.period.end_ms))
    return int.from_bytes(blake2b(meaning, digest_size=8).digest(), "big")


def _meaning(goal: Goal | None) -> tuple[str, ...]:
    if goal is None:
        return ()
    return tuple("" if text is None else f"={text}" for text in (goal.path, goal.event, goal.value))


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
    gathered: dict[Snapshot, Any] = field(factory=dict, init=False)
    """What `Selection` has as such."""
    _states: dict[tuple[int, int], bytes] = field(factory=dict, init=False)
    """What `left_out` depends on, by the bounds of segments."""
    _masks: dict[int, RowMask | None] = field(factory=dict, init=False)
    """What `left_out` returned of parts, by the first sequence number."""

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have views that are left out. Rollups have none of them."""
        return not isinstance(part, Rollup)

    def applies_to(self, rollup: Rollup) -> bool:
        """Return whether a rule may be about the day of a rollup, which has what it leaves out.

        Visits that began in its period may have views on the day after it.
        """
        first_ms, last_ms = rollup.time_bounds
        return any(
            number not in rollup.rules and not rule.period.is_outside(first_ms - VISIT_MS, last_ms)
            for number, rule in self._by_number.items()
        )

    def leaves_out(self, day: Rollup | Day) -> bool:
        """Return whether rules leave out all that is in a rollup."""
        return any(number in self._by_number for number in day.left_out_by)

    def rollups(self, *, left_out: bool) -> tuple[Segment, ...]:
        """Return the rollups of what is left out, or of all else."""
        return tuple(
            each
            for each in self.snapshot.rollup_segments
            if each.header.day is not None and self.leaves_out(each.header.day) is left_out
        )

    def mask(self, part: ViewColumns) -> RowMask:
        """Return which views of a part are left out."""
        found = self.left_out(part)
        return RowMask.of_none(len(part)) if found is None else found

    def left_out(self, part: ViewColumns) -> RowMask | None:
        """Return which views of a part are left out, None if none are."""
        if isinstance(part, GatheredViews):
            rows = part.rows_of(self._numbers)
            return RowMask.of_rows(len(part), rows) if len(rows) else None
        first = part.sequence_bounds[0]
        if first not in self._masks:
            self._masks[first] = self._find_cached(part)
        return self._masks[first]

    def visits_of(self, gathered: GatheredViews, others: Numbers) -> PartVisits:
        """Return the visits that are left out of gathered views, without those of some numbers."""
        rows = gathered.rows_of(self._numbers)
        views = SomeGatheredViews(gathered, rows)
        return all_visits(self.snapshot, views, others)

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
        decided, left_out = self._decided
        views = events.view.astype(np.int64)
        return found & ~np.isin(views, decided) | np.isin(views, left_out)

    def are_decided(self, events: EventColumns) -> Mask:
        """Return which rows of events were decided on when the day of their view expired."""
        return np.isin(events.view.astype(np.int64), self._decided[0])

    def _find_cached(self, part: ViewColumns) -> RowMask | None:
        """Return `left_out`, cached for segments."""
        if not isinstance(part, OpenSegment) or (
            part.segment.number in self.snapshot.overlays
            and any(rule.filters_on(NUMBER_FIELDS) for rule in self.rules)
        ):
            return self._find(part)
        key = (ExcludedViews, self._state_of(part.segment.header), self.sources)
        found = self.snapshot.cached_of_segment(
            part, key, lambda: self._find(part) or RowMask.of_none(0)
        )
        return None if found.is_empty else found

    def state_of(self, segments: Iterable[Segment]) -> Hashable:
        """Return what depends on the views of segments that are left out, and on no others.

        None of the segments may have an overlay.
        """
        return (*(self._state_of(segment.header) for segment in segments), self.sources)

    def _state_of(self, header: SegmentHeader) -> bytes:
        first, last = bounds = header.sequence_bounds
        if bounds not in self._states:
            state = self._digest.copy()
            for numbers in (self._others, self._numbers):
                begin, end = numbers.searchsorted((header.first_visit or 1, last + 1)).tolist()
                state.update((end - begin).to_bytes(8, "little") + numbers[begin:end].tobytes())
            for loose in self._loose_views:
                begin, end = loose.searchsorted((first, last + 1)).tolist()
                state.update(loose[begin:end].tobytes() + b".")
            self._states[bounds] = state.digest()
        return self._states[bounds]

    @cached_property
    def _loose_views(self) -> list[Numbers]:
        """What `loose_views` returns of each rule about properties."""
        texts, cancellation = self.snapshot.texts, self.cancellation
        return [
            loose_views(self.snapshot, property_mask(texts, rule, cancellation), cancellation)
            for rule in self.rules
            if rule.has_property_filter
        ]

    @cached_property
    def _digest(self) -> Any:
        """The hash of the rules, to copies of which more can be added."""
        digest = blake2b(digest_size=16)
        for rule in self.rules:
            period = (rule.period.start_ms, rule.period.end_ms)
            digest.update(repr((rule.filters, period)).encode())
        return digest

    def _find(self, part: ViewColumns) -> RowMask | None:
        """Return which views of a part are left out, None if none are."""
        self.cancellation.check()
        mask = self._whole_visits(part) if part.first_visit else None
        rows = np.concatenate([rows_of_visits(part, self._numbers), self._without_visit(part)])
        if len(rows):
            mask = (mask or RowMask.of_none(len(part))).with_rows(rows)
        return mask

    def _whole_visits(self, part: ViewColumns) -> RowMask | None:
        """Return the views of the visits that a part has all of, None if none is left out."""
        if isinstance(part, OpenSegment):
            of_part = self.snapshot.with_segments([part.segment])
        else:
            of_part = snapshot_of_part(self.snapshot, part)
        begins = self._begins(of_part)
        shared = find_ascending(part, self._others)[1]
        begins = np.setdiff1d(begins, shared, assume_unique=True)
        if not len(begins):
            return None
        return LOOPS.mask_visits(part.visits().offsets, RowMask.of_rows(len(part), begins))

    def _begins(self, of_part: Snapshot) -> NDArray[np.intp]:
        """Return the rows of the first views of the visits that match in the one part, ascending.

        Visits that go on elsewhere match by what the part has of them.
        """
        found = [np.zeros(0, np.intp)]
        for rule in self.rules:
            selection = select(
                of_part, evolve(rule, period=ALWAYS), self.sources, self.cancellation
            )
            for candidates in selection.all_candidates():
                visits = visits_with(of_part, candidates, NO_NUMBERS).begun_in(rule.period)
                found.append(visits.begins)
        return np.unique(np.concatenate(found))

    def _without_visit(self, part: ViewColumns) -> NDArray[np.intp]:
        """Return the rows of the views that belong to no known visit and are left out."""
        rows = np.arange(len(part))
        if part.first_visit:
            rows = np.flatnonzero(part.visits().offsets == 0)
            rows = rows[~np.isin(visit_numbers(part, rows), self._others)]
        if not len(rows):
            return rows
        mask = np.zeros(len(rows), np.bool_)
        for period, filter_ in self._filters:
            if not period.is_outside(*part.time_bounds):
                matches = filter_.mask_of(part, rows, self.snapshot)
                mask |= period.mask(part.time_ms[rows]) & matches
        return rows[mask]

    @cached_property
    def _filters(self) -> list[tuple[Period, ViewFilter]]:
        """The periods and the filters of the rules that are not about visits."""
        rules = [rule for rule in self.rules if not rule.filters_on(VISIT_FIELDS)]
        selections = [
            select(self.snapshot, each, self.sources, self.cancellation) for each in rules
        ]
        return [(each.period, each.filter) for each in selections]

    @cached_property
    def _others(self) -> Numbers:
        """The visits that several parts have something of, or that were decided on earlier."""
        shared = shared_by_leaf(self.snapshot, self.gathered, self.cancellation)
        return joined_numbers([shared.numbers, self._decided[0]])

    @cached_property
    def _numbers(self) -> Numbers:
        """The visits that are left out, among those."""
        shared = shared_by_leaf(self.snapshot, self.gathered, self.cancellation)
        in_covered = NO_NUMBERS
        if shared.covered.segments:
            key = (ExcludedViews, self._digest.digest(), self.sources)
            find = partial(self._numbers_in, shared.in_covered)
            in_covered = shared.covered.cached(key, find)
        # What goes on in others is found there, as a whole.
        in_covered = in_covered[~np.isin(in_covered, shared.in_others.visit_numbers)]
        found = joined_numbers([in_covered, self._numbers_in(shared.in_others)])
        decided, left_out = self._decided
        return joined_numbers([found[~np.isin(found, decided)], left_out])

    @cached_property
    def _by_number(self) -> dict[int, Query]:
        """The rules by the numbers that stand for them in rollups."""
        return {number_of(rule): rule for rule in self.rules}

    @cached_property
    def _decided(self) -> tuple[Numbers, Numbers]:
        """The visits, and views of events, that go on after the day of their rollup.

        All of them, and those of them that are left out, as what is in the rollup.
        """
        snapshot = self.snapshot
        if not snapshot.rollup_segments:
            return NO_NUMBERS, NO_NUMBERS
        headers = [segment.header for segment in snapshot.segments]
        firsts_ms = [
            *(min(each.time_bounds[0], each.event_time_bounds[0]) for each in headers),
            *(each.time_bounds[0] for each in snapshot.chunks),
            *(int(each.time_ms.min()) for each in snapshot.events if len(each)),
        ]
        first_ms = min(firsts_ms, default=NO_TIME[0])
        near = [each for each in snapshot.rollups if each.time_bounds[1] + COMPLETE_MS >= first_ms]
        left_out = (each.going_on for each in near if self.leaves_out(each))
        return joined_numbers(each.going_on for each in near), joined_numbers(left_out)

    def _numbers_in(self, gathered: GatheredViews) -> Numbers:
        """Return the numbers of the gathered visits that are left out."""
        if not len(gathered.visit_numbers):
            return NO_NUMBERS
        return visit_numbers(gathered, self._begins(snapshot_of_part(self.snapshot, gathered)))


def find_left_out(
    sources: Sources,
    definitions: Definitions,
    snapshot: Snapshot,
    parts: Sequence[ViewColumns],
    events: Sequence[EventColumns],
) -> Generator[None, None, LeftOut]:
    """Return what rules leave out of parts, and of further loose events: a `FindLeftOut`.

    Each rule is a step.
    """
    cancellation = Cancellation()
    by_number = {number_of(rule): rule for rule in rules_of(definitions)}
    rules = {number: by_number[number] for number in sorted(by_number)}
    loose = joined([*(part.loose for part in parts), *events])
    low_ms, high_ms = enclosing_bounds(part.time_bounds for part in parts)
    of_views, of_events = [], []
    for rule in rules.values():
        if rule.period.is_outside(
            min(low_ms, int(loose.time_ms.min(initial=low_ms))) - COMPLETE_MS,
            max(high_ms, int(loose.time_ms.max(initial=high_ms))),
        ):
            of_views.append(NO_NUMBERS)
            of_events.append(NO_NUMBERS)
            continue
        excluded = ExcludedViews(snapshot, (rule,), sources, cancellation)
        rows = ((part, excluded.mask(part).rows) for part in parts)
        of_views.append(joined_numbers(sequences_of(*each) for each in rows))
        included = Selection(snapshot, ALWAYS, ViewFilter({}, excluded=excluded), cancellation)
        kept, _ = EventFilter(included, without_view=True).loose([loose], None)
        of_events.append(np.setdiff1d(loose.event, kept.event).astype(np.int64))
        yield
    elsewhere = find_elsewhere(snapshot, cancellation)
    return LeftOut(
        tuple(rules),
        of_views,
        of_events,
        joined_numbers([elsewhere.visits, elsewhere.views]),
    )
