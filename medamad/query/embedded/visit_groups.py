"""The selected visits in groups, of which each is in one part.

What is computed for each visit by itself can be computed group by group. Within one part, that
takes arrays of the size of the part, and no search. Almost all visits are in one part anyway; the
views of others are gathered to one more part. Those of segments, which never change, stay gathered.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import ViewNumber
from medamad.query.embedded.gathered import GatheredViews, KeptArrays, keep_nothing
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.part_visits import PartVisits
from medamad.query.embedded.scan import Selection, divide, loose_events
from medamad.query.embedded.view_filter import SelectedViews
from medamad.query.embedded.visits import (
    Numbers,
    Visits,
    distinct,
    find_ascending,
    find_visits,
    row_offsets,
    rows_of_first_views,
    sequences_of,
    visit_numbers,
    visits_begun,
)
from medamad.query.filters import Mask
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation
from medamad.storage.segments.parts import Part, Rollup, ViewColumns
from medamad.storage.segments.snapshot import Snapshot, may_have_visits

FindViews: TypeAlias = Callable[[Selection], Iterable[SelectedViews]]

_NONE: Final[Numbers] = np.zeros(0, np.int64)


@frozen(eq=False)
class Beyond:
    """What parts have of visits that begin in others, ascending.

    `visits` has the numbers of those that their views belong to, and `views` the sequence numbers
    of the views elsewhere that their events belong to.
    """

    visits: Numbers
    views: Numbers

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.visits.nbytes + self.views.nbytes

    def within(self, bounds: tuple[int, int] | None) -> "Beyond":
        """Return those with numbers within some bounds, if there are any."""
        if bounds is None:
            return self
        return Beyond(_within(self.visits, *bounds), _within(self.views, *bounds))


def _within(numbers: Numbers, least: int, greatest: int) -> Numbers:
    # Mostly none is, which is found out in less time than a search takes.
    if not len(numbers) or numbers[0] > greatest or numbers[-1] < least:
        return numbers[:0]
    begin, end = numbers.searchsorted((least, greatest + 1)).tolist()
    return numbers[begin:end]


def find_beyond(
    snapshot: Snapshot, cancellation: Cancellation, bounds: tuple[int, int] | None = None
) -> Beyond:
    """Return what each part of a snapshot has of visits that begin in any other.

    What segments have is kept. With bounds of numbers, only visits and views within these.
    """
    chunks = tuple(chunk for chunk in snapshot.chunks if may_have_visits(chunk, bounds))
    in_memory = evolve(snapshot, segments=(), chunks=chunks)
    found = [_find_beyond(in_memory, cancellation).within(bounds)]
    for segment in snapshot.segments:
        if not segment.header.loose_rows and not may_have_visits(segment.header, bounds):
            continue
        alone = snapshot.only([segment])
        if segment.number in snapshot.overlays:
            found.append(_find_beyond(alone, cancellation).within(bounds))
        else:

            def find(alone: Snapshot = alone) -> Beyond:
                return _find_beyond(alone, cancellation)

            found.append(alone.kept(Beyond, find).within(bounds))
    return _add_up(found)


def _find_beyond(snapshot: Snapshot, cancellation: Cancellation) -> Beyond:
    numbers = [_NONE]
    for part in snapshot.leaves():
        cancellation.check()
        if part.first_visit:
            offset = part.numbers(ViewNumber.VISIT_OFFSET)
            elsewhere = np.flatnonzero((rows_of_first_views(part) < 0) & (offset > 0))
            numbers.append(distinct([visit_numbers(part, elsewhere)]))
    views = [events.view.astype(np.int64) for events in loose_events(snapshot, cancellation)]
    of_views = distinct([_NONE, *views])
    return Beyond(distinct(numbers), of_views[of_views > 0])


def _add_up(pieces: Sequence[Beyond]) -> Beyond:
    return Beyond(
        distinct([each.visits for each in pieces]), distinct([each.views for each in pieces])
    )


def visits_of_views(snapshot: Snapshot, views: Numbers, cancellation: Cancellation) -> Numbers:
    """Return the numbers of the visits of those views that a snapshot has, of some in order."""
    numbers = [_NONE]
    bounds = (int(views[0]), int(views[-1])) if len(views) else (1, 0)
    for part in snapshot.leaves(bounds):
        cancellation.check()
        _, rows = find_ascending(part, views)
        if len(rows):
            numbers.append(visit_numbers(part, rows))
    found = distinct(numbers)
    return found[found > 0]


def selecting_views(selection: Selection) -> Iterator[SelectedViews]:
    """Return selected views, of each selected visit one or more."""
    if selection.filter.only_visits is None:
        yield from selection.views()
        return
    for part in selection.parts_in_period():
        selected = selecting_views_of(part, selection)
        if selected is not None:
            yield selected


def selecting_views_of(part: ViewColumns, selection: Selection) -> SelectedViews | None:
    """Return the same of a part, None if there are none."""
    visits = selection.filter.only_visits
    if isinstance(visits, FoundVisits):
        visits = visits.joined()
    if not isinstance(visits, Visits):
        return selection.filter.select(part, selection.period, selection.snapshot)
    # The first view of each visit that began in the period is one of them.
    begins = visits.begins_in(part)
    return SelectedViews(part, begins) if len(begins) else None


def visits_in_groups(
    selection: Selection, find_views: FindViews = selecting_views, begun: Period | None = None
) -> Iterator[tuple[PartVisits, SelectedViews]]:
    """Return the visits that have a selected view and began in the period, in groups.

    Each visit is in one group, whose snapshot is one part with all views and events of the visits.
    With the visits come the selected views of that part. `find_views` selects other views than
    `selecting_views`, and `begun` is another period.
    """
    cancellation = selection.cancellation
    period = selection.period if begun is None else begun
    found = selection.filter.only_visits
    if find_views is selecting_views and isinstance(found, FoundVisits):
        for visits in found.groups(period):
            yield visits, SelectedViews(visits.part, visits.begins)
        return
    snapshot = selection.snapshot
    if snapshot not in selection.gathered:
        selection.gathered[snapshot] = _gather_all(snapshot, cancellation)
    gathered: list[tuple[GatheredViews, Numbers]] = selection.gathered[snapshot]
    going_on = distinct([numbers for _, numbers in gathered])

    def in_parts() -> Iterator[tuple[SelectedViews, Numbers]]:
        for selected in find_views(selection):
            yield selected, going_on
        for place, (part, _) in enumerate(gathered):
            alone = evolve(selection, snapshot=snapshot_of_part(selection.snapshot, part))
            later = distinct([_NONE, *(numbers for _, numbers in gathered[place + 1 :])])
            for selected in find_views(alone):
                yield selected, later

    for selected, elsewhere in in_parts():
        part = selected.part
        left_out = find_ascending(part, elsewhere)[1]
        begins, place_of = LOOPS.begin_visits(row_offsets(part), selected.rows, left_out)
        alone = snapshot_of_part(selection.snapshot, part)
        visits = PartVisits(alone, cancellation, part, begins, place_of).begun_in(period)
        if len(visits):
            yield visits, selected


@define(eq=False)
class FoundVisits:
    """Visits of a snapshot that match a filter, found in groups when they are first needed.

    Where they begin is kept, so that they are looked for once.
    """

    snapshot: Snapshot
    cancellation: Cancellation
    _find_groups: Callable[[], Iterable[PartVisits]]
    _begins: dict[int | GatheredViews, NDArray[np.uint32]] | None = field(default=None, init=False)
    """By the part, or its first sequence number: to keep parts open would keep what they read."""
    _joined: Visits | None = field(default=None, init=False)

    def groups(self, period: Period) -> Iterator[PartVisits]:
        """Return the visits that began in a period, in groups as `visits_in_groups` has them."""
        for visits in self._look() if self._begins is None else self._again(self._begins, period):
            begun = visits.begun_in(period)
            if len(begun):
                yield begun

    def joined(self) -> Visits:
        """Return the visits together."""
        if self._joined is None:
            groups = self.groups(ALWAYS)
            self._joined = join_groups(self.snapshot, self.cancellation, groups)
        return self._joined

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a view of the visits, without looking at its views."""
        return isinstance(part, Rollup) or self.joined().may_match(part)

    def mask(self, part: ViewColumns) -> Mask:
        """Return which views of a part belong to the visits, shape (n,)."""
        return self.joined().mask(part)

    def mask_of(self, part: ViewColumns, rows: NDArray[np.intp]) -> Mask:
        """Return which of some views of a part belong to the visits."""
        return self.joined().mask_of(part, rows)

    def _look(self) -> Iterator[PartVisits]:
        found: dict[int | GatheredViews, NDArray[np.uint32]] = {}
        for visits in self._find_groups():
            found[_key_of(visits.part)] = visits.begins.astype(np.uint32)
            yield visits
        self._begins = found

    def _again(
        self, found: Mapping[int | GatheredViews, NDArray[np.uint32]], period: Period
    ) -> Iterator[PartVisits]:
        """Return the groups that were found, as far as they may have visits of a period."""
        gathered = [part for part in found if isinstance(part, GatheredViews)]
        for part in chain(self.snapshot.leaves(), gathered):
            self.cancellation.check()
            begins = found.get(_key_of(part))
            if begins is not None and not period.is_outside(*part.time_bounds):
                alone = snapshot_of_part(self.snapshot, part)
                yield PartVisits.of(alone, self.cancellation, part, begins.astype(np.intp))


