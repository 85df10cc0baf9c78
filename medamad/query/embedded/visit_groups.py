"""The selected visits in groups, of which each is in one part.

What is computed for each visit by itself can be computed group by group: within one part, that
takes arrays of the size of the part, and no search. Almost all visits are in one part anyway; the
views of those that several parts have something of, the shared ones, are gathered to one more part.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import ViewNumber
from medamad.query.embedded.gathered import GatheredViews, KeptArrays, keep_nothing
from medamad.query.embedded.scan import Selection, divide, loose_events
from medamad.query.embedded.view_filter import SelectedViews
from medamad.query.embedded.visits import (
    Numbers,
    PartVisits,
    all_visits,
    distinct,
    find_ascending,
    first_rows,
    visit_numbers,
    visits_with,
)
from medamad.query.filters import Mask
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Cancellation
from medamad.storage.segments.format import Segment
from medamad.storage.segments.parts import Part, Rollup, ViewColumns
from medamad.storage.segments.snapshot import Snapshot

FindViews: TypeAlias = Callable[[Selection], Iterable[SelectedViews]]

_NONE: Final[Numbers] = np.zeros(0, np.int64)
_NO_ROWS: Final = np.zeros(0, np.intp)


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
    if not isinstance(visits, FoundVisits):
        return selection.filter.select(part, selection.period, selection.snapshot)
    # The first view of each visit that began in the period is one of them.
    begins = visits.begins_in(part)
    return SelectedViews(part, begins) if len(begins) else None


def visits_in_groups(
    selection: Selection, find_views: FindViews = selecting_views, begun: Period | None = None
) -> Iterator[tuple[PartVisits, SelectedViews]]:
    """Return the visits that have a selected view and began in the period, in groups.

    Each visit is in one group, which is of one part with all views and events of the visits. With
    the visits come the selected views of that part. `find_views` selects other views than
    `selecting_views`, and `begun` is another period.
    """
    period = selection.period if begun is None else begun
    found = selection.filter.only_visits
    if find_views is selecting_views and isinstance(found, FoundVisits):
        for visits in found.groups(period):
            yield visits, SelectedViews(visits.part, visits.begins)
        return
    # A visit that began in the period has a selected view then.
    are_all = selection.filter.matches_all and find_views is selecting_views and begun is None
    texts = selection.snapshot.texts

    def visits_of(selected: SelectedViews, left_out: Numbers) -> PartVisits:
        if are_all:
            return all_visits(texts, selected.part, left_out)
        return visits_with(texts, selected, left_out)

    for among, others in of_whole_visits(selection):
        for selected in find_views(among):
            visits = visits_of(selected, others).begun_in(period)
            if len(visits):
                yield visits, selected


def of_whole_visits(selection: Selection) -> Iterator[tuple[Selection, Numbers]]:
    """Return selections whose parts have all of their visits, but for some: these, ascending.

    Each visit is in one of them.
    """
    shared: SharedVisits | None = selection.gathered.get(selection.snapshot)
    if shared is None:
        shared = find_shared(selection.snapshot, ALWAYS, selection.cancellation)
        selection.gathered[selection.snapshot] = shared
    for snapshot, others in shared.snapshots():
        is_all = snapshot is selection.snapshot
        yield selection if is_all else evolve(selection, snapshot=snapshot), others


@frozen(eq=False)
class SharedVisits:
    """The visits that several parts of a snapshot have something of, with their views gathered.

    `in_whole` has the visits that several segments of `whole` have something of, as far as these
    see, and `in_others` those that parts of `others` have something of, in full.
    """

    snapshot: Snapshot
    whole: Snapshot
    """Segments that never change, whose views are in a period."""
    others: Snapshot
    in_whole: "Gathered"
    in_others: "Gathered"

    def snapshots(self) -> Iterator[tuple[Snapshot, Numbers]]:
        """Return snapshots whose parts have all of their visits, but for some: these, ascending.

        Each visit is in one of them.
        """
        yield self.snapshot, distinct([self.in_whole.numbers, self.in_others.numbers])
        yield snapshot_of_part(self.snapshot, self.in_whole.views), self.in_others.numbers
        yield snapshot_of_part(self.snapshot, self.in_others.views), _NONE


@frozen(eq=False)
class Gathered:
    """All views of some visits as a part, and the numbers of the visits, ascending."""

    views: GatheredViews
    numbers: Numbers


def find_shared(snapshot: Snapshot, period: Period, cancellation: Cancellation) -> SharedVisits:
    """Return the visits that several parts have something of, and that may begin in a period.

    What segments that never change, and are in the period, have of each other's visits is cached.
    """
    whole, others = divide(snapshot, period, lambda header: header.time_bounds)
    in_whole = Gathered(GatheredViews(whole, (1, 0), (), keep_nothing), _NONE)
    elsewhere = _find_elsewhere(others, cancellation)
    numbers = [elsewhere.visits, _visits_of_views(snapshot, elsewhere.views, cancellation)]
    if whole.segments:
        of_whole = _find_elsewhere(whole, cancellation)
        cached = _CachedArrays(whole)

        def find() -> Numbers:
            of_views = _visits_of_views(whole, of_whole.views, cancellation)
            return _begun(whole, distinct([of_whole.visits, of_views]), cancellation)

        found = cached("shared", find)
        in_whole = Gathered(_gather(whole, found, cancellation, cached), found)
        # What both have something of.
        numbers.append(_begun(others, of_whole.visits, cancellation))
        numbers.append(_visits_of_views(others, of_whole.views, cancellation))
    near = evolve(snapshot, segments=(*whole.segments, *_in_period(others, period)))
    found = _begun(near, distinct(numbers), cancellation)
    in_others = Gathered(_gather(snapshot, found, cancellation, keep_nothing), found)
    return SharedVisits(snapshot, whole, others, in_whole, in_others)


@frozen(eq=False)
class _Elsewhere:
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


def _find_elsewhere(snapshot: Snapshot, cancellation: Cancellation) -> _Elsewhere:
    """Return what each part of a snapshot has of visits that begin in any other.

    What segments have is cached.
    """
    found = [_read_elsewhere(evolve(snapshot, segments=()), cancellation)]
    for segment in snapshot.segments:
        alone = snapshot.only([segment])
        if segment.number in snapshot.overlays:
            found.append(_read_elsewhere(alone, cancellation))
        else:

            def find(alone: Snapshot = alone) -> _Elsewhere:
                return _read_elsewhere(alone, cancellation)

            found.append(alone.kept(_Elsewhere, find))
    return _Elsewhere(
        distinct([each.visits for each in found]), distinct([each.views for each in found])
    )


def _read_elsewhere(snapshot: Snapshot, cancellation: Cancellation) -> _Elsewhere:
    visits = [_NONE]
    for part in snapshot.leaves():
        cancellation.check()
        if part.first_visit:
            visits.append(part.visits().elsewhere)
    views = [events.view.astype(np.int64) for events in loose_events(snapshot, cancellation)]
    of_views = distinct([_NONE, *views])
    return _Elsewhere(distinct(visits), of_views[of_views > 0])


def _visits_of_views(snapshot: Snapshot, views: Numbers, cancellation: Cancellation) -> Numbers:
    """Return the numbers of the visits of those views that a snapshot has, of some in order."""
    numbers = [_NONE]
    bounds = (int(views[0]), int(views[-1])) if len(views) else (1, 0)
    for part in snapshot.leaves(bounds):
        cancellation.check()
        rows = find_ascending(part, views)[1]
        if len(rows):
            numbers.append(visit_numbers(part, rows))
    found = distinct(numbers)
    return found[found > 0]


def _in_period(others: Snapshot, period: Period) -> Iterator[Segment]:
    """Return those of the segments that `divide` left which may have views in a period."""
    for segment in others.segments:
        if not period.is_outside(*segment.header.time_bounds):
            yield segment


def _begun(snapshot: Snapshot, numbers: Numbers, cancellation: Cancellation) -> Numbers:
    """Return those of some numbers, ascending, whose visit begins in a snapshot.

    The first view of others has been deleted.
    """
    found = [_NONE]
    bounds = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (1, 0)
    for part in snapshot.leaves(bounds):
        cancellation.check()
        if part.first_visit:
            near, rows = find_ascending(part, numbers)
            found.append(numbers[near[part.numbers(ViewNumber.VISIT_OFFSET)[rows] == 1]])
    return distinct(found)


@frozen(eq=False)
class _CachedArrays:
    """Caches arrays that are computed from segments which never change."""

    snapshot: Snapshot

    def __call__(self, what: Hashable, compute: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        return self.snapshot.kept((_CachedArrays, what), compute)


def _gather(
    snapshot: Snapshot, numbers: Numbers, cancellation: Cancellation, keep: KeptArrays
) -> GatheredViews:
    """Return the views of some visits of a snapshot as a part."""
    bounds = (int(numbers[0]), int(numbers[-1])) if len(numbers) else (1, 0)

    def find_rows() -> NDArray[np.intp]:
        """Return the rows in each of the leaves, one after the other, after their numbers."""
        rows = []
        for part in snapshot.leaves(bounds):
            cancellation.check()
            rows.append(np.flatnonzero(are_of_visits(part, numbers)))
        return np.concatenate([[len(rows)], [len(each) for each in rows], *rows]).astype(np.intp)

    rows = keep("rows", find_rows)
    ends = np.cumsum(rows[1 : rows[0] + 1])[:-1]
    pieces = np.split(rows[rows[0] + 1 :], ends) if rows[0] else []
    return GatheredViews(snapshot, bounds, pieces, keep)


def are_of_visits(
    part: ViewColumns,
    numbers: Numbers,
    begins: NDArray[np.intp] = _NO_ROWS,
    rows: NDArray[np.intp] | None = None,
) -> Mask:
    """Return which views of a part, or of some rows, belong to the visits of some numbers.

    The numbers ascend. Or to those visits that begin in some rows of the part.
    """
    size = len(part) if rows is None else len(rows)
    columns, first_here = part.visits(), find_ascending(part, numbers)[1]
    elsewhere = columns.elsewhere if len(numbers) else numbers
    if len(elsewhere):
        near = np.minimum(numbers.searchsorted(elsewhere), len(numbers) - 1)
        elsewhere = elsewhere[numbers[near] == elsewhere]
    if not (len(first_here) or len(begins) or len(elsewhere)):
        return np.zeros(size, np.bool_)
    # The last place is that of -1.
    is_begin = np.zeros(len(part) + 1, np.bool_)
    is_begin[first_here] = is_begin[begins] = True
    of_first = first_rows(columns, slice(None) if rows is None else rows)
    mask = is_begin.take(of_first, mode="wrap")
    if len(elsewhere):
        others = np.flatnonzero(of_first < 0)
        of_others = visit_numbers(part, others if rows is None else rows[others])
        near = np.minimum(elsewhere.searchsorted(of_others), len(elsewhere) - 1)
        mask[others] = elsewhere[near] == of_others
    return mask


@define(eq=False)
class FoundVisits:
    """Visits of a snapshot that match a filter, found in groups when they are first needed.

    They are looked for once, and filter views as a `VisitFilter` then.
    """

    snapshot: Snapshot
    cancellation: Cancellation
    _find_groups: Callable[[], Iterable[PartVisits]]
    _begins: dict[int, NDArray[np.uint32]] = field(factory=dict, init=False)
    """The rows of the first views of those that are in one part, by its first sequence number.

    To keep parts open would keep what they read.
    """
    _shared: list[PartVisits] = field(factory=list, init=False)
    """The groups of gathered views."""
    _numbers: Numbers = field(default=_NONE, init=False)
    """The numbers of their visits, ascending."""
    _is_complete: bool = field(default=False, init=False)
    _masks: dict[int, NDArray[np.uint8]] = field(factory=dict, init=False)
    """What `mask` returned of parts, in bits: a report may ask for several sums of each."""

    def groups(self, period: Period) -> Iterator[PartVisits]:
        """Return the visits that began in a period, in groups as `visits_in_groups` has them."""
        for visits in self._again(period) if self._is_complete else self._look():
            begun = visits.begun_in(period)
            if len(begun):
                yield begun

    def begins_in(self, part: ViewColumns) -> NDArray[np.intp]:
        """Return the rows of the first views that a part has, ascending."""
        self._complete()
        rows = find_ascending(part, self._numbers)[1]
        found = np.concatenate([self._begins_of(part), rows])
        found.sort()
        return found

    def may_match(self, part: Part | Rollup) -> bool:
        """Return whether a part may have a view of the visits, without looking at its views."""
        if isinstance(part, Rollup):
            return True
        self._complete()
        first, last = part.sequence_bounds
        has_own = any(first <= begin <= last for begin in self._begins)
        has_shared = len(self._numbers) > 0 and 0 < part.first_visit <= self._numbers[-1]
        return bool(has_own or (has_shared and last >= self._numbers[0]))

    def mask(self, part: ViewColumns) -> Mask:
        """Return which views of a part belong to the visits, shape (n,)."""
        self._complete()
        if isinstance(part, GatheredViews):
            return are_of_visits(part, self._numbers)
        first = part.sequence_bounds[0]
        if first not in self._masks:
            mask = are_of_visits(part, self._numbers, self._begins_of(part))
            self._masks[first] = np.packbits(mask)
        return np.unpackbits(self._masks[first], count=len(part)).view(np.bool_)

    def mask_of(self, part: ViewColumns, rows: NDArray[np.intp]) -> Mask:
        """Return which of some views of a part belong to the visits."""
        self._complete()
        return are_of_visits(part, self._numbers, self._begins_of(part), rows)

    def _begins_of(self, part: ViewColumns) -> NDArray[np.intp]:
        if isinstance(part, GatheredViews):
            return _NO_ROWS
        begins = self._begins.get(part.sequence_bounds[0])
        return _NO_ROWS if begins is None else begins.astype(np.intp)

    def _complete(self) -> None:
        if not self._is_complete:
            for _ in self._look():
                pass

    def _look(self) -> Iterator[PartVisits]:
        begins: dict[int, NDArray[np.uint32]] = {}
        shared: list[PartVisits] = []
        for visits in self._find_groups():
            if isinstance(visits.part, GatheredViews):
                shared.append(visits)
            else:
                begins[visits.part.sequence_bounds[0]] = visits.begins.astype(np.uint32)
            yield visits
        self._begins, self._shared = begins, shared
        self._numbers = distinct([_NONE, *(visits.numbers for visits in shared)])
        self._is_complete = True

    def _again(self, period: Period) -> Iterator[PartVisits]:
        """Return the groups that were found, as far as they may have visits of a period."""
        for part in self.snapshot.leaves():
            self.cancellation.check()
            begins = self._begins.get(part.sequence_bounds[0])
            if begins is not None and not period.is_outside(*part.time_bounds):
                views = SelectedViews(part, begins.astype(np.intp))
                yield visits_with(self.snapshot.texts, views, _NONE)
        yield from self._shared


def snapshot_of_part(snapshot: Snapshot, part: ViewColumns) -> Snapshot:
    """Return the snapshot of one part alone."""
    return Snapshot(
        texts=snapshot.texts, chunks=(part,), overlays=snapshot.overlays, reader=snapshot.reader
    )
