"""The visits that began on a day: gathered from all of their views, and added up for its rollup."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import SETTLED_MS, VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.storage.segments.build import Content
from medamad.storage.segments.counters import Counters, merge
from medamad.storage.segments.format import Integers
from medamad.storage.segments.parts import (
    NO_TIME,
    EventColumns,
    ViewColumns,
    are_late,
    enclosing_bounds,
)
from medamad.storage.segments.visit_counters import (
    BOUNCES,
    DURATION_MS,
    EXITS,
    FIRST,
    LATER,
    OF_GROUP,
    OUTSIDE,
    VIEWS,
    VISIT_SUMS,
    VISITS,
)
from medamad.storage.segments.visit_numbers import may_have_visits


@frozen(eq=False)
class VisitsContent:
    """The visits of a day in memory."""

    time_bounds: tuple[int, int]
    total: Counters
    by_dimension: Mapping[Dimension, Counters]
    has_pages: bool = True
    has_exits: bool = True

    def overall(self) -> Counters:
        """Return the sums of all of them."""
        return self.total

    def counters(self, dimension: Dimension) -> Counters | None:
        """Return the sums by the codes of a dimension, or None if they are unknown."""
        return self.by_dimension.get(dimension)


def merge_visits(days: Sequence[VisitsContent | None]) -> VisitsContent | None:
    """Add up what several rollups of a day know; None if none of them knows anything of visits."""
    known = [each for each in days if each is not None]
    if not known:
        return None
    return VisitsContent(
        time_bounds=enclosing_bounds(each.time_bounds for each in known),
        total=merge([each.total for each in known]),
        by_dimension={
            dimension: merge([each.by_dimension[dimension] for each in known])
            for dimension in VIEW_DIMENSIONS
            if all(dimension in each.by_dimension for each in known)
        },
        has_pages=all(each.has_pages for each in known),
        has_exits=all(each.has_exits for each in known),
    )


@frozen(eq=False)
class _Views:
    """Views of the visits as columns of shape (n,); `visits` has the place of each one's visit."""

    visits: NDArray[np.intp]
    sequence: NDArray[np.uint64]
    time_ms: NDArray[np.int64]
    duration_ms: NDArray[np.int64]
    codes: Mapping[Dimension, NDArray[np.int64]]