def _key_of(part: ViewColumns) -> int | GatheredViews:
    return part if isinstance(part, GatheredViews) else part.sequence_bounds[0]


def join_groups(
    snapshot: Snapshot, cancellation: Cancellation, groups: Iterable[PartVisits]
) -> Visits:
    """Return the visits of groups together."""
    begins: dict[int, tuple[ViewColumns, list[NDArray[np.intp]]]] = {}

    def add(part: ViewColumns, rows: NDArray[np.intp]) -> None:
        begins.setdefault(part.sequence_bounds[0], (part, []))[1].append(rows)

    elsewhere = [_NONE]
    for visits in groups:
        if isinstance(visits.part, GatheredViews):
            elsewhere.append(sequences_of(visits.part, visits.begins))
        else:
            add(visits.part, visits.begins)
    numbers = distinct(elsewhere)
    bounds = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (1, 0)
    for part in snapshot.leaves(bounds):
        add(part, find_ascending(part, numbers)[1])
    found = ((part, np.sort(np.concatenate(rows))) for part, rows in begins.values())
    return visits_begun(snapshot, cancellation, found)


def snapshot_of_part(snapshot: Snapshot, part: ViewColumns) -> Snapshot:
    """Return the snapshot of one part alone."""
    return Snapshot(
        texts=snapshot.texts, chunks=(part,), overlays=snapshot.overlays, reader=snapshot.reader
    )


