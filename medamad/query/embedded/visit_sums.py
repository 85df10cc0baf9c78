"""Sums of visits: by when they began, by what their first and last views have, by pages and goals.

Where a query selects all visits, the sums of all segments together that it selects as a whole are
cached, as these never change. Those of one segment come from its counters, which see no further
than the segment does: visits that go on in another one are counted again, with all of their views,
and their sums within one segment subtracted. Sums without counters, as those of goals, are computed
and cached for each segment, merged or not, but for visits that several segments have something of.
The sums of a whole period are cached, too, once nothing but segments has something of its visits.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Final

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.embedded.excluded import ExcludedViews
from medamad.query.embedded.goals import GoalSearch, find_amounts
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import VisitsToSum, same_number
from medamad.query.embedded.scan import Selection, divide
from medamad.query.embedded.view_filter import greatest_code
from medamad.query.embedded.visit_groups import (
    SharedVisits,
    find_shared,
    settled_in,
    shared_by_leaf,
    visits_among,
    visits_in_groups,
)
from medamad.query.embedded.visits import PartVisits, all_visits
from medamad.query.period import ALWAYS
from medamad.query.request import Cancellation
from medamad.query.sums import BOUNCES, DURATION_MS, VIEWS, VISITS, VisitSums
from medamad.storage.segments.counters import SLOT_MS
from medamad.storage.segments.format import SLOTS, Integers
from medamad.storage.segments.parts import NO_NUMBERS, Numbers, VisitColumns
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_counters import EXITS, FIRST, LATER, numbered

_WIDE_BITS: Final = 32
_AT_ONCE: Final = 64
"""The visits of this many parts are added up at a time."""

_NO_CODE: Final = same_number(0)


class Kind(ABC):
    """A kind of sums. It is hashable, and equal to any other that has the same sums."""

    @abstractmethod
    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        """Return the sums of some visits, in groups of different parts."""

    @property
    def counters(self) -> tuple[int, Sequence[int]] | None:
        """Which counters of segments have the sums: their kind and rows. None if none have."""
        return None

    def of_rows(self, rows: VisitSums) -> VisitSums:
        """Return the sums, given those rows of counters."""
        return rows


def sum_visits(selection: Selection, kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of the selected visits, of each kind."""
    apart = selection.apart()
    if apart is not None:
        return [
            _counted_ones(add_up([everything, -left_out]))
            for everything, left_out in zip(
                *(sum_visits(each, kinds) for each in apart), strict=True
            )
        ]
    excluded, state = selection.filter.only_visits, None
    add: Callable[[Selection, Sequence[Kind]], list[VisitSums]]
    if isinstance(excluded, ExcludedViews):
        add = partial(_sum_left_out, excluded)
    elif selection.filter.matches_all:
        add = _sum_all
    else:
        return collect(visits_in_groups(selection), kinds)
    settled = settled_in(selection.snapshot, selection.period, selection.cancellation)
    if settled is None:
        return add(selection, kinds)
    if isinstance(excluded, ExcludedViews):
        state = excluded.state_of(settled.segments)
    which = (sum_visits, selection.period.start_ms, selection.period.end_ms, state)
    return _cached_sums(settled, kinds, which, partial(add, evolve(selection, snapshot=settled)))


