"""Goals: which visits reached them."""

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.goals import Goal
from medamad.domain.paths import PathPattern
from medamad.query.filters import Mask, cached_mask
from medamad.query.request import Cancellation
from medamad.query.scan import ViewFilter
from medamad.query.visit_search import VisitSearch
from medamad.query.visits import Numbers, Visits, visit_numbers
from medamad.storage.segments.parts import CodeTexts

_NONE = np.zeros(0, np.int64)


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
    """Where a goal was reached, as columns of shape (n,).

    `visits` has the number of the visit, 0 if it is unknown, and `numbers` that of the view or the
    event, which come from one sequence.
    """

    visits: Numbers
    numbers: Numbers


def find_reached(search: VisitSearch, goals: Sequence[Goal]) -> list[Reached]:
    """Return where each goal was reached."""
    texts, cancellation = search.snapshot.texts, search.cancellation
    masks = [goal_mask(texts, goal, cancellation) for goal in goals]
    found: list[list[tuple[Numbers, Numbers]]] = [[] for _ in goals]
    pages = [place for place, goal in enumerate(goals) if goal.path is not None]
    if pages:
        any_page = np.logical_or.reduce([masks[place] for place in pages])
        for views in search.views(ViewFilter({Dimension.PATH: any_page})):
            codes, part = views.codes(Dimension.PATH), views.part
            rows_of_part = views.of(np.arange(len(part)))
            for place in pages:
                rows = rows_of_part[masks[place].take(codes)]
                numbers = part.sequence[rows].astype(np.int64)
                found[place].append((visit_numbers(part, rows), numbers))
    events = [place for place, goal in enumerate(goals) if goal.path is None]
    if events:
        any_event = np.logical_or.reduce([masks[place] for place in events])
        for rows_of_events in search.events(any_event):
            for place in events:
                rows = np.flatnonzero(masks[place].take(rows_of_events.properties))
                found[place].append((rows_of_events.visits[rows], rows_of_events.numbers[rows]))
    return [
        Reached(*(np.concatenate([_NONE, *column]) for column in zip(*pieces, strict=True)))
        if pieces
        else Reached(_NONE, _NONE)
        for pieces in found
    ]


def have_reached(visits: Visits, goals: Sequence[Goal]) -> list[Mask]:
    """Return for each goal which of some visits reached it, shape (n,)."""
    found = find_reached(VisitSearch.among(visits), goals)
    return [visits.mask_of(reached.visits) for reached in found]


def count_steps(visits: Visits, goals: Sequence[Goal]) -> NDArray[np.int64]:
    """Return how many visits reached each goal after all goals before it, shape (n,).

    A view or an event may reach several in order.
    """
    counts = np.zeros(len(goals), np.int64)
    never = np.iinfo(np.int64).max
    first = np.zeros(len(visits), np.int64)
    for step, reached in enumerate(find_reached(VisitSearch.among(visits), goals)):
        places = visits.places_of(reached.visits)
        places, numbers = places[places >= 0], reached.numbers[places >= 0]
        is_in_order = numbers >= first[places]
        first = np.full(len(visits), never)
        np.minimum.at(first, places[is_in_order], numbers[is_in_order])
        counts[step] = np.count_nonzero(first != never)
    return counts
