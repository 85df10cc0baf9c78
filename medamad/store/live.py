"""The figures that are asked for all the time: visitors now and in the last 24 hours."""

from typing import Final

import numpy as np

from medamad.store.parts import VISITOR, Snapshot

_DAY_MS: Final = 86_400_000
_LIVE_MS: Final = 300_000


def visitors_last_day(snapshot: Snapshot, now_ms: int) -> int:
    """Count the views in the 24 hours before `now_ms` that were a visitor's first of the day."""
    count = 0
    for part in snapshot.parts:
        if part.greatest_ms >= now_ms - _DAY_MS:
            recent = part.time_ms >= now_ms - _DAY_MS
            count += int(np.count_nonzero(part.flags[recent] & VISITOR))
    return count


def live_visitors(snapshot: Snapshot, now_ms: int) -> int:
    """Count the views begun in the five minutes before `now_ms` whose page was not left."""
    count = 0
    for part in snapshot.parts:
        if part.greatest_ms >= now_ms - _LIVE_MS:
            recent = part.time_ms >= now_ms - _LIVE_MS
            count += int(np.count_nonzero(part.duration_ms[recent] == 0))
    return count
