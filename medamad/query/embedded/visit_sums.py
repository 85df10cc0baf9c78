"""Sums of visits: by when they began, by what their first and last views have, by pages and goals.

All kinds of sums that are wanted go through the views of the visits together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.embedded.gathered import GatheredViews
from medamad.query.embedded.goals import find_amounts, have_reached
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import PlacedViews, SumsOfVisits
from medamad.query.embedded.part_visits import AnyVisits
from medamad.query.embedded.scan import loose_events
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.embedded.visits import (
    Numbers,
    VisitViews,
    distinct,
    find_ascending,
)
from medamad.query.sums import BOUNCES, DURATION_MS, VisitSums
from medamad.storage.segments.counters import SLOT_MS
from medamad.storage.segments.parts import ViewColumns, are_late
from medamad.storage.segments.snapshot import Snapshot

T = TypeVar("T")
_NONE: Final[Numbers] = np.zeros(0, np.int64)
_EVERYTHING: Final = ViewFilter({})
_SPARSE: Final = 4
_AT_ONCE: Final = 1 << 17
"""Rows of so many visits, or pages that they saw, are summed together."""
_WIDE_BITS: Final = 32


NO_SUMS: Final = VisitSums(_NONE, np.zeros((DURATION_MS + 1, 0), np.int64))


def add_up(parts: Sequence[VisitSums]) -> VisitSums:
    """Return the total of sums, of the rows that all of them have."""
    parts = [part for part in parts if len(part.codes)]
    if not parts:
        return NO_SUMS
    rows = min(len(part.sums) for part in parts)
    least = min(int(part.codes[0]) for part in parts)
    size = max(int(part.codes[-1]) for part in parts) - least + 1
    if size <= _SPARSE * sum(len(part.codes) for part in parts):
        # No code is twice in a part.
        dense = np.zeros((rows, size), np.int64)
        occurs = np.zeros(size, np.bool_)
        for part in parts:
            places = part.codes - least
            occurs[places] = True
            for row, added in zip(dense, part.sums[:rows], strict=True):
                row[places] += added
        used = np.flatnonzero(occurs)
        return VisitSums(used + least, dense[:, used])
    codes, places = np.unique(np.concatenate([part.codes for part in parts]), return_inverse=True)
    sums = np.zeros((rows, len(codes)), np.int64)
    at = 0
    for part in parts:
        # No code is twice in a part.
        sums[:, places[at : at + len(part.codes)]] += part.sums[:rows]
        at += len(part.codes)
    return VisitSums(codes, sums)


Rows: TypeAlias = tuple[NDArray[Any], tuple[NDArray[Any], ...]]
"""A code for each row, and columns of what is added up besides the number of rows."""


class Collector(Protocol):
    """Collects what some visits are summed by."""

    wants_views: bool

    def add(self, views: VisitViews) -> None:
        """Add the visits' views of one part."""

    def rows(self) -> Rows:
        """Return the rows of which there are sums, after all views."""


class Kind(ABC):
    """A kind of sums. It is hashable, and equal to any other that has the same sums."""

    @abstractmethod
    def collector(self, visits: AnyVisits, found: "Found") -> Collector:
        """Return what collects these sums.

        `found` has what other kinds have found of the same visits.
        """


@define(eq=False)
class Found:
    """What was found of some visits, which is looked for once."""

    _values: dict[Hashable, Any] = field(factory=dict)

    def __call__(self, what: Hashable, find: Callable[[], T]) -> T:
        """Return what was found, or find it."""
        if what not in self._values:
            self._values[what] = find()
        value: T = self._values[what]
        return value


