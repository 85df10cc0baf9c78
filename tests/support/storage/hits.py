"""Hits for the tests of the store; a test states only the fields it cares about."""

from itertools import count
from typing import Any

from medamad.domain.hits import Event, Unload, View

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_beacons = count()


def a_view(website: int = 1, **fields: Any) -> View:
    defaults = {
        "time_ms": NOW_MS,
        "beacon": f"beacon-{next(_beacons)}",
        "first_today": True,
        "first_of_page": True,
        "path": "/",
    }
    return View(website=website, **{**defaults, **fields})


def views(first: int, last: int, time_ms: int = NOW_MS) -> list[View]:
    return [a_view(beacon=f"b{n}", path=f"/{n}", time_ms=time_ms) for n in range(first, last + 1)]


def unload(number: int, duration_ms: int, time_ms: int = NOW_MS) -> Unload:
    return Unload(time_ms=time_ms, beacon=f"b{number}", duration_ms=duration_ms)


def event(beacon: str, time_ms: int = NOW_MS) -> Event:
    return Event(website=1, time_ms=time_ms, properties=(("k", "v"), ("n", "1")), beacon=beacon)
