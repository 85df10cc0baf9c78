"""Goals: which visits reached them."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise, starmap
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import CodeTable, PartViews, RowMask
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.view_filter import Candidates
from medamad.query.embedded.visit_groups import visits_in_groups
from medamad.query.embedded.visits import PartVisits
from medamad.query.filters import Mask, goal_mask
from medamad.query.request import Cancellation
from medamad.storage.dictionary.decode import CodeTexts
from medamad.storage.segments.parts import ViewColumns
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import sequences_of, visit_numbers

Moments: TypeAlias = NDArray[np.int64]
"""Milliseconds since 1970, and below these _NUMBER_BITS for how many views and events there were
since the visit began, on any website."""
_NUMBER_BITS: Final = 21
"""What 64 bits leave beside the milliseconds until 2109."""
_NO_ROWS: Final = np.zeros(0, np.intp)
_EARLY: Final = 1 << 10
"""By how many numbers an event may precede the view that it is bound to, and still be in order."""


def _moments(part: ViewColumns, rows: NDArray[np.intp], events: NDArray[np.intp] | None) -> Moments:
    """Return when a goal was reached by views of a part, or by their events, shape (n,).

    `rows` has the rows of the views and `events` those of the events, None if the views did.
    """
    hits = sequences_of(part, rows) + 1 - visit_numbers(part, rows)
    time_ms = part.time_ms[rows] if events is None else part.own.time_ms[events]
    if events is not None:
        hits += part.own.event[events].astype(np.int64) - part.sequence[rows].astype(np.int64)
    moments: Moments = time_ms << _NUMBER_BITS
    moments += np.clip(hits + _EARLY, 0, (1 << _NUMBER_BITS) - 1)
    return moments


@define(eq=False)
class GoalSearch:
    """Looks for where goals were reached in one part after the other."""

    goals: Sequence[Goal]
    masks: Sequence[Mask]
    snapshot: Snapshot | None = None
    """What the parts are of, if what is found of them is cached."""
    _tables: Sequence[CodeTable] = field(init=False)
    _part: ViewColumns | None = field(default=None, init=False)
    _found: dict[int, tuple[NDArray[np.intp], NDArray[np.intp] | None]] = field(
        factory=dict, init=False
    )
    """What `rows_in` returned of this part, by the place of the goal."""

    @_tables.default
    def _make_tables(self) -> Sequence[CodeTable]:
        return [CodeTable(mask) for mask in self.masks]

    @classmethod
    def of(
        cls,
        goals: Sequence[Goal],
        texts: CodeTexts,
        cancellation: Cancellation,
        snapshot: Snapshot | None = None,
    ) -> "GoalSearch":
        """Return the search for goals."""
        return cls(goals, [goal_mask(texts, goal, cancellation) for goal in goals], snapshot)

    def rows_in(
        self, part: ViewColumns, place: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        """Return the rows of the views of a part by which, or by whose events, it was reached.

        And the rows of these events, each with the view in the same place, None for a page. Events
        that are not stored with their view are left out.
        """
        if part is not self._part:
            self._part = part
            self._found.clear()
        if place not in self._found:
            self._found[place] = self._find_rows(part, place)
        return self._found[place]

    def reaching_first(self, parts: Iterable[ViewColumns]) -> Iterator[Candidates]:
        """Return the views of parts by which, or by whose events, the first goal was reached."""
        for part in parts:
            yield Candidates(part, slice(0, len(part)), partial(self._reach_first, part))

    def _reach_first(self, part: ViewColumns) -> RowMask:
        return RowMask.of_rows(len(part), self.rows_in(part, 0)[0])

    def all_rows_in(self, part: ViewColumns) -> tuple[NDArray[np.intp], list[slice]]:
        """Return the rows of the views of all goals, and where those of each goal are."""
        rows = [self.rows_in(part, place)[0] for place in range(len(self.goals))]
        ends = list(accumulate(map(len, rows), initial=0))
        return np.concatenate([_NO_ROWS, *rows]), list(starmap(slice, pairwise(ends)))

    def have_reached(self, visits: PartVisits) -> list[Mask]:
        """Return which of n visits reached each goal, shape (n,)."""
        rows, of_goals = self.all_rows_in(visits.part)
        places = visits.places_of_rows(rows)
        return [visits.at(places[of_goal]) for of_goal in of_goals]

    def _find_rows(
        self, part: ViewColumns, place: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        goal, find = self.goals[place], partial(self._select, part, place)
        if self.snapshot is not None and isinstance(part, OpenSegment):
            rows = self.snapshot.cached_mask(part, (GoalSearch, goal), find).astype(np.intp)
        else:
            rows = find().astype(np.intp)
        return (
            (rows, None) if goal.path is not None else (part.own.view[rows].astype(np.intp), rows)
        )

    def _select(self, part: ViewColumns, place: int) -> NDArray[np.uint32]:
        is_page = self.goals[place].path is not None
        codes = part.codes(Dimension.PATH) if is_page else part.own.property
        rows = LOOPS.select(PartViews(0, len(codes), [codes]), [self._tables[place]])
        return rows.astype(np.uint32)


def find_amounts(visits: PartVisits, goal: Goal) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the amounts in the conversions of some visits: the visits' places, and their codes.

    In any order. The goal must have revenue.
    """
    part, snapshot = visits.part, visits.snapshot
    find = partial(_amounts_in, part, goal, snapshot.texts)
    if isinstance(part, OpenSegment):
        views, codes = snapshot.cached_mask(part, (find_amounts, goal), find)
    else:
        views, codes = find()
    places = visits.places_of_rows(views.astype(np.intp))
    is_here = places >= 0
    return places[is_here].astype(np.intp), codes[is_here].astype(np.int64)


