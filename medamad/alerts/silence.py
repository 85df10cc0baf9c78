"""Websites that have gone quiet: they had views, and have none any more.

The tracker may be gone since a relaunch, or a proxy may be broken. The rule works in quarters of an
hour. A website is quiet if none of the last quarters has a view, at least 12 of them (three hours),
and if the same span of time had at least 20 views on each of the seven days before its last view;
or in each of the three weeks before; or in each of the three fortnights. Of a longer silence the
first day, the first week or the first fortnight counts. So a website with few views, or with views
by day alone, or with none on Sundays, is not reported at night or on Sundays. One with as few as
ten views a week is reported after a fortnight.

The hours in which the daemon did not run are no silence. After 30 days a website is not reported
any more. Only a view that was counted here can be the last view, because views that are imported
day by day say nothing about the present; the views before it may be imported. Views in the future,
from a clock that was ahead, do not count.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medamad.storage.segments.counters import SLOT_MS, VIEWS
from medamad.storage.segments.parts import MergedSegment, Part
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.visitors import newest_ms

LEAST_SILENCE: Final = 12
LEAST_VIEWS: Final = 20
_DAY: Final = 96
_COMPARED: Final = ((_DAY, 7), (7 * _DAY, 3), (14 * _DAY, 3))
"""What a silence is compared with: the length of a period in quarters, and how many periods."""
_FORGOTTEN_AFTER: Final = 30 * _DAY


def quiet_since(snapshot: Snapshot, now_ms: int, listening_since_ms: int) -> int | None:
    """Return the time of a quiet website's last view, or None if it is not quiet.

    All times are Unix milliseconds. `listening_since_ms` is since when the daemon has been taking
    hits without a break.
    """
    last_ms = newest_ms((part for part in snapshot.parts if not part.import_batch), now_ms)
    if last_ms < 0:
        return None
    last, now = last_ms // SLOT_MS, now_ms // SLOT_MS
    silent_after = max(last, listening_since_ms // SLOT_MS)
    length = now - silent_after - 1
    if length < LEAST_SILENCE or now - last > _FORGOTTEN_AFTER:
        return None
    for period, times in _COMPARED:
        # If the daemon did not run after the last view, compare whole periods from there.
        periods_after = -((last - silent_after) // period)
        first = silent_after + 1 - period * (times + periods_after)
        before = views_by_slot(snapshot.parts, first, times * period).reshape(times, period)
        if (before[:, : min(length, period)].sum(axis=1) >= LEAST_VIEWS).all():
            return last_ms
    return None


def views_by_slot(parts: Iterable[Part], first: int, length: int) -> NDArray[np.int64]:
    """Return the views of each quarter of an hour from number `first` on, shape (length,)."""
    counts = np.zeros(length, np.int64)
    for part in parts:
        earliest_ms, latest_ms = part.time_bounds
        if latest_ms // SLOT_MS < first or earliest_ms // SLOT_MS >= first + length:
            continue
        slots = part.slots()
        if slots is not None:
            numbers = slots.codes.astype(np.int64) - first
            views = slots.sums[VIEWS]
        elif isinstance(part, MergedSegment):
            counts += views_by_slot(part.members, first, length)
            continue
        else:
            numbers = part.time_ms // SLOT_MS - first
            views = np.ones(len(numbers), np.int64)
        inside = (numbers >= 0) & (numbers < length)
        np.add.at(counts, numbers[inside], views[inside])
    return counts
