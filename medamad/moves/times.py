"""Moments as they are written in files: RFC 3339, in UTC, to the millisecond."""

from collections.abc import Sequence

import numpy as np


def written(times_ms: Sequence[int]) -> list[str]:
    """Give Unix milliseconds in words: `2026-11-21T12:00:00.123Z`."""
    moments = np.asarray(times_ms, np.int64).astype("datetime64[ms]")
    found: list[str] = np.datetime_as_string(moments, unit="ms", timezone="UTC").tolist()
    return found