def _amounts_in(part: ViewColumns, goal: Goal, texts: CodeTexts) -> NDArray[np.uint32]:
    """Return the amounts in the conversions of all views of a part, shape (2, n).

    The rows of the views, and the codes of the amounts.
    """
    own, cancellation = part.own, Cancellation()
    reaching = goal_mask(texts, goal, cancellation)
    amounts = goal_mask(texts, Goal(id="", name="", event=goal.revenue), cancellation)
    rows = np.flatnonzero(amounts.take(own.property)) if len(own) else _NO_ROWS
    if goal.path is None:
        reaching_events = own.event[np.flatnonzero(reaching.take(own.property))]
        is_of_conversion = _are_among(own.event[rows], reaching_events)
    else:
        is_of_conversion = reaching.take(part.codes(Dimension.PATH)[own.view[rows]])
    rows = rows[is_of_conversion]
    return np.stack((own.view[rows], own.property[rows])).astype(np.uint32)


def _are_among(events: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which events are among others, faster than `np.isin` where these are in order."""
    if not len(others):
        return np.zeros(len(events), np.bool_)
    # Sorting what is sorted, as nearly always here, takes one look at each.
    ascending = np.sort(others, kind="stable")
    places = np.minimum(np.searchsorted(ascending, events), len(ascending) - 1)
    found: NDArray[np.bool_] = ascending[places] == events
    return found


def count_steps(selection: Selection, goals: Sequence[Goal]) -> NDArray[np.int64]:
    """Return how many selected visits reached each goal after all goals before it, shape (n,).

    The order is that of time, at the same time that in which they were stored. A view or an event
    may reach several in order.
    """
    apart = selection.apart()
    if apart is not None:
        whole, left_out = (count_steps(each, goals) for each in apart)
        return whole - left_out
    counts = np.zeros(len(goals), np.int64)
    snapshot = selection.snapshot
    search = GoalSearch.of(goals, snapshot.texts, selection.cancellation, snapshot)

    def reaching_first(selection: Selection) -> Iterator[Candidates]:
        return search.reaching_first(selection.parts_in_period())

    # Without a filter, no others can reach the first goal.
    find_views = reaching_first if selection.filter.matches_all else None
    for visits in visits_in_groups(selection, find_views):
        counts += _count_steps(visits, search)
    return counts


def _count_steps(visits: PartVisits, search: GoalSearch) -> NDArray[np.int64]:
    """Return how many visits of one part reached each goal after all goals before it."""
    part = visits.part
    counts = np.zeros(len(search.goals), np.int64)
    never = np.iinfo(np.int64).max
    first = np.zeros(len(visits), np.int64)
    for step in range(len(search.goals)):
        rows, events = search.rows_in(part, step)
        places = visits.places_of_rows(rows)
        # Those that are missing have the last place.
        is_here = np.flatnonzero((places >= 0) & (first[places] != never))
        if not len(is_here):
            break
        some = None if events is None else events[is_here]
        places, moments = places[is_here], _moments(part, rows[is_here], some)
        descending = np.argsort(moments, kind="stable")[::-1]
        places, moments = places[descending], moments[descending]
        following = np.full(len(visits), never)
        is_next = moments >= first[places]
        # Of several moments of a visit, the last and least remains.
        following[places[is_next]] = moments[is_next]
        first = following
        counts[step] = np.count_nonzero(first != never)
    return counts
