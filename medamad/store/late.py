"""What became known of a block's hits after it was sealed, as it is laid over the block."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.store.parts import Views


@frozen(eq=False)
class Late:
    """What became known of a block's hits after it was sealed.

    `places` of views, ascending, and how long each was seen; `events` by number, ascending, and
    the sequence numbers of their views.
    """

    places: NDArray[np.intp]
    duration_ms: NDArray[np.uint32]
    events: NDArray[np.uint64]
    views: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.places) + len(self.events)

    def and_then(self, later: "Late") -> "Late":
        """Give this with what became known later, which counts where both tell of a hit."""
        return Late(
            *_together(self.places, self.duration_ms, later.places, later.duration_ms),
            *_together(self.events, self.views, later.events, later.views),
        )


Lates: TypeAlias = Mapping[int, Late]
"""By the number of the block."""


def late_of(
    part: Views, raised: Sequence[tuple[int, int]], bound: Sequence[tuple[int, int]]
) -> Late:
    """Give what changes of a block by durations of views and views of events, if they are its own.

    Both by sequence number, ascending.
    """
    places, duration_ms = np.zeros(0, np.intp), np.zeros(0, np.uint32)
    if raised and len(part):
        views = np.array([view for view, _ in raised], np.uint64)
        sequence = part.sequence
        places = np.minimum(np.searchsorted(sequence, views), len(sequence) - 1)
        duration_ms = np.array([ms for _, ms in raised], np.uint32)
        counts = (sequence[places] == views) & (duration_ms > part.duration_ms[places])
        places, duration_ms = places[counts], duration_ms[counts]
    events = np.array([event for event, _ in bound], np.uint64)
    views_of = np.array([view for _, view in bound], np.uint64)
    if len(events):
        known = np.isin(events, part.loose.event)
        events, views_of = events[known], views_of[known]
    return Late(places, duration_ms, events, views_of)


def _together(
    keys: NDArray[Any], values: NDArray[Any], later_keys: NDArray[Any], later_values: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Put two lots of ascending keys, each with its value, into one."""
    at = np.searchsorted(keys, later_keys)
    is_new = np.searchsorted(keys, later_keys, side="right") == at
    values = values.copy()
    values[at[~is_new]] = later_values[~is_new]
    at = at[is_new]
    return np.insert(keys, at, later_keys[is_new]), np.insert(values, at, later_values[is_new])
