"""Visits of which all views are in one part, and what comes beside a page."""

from collections.abc import Iterator
from typing import Literal, Self, TypeAlias

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import place_table
from medamad.query.embedded.view_filter import SelectedViews
from medamad.query.embedded.visits import (
    Places,
    Visits,
    VisitViews,
    row_offsets,
    rows_of_first_views,
    sequences_of,
)
from medamad.query.period import Period
from medamad.query.request import Cancellation
from medamad.storage.segments.parts import ViewColumns
from medamad.storage.segments.snapshot import Snapshot


@frozen(eq=False)
class PartVisits:
    """Visits whose views are all in one part, in the order in which they begin.

    `snapshot` has this part alone. `begins` has the rows of the first views. `place_of`, with one
    more place than the part has rows, has the place of the visit that each view begins, -1 for none
    and at the end.
    """

    snapshot: Snapshot
    cancellation: Cancellation
    part: ViewColumns
    begins: NDArray[np.intp]
    place_of: Places

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        cancellation: Cancellation,
        part: ViewColumns,
        begins: NDArray[np.intp],
    ) -> Self:
        """Return the visits that begin in some rows of a part, ascending."""
        return cls(snapshot, cancellation, part, begins, place_table(begins, len(part)))

    def __len__(self) -> int:
        return len(self.begins)

    @property
    def number_bounds(self) -> tuple[int, int]:
        """The least and the greatest number, (1, 0) without visits."""
        if not len(self.begins):
            return 1, 0
        first, last = sequences_of(self.part, self.begins[[0, -1]]).tolist()
        return first, last

    def parts(self) -> Iterator[ViewColumns]:
        """Return the part."""
        yield self.part

    def views(self) -> Iterator[VisitViews]:
        """Return the views of the visits; those of a visit by sequence number."""
        if len(self):
            rows, visits = LOOPS.views_of_visits(row_offsets(self.part), self.place_of)
            yield VisitViews(self.part, rows, visits, slice(0, len(self)), self.begins)

    def first_views(self) -> Iterator[tuple[ViewColumns, NDArray[np.intp], slice]]:
        """Return the first view of each visit: the part, its rows, and the places."""
        yield self.part, self.begins, slice(0, len(self))

    def places_of_rows(self, part: ViewColumns, rows: NDArray[np.intp]) -> Places:
        """Return the place of the visit of each of some views, -1 for none."""
        places: Places = self.place_of.take(rows_of_first_views(part, rows), mode="wrap")
        return places

    def codes_of_last_views(self, dimension: Dimension) -> NDArray[np.int64]:
        """Return the code of each visit's last view."""
        codes = np.zeros(len(self), np.int64)
        for views in self.views():
            # Of several views of a visit, the last one remains.
            codes[views.visits] = views.part.codes(dimension)[views.rows]
        return codes

    def take(self, mask: NDArray[np.bool_]) -> "PartVisits":
        """Return some of the visits."""
        begins = self.begins[mask]
        return evolve(self, begins=begins, place_of=place_table(begins, len(self.part)))

    def begun_in(self, period: Period) -> "PartVisits":
        """Return the visits that began in a period."""
        if period.contains(*self.part.time_bounds):
            return self
        return self.take(period.mask(self.part.time_ms[self.begins]))


AnyVisits: TypeAlias = Visits | PartVisits


def count_pages_beside(
    visits: PartVisits, selected: SelectedViews, *, step: Literal[1, -1], size: int
) -> NDArray[np.int64]:
    """Count the pages that come next after some views of visits or, with a step of -1, before them.

    The visits and the views are of one part. Returns the counts by code of Dimension.PATH, and at
    `size` that of views which end, or begin, their visit.
    """
    counts = np.zeros(size + 1, np.int64)
    for some in visits.views():
        part = some.part
        keys = some.visits.astype(np.int64)
        keys <<= 32
        keys |= some.rows
        # The views of each visit follow each other. Sorting keys is faster than sorting rows.
        keys.sort()
        keys = keys[::step]
        rows, of_rows = keys & 0xFFFF_FFFF, keys >> 32
        is_in_question = np.zeros(len(part), np.bool_)
        is_in_question[selected.rows] = True
        found = np.flatnonzero(is_in_question[rows])
        is_last = np.concatenate((of_rows[1:] != of_rows[:-1], [True]))[found]
        beside = rows[found[~is_last] + 1]
        counts[:size] += np.bincount(part.codes(Dimension.PATH)[beside], minlength=size)
        counts[size] += np.count_nonzero(is_last)
    return counts
