"""The figures that are asked for all the time: visitors now and in the last 24 hours."""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medamad.store.flags import VISITOR
from medamad.store.parts import Group, Part, Snapshot, Views

DAY_MS: Final = 86_400_000
_LIVE_MS: Final = 300_000
_EVER: Final = 1 << 62


def visitor_times(snapshot: Snapshot, since_ms: int) -> NDArray[np.int64]:
    """Give when the visitors' first views of the day since a moment were, Unix milliseconds.

    There are some of a time to come where the clock has been set back.
    """
    found = [
        part.time_ms[recent & ((part.flags & VISITOR) != 0)]
        for part, recent in _recent(snapshot.parts, since_ms)
    ]
    return np.concatenate([np.zeros(0, np.int64), *found])


def live_visitors(snapshot: Snapshot, now_ms: int) -> int:
    """Count the views begun in the five minutes before `now_ms` whose page was not left."""
    return sum(
        int(np.count_nonzero(recent & (part.time_ms <= now_ms) & (part.duration_ms == 0)))
        for part, recent in _recent(snapshot.parts, now_ms - _LIVE_MS)
    )


def newest_ms(parts: Iterable[Part], until_ms: int = _EVER) -> int:
    """Give the latest time of a view up to a moment, Unix milliseconds; -1 without any."""
    newest = -1
    for part in parts:
        earliest_ms, latest_ms = part.time_bounds
        if latest_ms <= newest or earliest_ms > until_ms:
            continue
        if latest_ms <= until_ms:
            newest = latest_ms
        elif isinstance(part, Group):
            newest = max(newest, newest_ms(part.members, until_ms))
        else:
            newest = max(newest, int(part.time_ms[part.time_ms <= until_ms].max()))
    return newest


def _recent(parts: Iterable[Part], since_ms: int) -> Iterator[tuple[Views, NDArray[np.bool_]]]:
    """Give the parts that reach into a time, and which of their views do."""
    for part in parts:
        if part.time_bounds[1] < since_ms:
            continue
        if isinstance(part, Group):
            yield from _recent(part.members, since_ms)
        else:
            yield part, part.time_ms >= since_ms
