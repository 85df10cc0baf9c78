"""Hits for the tests of the store, with only what a test cares about said."""

from itertools import count
from typing import Any

from medamad.model.hits import View

NOW_MS = 1_790_000_000_000
_beacons = count()


def a_view(website: int = 1, **fields: Any) -> View:
    said = {
        "time_ms": NOW_MS,
        "beacon": f"beacon-{next(_beacons)}",
        "first_today": True,
        "first_of_page": True,
        "path": "/",
    }
    return View(website=website, **{**said, **fields})
