"""Sums of the selected visits, with those of segments kept.

Where a query selects all visits, the sums of segments are kept, as these never change: for each
segment, and for all segments together that a query selects as a whole. The sums of a segment see no
further than the segment does, so that visits which go on in another one are counted again, with all
of their views, and their sums within one segment subtracted.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from attrs import evolve, frozen

from medamad.query.embedded.scan import Selection, divide
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.embedded.visit_groups import (
    Beyond,
    find_beyond,
    visits_in_groups,
    visits_of_views,
)
from medamad.query.embedded.visit_sums import Kind, add_up, collect, collect_groups
from medamad.query.embedded.visits import Visits, find_visits, select_visits
from medamad.query.period import ALWAYS
from medamad.query.request import Cancellation
from medamad.query.sums import VisitSums
from medamad.storage.segments.parts import enclosing_bounds
from medamad.storage.segments.snapshot import Snapshot

_EVERYTHING: Final = ViewFilter({})


def sum_visits(selection: Selection, kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of the selected visits, of each kind."""
    if not selection.filter.matches_all:
        return collect_groups((visits for visits, _ in visits_in_groups(selection)), kinds)
    snapshot, cancellation = selection.snapshot, selection.cancellation
    whole, others = divide(snapshot, selection.period, lambda header: header.time_bounds)
    begun_there = select_visits(evolve(selection, snapshot=others))
    if not whole.segments:
        return collect(find_visits(snapshot, cancellation, begun_there.numbers()), kinds)
    known = _Kept(whole, cancellation)
    going_on = known.visits_in(others)
    numbers = np.concatenate([begun_there.numbers(), going_on.numbers()])
    exact = collect(find_visits(snapshot, cancellation, numbers), kinds)
    found = [[known.sums(kind), added] for kind, added in zip(kinds, exact, strict=True)]
    if len(going_on):
        for pieces, counted in zip(found, collect(going_on, kinds), strict=True):
            pieces.append(-counted)
    return [add_up(pieces) for pieces in found]


@frozen(eq=False)
class _Kept:
    """Segments that never change, whose sums are kept. The snapshot has nothing else."""

    snapshot: Snapshot
    cancellation: Cancellation

    def sums(self, kind: Kind) -> VisitSums:
        """Return the sums of the visits that begin in the segments, as far as these see."""
        is_one = len(self.snapshot.segments) == 1
        compute = self._sums_of_all if is_one else self._add_up
        return self.snapshot.kept(kind, lambda: compute(kind))

    def visits_in(self, others: Snapshot) -> Visits:
        """Return the visits that begin in the segments and have views or events in others."""
        bounds = enclosing_bounds(each.header.sequence_bounds for each in self.snapshot.segments)
        return self._find(find_beyond(others, self.cancellation, bounds))

    def _find(self, beyond: Beyond) -> Visits:
        """Return the visits that begin in the segments, of those that others have something of."""
        of_views = visits_of_views(self.snapshot, beyond.views, self.cancellation)
        numbers = np.concatenate([beyond.visits, of_views])
        return find_visits(self.snapshot, self.cancellation, numbers)

    def _add_up(self, kind: Kind) -> VisitSums:
        alone = [
            _Kept(self.snapshot.only([segment]), self.cancellation)
            for segment in self.snapshot.segments
        ]
        going_on = self._find(find_beyond(self.snapshot, self.cancellation))
        pieces = [each.sums(kind) for each in alone]
        for each in alone:
            counted = find_visits(each.snapshot, self.cancellation, going_on.numbers())
            pieces += [-sums for sums in collect(counted, [kind])]
        return add_up(pieces + collect(going_on, [kind]))

    def _sums_of_all(self, kind: Kind) -> VisitSums:
        selection = Selection(self.snapshot, ALWAYS, _EVERYTHING, self.cancellation)
        (sums,) = collect(select_visits(selection), [kind])
        return sums
