"""New and returning visitors among the selected views, by bucket."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.embedded.aggregate import bucket_numbers, sum_parts
from medamad.query.embedded.loops import PartViews
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.view_filter import Candidates
from medamad.query.sums import SINCE_PLACES
from medamad.storage.segments.counters import VISITORS, Counters
from medamad.storage.segments.parts import Part, Rollup

_ROWS: Final = len(SINCE_PLACES) + 1


def visitors_by_since(
    selection: Selection, buckets: Buckets
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the selected visitors by bucket and SINCE_PLACES, shape (n, _ROWS).

    And which buckets are known, shape (n,): those of which no day has only a rollup without texts.
    """
    texts, size = tuple(selection.snapshot.texts(Dimension.SINCE)), len(buckets.dates)

    def counters_of(part: Part | Rollup) -> Counters | None:
        first, last = buckets.nearest(np.array(part.time_bounds, np.int64)).tolist()
        counters = part.counters(Dimension.SINCE) if first == last else None
        if counters is None:
            return None
        return Counters(first * len(texts) + counters.codes.astype(np.int64), counters.sums)

    def scan(among: Selection, _with_durations: bool) -> Iterator[PartViews | Counters]:
        for scanned in among.candidates(counters_of):
            if isinstance(scanned, Candidates):
                part = scanned.part
                numbers = bucket_numbers(part, buckets) * np.uint32(len(texts))
                yield scanned.views(numbers + part.codes(Dimension.SINCE), part.flags)
            else:
                yield scanned

    cached_as = (Dimension.SINCE, buckets.edges_ms.tobytes())
    sums = sum_parts(selection, size * len(texts), scan, cached_as, with_durations=False)
    by_code, is_known = sums[VISITORS].reshape(size, len(texts)), np.ones(size, np.bool_)
    for rollup, counters in selection.rollups(counters_of):
        first, last = buckets.nearest(np.array(rollup.time_bounds, np.int64)).tolist()
        if counters is None:
            is_known[first : last + 1] = False
        else:
            by_code.reshape(-1)[counters.codes] += counters.sums[VISITORS]
    visitors = np.zeros((size, _ROWS), np.int64)
    for code, text in enumerate(texts):
        visitors[:, SINCE_PLACES.get(text, 0)] += by_code[:, code]
    return visitors, is_known
