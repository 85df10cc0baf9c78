"""What rules leave out of a segment, with counters like those of the segment."""

from collections.abc import Callable, Hashable, Iterator

import numpy as np
from attrs import frozen

from medamad.domain.dimensions import Dimension
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import ONES, PartViews
from medamad.query.embedded.view_filter import Exclusions, SelectedViews
from medamad.storage.segments.counters import SLOT_MS, Counters, count_views, narrow
from medamad.storage.segments.format import Integers, SortedDurations
from medamad.storage.segments.parts import ViewColumns
from medamad.storage.segments.snapshot import A, Snapshot


@frozen(eq=False)
class LeftOutViews:
    """What rules leave out of a segment, merged or not, with counters, which are cached."""

    excluded: Exclusions
    alone: Snapshot
    """The segment. It has no overlay."""
    state: Hashable
    """What the views that are left out depend on."""

    @property
    def import_batch(self) -> int:
        """The number of the import batch that all of it came with, or 0."""
        return self.alone.segments[0].header.import_batch

    @property
    def time_bounds(self) -> tuple[int, int]:
        """The earliest and the latest time of a view of the segment, Unix milliseconds."""
        return self.alone.segments[0].header.time_bounds

    def counters(self, dimension: Dimension) -> Counters:
        """Return the sums of the views by the codes of a dimension."""
        return self.cached(dimension, lambda: self._count(lambda part: part.codes(dimension)))

    def slots(self) -> Counters:
        """Return the sums of the views by slots of SLOT_MS."""
        return self.cached("slots", lambda: self._count(lambda part: part.time_ms // SLOT_MS))

    def durations(self) -> SortedDurations:
        """Return the known durations of the views in milliseconds."""

        def find() -> SortedDurations:
            pieces = [views.duration_ms for views in self._views()]
            found = np.concatenate([np.zeros(0, np.uint32), *pieces])
            return SortedDurations.of(np.sort(found[found > 0]))

        return self.cached(SortedDurations, find)

    def cached(self, what: Hashable, compute: Callable[[], A]) -> A:
        """Return what was computed from the views, or compute and cache it."""
        return self.alone.cached((LeftOutViews, what, self.state), compute)

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
                views = PartViews(0, len(part), [mask])
                yield SelectedViews(part, LOOPS.select(views, [ONES]))
