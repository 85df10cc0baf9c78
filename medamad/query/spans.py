"""The spans of time that figures of new and returning visitors are of."""

from datetime import tzinfo

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.zones import day_at, start_of_day
from medamad.query.buckets import Buckets, make_buckets
from medamad.query.filters import Mask
from medamad.query.period import Period


@frozen(eq=False)
class Spans:
    """The n spans of time that figures are of: each of them one bucket, or `period` alone.

    The period of the selection has to be that of the buckets.
    """

    period: Period
    now_ms: int
    buckets: Buckets | None = None
    interval: str | None = None
    """The interval of the buckets."""

    def __len__(self) -> int:
        return 1 if self.buckets is None else len(self.buckets.dates)

    def of(self, time_ms: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the number of the span that each time is in, or of the nearest."""
        if self.buckets is None:
            return np.zeros(len(time_ms), np.intp)
        return np.clip(self.buckets.of(time_ms), 0, len(self) - 1)

    def are(self, interval: str, zone: tzinfo) -> Mask:
        """Return which spans are one calendar week or month in a zone, or the present one so far.

        The present one may end at any time of the present day.
        """
        begin_ms, end_ms = self._bounds_ms()
        if begin_ms is None or self.interval not in (None, interval):
            return np.zeros(len(self), np.bool_)
        edges_ms = make_buckets(interval, int(begin_ms[0]), int(begin_ms[-1]), zone).edges_ms
        places = np.searchsorted(edges_ms, begin_ms)
        next_ms = edges_ms[np.minimum(places + 1, len(edges_ms) - 1)]
        today_ms = start_of_day(zone, day_at(zone, self.now_ms // 1000)) * 1000
        is_over = end_ms + 1 >= np.minimum(next_ms, today_ms)
        are: Mask = (edges_ms[places] == begin_ms) & (end_ms < next_ms) & is_over
        return are

    def _bounds_ms(self) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Return the first and the last millisecond of each span; no first if that is unknown."""
        start_ms, end_ms = self.period.start_ms, self.period.end_ms
        last_ms = self.now_ms if end_ms is None else end_ms
        if start_ms is None or not len(self):
            return None, np.array([last_ms], np.int64)
        if self.buckets is None:
            return np.array([start_ms], np.int64), np.array([last_ms], np.int64)
        edges_ms = self.buckets.edges_ms
        return np.maximum(edges_ms[:-1], start_ms), np.minimum(edges_ms[1:] - 1, last_ms)