def collect(visits: AnyVisits, kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of visits, going through their views once."""
    return collect_groups([visits], kinds)


def collect_groups(groups: Iterable[AnyVisits], kinds: Sequence[Kind]) -> list[VisitSums]:
    """Return the sums of groups of visits, going through the views of each once."""
    totals = [NO_SUMS for _ in kinds]
    waiting: list[list[Rows]] = [[] for _ in kinds]
    size = 0
    for visits in groups:
        for rows, found in zip(waiting, _collect(visits, kinds), strict=True):
            rows.append(found)
            size += len(found[0])
        if size >= _AT_ONCE:
            totals = list(map(_added, totals, waiting))
            waiting, size = [[] for _ in kinds], 0
    return list(map(_added, totals, waiting))


def _added(total: VisitSums, pieces: Sequence[Rows]) -> VisitSums:
    """Return sums with those of further rows: by code their number, and that of each column."""
    pieces = [piece for piece in pieces if len(piece[0])]
    if not pieces:
        return total
    least = min(int(codes.min()) for codes, _ in pieces)
    size = max(int(codes.max()) for codes, _ in pieces) - least + 1
    different = None
    if size > _SPARSE * sum(len(codes) for codes, _ in pieces):
        codes, columns = zip(*pieces, strict=True)
        different, places = np.unique(np.concatenate(codes), return_inverse=True)
        pieces = [(places, tuple(map(np.concatenate, zip(*columns, strict=True))))]
        least, size = 0, len(different)
    sums = np.zeros((size + 1, 1 + len(pieces[0][1])), np.int64)
    for codes_of_piece, columns_of_piece in pieces:
        LOOPS.add_by_code(codes_of_piece, columns_of_piece, least, sums)
    used = np.flatnonzero(sums[:-1, 0])
    found = used + least if different is None else different[used].astype(np.int64)
    return add_up([total, VisitSums(found, sums[used].T)])


def _collect(visits: AnyVisits, kinds: Sequence[Kind]) -> list[Rows]:
    found = Found()
    collectors = [kind.collector(visits, found) for kind in kinds]
    adding = [collector for collector in collectors if collector.wants_views]
    for views in visits.views() if adding else ():
        for collector in adding:
            collector.add(views)
    return [collector.rows() for collector in collectors]


NumbersOfViews: TypeAlias = Callable[[ViewColumns, NDArray[np.intp]], NDArray[np.integer[Any]]]


@define(eq=False)
class _ByFirstViews:
    """Sums by a number of the visit's first view."""

    visits: AnyVisits
    number_of: NumbersOfViews
    last: int = DURATION_MS
    """The last row of the sums that is wanted, after VISITS."""
    wants_views: bool = True
    _codes: NDArray[np.int64] = field(init=False)
    _sums: SumsOfVisits = field(init=False)

    def __attrs_post_init__(self) -> None:
        size = len(self.visits)
        self._codes, self._sums = np.zeros(size, np.int64), SumsOfVisits.of(size)

    def add(self, views: VisitViews) -> None:
        part = views.part
        self._codes[views.own] = self.number_of(part, views.begins)
        duration_ms = part.duration_ms if self.last == DURATION_MS else None
        is_late = late_views(self.visits.snapshot, part) if self.last >= BOUNCES else None
        placed = PlacedViews(views.rows, views.visits, duration_ms, is_late)
        LOOPS.sum_visits(placed, self._sums)

    def rows(self) -> Rows:
        sums = self._sums
        if self.last < BOUNCES:
            return self._codes, (sums.views,)
        self._mark_loose_events()
        bounced = (sums.views == 1) & ~sums.has_late
        return self._codes, (sums.views, bounced, sums.duration_ms)[: self.last]

    def _mark_loose_events(self) -> None:
        """Mark the visits of events that are not stored with their view."""
        visits = self.visits
        if not len(visits):
            return
        pieces = [
            (events.view.astype(np.int64), events.event.astype(np.int64), events.time_ms)
            for events in loose_events(
                visits.snapshot, visits.cancellation, visits.number_bounds[0]
            )
        ]
        if not pieces:
            return
        views, event, time_ms = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
        order = np.argsort(views, kind="stable")
        views, event, time_ms = views[order], event[order], time_ms[order]
        for part in visits.parts():
            near, rows = find_ascending(part, views)
            late = rows[are_late(event[near], time_ms[near], views[near], part.time_ms[rows])]
            engaged = visits.places_of_rows(part, late)
            self._sums.has_late[engaged[engaged >= 0]] = True


def late_views(snapshot: Snapshot, part: ViewColumns) -> NDArray[np.uint8] | None:
    """Return which views of a part have late own events, as `PlacedViews` has it."""
    if not len(part.own):
        return None

    def find() -> NDArray[np.uint8]:
        is_late = np.zeros(len(part), np.bool_)
        is_late[part.views_with_late_events()] = True
        return np.packbits(is_late, bitorder="little")

    if isinstance(part, GatheredViews):
        return part.column("late events", find)
    alone = snapshot.alone(part)
    return find() if alone is None else alone.kept(late_views, find)


@frozen
class FirstViews(Kind):
    """Sums by the code of the first view in one of VIEW_DIMENSIONS."""

    dimension: Dimension
    last: int = DURATION_MS
    """The last row of the sums that is wanted, after VISITS."""

    def collector(self, visits: AnyVisits, _found: Found) -> Collector:
        return _ByFirstViews(visits, lambda part, rows: part.codes(self.dimension)[rows], self.last)


@frozen
class Beginnings(Kind):
    """Sums by the slot of time in which visits began, as a number of slots since the epoch."""

    slot_ms: int = SLOT_MS

    def collector(self, visits: AnyVisits, _found: Found) -> Collector:
        return _ByFirstViews(visits, lambda part, rows: part.time_ms[rows] // self.slot_ms)


@frozen
class Totals(Kind):
    """Sums of all visits, under the code 0."""

    def collector(self, visits: AnyVisits, _found: Found) -> Collector:
        return _ByFirstViews(visits, lambda _, rows: np.zeros(len(rows), np.int64))


@define(eq=False)
class _ByLastPage:
    _codes: NDArray[np.int64]
    wants_views: bool = True

    def add(self, views: VisitViews) -> None:
        # Of several views of a visit, the last one remains.
        self._codes[views.visits] = views.part.codes(Dimension.PATH)[views.rows]

    def rows(self) -> Rows:
        return self._codes, ()


@frozen
class LastPages(Kind):
    """The number of visits by the path of their last view."""

    def collector(self, visits: AnyVisits, _found: Found) -> Collector:
        return _ByLastPage(np.zeros(len(visits), np.int64))


@define(eq=False)
class _ByPage:
    _goes_on: NDArray[np.bool_]
    """Which visits have views in several parts."""
    _visits: list[Numbers] = field(factory=lambda: [_NONE])
    """The places of visits."""
    _codes: list[NDArray[Any]] = field(factory=lambda: [np.zeros(0, np.uint32)])
    """The code of a page that each of them saw."""
    wants_views: bool = True

    def add(self, views: VisitViews) -> None:
        codes = views.part.codes(Dimension.PATH).take(views.rows).astype(np.uint32, copy=False)
        found = LOOPS.distinct_pairs(views.visits, codes)
        self._visits.append(views.visits[found].astype(np.int64))
        self._codes.append(codes[found])
        if len(self._goes_on) > views.own.stop - views.own.start:
            is_own = (views.visits >= views.own.start) & (views.visits < views.own.stop)
            self._goes_on[views.visits[~is_own]] = True

    def rows(self) -> Rows:
        codes = np.concatenate(self._codes)
        if not self._goes_on.any():
            return codes, ()
        # Only a visit that goes on in another part can have a page there again.
        pairs = np.concatenate(self._visits) << _WIDE_BITS | codes
        again = self._goes_on[pairs >> _WIDE_BITS]
        pairs = np.concatenate([pairs[~again], distinct([pairs[again]])])
        return pairs & ((1 << _WIDE_BITS) - 1), ()


@frozen
class SeenPages(Kind):
    """The number of visits by the pages that they saw."""

    def collector(self, visits: AnyVisits, _found: Found) -> Collector:
        return _ByPage(np.zeros(len(visits), np.bool_))


@define(eq=False)
class _WithoutViews:
    """Collects what is found otherwise than by going through the views."""

    rows: Callable[[], Rows]
    wants_views: bool = False

    def add(self, views: VisitViews) -> None:
        """Add nothing."""


@frozen
class Count(Kind):
    """The number of visits alone, which is found faster than other sums.

    Under the code 0; or by the code of the first view in a dimension; or by the slot of time in
    which they began.
    """

    dimension: Dimension | None = None
    slot_ms: int | None = None

    def collector(self, visits: AnyVisits, _found: Found) -> Collector:
        return _WithoutViews(lambda: (self._codes(visits), ()))

    def _codes(self, visits: AnyVisits) -> NDArray[np.int64]:
        codes = np.zeros(len(visits), np.int64)
        if self.dimension is None and self.slot_ms is None:
            return codes
        for part, rows, places in visits.first_views():
            if self.dimension is not None:
                codes[places] = part.codes(self.dimension)[rows]
            elif self.slot_ms is not None:
                codes[places] = part.time_ms[rows] // self.slot_ms
        return codes


@frozen
class ReachedGoal(Kind):
    """Another kind of sums, of the visits that reached a goal."""

    goal: Goal
    kind: Kind

    def collector(self, visits: AnyVisits, found: Found) -> Collector:
        return _WithoutViews(lambda: self._rows(visits, found))

    def _rows(self, visits: AnyVisits, found: Found) -> Rows:
        reached = found(
            (ReachedGoal, self.goal), lambda: visits.take(have_reached(visits, self.goal))
        )
        (rows,) = _collect(reached, [self.kind])
        return rows


@frozen
class BegunWith(Kind):
    """Another kind of sums, of the visits whose first view has any of some codes."""

    dimension: Dimension
    codes: frozenset[int]
    kind: Kind

    def collector(self, visits: AnyVisits, found: Found) -> Collector:
        return _WithoutViews(lambda: self._rows(visits, found))

    def _rows(self, visits: AnyVisits, found: Found) -> Rows:
        begun = found((BegunWith, self.dimension, self.codes), lambda: self._begun(visits))
        (rows,) = _collect(begun, [self.kind])
        return rows

    def _begun(self, visits: AnyVisits) -> AnyVisits:
        mask, codes = np.zeros(len(visits), np.bool_), list(self.codes)
        for part, rows, places in visits.first_views():
            mask[places] = np.isin(part.codes(self.dimension)[rows], codes)
        return visits.take(mask)


_FirstRows: TypeAlias = tuple[ViewColumns, NDArray[np.intp], NDArray[np.intp]]
"""A part, the rows of first views in it, and the places of what these are of."""


@frozen
class Amounts(Kind):
    """How often visits with some text of their first view have an amount in their conversions.

    The codes of the sums are made of both, see `split_keys`. The goal must have revenue.
    """

    goal: Goal
    dimension: Dimension

    def collector(self, visits: AnyVisits, found: Found) -> Collector:
        return _WithoutViews(lambda: (self._keys(visits, found), ()))

    def _keys(self, visits: AnyVisits, found: Found) -> NDArray[np.int64]:
        properties, firsts = found((Amounts, self.goal), lambda: self._find(visits))
        codes = np.zeros(len(properties), np.int64)
        for part, rows, here in firsts:
            codes[here] = part.codes(self.dimension)[rows]
        return codes << _WIDE_BITS | properties

    def _find(self, visits: AnyVisits) -> tuple[NDArray[np.int64], list[_FirstRows]]:
        """Return the codes of amounts, and where the first views of their visits are."""
        places, properties = find_amounts(visits, self.goal)
        firsts: list[_FirstRows] = []
        for part, rows, own in visits.first_views() if len(places) else ():
            here = np.flatnonzero((places >= own.start) & (places < own.stop))
            firsts.append((part, rows[places[here] - own.start], here))
        return properties, firsts


def split_keys(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the codes of first views, and those of the amounts, of the sums of `Amounts`."""
    return keys >> _WIDE_BITS, keys & ((1 << _WIDE_BITS) - 1)
