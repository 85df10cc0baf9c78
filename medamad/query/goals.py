"""Goals: which visits reached them."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber, split_property
from medamad.domain.goals import Goal
from medamad.domain.paths import PathPattern
from medamad.query.filters import Mask, cached_mask
from medamad.query.request import Cancellation
from medamad.query.scan import Selection, ViewFilter
from medamad.query.visit_search import FoundEvents, VisitSearch
from medamad.query.visits import Numbers, Visits, find_visits, select_visits, visit_numbers
from medamad.storage.segments.parts import CodeTexts, ViewColumns

Moments: TypeAlias = NDArray[np.int64]
"""Milliseconds since 1970, and below these _NUMBER_BITS for how many views and events there were
since the visit began, on any website."""
_NUMBER_BITS: Final = 21
"""What 64 bits leave beside the milliseconds until 2109."""


def goal_mask(texts: CodeTexts, goal: Goal, cancellation: Cancellation) -> Mask:
    """Return which codes reach a goal: of Dimension.PATH if it is a page, else of PROPERTY."""
    if goal.path is not None:
        pattern = PathPattern.of(goal.path)
        return cached_mask(
            texts,
            Dimension.PATH,
            pattern,
            lambda piece: np.array([pattern.matches(path) for path in piece], np.bool_),
            cancellation,
        )

    def has_property(piece: Sequence[str]) -> Mask:
        pairs = map(split_property, piece)
        return np.array(
            [name == goal.event and goal.value in (None, value) for name, value in pairs], np.bool_
        )

    key = (goal.event, goal.value)
    return cached_mask(texts, Dimension.PROPERTY, key, has_property, cancellation)


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
        moments += np.clip(hits, 0, (1 << _NUMBER_BITS) - 1)
        return moments

    def _offsets(self) -> NDArray[Any]:
        return self.part.numbers(ViewNumber.VISIT_OFFSET)[self.rows]


def find_reached(search: VisitSearch, goals: Sequence[Goal]) -> Iterator[tuple[int, Reached]]:
    """Return where each goal was reached, with its place among the goals, part by part."""
    texts, cancellation = search.snapshot.texts, search.cancellation
    masks = [goal_mask(texts, goal, cancellation) for goal in goals]
    pages = [place for place, goal in enumerate(goals) if goal.path is not None]
    if pages:
        any_page = np.logical_or.reduce([masks[place] for place in pages])
        for views in search.views(ViewFilter({Dimension.PATH: any_page})):
            codes, part = views.codes(Dimension.PATH), views.part
            rows_of_part = views.of(np.arange(len(part)))
            for place in pages:
                yield place, Reached(part, rows_of_part[masks[place].take(codes)])
    of_events = [place for place, goal in enumerate(goals) if goal.path is None]
    if of_events:
        any_event = np.logical_or.reduce([masks[place] for place in of_events])
        for each in search.events(any_event):
            for place in of_events:
                events = each.take(np.flatnonzero(masks[place].take(each.properties)))
                yield place, Reached(each.part, events.views, events)


def have_reached(visits: Visits, goals: Sequence[Goal]) -> list[Mask]:
    """Return for each goal which of some visits reached it, shape (n,)."""
    masks = [np.zeros(len(visits), np.bool_) for _ in goals]
    for goal, reached in find_reached(VisitSearch.among(visits), goals):
        places = visits.places_of_rows(reached.part, reached.rows)
        masks[goal][places[places >= 0]] = True
    return masks


def count_steps(selection: Selection, goals: Sequence[Goal]) -> NDArray[np.int64]:
    """Return how many selected visits reached each goal after all goals before it, shape (n,).

    The order is that of time, at the same time that in which they were stored. A view or an event
    may reach several in order.
    """
    snapshot, cancellation = selection.snapshot, selection.cancellation
    found: list[list[tuple[Numbers, Moments]]] = [[] for _ in goals]
    search = VisitSearch.during(snapshot, selection.period, cancellation)
    for goal, reached in find_reached(search, goals):
        numbers = visit_numbers(reached.part, reached.rows)
        found[goal].append((numbers, reached.moments()))
    if selection.filter.matches_all:
        # No others can reach the first goal.
        none = np.zeros(0, np.int64)
        first_numbers = np.concatenate([none, *(numbers for numbers, _ in found[0])])
        visits = find_visits(snapshot, cancellation, first_numbers, selection.period)
    else:
        visits = select_visits(selection)
    counts = np.zeros(len(goals), np.int64)
    never = np.iinfo(np.int64).max
    first = np.zeros(len(visits), np.int64)
    for step, pieces in enumerate(found):
        following = np.full(len(visits), never)
        for numbers, moments in pieces:
            places = visits.places_of(numbers)
            is_here = np.flatnonzero(places >= 0)
            descending = is_here[np.argsort(moments[is_here], kind="stable")[::-1]]
            places, ordered = places[descending], moments[descending]
            is_next = (ordered >= first[places]) & (ordered < following[places])
            # Of several moments of a visit, the last and least remains.
            following[places[is_next]] = ordered[is_next]
        first = following
        counts[step] = np.count_nonzero(first != never)
    return counts
