"""Views and events of an afternoon, in short notation."""

from typing import Any, Final

from support.query.oracle import Entry

NOON = 1_704_110_400_000  # 2024-01-01T12:00:00Z


def view(number: int, flags: str, duration_ms: int = 0, **texts: Any) -> Entry:
    """Make a view, `number` seconds after noon; flags `p`, `q`, `pq` or none."""
    return {
        "id": number,
        "time_ms": NOON + number * 1000,
        "p": "p" in flags,
        "q": "q" in flags,
        "duration_ms": duration_ms,
        "path": "/",
        "browser": "Unknown",
        "os": "Unknown",
        "device": "Unknown",
        **texts,
    }


HIT_OF_ITS_OWN: Final = 10**4
"""Numbers from here on are of events, and greater than those of views."""


def event(seconds: int, view: int | None = None, /, **properties: str) -> Entry:
    """Make an event, some seconds after noon."""
    return {
        "time_ms": NOON + seconds * 1000,
        "view": view,
        "properties": list(properties.items()),
    }