@define(eq=False)
class BegunVisits:
    """Gathers what the visits that some views begin consist of, part by part.

    `numbers` are the numbers of the visits, ascending, and `began_ms` the times of their first
    views, shape (n,).
    """

    numbers: NDArray[np.uint64]
    began_ms: NDArray[np.int64]
    _has_events: NDArray[np.bool_] = field(init=False)
    _views: list[_Views] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._has_events = np.zeros(len(self.numbers), np.bool_)

    @classmethod
    def of(cls, content: Content) -> "BegunVisits":
        """Return the visits that views of some content begin."""
        begins = content.numbers[ViewNumber.VISIT_OFFSET] == 1
        return cls(content.sequence[begins], content.time_ms[begins])

    def add(self, part: ViewColumns) -> bool:
        """Add the views and events that a part has of the visits; return whether it was read."""
        if not len(self.numbers):
            return False
        has_views = may_have_visits(part, (int(self.numbers[0]), int(self.numbers[-1])))
        if has_views:
            self._add_views(part)
        low_ms, high_ms = part.event_time_bounds
        has_loose = (
            len(part.loose) > 0
            and high_ms > self.began_ms.min()
            and low_ms <= self.began_ms.max() + SETTLED_MS
        )
        if has_loose:
            self.add_events(part.loose)
        return has_views or has_loose

    def add_events(self, events: EventColumns) -> None:
        """Add events that are not stored with their view."""
        if len(events) and len(self.numbers):
            places = self._places(events.view.astype(np.uint64))
            found = np.flatnonzero(places >= 0)
            places = places[found]
            is_late = are_late(
                events.event[found],
                events.time_ms[found],
                events.view[found],
                self.began_ms[places],
            )
            self._has_events[places[is_late]] = True

    def _add_views(self, part: ViewColumns) -> None:
        offset = part.numbers(ViewNumber.VISIT_OFFSET)
        rows = np.flatnonzero(offset)
        sequence = part.sequence
        places = self._places(sequence[rows] + np.uint64(1) - offset[rows].astype(np.uint64))
        rows, places = rows[places >= 0], places[places >= 0]
        if not len(rows):
            return
        self._views.append(
            _Views(
                places,
                sequence[rows],
                part.time_ms[rows],
                part.duration_ms[rows].astype(np.int64),
                {
                    dimension: part.codes(dimension)[rows].astype(np.int64)
                    for dimension in VIEW_DIMENSIONS
                },
            )
        )
        places = self._places(sequence[part.views_with_late_events().astype(np.intp)])
        self._has_events[places[places >= 0]] = True

    def _places(self, numbers: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the place of each visit by its number, -1 for those that are not among these."""
        places = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        places[self.numbers[places] != numbers] = -1
        return places

    def content(self, span: tuple[int, int]) -> VisitsContent:
        """Return their sums. `span` is the first and the last millisecond of their day."""
        size = len(self.numbers)
        if not size:
            nothing = _no_counters()
            return VisitsContent(NO_TIME, nothing, dict.fromkeys(VIEW_DIMENSIONS, nothing))
        visits = np.concatenate([each.visits for each in self._views])
        sequence = np.concatenate([each.sequence for each in self._views])
        time_ms = np.concatenate([each.time_ms for each in self._views])
        duration_ms = np.concatenate([each.duration_ms for each in self._views])
        views = np.bincount(visits, minlength=size)
        figures = np.zeros((OF_GROUP, size), np.int64)
        figures[VISITS] = 1
        figures[VIEWS] = views
        figures[BOUNCES] = (views == 1) & ~self._has_events
        np.add.at(figures[DURATION_MS], visits, duration_ms)
        is_first = sequence == self.numbers[visits]
        group = np.where((time_ms >= span[0]) & (time_ms <= span[1]), LATER, OUTSIDE)
        group[is_first] = FIRST
        last = np.lexsort((sequence, visits))[np.cumsum(views) - 1]
        by_dimension = {}
        for dimension in VIEW_DIMENSIONS:
            codes = np.concatenate([each.codes[dimension] for each in self._views])
            exits = codes[last] if dimension is Dimension.PATH else None
            by_dimension[dimension] = _counters(figures, visits, codes, group, exits)
        total = np.zeros((VISIT_SUMS, 1), np.int64)
        total[FIRST : FIRST + OF_GROUP, 0] = figures.sum(axis=1)
        return VisitsContent(
            time_bounds=(int(time_ms.min()), int(time_ms.max())),
            total=Counters(np.zeros(1, np.uint32), tuple(total)),
            by_dimension=by_dimension,
        )


def _counters(
    figures: NDArray[np.int64],
    visits: NDArray[np.intp],
    codes: NDArray[np.int64],
    group: NDArray[Any],
    exits: NDArray[np.int64] | None,
) -> Counters:
    """Return the sums of visits by the codes of their views, and by those of their last ones."""
    pairs = visits.astype(np.int64) << 32 | codes
    order = np.lexsort((group, pairs))
    # A visit counts once for each code, in the first group that it is in.
    once = order[np.concatenate(([True], np.diff(pairs[order]) > 0))]
    different, numbers = np.unique(codes[once], return_inverse=True)
    sums = np.zeros((VISIT_SUMS, len(different)), np.int64)
    for row in range(OF_GROUP):
        np.add.at(sums, (group[once] + row, numbers), figures[row, visits[once]])
    if exits is not None:
        np.add.at(sums[EXITS], np.searchsorted(different, exits), 1)
    return Counters(different.astype(np.uint32), tuple(sums))


def _no_counters() -> Counters:
    return Counters(np.zeros(0, np.uint32), (np.zeros(0, np.uint32),) * VISIT_SUMS)


def visit_disagreements(visits: VisitsContent) -> Iterator[str]:
    """Return which sums of visits that were made of views disagree with their total."""
    total = _groups(visits.total)[0]
    if total[BOUNCES] > total[VISITS] or total[VIEWS] < total[VISITS]:
        yield "the sums of its visits are wrong"
    for dimension, counters in visits.by_dimension.items():
        first, later, outside = _groups(counters)
        if first != total:
            yield f"by {dimension.attribute} its visits have other sums than overall"
        if any(sums[BOUNCES] or sums[VIEWS] < 2 * sums[VISITS] for sums in (later, outside)):
            yield f"by {dimension.attribute} the sums of later views are wrong"
        if dimension is Dimension.PATH and _sum(counters.sums[EXITS]) != total[VISITS]:
            yield "it has another number of exits than of visits"


def _groups(counters: Counters) -> list[list[int]]:
    return [
        [_sum(row) for row in counters.sums[begin : begin + OF_GROUP]]
        for begin in (FIRST, LATER, OUTSIDE)
    ]


def _sum(row: Integers) -> int:
    return int(row.sum(dtype=np.int64))
