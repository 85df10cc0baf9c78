"""New and returning visitors among the selected views, by bucket."""

from itertools import pairwise, starmap
from typing import Final

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.view_filter import Counted, SelectedViews
from medamad.query.sums import SINCE_PLACES
from medamad.storage.segments.counters import VISITORS, Counters
from medamad.storage.segments.format import VISITOR

_ROWS: Final = len(SINCE_PLACES) + 1
_FEW_BUCKETS: Final = 32


def visitors_by_since(
    selection: Selection, buckets: Buckets
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the selected visitors by bucket and SINCE_PLACES, shape (n, _ROWS).

    And which buckets are known, shape (n,): those of which no day has only a rollup without texts.
    """
    apart = selection.apart()
    if apart is not None:
        (sums, is_known), (left_out, _) = (visitors_by_since(each, buckets) for each in apart)
        return sums - left_out, is_known
    texts = selection.snapshot.texts(Dimension.SINCE)
    counted = _Visitors(buckets, np.array([SINCE_PLACES.get(text, 0) for text in texts], np.intp))
    is_known = np.ones(len(buckets.dates), np.bool_)

    def counters_of(part: Counted) -> tuple[int, Counters] | None:
        first, last = buckets.nearest(np.array(part.time_bounds, np.int64)).tolist()
        counters = part.counters(Dimension.SINCE) if first == last else None
        return None if counters is None else (first, counters)

    for scanned in selection.scan(counters_of):
        if isinstance(scanned, tuple):
            counted.add_counters(*scanned)
        else:
            counted.add_views(scanned)
    for rollup, counters in selection.rollups(lambda rollup: rollup.counters(Dimension.SINCE)):
        first, last = buckets.nearest(np.array(rollup.time_bounds, np.int64)).tolist()
        if counters is None or first != last:
            is_known[first : last + 1] = False
        else:
            counted.add_counters(first, counters)
    return counted.total(), is_known


@define(eq=False)
class _Visitors:
    """Visitors by bucket and text, shape (n, _ROWS)."""

    buckets: Buckets
    place_of_code: NDArray[np.intp]
    """The row of each code of Dimension.SINCE."""
    _sums: NDArray[np.int64] = field(init=False)
    _keys: list[NDArray[np.intp]] = field(factory=list)
    """Of visitors that are not among the sums: the place of each in them, if these were flat."""

    def __attrs_post_init__(self) -> None:
        self._sums = np.zeros((len(self.buckets.dates), _ROWS), np.int64)

    def add_counters(self, bucket: int, counters: Counters) -> None:
        """Add the visitors of counters of Dimension.SINCE, all in one bucket."""
        np.add.at(self._sums[bucket], self.place_of_code[counters.codes], counters.sums[VISITORS])

    def add_views(self, views: SelectedViews) -> None:
        """Add the visitors among some views."""
        flags, codes = views.flags & VISITOR, views.codes(Dimension.SINCE)
        stretches = _stretches(self.buckets, views)
        if stretches is None:
            firsts = np.flatnonzero(flags)
            places = self.place_of_code.take(codes.take(firsts))
            self._keys.append(self.buckets.nearest(views.time_ms.take(firsts)) * _ROWS + places)
            return
        # Comparing all codes with each of a few is faster than a lookup of each.
        is_first = flags.view(np.bool_)
        for bucket, stretch in stretches:
            for code, place in enumerate(self.place_of_code.tolist()):
                is_counted = (codes[stretch] == code) & is_first[stretch]
                self._sums[bucket, place] += np.count_nonzero(is_counted)

    def total(self) -> NDArray[np.int64]:
        """Return all visitors that were added."""
        if not self._keys:
            return self._sums
        added = np.bincount(np.concatenate(self._keys), minlength=self._sums.size)
        return self._sums + added.reshape(-1, _ROWS)


def _stretches(buckets: Buckets, views: SelectedViews) -> list[tuple[int, slice]] | None:
    """Return the buckets of some views, and which views are in each.

    None if the views do not ascend, or are in so many buckets that to look at each would be slow.
    """
    if len(buckets.dates) == 1:
        return [(0, slice(None))]
    if not views.part.ascends:
        return None
    time_ms = views.time_ms
    first, last = buckets.nearest(time_ms[[0, -1]]).tolist()
    if last - first > _FEW_BUCKETS:
        return None
    inner = np.searchsorted(time_ms, buckets.edges_ms[first + 1 : last + 1]).tolist()
    stretches = starmap(slice, pairwise([0, *inner, len(time_ms)]))
    return list(enumerate(stretches, first))
