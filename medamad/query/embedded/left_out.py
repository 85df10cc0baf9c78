"""What rules leave out of segments, with counters like those of a segment."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final, TypeVar

import numpy as np
from attrs import frozen

from medamad.domain.dimensions import Dimension
from medamad.query.embedded.view_filter import Exclusions, SelectedViews
from medamad.storage.segments.counters import SLOT_MS, Counters, count_views, merge, narrow
from medamad.storage.segments.format import Integers, SortedDurations
from medamad.storage.segments.parts import ViewColumns, enclosing_bounds
from medamad.storage.segments.snapshot import A, Snapshot

S = TypeVar("S", Counters, SortedDurations)
MAX_TOGETHER: Final = 1 << 18
"""More numbers of several segments would take too much memory to be cached once more."""


@frozen(eq=False)
class LeftOutViews:
    """What rules leave out of segments, merged or not, with counters, which are cached.

    Those of several segments are added up from those of each; None if they are large.
    """

    excluded: Exclusions
    alone: Snapshot
    """The segments. None has an overlay."""
    state: Hashable
    """What the views that are left out depend on."""
    of_each: Sequence["LeftOutViews"] = ()
    """What is left out of each of several segments."""

    @property
    def import_batch(self) -> int:
        """The number of the import batch that all of it came with, or 0."""
        batches = {segment.header.import_batch for segment in self.alone.segments}
        return batches.pop() if len(batches) == 1 else 0

    @property
    def time_bounds(self) -> tuple[int, int]:
        """The earliest and the latest time of a view of the segments, Unix milliseconds."""
        return enclosing_bounds(segment.header.time_bounds for segment in self.alone.segments)

    def counters(self, dimension: Dimension) -> Counters | None:
        """Return the sums of the views by the codes of a dimension."""
        return self._added_up(
            dimension,
            lambda: self._count(lambda part: part.codes(dimension)),
            lambda each: each.counters(dimension),
            _all_counters,
        )

    def slots(self) -> Counters | None:
        """Return the sums of the views by slots of SLOT_MS."""
        return self._added_up(
            "slots",
            lambda: self._count(lambda part: part.time_ms // SLOT_MS),
            LeftOutViews.slots,
            _all_counters,
        )

    def durations(self) -> SortedDurations | None:
        """Return the known durations of the views in milliseconds."""
        return self._added_up(
            SortedDurations,
            lambda: _sorted([views.duration_ms for views in self._views()]),
            LeftOutViews.durations,
            lambda found: _sorted([each.stretch(0, len(each)) for each in found]),
        )

    def cached(self, what: Hashable, compute: Callable[[], A]) -> A:
        """Return what was computed from the views, or compute and cache it."""
        return self.alone.cached((LeftOutViews, what, self.state), compute)

    def _added_up(
        self,
        what: Hashable,
        find: Callable[[], S],
        of: Callable[["LeftOutViews"], S | None],
        add_up: Callable[[Sequence[S]], S],
    ) -> S | None:
        """Return what is found of the views, in several segments added up from those of each."""
        if not self.of_each:
            return self.cached(what, find)
        key = (LeftOutViews, what, self.state)
        found: S | None = self.alone.find_cached(key)
        if found is None:
            pieces = [piece for each in self.of_each if (piece := of(each)) is not None]
            if sum(map(len, pieces)) > MAX_TOGETHER:
                return None
            found = add_up(pieces)
            self.alone.cache(key, found)
        return found

    def _count(self, numbers_of: Callable[[ViewColumns], Integers]) -> Counters:
        """Return the sums of the views by their numbers."""
        none = np.zeros(0, np.uint8)
        pieces = [(none, none, none)]
        pieces += [
            (views.of(numbers_of(views.part)), views.flags, views.duration_ms)
            for views in self._views()
        ]
        return narrow(count_views(*map(np.concatenate, zip(*pieces, strict=True))))

    def _views(self) -> Iterator[SelectedViews]:
        """Return the views of each part."""
        for part in self.alone.leaves():
            mask = self.excluded.left_out(part)
            if mask is not None:
                yield SelectedViews(part, mask.rows)


def _all_counters(found: Sequence[Counters]) -> Counters:
    return narrow(merge(found))


def _sorted(pieces: Sequence[Integers]) -> SortedDurations:
    """Return the durations that are known, of those in pieces."""
    found = np.concatenate([np.zeros(0, np.uint32), *pieces])
    return SortedDurations.of(np.sort(found[found > 0]))
