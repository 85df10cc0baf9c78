"""Goals: which visits reached them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise, starmap
from typing import Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.domain.goals import Goal
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import CodeTable, PartViews
from medamad.query.embedded.part_visits import AnyVisits
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.view_filter import SelectedViews, ViewFilter
from medamad.query.embedded.visit_groups import selecting_views, visits_in_groups
from medamad.query.embedded.visit_search import FoundEvents, VisitSearch
from medamad.query.filters import Mask, goal_mask
from medamad.query.request import Cancellation
from medamad.storage.dictionary.decode import CodeTexts
from medamad.storage.segments.parts import ViewColumns

Moments: TypeAlias = NDArray[np.int64]
"""Milliseconds since 1970, and below these _NUMBER_BITS for how many views and events there were
since the visit began, on any website."""
_NUMBER_BITS: Final = 21
"""What 64 bits leave beside the milliseconds until 2109."""
_NO_ROWS: Final = np.zeros(0, np.intp)
_EARLY: Final = 1 << 10
"""By how many numbers an event may precede the view that it is bound to, and still be in order."""


@frozen(eq=False)
class Reached:
    """Where a goal was reached: by views of one part, or by their events.

    `rows` has the rows of the views in the part, shape (n,), and `events` the events, None if the
    views themselves reached it.
    """

    part: ViewColumns
    rows: NDArray[np.intp]
    events: FoundEvents | None = None

    def moments(self) -> Moments:
        """Return when it was reached, shape (n,)."""
        if self.events is None:
            time_ms, hits = self.part.time_ms[self.rows], self._offsets()
        else:
            time_ms = self.events.time_ms
            hits = self.events.numbers - self.part.sequence[self.rows].astype(np.int64)
            hits += self._offsets()
        moments: Moments = time_ms << _NUMBER_BITS
        moments += np.clip(hits + _EARLY, 0, (1 << _NUMBER_BITS) - 1)
        return moments

    def _offsets(self) -> NDArray[np.int64]:
        return self.part.numbers(ViewNumber.VISIT_OFFSET)[self.rows].astype(np.int64)


@define(eq=False)
class GoalSearch:
    """Looks for where goals were reached in one part after the other."""

    goals: Sequence[Goal]
    masks: Sequence[Mask]
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
        cls, goals: Sequence[Goal], texts: CodeTexts, cancellation: Cancellation
    ) -> "GoalSearch":
        """Return the search for goals."""
        return cls(goals, [goal_mask(texts, goal, cancellation) for goal in goals])

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

    def reaching_first(self, parts: Iterable[ViewColumns]) -> Iterator[SelectedViews]:
        """Return the views of parts by which, or by whose events, the first goal was reached."""
        for part in parts:
            rows, _ = self.rows_in(part, 0)
            if len(rows):
                yield SelectedViews(part, rows)

    def all_rows_in(self, part: ViewColumns) -> tuple[NDArray[np.intp], list[slice]]:
        """Return the rows of the views of all goals, and where those of each goal are."""
        rows = [self.rows_in(part, place)[0] for place in range(len(self.goals))]
        ends = list(accumulate(map(len, rows), initial=0))
        return np.concatenate([_NO_ROWS, *rows]), list(starmap(slice, pairwise(ends)))

    def have_reached(self, visits: AnyVisits, part: ViewColumns) -> NDArray[np.bool_]:
        """Return which of n visits, that have no views elsewhere, reached each goal.

        Shape (goals, n).
        """
        rows, of_goals = self.all_rows_in(part)
        places = visits.places_of_rows(part, rows)
        reached = np.zeros((len(self.goals), len(visits)), np.bool_)
        for mask, of_goal in zip(reached, of_goals, strict=True):
            found = places[of_goal]
            mask[found[found >= 0]] = True
        return reached

    def _find_rows(
        self, part: ViewColumns, place: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        is_page = self.goals[place].path is not None
        codes = part.codes(Dimension.PATH) if is_page else part.own.property
        rows = LOOPS.select(PartViews(0, len(codes), [codes]), [self._tables[place]])
        return (rows, None) if is_page else (part.own.view[rows].astype(np.intp), rows)


def have_reached(visits: AnyVisits, goal: Goal) -> Mask:
    """Return which of some visits reached a goal, shape (n,)."""
    search = VisitSearch.among(visits)
    codes = goal_mask(search.snapshot.texts, goal, search.cancellation)
    found: Iterator[tuple[ViewColumns, NDArray[np.intp]]]
    if goal.path is None:
        found = ((events.part, events.views) for events in search.events(codes))
    else:
        of_page = search.views(ViewFilter({Dimension.PATH: codes}))
        found = ((views.part, views.of(np.arange(len(views.part)))) for views in of_page)
    reached = np.zeros(len(visits), np.bool_)
    for part, rows in found:
        places = visits.places_of_rows(part, rows)
        reached[places[places >= 0]] = True
    return reached


def find_amounts(visits: AnyVisits, goal: Goal) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the amounts in the conversions of some visits: the visits' places, and their codes.

    In any order. The goal must have revenue.
    """
    search = VisitSearch.among(visits)
    texts, cancellation = search.snapshot.texts, search.cancellation
    reaching = goal_mask(texts, goal, cancellation)
    amounts = goal_mask(texts, Goal(id="", name="", event=goal.revenue), cancellation)
    wanted = amounts
    if goal.path is None:
        # Texts that only one of the masks has are new.
        size = min(len(reaching), len(amounts))
        wanted = reaching[:size] | amounts[:size]
    events = [*search.events(wanted)]
    if goal.path is None:
        numbers = [each.numbers[reaching.take(each.properties)] for each in events]
        # Sorted, since a search is faster than a set. The last one is no number of an event.
        reaching_events = np.sort(np.concatenate([*numbers, [np.iinfo(np.int64).max]]))
    places, codes = [np.zeros(0, np.intp)], [np.zeros(0, np.int64)]
    for each in events:
        is_amount = amounts.take(each.properties)
        if goal.path is None:
            place = np.searchsorted(reaching_events, each.numbers)
            is_amount &= reaching_events[place] == each.numbers
        else:
            is_amount &= reaching.take(each.part.codes(Dimension.PATH)[each.views])
        of_visits = visits.places_of_rows(each.part, each.views[is_amount])
        is_here = of_visits >= 0
        places.append(of_visits[is_here].astype(np.intp))
        codes.append(each.properties[is_amount][is_here].astype(np.int64))
    return np.concatenate(places), np.concatenate(codes)