def _gather_all(
    snapshot: Snapshot, cancellation: Cancellation
) -> list[tuple[GatheredViews, Numbers]]:
    """Return the views of visits that are in several parts, with the numbers of the visits.

    Those of segments that never change come first, as far as these see.
    """
    whole, others = divide(snapshot, ALWAYS, lambda header: header.time_bounds)
    numbers = [_NONE]
    found: list[tuple[GatheredViews, Numbers]] = []
    beyond = find_beyond(others, cancellation)
    if whole.segments:
        of_whole = find_beyond(whole, cancellation)
        keep = _KeptInSegments(whole)
        in_whole = keep("going on", lambda: _going_on(whole, of_whole, cancellation).numbers())
        found.append((_gather(whole, in_whole, cancellation, keep), in_whole))
        # What both have something of.
        numbers.append(find_visits(others, cancellation, of_whole.visits).numbers())
        numbers.append(visits_of_views(others, of_whole.views, cancellation))
    numbers.append(beyond.visits)
    numbers.append(visits_of_views(snapshot, beyond.views, cancellation))
    visits = find_visits(snapshot, cancellation, np.concatenate(numbers))
    found.append(
        (_gather(snapshot, visits.numbers(), cancellation, keep_nothing), visits.numbers())
    )
    return found


def _going_on(snapshot: Snapshot, beyond: Beyond, cancellation: Cancellation) -> Visits:
    of_views = visits_of_views(snapshot, beyond.views, cancellation)
    return find_visits(snapshot, cancellation, np.concatenate([beyond.visits, of_views]))


@frozen(eq=False)
class _KeptInSegments:
    """Keeps arrays that are computed from segments which never change."""

    snapshot: Snapshot

    def __call__(self, what: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        return self.snapshot.kept((_KeptInSegments, what), compute)


def _gather(
    snapshot: Snapshot, numbers: Numbers, cancellation: Cancellation, keep: KeptArrays
) -> GatheredViews:
    """Return the views of some visits of a snapshot as a part."""
    bounds = (int(numbers.min()), int(numbers.max())) if len(numbers) else (1, 0)

    def find_rows() -> NDArray[np.intp]:
        """Return the rows in each of the leaves, one after the other, after their numbers."""
        visits = find_visits(snapshot, cancellation, numbers)
        rows = [
            np.flatnonzero(visits.mask(part)) if part.first_visit else np.zeros(0, np.intp)
            for part in snapshot.leaves(bounds)
        ]
        return np.concatenate([[len(rows)], [len(each) for each in rows], *rows]).astype(np.intp)

    rows = keep("rows", find_rows)
    ends = np.cumsum(rows[1 : rows[0] + 1])[:-1]
    pieces = np.split(rows[rows[0] + 1 :], ends) if rows[0] else []
    return GatheredViews(snapshot, bounds, pieces, keep)
