"""Websites that used to be visited and are not any more: a tag lost in a relaunch, a broken proxy.

The rule, in quarters of an hour: a website is quiet when none of the last quarters, at least 12
(three hours), has a view, and the same time had at least 20 on each of the seven days before its
last view; or in each of the three weeks before, or of the three fortnights. Of a longer silence the
first day counts, the first week or the first fortnight. So what is visited little, by day alone, or
not on Sundays is not missed at night or on Sundays, and of what has as few as ten views a week a
fortnight tells. Hours in which nobody listened, as the daemon did not run, are no silence; after 30
days a website is not missed any more. The last view is one that was counted here: where views are
imported day by day, nothing is silent. Those before it may have been imported. Views of a time to
come, which a clock that was ahead has left, do not count.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medamad.storage.segments.counters import SLOT_MS, VIEWS
from medamad.storage.segments.parts import (
    MergedSegment,
    Part,
)
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.visitors import newest_ms

LEAST_SILENCE: Final = 12
LEAST_VIEWS: Final = 20
_A_DAY: Final = 96
_BEFORE: Final = ((_A_DAY, 7), (7 * _A_DAY, 3), (14 * _A_DAY, 3))
"""What a silence is compared with: how long each time is, and how many there are."""
_FORGOTTEN: Final = 30 * _A_DAY


def quiet_since(snapshot: Snapshot, now_ms: int, listening_since_ms: int) -> int | None:
    """Return when the last view of a quiet website was, Unix milliseconds; None if it is not quiet.

    `listening_since_ms` is since when hits have been taken without a break.
    """
    last_ms = newest_ms((part for part in snapshot.parts if not part.batch), now_ms)
    if last_ms < 0:
        return None
    last, now = last_ms // SLOT_MS, now_ms // SLOT_MS
    silent_after = max(last, listening_since_ms // SLOT_MS)
    length = now - silent_after - 1
    if length < LEAST_SILENCE or now - last > _FORGOTTEN:
        return None
    for period, times in _BEFORE:
        # Where nobody listened after the last view, it is whole periods from there.
        periods_after = -((last - silent_after) // period)
        first = silent_after + 1 - period * (times + periods_after)
        before = _counts(snapshot.parts, first, times * period).reshape(times, period)
        if (before[:, : min(length, period)].sum(axis=1) >= LEAST_VIEWS).all():
            return last_ms
    return None


def _counts(parts: Iterable[Part], first: int, length: int) -> NDArray[np.int64]:
    """Count the views of each quarter of an hour from the one numbered `first` on."""
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
            counts += _counts(part.members, first, length)
            continue
        else:
            numbers = part.time_ms // SLOT_MS - first
            views = np.ones(len(numbers), np.int64)
        inside = (numbers >= 0) & (numbers < length)
        np.add.at(counts, numbers[inside], views[inside])
    return counts