def count_steps(selection: Selection, goals: Sequence[Goal]) -> NDArray[np.int64]:
    """Return how many selected visits reached each goal after all goals before it, shape (n,).

    The order is that of time, at the same time that in which they were stored. A view or an event
    may reach several in order.
    """
    counts = np.zeros(len(goals), np.int64)
    search = GoalSearch.of(goals, selection.snapshot.texts, selection.cancellation)

    def reaching_first(selection: Selection) -> Iterator[SelectedViews]:
        return search.reaching_first(selection.parts_in_period())

    # Without a filter, no others can reach the first goal.
    find_views = reaching_first if selection.filter.matches_all else selecting_views
    for visits, selected in visits_in_groups(selection, find_views):
        counts += _count_steps(visits, selected.part, search)
    return counts


def _count_steps(visits: AnyVisits, part: ViewColumns, search: GoalSearch) -> NDArray[np.int64]:
    """Return how many visits of one part reached each goal after all goals before it."""
    counts = np.zeros(len(search.goals), np.int64)
    never = np.iinfo(np.int64).max
    first = np.zeros(len(visits), np.int64)
    for step in range(len(search.goals)):
        rows, events = search.rows_in(part, step)
        places = visits.places_of_rows(part, rows)
        # Those that are missing have the last place.
        is_here = np.flatnonzero((places >= 0) & (first[places] != never))
        if not len(is_here):
            break
        found = None if events is None else FoundEvents.of(part, events[is_here])
        places, moments = places[is_here], Reached(part, rows[is_here], found).moments()
        descending = np.argsort(moments, kind="stable")[::-1]
        places, moments = places[descending], moments[descending]
        following = np.full(len(visits), never)
        is_next = moments >= first[places]
        # Of several moments of a visit, the last and least remains.
        following[places[is_next]] = moments[is_next]
        first = following
        counts[step] = np.count_nonzero(first != never)
    return counts
