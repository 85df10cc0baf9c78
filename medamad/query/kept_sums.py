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

from medamad.domain.dimensions import ViewNumber
from medamad.query.period import ALWAYS
from medamad.query.request import Cancellation
from medamad.query.scan import Selection, ViewFilter, divide, loose_events
from medamad.query.visit_sums import Kind, VisitSums, add_up, collect
from medamad.query.visits import (
    Numbers,
    Visits,
    distinct,
    find_ascending,
    find_visits,
    first_rows,
    select_visits,
    visit_numbers,
)
from medamad.storage.segments.snapshot import Snapshot

_NONE: Final[Numbers] = np.zeros(0, np.int64)
_EVERYTHING: Final = ViewFilter({})


def sum_visits(selection: Selection, kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of the selected visits, of each kind."""
    if not selection.filter.matches_all:
        return collect(select_visits(selection), kinds)
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
        return self.snapshot.kept(kind, lambda: compute(kind), lambda sums: sums.nbytes)

    def visits_in(self, others: Snapshot) -> Visits:
        """Return the visits that begin in the segments and have views or events in others."""
        pieces = []
        for segment in others.segments:
            alone = _Kept(others.only([segment]), self.cancellation)
            is_kept = segment.number not in others.overlays
            pieces.append(alone.beyond() if is_kept else _beyond(alone.snapshot, self.cancellation))
        pieces.append(_beyond(evolve(others, segments=()), self.cancellation))
        return self._find(pieces)

    def beyond(self) -> "_Beyond":
        """Return what the segments have of visits that begin elsewhere."""
        return self.snapshot.kept(
            _Beyond, lambda: _beyond(self.snapshot, self.cancellation), lambda found: found.nbytes
        )

    def _find(self, pieces: Sequence["_Beyond"]) -> Visits:
        """Return the visits that begin in the segments, of those that others have something of."""
        numbers = [each.visits for each in pieces]
        views = distinct([_NONE, *(each.views for each in pieces)])
        numbers.append(_visits_of_views(self.snapshot, views, self.cancellation))
        return find_visits(self.snapshot, self.cancellation, np.concatenate(numbers))

    def _add_up(self, kind: Kind) -> VisitSums:
        alone = [
            _Kept(self.snapshot.only([segment]), self.cancellation)
            for segment in self.snapshot.segments
        ]
        going_on = self._find([each.beyond() for each in alone])
        pieces = [each.sums(kind) for each in alone]
        for each in alone:
            counted = find_visits(each.snapshot, self.cancellation, going_on.numbers())
            pieces += [-sums for sums in collect(counted, [kind])]
        return add_up(pieces + collect(going_on, [kind]))

    def _sums_of_all(self, kind: Kind) -> VisitSums:
        selection = Selection(self.snapshot, ALWAYS, _EVERYTHING, self.cancellation)
        (sums,) = collect(select_visits(selection), [kind])
        return sums


@frozen(eq=False)
class _Beyond:
    """What a snapshot has of visits that begin elsewhere.

    `visits` has the numbers of those that its views belong to, and `views` the sequence numbers of
    the views elsewhere that its events belong to.
    """

    visits: Numbers
    views: Numbers

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.visits.nbytes + self.views.nbytes


def _beyond(snapshot: Snapshot, cancellation: Cancellation) -> _Beyond:
    numbers, views = [_NONE], [_NONE]
    for part in snapshot.leaves():
        cancellation.check()
        if part.first_visit:
            found = visit_numbers(part, part.numbers(ViewNumber.VISIT_OFFSET) > 1)
            begun = part.sequence[first_rows(part)].astype(np.int64)
            numbers.append(distinct([found[~np.isin(found, begun)]]))
    views += [events.view.astype(np.int64) for events in loose_events(snapshot, cancellation)]
    of_views = distinct(numbers)
    begun_here = find_visits(snapshot, cancellation, of_views).numbers()
    return _Beyond(of_views[~np.isin(of_views, begun_here)], distinct(views))


def _visits_of_views(snapshot: Snapshot, views: Numbers, cancellation: Cancellation) -> Numbers:
    """Return the numbers of the visits of those views that a snapshot has, of some in order."""
    numbers = [_NONE]
    views = views[views > 0]
    bounds = (int(views[0]), int(views[-1])) if len(views) else (1, 0)
    for part in snapshot.leaves(bounds):
        cancellation.check()
        _, rows = find_ascending(part, views)
        if len(rows):
            numbers.append(visit_numbers(part, rows))
    return np.concatenate(numbers)
