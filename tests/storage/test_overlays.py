"""Overlays that are extended step by step or built at once, against plain dicts."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from medamad.storage.segments.corrections import Overlay, overlay_of

# The segment does not have the hits in between.
VIEWS = (3, 4, 7, 12)
DURATIONS_MS = (0, 5, 0, 9)
EVENTS = (5, 5, 8, 13)
NUMBERS = st.integers(1, 14)
TOLD = st.dictionaries(NUMBERS, st.integers(1, 12), max_size=6)


class Segment(SimpleNamespace):
    def __len__(self) -> int:
        return len(VIEWS)


def built(raised: dict[int, int], bound: dict[int, int]) -> Overlay:
    segment: Any = Segment(
        sequence=np.array(VIEWS, np.uint64),
        duration_ms=np.array(DURATIONS_MS, np.uint32),
        loose=SimpleNamespace(event=np.array(EVENTS, np.uint64)),
    )
    return overlay_of(segment, sorted(raised.items()), sorted(bound.items()))


def plain(overlay: Overlay) -> tuple[dict[int, int], dict[int, int]]:
    places, events = overlay.places.tolist(), overlay.events.tolist()
    assert places == sorted(set(places))
    assert events == sorted(set(events))
    assert (overlay.duration_ms.dtype, overlay.views.dtype) == (np.uint32, np.uint64)
    assert len(overlay) == len(places) + len(events)
    return (
        {VIEWS[at]: ms for at, ms in zip(places, overlay.duration_ms.tolist(), strict=True)},
        dict(zip(events, overlay.views.tolist(), strict=True)),
    )


@given(st.lists(st.tuples(TOLD, TOLD), min_size=1, max_size=5))
def test_successive_overlays_equal_a_single_one(
    steps: list[tuple[dict[int, int], dict[int, int]]],
) -> None:
    before = dict(zip(VIEWS, DURATIONS_MS, strict=True))
    raised: dict[int, int] = {}
    bound: dict[int, int] = {}
    overlay = built({}, {})
    assert plain(overlay) == ({}, {})
    for durations, views in steps:
        # Durations only grow.
        longer = {view: ms for view, ms in durations.items() if ms > raised.get(view, 0)}
        raised |= longer
        bound |= views
        known = overlay
        seen = plain(known)
        overlay = overlay.extended(built(longer, views))
        assert plain(known) == seen
        assert plain(overlay) == plain(built(raised, bound))
    assert plain(overlay) == (
        {view: ms for view, ms in raised.items() if view in before and ms > before[view]},
        {event: view for event, view in bound.items() if event in EVENTS},
    )
