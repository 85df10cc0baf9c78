"""The buckets of a series: local calendar minutes, hours, days, weeks and months."""

from collections.abc import Iterator
from datetime import tzinfo
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest
from medamad.domain.zones import DAY_S, change_between, day_at, offset_at, start_of_day

INTERVALS: Final = ("minute", "hour", "day", "week", "month")
MAX_BUCKETS: Final = 50_000

_STEP_S: Final = {"minute": 60, "hour": 3600}
_SHORTEST_DAYS: Final = {"day": 1, "week": 7, "month": 28}
_PROBE_S: Final = 6 * 3600
"""No zone has ever changed its offset twice within this time."""
_MONDAY: Final = 4
"""1970-01-05, the first Monday, in days since 1970-01-01."""


@frozen(eq=False)
class Buckets:
    """n buckets that follow each other without a gap.

    Bucket i is edges_ms[i] ≤ time < edges_ms[i + 1] in Unix milliseconds; the edges have shape
    (n + 1,) int64. `dates` has the n beginnings in RFC 3339 with the local UTC offset.
    """

    edges_ms: NDArray[np.int64]
    dates: list[str]

    def of(self, time_ms: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the number of the bucket that each time is in. Every time must be in one."""
        return np.searchsorted(self.edges_ms, time_ms, side="right") - 1

    def nearest(self, time_ms: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the number of the bucket that each time is in, or of the nearest."""
        return np.clip(self.of(time_ms), 0, len(self.dates) - 1)

    def are_aligned(self, step_ms: int, least_ms: int, greatest_ms: int) -> bool:
        """Return whether all buckets that begin between two times begin at a multiple of a step."""
        begin, end = np.searchsorted(self.edges_ms, [least_ms, greatest_ms], side="right")
        return not np.any(self.edges_ms[begin:end] % step_ms)


def make_buckets(interval: str, start_ms: int, end_ms: int, zone: tzinfo) -> Buckets:
    """Return every bucket that overlaps start_ms ≤ time ≤ end_ms, or none if that is empty.

    The first may begin before `start_ms`. An hour or a minute is split where the zone changes its
    offset, so that each bucket has one offset. Raises BadRequest for an unknown interval and for
    more than MAX_BUCKETS.
    """
    if interval not in INTERVALS:
        raise BadRequest(f"interval: expected one of {', '.join(INTERVALS)}")
    if start_ms > end_ms:
        return Buckets(np.zeros(1, np.int64), [])
    start_s, end_s = start_ms // 1000, end_ms // 1000
    shortest_s = _STEP_S.get(interval) or _SHORTEST_DAYS[interval] * DAY_S
    longest_s = shortest_s if interval != "month" else 31 * DAY_S
    # Estimate first, so that a period of millennia costs nothing.
    if (end_s - start_s) // (longest_s + DAY_S) > MAX_BUCKETS:
        raise _too_many(interval)
    if interval in _STEP_S:
        if (end_s - start_s) // shortest_s > MAX_BUCKETS:
            raise _too_many(interval)
        edges_s, offsets = _of_clock(_STEP_S[interval], start_s, end_s, zone)
    else:
        edges_s = _of_calendar(interval, start_s, end_s, zone)
        offsets = np.array([offset_at(zone, second) for second in edges_s.tolist()], np.int64)
    if len(edges_s) - 1 > MAX_BUCKETS:
        raise _too_many(interval)
    return Buckets(edges_s * 1000, _dates(edges_s[:-1], offsets[:-1]))


def _too_many(interval: str) -> BadRequest:
    return BadRequest(f"interval: expected at most {MAX_BUCKETS} buckets, not every {interval}")


def _of_clock(
    step_s: int, start_s: int, end_s: int, zone: tzinfo
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of local hours or minutes, and the UTC offset at each."""
    edges_s: list[NDArray[np.int64]] = []
    offsets: list[NDArray[np.int64]] = []
    for from_s, to_s, offset in _offset_spans(zone, start_s - step_s, end_s + step_s + 1):
        first = -((from_s + offset) // -step_s) * step_s - offset
        steps_s = np.arange(first, to_s, step_s, dtype=np.int64)
        if edges_s and first != from_s:
            steps_s = np.concatenate((np.array([from_s], np.int64), steps_s))
        edges_s.append(steps_s)
        offsets.append(np.full(len(steps_s), offset, np.int64))
    all_s = np.concatenate(edges_s)
    kept = _around(all_s, start_s, end_s)
    return all_s[kept], np.concatenate(offsets)[kept]


def _offset_spans(zone: tzinfo, from_s: int, to_s: int) -> Iterator[tuple[int, int, int]]:
    """Split from_s ≤ second < to_s into (from, to, offset) where the offset changes."""
    begun_s, low_s, offset = from_s, from_s, offset_at(zone, from_s)
    while low_s < to_s:
        high_s = min(low_s + _PROBE_S, to_s)
        if offset_at(zone, high_s) == offset:
            low_s = high_s
            continue
        low_s = change_between(zone, low_s, high_s)
        if low_s < to_s:
            yield begun_s, low_s, offset
            begun_s, offset = low_s, offset_at(zone, low_s)
    yield begun_s, to_s, offset


def _of_calendar(interval: str, start_s: int, end_s: int, zone: tzinfo) -> NDArray[np.int64]:
    # One day more on either side: if a clock is set back over midnight, a date occurs twice.
    first, last = day_at(zone, start_s) - 1, day_at(zone, end_s) + 2
    if interval == "day":
        days = list(range(first, last + 1))
    elif interval == "week":
        first -= (first - _MONDAY) % 7
        days = list(range(first, last + 7, 7))
    else:
        month, last_month = (
            np.datetime64(day, "D").astype("datetime64[M]").astype(int) for day in (first, last)
        )
        months = np.arange(month, last_month + 2).astype("datetime64[M]")
        days = months.astype("datetime64[D]").astype(np.int64).tolist()
    if len(days) > MAX_BUCKETS + 10:
        raise _too_many(interval)
    # A day that a zone skips has no length, and there is no bucket for it.
    starts_s = np.unique(np.array([start_of_day(zone, day) for day in days], np.int64))
    return starts_s[_around(starts_s, start_s, end_s)]


def _around(edges_s: NDArray[np.int64], start_s: int, end_s: int) -> slice:
    """Return the slice from the last edge at or before the start to the first after the end."""
    first = int(np.searchsorted(edges_s, start_s, side="right")) - 1
    last = int(np.searchsorted(edges_s, end_s, side="right"))
    return slice(first, last + 1)


def _dates(edges_s: NDArray[np.int64], offsets: NDArray[np.int64]) -> list[str]:
    # RFC 3339 offsets have no seconds, but local mean times do. The date keeps the instant.
    minutes = np.rint(offsets / 60).astype(np.int64)
    clocks = np.datetime_as_string((edges_s + minutes * 60).astype("datetime64[s]"))
    suffixes = {minute: _offset_text(minute) for minute in set(minutes.tolist())}
    return [
        f"{clock}{suffixes[minute]}"
        for clock, minute in zip(clocks.tolist(), minutes.tolist(), strict=True)
    ]


def _offset_text(minutes: int) -> str:
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