def _sum_all(selection: Selection, kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of all visits that began in a period, of each kind."""
    shared = find_shared(
        selection.snapshot, selection.period, selection.cancellation, by_leaf=False
    )
    covered = sums_of_covered(shared, kinds)
    counted_again = collect(_covered_in_others(shared), kinds)
    others = collect(_visits_outside(selection, shared), kinds)
    return [
        add_up([sums, -again, added])
        for sums, again, added in zip(covered, counted_again, others, strict=True)
    ]


def _sum_left_out(
    excluded: ExcludedViews, selection: Selection, kinds: Sequence[Kind]
) -> list[VisitSums]:
    """Return the sums of the visits that are left out, of each kind.

    Those of visits that a segment has all of are cached.
    """
    snapshot, period = selection.snapshot, selection.period
    shared = shared_by_leaf(snapshot, selection.gathered, selection.cancellation)
    others = shared.numbers
    covered, rest = divide(snapshot, period)
    in_rest = visits_among(evolve(selection, snapshot=rest), others)
    gathered = (
        excluded.visits_of(shared.in_covered, shared.in_others.visit_numbers).begun_in(period),
        excluded.visits_of(shared.in_others, NO_NUMBERS).begun_in(period),
    )
    pieces = [collect((*in_rest, *gathered), kinds)]
    for segment in covered.segments:
        of_segment = evolve(selection, snapshot=covered.with_segments([segment]))
        state = excluded.state_of([segment])
        add = partial(collect, visits_among(of_segment, others))
        pieces.append(_cached_sums(of_segment.snapshot, kinds, state, add))
    return list(map(add_up, zip(*pieces, strict=True)))


def _counted_ones(sums: VisitSums) -> VisitSums:
    """Return the sums of the codes that any visit counts for."""
    return sums.take(np.flatnonzero(sums.visits))


def _visits_outside(selection: Selection, shared: SharedVisits) -> Iterable[PartVisits]:
    """Return the visits that begin in parts which may change, or have something there."""
    snapshot, period = selection.snapshot, selection.period
    in_others = shared.in_others
    for part in shared.others.leaves():
        selection.cancellation.check()
        if part.first_visit and not period.is_outside(*part.time_bounds):
            yield all_visits(snapshot, part, in_others.visit_numbers).begun_in(period)
    if len(in_others.visit_numbers):
        yield all_visits(snapshot, in_others, NO_NUMBERS).begun_in(period)


def sums_of_covered(shared: SharedVisits, kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of the visits that begin in covered segments, as far as these see, cached."""
    if not shared.covered.segments:
        return [NO_SUMS for _ in kinds]

    def add(kinds: Sequence[Kind]) -> list[VisitSums]:
        counted = [_sums_of_counters(shared, kind) for kind in kinds]
        others = [kind for kind, sums in zip(kinds, counted, strict=True) if sums is None]
        of_leaves = iter(_sums_of_leaves(shared, others) if others else ())
        return [next(of_leaves) if sums is None else sums for sums in counted]

    return _cached_sums(shared.covered, kinds, sums_of_covered, add)


def _covered_in_others(shared: SharedVisits) -> Iterable[PartVisits]:
    """Return the visits of `sums_of_covered` that have something in other parts."""
    if not shared.covered.segments:
        return
    in_covered, numbers = shared.in_covered, shared.in_others.visit_numbers
    within_units = shared.in_others.within_units
    seen = all_visits(shared.snapshot, within_units, in_covered.visit_numbers)
    source = within_units.source
    units = source.units_of_views()[within_units.index[seen.begins]]
    # The last unit is that of all others.
    yield seen.take(units < len(source.units) - 1)
    in_covered_alone = np.setdiff1d(in_covered.visit_numbers, numbers, assume_unique=True)
    if len(in_covered_alone) < len(in_covered.visit_numbers):
        yield all_visits(shared.snapshot, in_covered, in_covered_alone)


def _sums_of_counters(shared: SharedVisits, kind: Kind) -> VisitSums | None:
    """Return the sums from the counters of covered segments, None if any has none.

    From FIRST or LATER on, counters have the rows of `VisitSums` in the same order.
    """
    if kind.counters is None:
        return None
    which, rows = kind.counters
    of_units = []
    for segment in shared.covered.segments:
        shared.cancellation.check()
        of_segment = shared.covered.with_segments([segment])
        (part,) = of_segment.parts
        counters = None
        if isinstance(part, OpenSegment | OpenMergedSegment):
            counters = part.visit_counters(which)
        if counters is not None:
            sums = np.stack([counters.sums[row] for row in rows]).astype(np.int64, copy=False)
            of_units.append(kind.of_rows(VisitSums(counters.codes.astype(np.int64), sums)))
        elif segment.members:
            return None
        else:
            of_units += _sums_within(of_segment, [kind], NO_NUMBERS)
    in_covered, snapshot = shared.in_covered, shared.snapshot
    if not len(in_covered.visit_numbers):
        return add_up(of_units)
    within_units = all_visits(snapshot, in_covered.within_units, NO_NUMBERS)
    (counted_again,) = collect([within_units], [kind])
    (gathered,) = collect([all_visits(snapshot, in_covered, NO_NUMBERS)], [kind])
    return add_up([*of_units, -counted_again, gathered])


def _sums_of_leaves(shared: SharedVisits, kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of covered segments, none of them merged, and of visits that these share."""
    snapshot, covered = shared.snapshot, shared.covered
    in_covered = find_shared(covered, ALWAYS, shared.cancellation, by_leaf=True).in_covered
    pieces = [[each] for each in collect([all_visits(snapshot, in_covered, NO_NUMBERS)], kinds)]
    for unit in covered.segments:
        shared.cancellation.check()
        bounds = (unit.header.first_sequence, unit.header.sequence_bounds[1] + 1)
        begin, end = np.searchsorted(in_covered.visit_numbers, bounds)
        leaves = covered.with_segments(unit.leaves())
        of_unit = _sums_within(leaves, kinds, in_covered.visit_numbers[begin:end])
        for of_kind, sums in zip(pieces, of_unit, strict=True):
            of_kind.append(sums)
    return list(map(add_up, pieces))


def _sums_within(leaves: Snapshot, kinds: Sequence[Kind], left_out: Numbers) -> list[VisitSums]:
    """Return the sums of the visits that begin in some segments, none of them merged.

    As far as the segment in which a visit begins sees, and without those of some numbers.
    """

    def add(kinds: Sequence[Kind]) -> list[VisitSums]:
        return collect((all_visits(leaves, each, left_out) for each in leaves.leaves()), kinds)

    return _cached_sums(leaves, kinds, blake2b(left_out.tobytes()).digest(), add)


def _cached_sums(
    snapshot: Snapshot,
    kinds: Sequence[Kind],
    which: Hashable,
    add: Callable[[Sequence[Kind]], Sequence[VisitSums]],
) -> list[VisitSums]:
    """Return sums of some visits of segments, which are cached as `which`."""
    found = {kind: snapshot.find_cached((kind, which)) for kind in kinds}
    missing = [kind for kind, sums in found.items() if sums is None]
    for kind, sums in zip(missing, add(missing) if missing else (), strict=True):
        snapshot.cache((kind, which), sums)
        found[kind] = sums
    return [found[kind] for kind in kinds]


def collect(groups: Iterable[PartVisits], kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of groups of visits, of each kind."""
    totals = [[NO_SUMS] for _ in kinds]
    groups = iter(groups)
    while some := list(islice(groups, _AT_ONCE)):
        for of_kind, kind in zip(totals, kinds, strict=True):
            of_kind.append(kind.sums(some))
    return list(map(add_up, totals))


def _sum_by_code(
    groups: Sequence[PartVisits],
    dimension: Dimension | None,
    last: int = VISITS,
    *,
    at_end: bool = False,
) -> VisitSums:
    """Return the sums of some visits by the codes of their first or last views, or under 0.

    Those of views, bounces and durations are in them up to the last one wanted.
    """
    parts = [
        VisitsToSum(
            visits.columns.offsets,
            visits.chosen,
            _NO_CODE if dimension is None else visits.part.codes(dimension),
            visits.columns.spans if at_end else None,
            _added_columns(visits.columns, last),
        )
        for visits in groups
    ]
    size = 1 if dimension is None else _size_of(groups, dimension)
    return _used(LOOPS.sum_visits(parts, last, size))


def _size_of(groups: Sequence[PartVisits], dimension: Dimension) -> int:
    """Return a number that is greater than all codes of views of some visits."""
    return 1 + max((greatest_code(visits.part, dimension) for visits in groups), default=0)


def _added_columns(columns: VisitColumns, last: int) -> list[Integers | NDArray[np.bool_]]:
    """Return the numbers of views, bounces and durations, up to the last one wanted."""
    if last < VIEWS:
        return []
    views = columns.views
    if last < BOUNCES:
        return [views]
    bounced = (views == 1) & ~columns.has_event
    return [views, bounced] if last < DURATION_MS else [views, bounced, columns.duration_ms]


def _used(sums: NDArray[np.int64]) -> VisitSums:
    """Return sums by code, shape (size, k), of the codes that any visit counts for."""
    codes = np.flatnonzero(sums[:, 0])
    return VisitSums(codes, sums[codes].T)


NO_SUMS: Final = VisitSums(NO_NUMBERS, np.zeros((DURATION_MS + 1, 0), np.int64))


def add_up(parts: Sequence[VisitSums]) -> VisitSums:
    """Return the total of sums, of the rows that all of them have."""
    parts = [part for part in parts if len(part.codes)]
    if len(parts) <= 1:
        return parts[0] if parts else NO_SUMS
    rows = min(len(part.sums) for part in parts)
    (places,), codes = numbered([np.concatenate([part.codes for part in parts])])
    sums = np.zeros((rows, len(codes)), np.int64)
    added = np.concatenate([part.sums[:rows] for part in parts], axis=1)
    for row, of_row in zip(sums, added, strict=True):
        np.add.at(row, places, of_row)
    used = np.flatnonzero(np.bincount(places))
    return VisitSums(codes[used], sums[:, used])


@frozen
class FirstViews(Kind):
    """Sums by the code of the first view in one of VIEW_DIMENSIONS."""

    dimension: Dimension
    last: int = DURATION_MS
    """The last row of the sums that is wanted, after VISITS."""

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        return _sum_by_code(groups, self.dimension, self.last)

    @property
    def counters(self) -> tuple[int, Sequence[int]]:
        return self.dimension, range(self.last + 1)


@frozen
class Beginnings(Kind):
    """Sums by the slot of time in which visits began, as a number of slots since the epoch."""

    slot_ms: int = SLOT_MS
    last: int = DURATION_MS

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        slots, codes = numbered(
            [visits.part.time_ms[visits.begins] // self.slot_ms for visits in groups]
        )
        parts = []
        for of_part, visits in zip(slots, groups, strict=True):
            columns = map(visits.of, _added_columns(visits.columns, self.last))
            parts.append(VisitsToSum(None, None, of_part, added=tuple(columns)))
        sums = _used(LOOPS.sum_visits(parts, self.last, len(codes)))
        return VisitSums(codes[sums.codes], sums.sums)

    @property
    def counters(self) -> tuple[int, Sequence[int]] | None:
        return (SLOTS, range(self.last + 1)) if self.slot_ms == SLOT_MS else None


@frozen
class Totals(Kind):
    """Sums of all visits, under the code 0."""

    last: int = DURATION_MS

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        return _sum_by_code(groups, None, self.last)

    @property
    def counters(self) -> tuple[int, Sequence[int]]:
        return SLOTS, range(self.last + 1)

    def of_rows(self, rows: VisitSums) -> VisitSums:
        return rows.total()


@frozen
class LastPages(Kind):
    """The number of visits by the path of their last view."""

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        return _sum_by_code(groups, Dimension.PATH, at_end=True)

    @property
    def counters(self) -> tuple[int, Sequence[int]]:
        return Dimension.PATH, [EXITS]


@frozen
class SeenPages(Kind):
    """The number of visits by the pages that they saw."""

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        parts = [
            VisitsToSum(visits.columns.offsets, visits.pages(), visits.part.codes(Dimension.PATH))
            for visits in groups
        ]
        return _used(LOOPS.sum_visits(parts, 0, _size_of(groups, Dimension.PATH)))

    @property
    def counters(self) -> tuple[int, Sequence[int]]:
        return Dimension.PATH, [FIRST + VISITS, LATER + VISITS]

    def of_rows(self, rows: VisitSums) -> VisitSums:
        return VisitSums(rows.codes, rows.sums.sum(axis=0, keepdims=True))


@frozen
class ReachedGoal(Kind):
    """Another kind of sums, of the visits that reached a goal."""

    goal: Goal
    kind: Kind

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        if not groups:
            return NO_SUMS
        snapshot = groups[0].snapshot
        search = GoalSearch.of([self.goal], snapshot.texts, Cancellation(), snapshot)
        if self.kind == Totals(VISITS):
            _, visits = LOOPS.count_goals(list(map(search.in_visits, groups)), 1)
            return VisitSums(np.zeros(1, np.int64), visits[np.newaxis])

        def reaching(visits: PartVisits) -> PartVisits:
            what = (ReachedGoal, self.goal)
            return visits.once(what, lambda: search.reaching_all(visits))

        return self.kind.sums(list(map(reaching, groups)))


@frozen
class BegunWith(Kind):
    """Another kind of sums, of the visits whose first view has any of some codes."""

    dimension: Dimension
    codes: frozenset[int]
    kind: Kind

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        return self.kind.sums(list(map(self._begun, groups)))

    def _begun(self, visits: PartVisits) -> PartVisits:
        def begun() -> PartVisits:
            return visits.take(np.isin(visits.codes(self.dimension), list(self.codes)))

        return visits.once((BegunWith, self.dimension, self.codes), begun)


@frozen
class Amounts(Kind):
    """How often visits with some text of their first view have an amount in their conversions.

    The codes of the sums are made of both, see `split_keys`. The goal must have revenue.
    """

    goal: Goal
    dimension: Dimension

    def sums(self, groups: Sequence[PartVisits]) -> VisitSums:
        keys = np.concatenate([NO_NUMBERS, *map(self._keys, groups)])
        found, counts = np.unique(keys, return_counts=True)
        return VisitSums(found, counts[np.newaxis])

    def _keys(self, visits: PartVisits) -> NDArray[np.int64]:
        places, properties = visits.once(
            (Amounts, self.goal), lambda: find_amounts(visits, self.goal)
        )
        codes = visits.codes(self.dimension)[places].astype(np.int64)
        return codes << _WIDE_BITS | properties


def split_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes of first views, and those of the amounts, of the sums of `Amounts`."""
    return keys >> _WIDE_BITS, keys & ((1 << _WIDE_BITS) - 1)
