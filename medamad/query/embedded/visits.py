"""Some of the visits that begin in one part.

Within a part, `medamad.storage.segments.parts.VisitColumns` describes each visit in a row, and says
by rows which views belong to which visit.
"""

from collections.abc import Callable, Hashable
from functools import cached_property, reduce
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import FIRST_OF_VISIT, RowMask
from medamad.query.embedded.view_filter import Candidates
from medamad.query.period import ALWAYS, Period
from medamad.storage.segments.parts import Numbers, ViewColumns, VisitColumns
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import find_ascending

T = TypeVar("T")


@define(eq=False)
class PartVisits:
    """Some of the visits that begin in a part which has all of their views and events."""

    snapshot: Snapshot
    part: ViewColumns
    columns: VisitColumns
    chosen: RowMask
    """The rows of their first views."""
    _found: dict[Hashable, Any] = field(factory=dict, init=False)

    def __len__(self) -> int:
        return self.chosen.count

    @property
    def begins(self) -> NDArray[np.intp]:
        """The rows of their first views, ascending."""
        return self._visits[1]

    @property
    def index(self) -> NDArray[np.intp]:
        """Their places among all visits that begin in the part, ascending."""
        return self._visits[0]

    def once(self, what: Hashable, find: Callable[[], T]) -> T:
        """Return what was found of these visits, or find it."""
        if what not in self._found:
            self._found[what] = find()
        found: T = self._found[what]
        return found

    def of(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return what these visits have in one of `columns`."""
        return column[self.index]

    def codes(self, dimension: Dimension) -> NDArray[np.integer[Any]]:
        """Return the codes of their first views."""
        codes: NDArray[np.integer[Any]] = self.part.codes(dimension)[self.begins]
        return codes

    def mask(self) -> RowMask:
        """Return which views of the part are theirs."""
        return LOOPS.mask_visits(self.columns.offsets, self.chosen)

    def pages(self) -> RowMask:
        """Return the first of their views of each page, which are cached for segments."""

        def find() -> RowMask:
            return self.mask().without_rows(self.columns.repeats)

        if not isinstance(self.part, OpenSegment):
            return find()
        return self.snapshot.cached_of_segment(self.part, (PartVisits, self.chosen.digest), find)

    def places_of_rows(self, rows: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the place of the visit of each of some views of the part, -1 for no such visit."""
        begins = LOOPS.first_rows(self.columns.offsets, rows)
        return self._places.take(begins, mode="wrap")

    @cached_property
    def _places(self) -> NDArray[np.int32]:
        """The place of the visit that each view begins, -1 for none and at the end."""
        places = np.full(len(self.part) + 1, -1, np.int32)
        places[self.begins] = np.arange(len(self.begins), dtype=np.int32)
        return places

    @cached_property
    def _visits(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return LOOPS.visits_at(self.columns.offsets, self.chosen)

    def take(self, mask: NDArray[np.bool_]) -> "PartVisits":
        """Return some of the visits."""
        if mask.all():
            return self
        chosen = RowMask.of_rows(len(self.part), self.begins[mask])
        return PartVisits(self.snapshot, self.part, self.columns, chosen)

    def among(self, *begins: RowMask) -> "PartVisits":
        """Return those of the visits that begin in a row of each of some masks."""
        chosen = reduce(RowMask.within, begins, self.chosen)
        return PartVisits(self.snapshot, self.part, self.columns, chosen)

    def begun_in(self, period: Period) -> "PartVisits":
        """Return the visits that began in a period."""
        # Times of gathered views are slow to read.
        if period == ALWAYS or period.contains(*self.part.time_bounds):
            return self
        return self.take(period.mask(self.part.time_ms[self.begins]))


def all_visits(snapshot: Snapshot, part: ViewColumns, left_out: Numbers) -> PartVisits:
    """Return the visits that begin in a part, without those of some numbers, ascending."""

    def find() -> RowMask:
        begins = LOOPS.match([part.visits().offsets], [FIRST_OF_VISIT])
        return begins.without_rows(find_ascending(part, left_out)[1])

    return cached_visits(snapshot, part, left_out, all_visits, find)


def visits_with(snapshot: Snapshot, candidates: Candidates, left_out: Numbers) -> PartVisits:
    """Return the visits that begin in a part and have a view among candidates which count.

    Those of some numbers, ascending, are left out.
    """
    part = candidates.part

    def find() -> RowMask:
        begins = LOOPS.begins_with(part.visits().offsets, candidates.views())
        return begins.without_rows(find_ascending(part, left_out)[1])

    key = candidates.find_key()
    return cached_visits(snapshot, part, left_out, key and (visits_with, key), find)


def cached_visits(
    snapshot: Snapshot,
    part: ViewColumns,
    left_out: Numbers,
    key: Hashable,
    find: Callable[[], RowMask],
) -> PartVisits:
    """Return the visits of a part that begin in the rows which are found, cached for segments.

    Those of some numbers, ascending, are left out. Without a key, nothing is cached.
    """
    if key is None or not isinstance(part, OpenSegment) or part.segment.number in snapshot.overlays:
        return PartVisits(snapshot, part, part.visits(), find())
    first, last = part.sequence_bounds
    begin, end = left_out.searchsorted((first, last + 1)).tolist()
    digest = blake2b(left_out[begin:end].tobytes(), digest_size=16).digest()
    chosen = snapshot.cached_of_segment(part, (cached_visits, key, digest), find)
    return PartVisits(snapshot, part, part.visits(), chosen)
