"""Divides the hits that expire by the rules of the website that leave them out of figures."""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import COMPLETE_MS, VISIT_MS, ViewNumber
from medamad.domain.goals import Definitions
from medamad.storage.dictionary.decode import NumberNames
from medamad.storage.environment.access import ReadAccess
from medamad.storage.segments.build import Content
from medamad.storage.segments.day_visits import VisitsContent
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import (
    NO_NUMBERS,
    EventColumns,
    Numbers,
    ViewColumns,
    enclosing_bounds,
    joined_numbers,
    views_of,
)
from medamad.storage.segments.rollup import RollupContent, rollup_of
from medamad.storage.segments.snapshot import Snapshot, SnapshotReader
from medamad.storage.segments.visit_numbers import may_have_visits


@frozen(eq=False)
class LeftOut:
    """What each rule of a website leaves out of some parts.

    `rules` has the numbers that stand for the rules, ascending. For each of them, `views` and
    `events` have the numbers of what it leaves out. `elsewhere` has the numbers of visits that go
    on in other parts, and of views of which other parts have events; it may have others besides.
    """

    rules: tuple[int, ...] = ()
    views: Sequence[Numbers] = ()
    events: Sequence[Numbers] = ()
    elsewhere: Numbers = NO_NUMBERS


FindLeftOut: TypeAlias = Callable[
    [Definitions, Snapshot, Sequence[ViewColumns], Sequence[EventColumns]],
    Generator[None, None, LeftOut],
]
"""Returns, in small steps, what rules leave out of parts, and of further loose events.

The parts are of a snapshot that has all that may have something of their visits. Raises
DamagedSegment.
"""

LeftOutOf: TypeAlias = Callable[
    [Partition, ReadAccess, Sequence[ViewColumns], Sequence[EventColumns]],
    Generator[None, None, LeftOut],
]
"""Returns, in small steps, what the rules of a website leave out of parts and loose events of it.

The access reads from whatever transaction it is at.
"""


def finish(steps: Generator[None, None, LeftOut]) -> LeftOut:
    """Take all steps at once; return what they find."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: LeftOut = end.value
            return found


def nothing_left_out(
    _partition: Partition,
    _access: ReadAccess,
    _parts: Sequence[ViewColumns],
    _events: Sequence[EventColumns],
) -> Generator[None, None, LeftOut]:
    """Stand for the rules of websites that have none."""
    yield from ()
    return LeftOut()


@frozen(eq=False)
class LeftOutBy:
    """Finds what the rules of websites leave out: a `LeftOutOf`, given how it is found."""

    find: FindLeftOut
    definitions_of: Callable[[int], Definitions]
    """Returns what is defined for a website."""

    def __call__(
        self,
        partition: Partition,
        access: ReadAccess,
        parts: Sequence[ViewColumns],
        events: Sequence[EventColumns],
    ) -> Generator[None, None, LeftOut]:
        """Return, in small steps, what the rules of the website of a partition leave out."""
        definitions = self.definitions_of(partition.website)
        if not definitions.exclusions:
            return LeftOut()
        snapshot = _around(partition, access, parts, events)
        return (yield from self.find(definitions, snapshot, parts, events))


@frozen(eq=False)
class Share:
    """Those of the hits of a day that the same rules leave out, and nothing else of them.

    `going_on` has their visits of which views remain, and those of their views of which events
    remain.
    """

    content: Content
    rules: tuple[int, ...] = ()
    left_out_by: tuple[int, ...] = ()
    going_on: Numbers = NO_NUMBERS

    def rollup(
        self, day: int, span: tuple[int, int], names: NumberNames, visits: VisitsContent | None
    ) -> RollupContent:
        """Return its rollup; `visits` are those that its views begin."""
        return evolve(
            rollup_of(self.content, day, span, names, visits),
            rules=self.rules,
            left_out_by=self.left_out_by,
            going_on=self.going_on,
        )


def divide(content: Content, found: LeftOut, rest: Content) -> Iterator[Share]:
    """Divide hits that expire. `rest` is what remains of the parts of which `found` is."""
    if not found.rules:
        yield Share(content)
        return
    elsewhere = joined_numbers([found.elsewhere, _visits_of(rest), views_of(rest.events)])
    views, events = content.sequence.astype(np.int64), content.events
    of_views, numbers = events.view.astype(np.int64), events.event.astype(np.int64)
    of_row: NDArray[np.intp] = np.zeros(len(views) + len(events), np.intp)
    sets: list[tuple[int, ...]] = [()]
    for rule, left_views, left_events in zip(found.rules, found.views, found.events, strict=True):
        is_event_left_out = np.isin(of_views, left_views) | np.isin(numbers, left_events)
        is_left_out = np.concatenate([np.isin(views, left_views), is_event_left_out])
        pairs, of_row = np.unique(2 * of_row + is_left_out, return_inverse=True)
        sets = [(*sets[pair // 2], *((rule,) * (pair % 2))) for pair in pairs.tolist()]
    for number, left_out_by in enumerate(sets):
        is_in = of_row == number
        share = content.select(is_in[: len(views)], is_in[len(views) :])
        going_on = joined_numbers([_visits_of(share), share.sequence.astype(np.int64)])
        yield Share(share, found.rules, left_out_by, going_on[np.isin(going_on, elsewhere)])


def _visits_of(content: Content) -> Numbers:
    """Return the numbers of the visits that views belong to, ascending."""
    offset = content.numbers[ViewNumber.VISIT_OFFSET].astype(np.int64)
    known = offset > 0
    return joined_numbers([content.sequence.astype(np.int64)[known] + 1 - offset[known]])


def _around(
    partition: Partition,
    access: ReadAccess,
    parts: Sequence[ViewColumns],
    events: Sequence[EventColumns],
) -> Snapshot:
    """Return all that may have something of the visits of parts, also what no query sees.

    And what may have the views of their events, and of further loose events, with all rollups.
    """
    visits = (
        min((part.first_visit for part in parts if part.first_visit), default=1),
        max((part.sequence_bounds[1] for part in parts), default=0),
    )
    views = joined_numbers(views_of(each) for each in (*(part.loose for part in parts), *events))
    low_ms, high_ms = enclosing_bounds(
        bounds for part in parts for bounds in (part.time_bounds, part.event_time_bounds)
    )

    def is_near(part: Any) -> bool:
        first, last = part.sequence_bounds
        begin, end = np.searchsorted(views, (first, last + 1))
        least_ms, greatest_ms = part.event_time_bounds
        has_late_events = least_ms <= high_ms + COMPLETE_MS and greatest_ms >= low_ms - VISIT_MS
        return may_have_visits(part, visits) or bool(begin < end) or has_late_events

    damage, memtable = partition.damage, partition.memtable.publish()
    return Snapshot(
        texts=partition.texts,
        segments=tuple(
            leaf
            for leaf in partition.leaves()
            if leaf.number not in damage.numbers and is_near(leaf.header)
        ),
        overlays=partition.overlays,
        chunks=tuple(filter(is_near, memtable[0])),
        events=memtable[1],
        rollup_segments=tuple(
            rollup for rollup in partition.rollups if rollup.number not in damage.numbers
        ),
        reader=SnapshotReader(access, partition.databases, damage.add_segment),
    )
