"""Goals: which visits reached them."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import CodeTable, GoalsInVisits, PartViews, RowMask
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.view_filter import Candidates, event_codes
from medamad.query.embedded.visit_groups import visits_in_groups
from medamad.query.embedded.visits import PartVisits
from medamad.query.filters import Mask, goal_mask
from medamad.query.request import Cancellation
from medamad.storage.dictionary.decode import CodeTexts
from medamad.storage.segments.format import Integers
from medamad.storage.segments.parts import ViewColumns
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import A, Snapshot
from medamad.storage.segments.visit_numbers import sequences_of, visit_numbers

Moments: TypeAlias = NDArray[np.int64]
"""Milliseconds since 1970, and below these _NUMBER_BITS for how many views and events there were
since the visit began, on any website."""
_NUMBER_BITS: Final = 21
"""What 64 bits leave beside the milliseconds until 2109."""
MOST_CACHED: Final = 1 << 24
"""Of more views, when each goal was reached would take too much memory to be cached."""
_EARLY: Final = 1 << 10
"""By how many numbers an event may precede the view that it is bound to, and still be in order."""


def _moments(
    part: ViewColumns, views: NDArray[np.uint32], events: NDArray[np.uint32] | None
) -> Moments:
    """Return when a goal was reached by views of a part, or by their events, shape (n,).

    `views` has the rows of the views and `events` those of the events, None if the views did.
    """
    rows = views.astype(np.intp)
    if events is None:
        numbers, time_ms = sequences_of(part, rows), part.time_ms[rows]
    else:
        numbers, time_ms = part.own.event[events].astype(np.int64), part.own.time_ms[events]
    hits = numbers + 1 - visit_numbers(part, rows)
    moments: Moments = time_ms << _NUMBER_BITS
    moments += np.minimum(np.maximum(hits + _EARLY, 0), (1 << _NUMBER_BITS) - 1)
    return moments


@define(eq=False)
class GoalSearch:
    """Looks for where goals were reached in one part after the other."""

    goals: Sequence[Goal]
    masks: Sequence[Mask]
    snapshot: Snapshot
    """What the parts are of."""
    _tables: Sequence[CodeTable] = field(init=False)
    _caches_moments: bool = field(init=False)

    @_caches_moments.default
    def _have_room(self) -> bool:
        return sum(each.header.views for each in self.snapshot.segments) <= MOST_CACHED

    @_tables.default
    def _make_tables(self) -> Sequence[CodeTable]:
        return [CodeTable(mask) for mask in self.masks]

    @classmethod
    def of(
        cls,
        goals: Sequence[Goal],
        texts: CodeTexts,
        cancellation: Cancellation,
        snapshot: Snapshot,
    ) -> "GoalSearch":
        """Return the search for goals."""
        return cls(goals, [goal_mask(texts, goal, cancellation) for goal in goals], snapshot)

    def views_in(self, part: ViewColumns, place: int) -> NDArray[np.uint32]:
        """Return the rows of the views of a part by which, or by whose events, it was reached.

        Events that are not stored with their view are left out.
        """

        def find() -> NDArray[np.uint32]:
            events = self.events_in(part, place)
            if events is None:
                return _rows_with(part.codes(Dimension.PATH), self._tables[place])
            return part.own.view[events].astype(np.uint32)

        return _cached(self.snapshot, part, (GoalSearch, "views", self.goals[place]), find)

    def events_in(self, part: ViewColumns, place: int) -> NDArray[np.uint32] | None:
        """Return a row of each event of these views that reached it, None for a page."""
        if self.goals[place].path is not None:
            return None
        rows = _rows_with(part.own.property, self._tables[place])
        # With counts of events, none has two properties of a name.
        if event_codes(part) is not None:
            return rows
        return rows[begin_events(part.own.event[rows])]

    def begins_in(self, part: ViewColumns, place: int) -> RowMask:
        """Return the rows in which visits begin that reached it."""
        rows = self._rows_in(part, place)
        return LOOPS.begins_with(part.visits().offsets, PartViews(0, len(part), rows))

    def in_visits(self, visits: PartVisits, *, in_order: bool = False) -> GoalsInVisits:
        """Return where visits reached the goals."""
        part, places = visits.part, range(len(self.goals))
        offsets = visits.columns.offsets
        if in_order and not self._caches_moments:
            return GoalsInVisits(offsets, visits.chosen, *self._few_moments(visits))
        rows = [self.views_in(part, place) for place in places]
        moments = [self._moments_in(part, place) for place in places] if in_order else None
        return GoalsInVisits(offsets, visits.chosen, rows, moments)

    def _few_moments(self, visits: PartVisits) -> tuple[list[NDArray[np.uint32]], list[Moments]]:
        """Return where and when visits reached goals of which they reached all goals before."""
        part, all_rows, moments = visits.part, [], []
        for place in range(len(self.goals)):
            rows, events = self.views_in(part, place), self.events_in(part, place)
            begins = LOOPS.first_rows(visits.columns.offsets, rows.astype(np.intp))
            are_theirs = visits.chosen.of(begins)
            rows, begins = rows[are_theirs], begins[are_theirs]
            moments.append(_moments(part, rows, None if events is None else events[are_theirs]))
            all_rows.append(rows)
            visits = visits.among(RowMask.of_rows(len(part), begins))
        return all_rows, moments

    def reaching_first(self, parts: Iterable[ViewColumns]) -> Iterator[Candidates]:
        """Return the views of parts by which, or by whose events, the first goal was reached."""
        for part in parts:
            yield Candidates(part, slice(0, len(part)), partial(self._rows_in, part, 0))

    def reaching_all(self, visits: PartVisits) -> PartVisits:
        """Return those visits that reached all goals."""
        return visits.among(*(self.begins_in(visits.part, each) for each in range(len(self.goals))))

    def have_reached(self, visits: PartVisits) -> list[Mask]:
        """Return which of n visits reached each goal, shape (n,)."""
        begins = (self.begins_in(visits.part, place) for place in range(len(self.goals)))
        return [each.of(visits.begins) for each in begins]

    def _rows_in(self, part: ViewColumns, place: int) -> RowMask:
        return RowMask.of_rows(len(part), self.views_in(part, place))

    def _moments_in(self, part: ViewColumns, place: int) -> Moments:
        def find() -> Moments:
            return _moments(part, self.views_in(part, place), self.events_in(part, place))

        return _cached(self.snapshot, part, (GoalSearch, "moments", self.goals[place]), find)


def _cached(snapshot: Snapshot, part: ViewColumns, what: Hashable, find: Callable[[], A]) -> A:
    """Return what is found of a part, which is cached for segments."""
    if not isinstance(part, OpenSegment):
        return find()
    return snapshot.cached_of_segment(part, what, find)


def _rows_with(codes: Integers, table: CodeTable) -> NDArray[np.uint32]:
    """Return the rows with a code that a table has."""
    return LOOPS.rows(LOOPS.match([codes], [table])).astype(np.uint32)


def amounts_in(
    part: ViewColumns, rows: NDArray[np.uint32], revenue: CodeTable, *, of_views: bool
) -> NDArray[np.uint32]:
    """Return the rows of a part's own events that are amounts in some conversions.

    `rows` has those of the views that reached a goal, or of the events.
    """
    own = part.own
    amounts = _rows_with(own.property, revenue)
    if not of_views:
        return amounts[are_among(own.event[amounts], own.event[rows])]
    have_reached = np.zeros(len(part), np.bool_)
    have_reached[rows] = True
    return amounts[have_reached.take(own.view[amounts])]


def begin_events(events: NDArray[np.integer[Any]]) -> Mask:
    """Return which rows begin an event, by the number of each: those of one follow each other."""
    begins: Mask = np.append(True, events[1:] != events[:-1])[: len(events)]
    return begins


def are_among(events: NDArray[Any], others: NDArray[Any]) -> Mask:
    """Return which events are among others, faster than `np.isin` where these are in order."""
    if not len(others):
        return np.zeros(len(events), np.bool_)
    # Sorting what is sorted, as nearly always here, takes one look at each.
    ascending = np.sort(others, kind="stable")
    places = np.minimum(np.searchsorted(ascending, events), len(ascending) - 1)
    found: Mask = ascending[places] == events
    return found


def revenue_mask(goal: Goal, texts: CodeTexts, cancellation: Cancellation) -> Mask:
    """Return which properties are amounts of a goal, if it has revenue."""
    return goal_mask(texts, Goal(id="", name="", event=goal.revenue), cancellation)


def find_amounts(visits: PartVisits, goal: Goal) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the amounts in the conversions of some visits: the visits' places, and their codes.

    In any order. The goal must have revenue.
    """
    part, snapshot = visits.part, visits.snapshot

    def find() -> NDArray[np.uint32]:
        texts, cancellation, own = snapshot.texts, Cancellation(), part.own
        search = GoalSearch.of([goal], texts, cancellation, snapshot)
        events = search.events_in(part, 0)
        reaching = search.views_in(part, 0) if events is None else events
        revenue = CodeTable(revenue_mask(goal, texts, cancellation))
        rows = amounts_in(part, reaching, revenue, of_views=events is None)
        return np.stack((own.view[rows], own.property[rows])).astype(np.uint32)

    views, codes = _cached(snapshot, part, (find_amounts, goal), find)
    places = visits.places_of_rows(views.astype(np.intp))
    is_here = places >= 0
    return places[is_here].astype(np.intp), codes[is_here].astype(np.int64)


def count_steps(selection: Selection, goals: Sequence[Goal]) -> NDArray[np.int64]:
    """Return how many selected visits reached each goal after all goals before it, shape (n,).

    The order is that of time, at the same time that in which they were stored. A view or an event
    may reach several in order.
    """
    apart = selection.apart()
    if apart is not None:
        everything, left_out = (count_steps(each, goals) for each in apart)
        return everything - left_out
    snapshot = selection.snapshot
    search = GoalSearch.of(goals, snapshot.texts, selection.cancellation, snapshot)
    parts = [search.in_visits(each, in_order=True) for each in visits_in_groups(selection)]
    _, counts = LOOPS.count_goals(parts, len(goals))
    return counts
