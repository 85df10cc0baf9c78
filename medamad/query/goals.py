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
from medamad.query.visits import Numbers, Visits
from medamad.storage.segments.parts import CodeTexts, ViewColumns


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
    """Where a goal was reached: by views of one part and their events, as columns of shape (n,).

    `rows` has the row of the view in the part, and `numbers` that of the view or the event, which
    come from one sequence.
    """

    part: ViewColumns
    rows: NDArray[np.intp]
    numbers: Numbers


def find_reached(search: VisitSearch, goals: Sequence[Goal]) -> list[list[Reached]]:
    """Return where each goal was reached, part by part."""
    texts, cancellation = search.snapshot.texts, search.cancellation
    masks = [goal_mask(texts, goal, cancellation) for goal in goals]
    found: list[list[Reached]] = [[] for _ in goals]
    pages = [place for place, goal in enumerate(goals) if goal.path is not None]
    if pages:
        any_page = np.logical_or.reduce([masks[place] for place in pages])
        for views in search.views(ViewFilter({Dimension.PATH: any_page})):
            codes, part = views.codes(Dimension.PATH), views.part
            rows_of_part = views.of(np.arange(len(part)))
            for place in pages:
                rows = rows_of_part[masks[place].take(codes)]
                found[place].append(Reached(part, rows, part.sequence[rows].astype(np.int64)))
    events = [place for place, goal in enumerate(goals) if goal.path is None]
    if events:
        any_event = np.logical_or.reduce([masks[place] for place in events])
        for each in search.events(any_event):
            for place in events:
                rows = np.flatnonzero(masks[place].take(each.properties))
                found[place].append(Reached(each.part, each.views[rows], each.numbers[rows]))
    return found


def have_reached(visits: Visits, goals: Sequence[Goal]) -> list[Mask]:
    """Return for each goal which of some visits reached it, shape (n,)."""
    masks = []
    for pieces in find_reached(VisitSearch.among(visits), goals):
        mask = np.zeros(len(visits), np.bool_)
        for reached in pieces:
            places = visits.places_of_rows(reached.part, reached.rows)
            mask[places[places >= 0]] = True
        masks.append(mask)
    return masks


def count_steps(visits: Visits, goals: Sequence[Goal]) -> NDArray[np.int64]:
    """Return how many visits reached each goal after all goals before it, shape (n,).

    A view or an event may reach several in order.
    """
    counts = np.zeros(len(goals), np.int64)
    never = np.iinfo(np.int64).max
    first = np.zeros(len(visits), np.int64)
    for step, pieces in enumerate(find_reached(VisitSearch.among(visits), goals)):
        following = np.full(len(visits), never)
        for reached in pieces:
            descending = np.argsort(reached.numbers, kind="stable")[::-1]
            numbers = reached.numbers[descending]
            places = visits.places_of_rows(reached.part, reached.rows)[descending]
            is_next = (places >= 0) & (numbers >= first[places]) & (numbers < following[places])
            # Of several numbers of a visit, the last and least remains.
            following[places[is_next]] = numbers[is_next]
        first = following
        counts[step] = np.count_nonzero(first != never)
    return counts
