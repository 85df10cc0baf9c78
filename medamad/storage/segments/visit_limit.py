"""The longest that a visit lasts, in views that are imported or were stored by an earlier build.

Live visits end by `medamad.storage.wal.visits`. Here, visits come as the numbers that views have
of them, and a visit that lasts too long is divided: its views get the numbers of several visits.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.dimensions import VISIT_MS
from medamad.storage.environment.access import ReadAccess
from medamad.storage.environment.environment import Databases
from medamad.storage.errors import DamagedSegment
from medamad.storage.segments.format import Segment
from medamad.storage.segments.read import open_segment

FindTimes: TypeAlias = Callable[[NDArray[np.int64], int], NDArray[np.int64]]
"""Returns when views were, by their sequence numbers, shape (n,): Unix milliseconds.

NEVER for a view that is unknown, or later than the given time.
"""

NEVER: Final = 1 << 62


@define(eq=False)
class VisitLimit:
    """Divides the visits of a website or an import, of which it gets some views after the others.

    Those of one visit have to come in the order of their numbers.
    """

    _divided: dict[int, tuple[int, int]] = field(factory=dict)
    """By the number that a visit came with, the number and the begin of the last one made of it."""

    def offsets(
        self,
        sequence: NDArray[np.integer[Any]],
        time_ms: NDArray[np.int64],
        visit_offset: NDArray[np.unsignedinteger[Any]],
        find_times: FindTimes,
    ) -> NDArray[np.uint32] | None:
        """Return the VISIT_OFFSET of views, shape (n,), or None if all of them stay the same.

        A view `VISIT_MS` or more after the first one of its visit begins another.
        """
        views, offset = sequence.astype(np.int64), visit_offset.astype(np.int64)
        numbers = np.where(offset > 0, views + 1 - offset, 0)
        begin_ms = _begins_ms(views, time_ms, numbers, find_times)
        are_late = (numbers > 0) & (time_ms - begin_ms >= VISIT_MS)
        too_long = {*np.unique(numbers[are_late]).tolist(), *self._divided} - {0}
        rows = np.flatnonzero(np.isin(numbers, list(too_long))) if too_long else ()
        if not len(rows):
            return None
        changed = visit_offset.astype(np.uint32)
        for row in rows:
            number, now_ms = int(numbers[row]), int(time_ms[row])
            first, first_ms = self._divided.get(number, (number, int(begin_ms[row])))
            if now_ms - first_ms >= VISIT_MS:
                first = int(views[row])
                self._divided[number] = first, now_ms
            changed[row] = views[row] + 1 - first
        return None if np.array_equal(changed, visit_offset) else changed


def _begins_ms(
    sequence: NDArray[np.int64],
    time_ms: NDArray[np.int64],
    numbers: NDArray[np.int64],
    find_times: FindTimes,
) -> NDArray[np.int64]:
    """Return when the visit of each view began; NEVER if that makes no difference."""
    begin_ms = np.full(len(numbers), NEVER)
    if not len(numbers):
        return begin_ms
    places = np.minimum(sequence.searchsorted(numbers), len(sequence) - 1)
    are_here = sequence[places] == numbers
    begin_ms[are_here] = time_ms[places[are_here]]
    are_elsewhere = ~are_here & (numbers > 0)
    if are_elsewhere.any():
        visits, place_of = np.unique(numbers[are_elsewhere], return_inverse=True)
        begin_ms[are_elsewhere] = find_times(visits, int(time_ms.max()) - VISIT_MS)[place_of]
    return begin_ms


def times_in(segments: Sequence[Segment], access: ReadAccess, databases: Databases) -> FindTimes:
    """Return what finds when the views of some segments were, each of which has views."""

    def find(views: NDArray[np.int64], until_ms: int) -> NDArray[np.int64]:
        found = np.full(len(views), NEVER)
        for segment in segments:
            header = segment.header
            first, last = header.sequence_bounds
            has_any = views.searchsorted(first) < views.searchsorted(last, side="right")
            if not has_any or header.time_bounds[0] > until_ms:
                continue
            part = open_segment(segment, None, access, databases)
            try:
                sequence, time_ms = part.sequence.astype(np.int64), part.time_ms
            except DamagedSegment:
                # No figure includes it.
                continue
            places = np.minimum(sequence.searchsorted(views), len(sequence) - 1)
            are_here = sequence[places] == views
            found[are_here] = time_ms[places[are_here]]
        found[found > until_ms] = NEVER
        return found

    return find
