"""The period of a query: RFC 3339 instants, start and end, the preceding period."""

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DATE_TIME: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"[Tt ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    # A raw `+` in a query arrives as a space.
    r"(?:[Zz]|(?P<sign>[+ -])(?P<offset_hour>[0-9]{2}):(?P<offset_minute>[0-9]{2}))\Z"
)


@frozen
class Instant:
    """An instant as it was written.

    `second` is the Unix second that it is in, `fraction` the digits after the decimal point without
    trailing zeros. `whole_second` is true if it was written without a fraction.
    """

    second: int
    fraction: str
    whole_second: bool
    zone: tzinfo

    @property
    def first_ms(self) -> int:
        """The first whole millisecond at or after it."""
        beyond = len(self.fraction) > 3  # noqa: PLR2004 - digits of a millisecond
        return self._floor_ms + beyond

    @property
    def last_ms(self) -> int:
        """The last millisecond at or before it; the last one of a whole second."""
        return self._floor_ms + (999 if self.whole_second else 0)

    @property
    def _floor_ms(self) -> int:
        return self.second * 1000 + int(self.fraction[:3].ljust(3, "0"))


def parse_instant(text: str, field: str) -> Instant:
    """Return the instant of an RFC 3339 section 5.6 date-time. Raises BadRequest naming `field`.

    The offset is required. `t` and `z` may be lower case, and a space may replace `T` and the `+`
    of the offset. As on Unix clocks, a leap second (23:59:60 in UTC) is the second after it.
    """
    match = _DATE_TIME.match(text)
    if match is None:
        raise BadRequest(f"{field}: expected an RFC 3339 date-time such as 2024-01-31T00:00:00Z")
    year, month, day, hour, minute, second = map(
        int, match.group("year", "month", "day", "hour", "minute", "second")
    )
    offset_minutes = 0
    if match["sign"]:
        offset_hour, offset_minute = int(match["offset_hour"]), int(match["offset_minute"])
        if offset_hour > 23 or offset_minute > 59:  # noqa: PLR2004 - RFC 3339's time-numoffset
            raise BadRequest(f"{field}: expected an offset from -23:59 to +23:59")
        offset_minutes = offset_hour * 60 + offset_minute
        if match["sign"] == "-":
            offset_minutes = -offset_minutes
    try:
        day_number = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        raise BadRequest(f"{field}: expected a date of the years 0001 to 9999") from None
    unix_s = day_number * 86400 + hour * 3600 + minute * 60 + second - offset_minutes * 60
    leap = second == 60 and unix_s % 86400 == 0  # noqa: PLR2004 - RFC 3339 section 5.7
    if hour > 23 or minute > 59 or (second > 59 and not leap):  # noqa: PLR2004 - a clock's bounds
        raise BadRequest(f"{field}: expected a time from 00:00:00 to 23:59:59")
    return Instant(
        second=unix_s,
        fraction=(match["fraction"] or "").rstrip("0"),
        whole_second=match["fraction"] is None,
        zone=timezone(timedelta(minutes=offset_minutes)) if offset_minutes else UTC,
    )


@frozen
class Period:
    """The period start_ms ≤ time ≤ end_ms in Unix milliseconds; None is no bound.

    `zone` is the UTC offset with which the start was written.
    """

    start_ms: int | None = None
    end_ms: int | None = None
    zone: tzinfo = UTC

    def is_outside(self, least_ms: int, greatest_ms: int) -> bool:
        """Return whether no time from `least_ms` to `greatest_ms` is in the period."""
        return (self.start_ms is not None and greatest_ms < self.start_ms) or (
            self.end_ms is not None and least_ms > self.end_ms
        )

    def contains(self, least_ms: int, greatest_ms: int) -> bool:
        """Return whether every time from `least_ms` to `greatest_ms` is in the period."""
        return (self.start_ms is None or least_ms >= self.start_ms) and (
            self.end_ms is None or greatest_ms <= self.end_ms
        )

    def days_of(self, least_ms: int, greatest_ms: int) -> range:
        """Return the local dates, as days since 1970-01-01, of two times and between them.

        Only those in the period.
        """
        first_ms = least_ms if self.start_ms is None else max(least_ms, self.start_ms)
        last_ms = greatest_ms if self.end_ms is None else min(greatest_ms, self.end_ms)
        if first_ms > last_ms:
            return range(0)
        first, last = (
            datetime.fromtimestamp(ms / 1000, self.zone).toordinal() - _EPOCH_DAY
            for ms in (first_ms, last_ms)
        )
        return range(first, last + 1)

    def slice_of(self, ascending_ms: NDArray[np.int64]) -> slice:
        """Return the slice of some ascending times that are in the period."""
        begin, end = 0, len(ascending_ms)
        if self.start_ms is not None:
            begin = int(np.searchsorted(ascending_ms, np.int64(self.start_ms)))
        if self.end_ms is not None:
            end = int(np.searchsorted(ascending_ms, np.int64(self.end_ms), side="right"))
        return slice(begin, max(begin, end))

    def mask(self, time_ms: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which times are in the period, shape (n,)."""
        mask = np.ones(len(time_ms), np.bool_)
        if self.start_ms is not None:
            mask &= time_ms >= self.start_ms
        if self.end_ms is not None:
            mask &= time_ms <= self.end_ms
        return mask


ALWAYS: Final = Period()
"""The period without bounds."""
BOUNDS: Final = ("start", "end")
"""The parameters of a period."""


def parse_period(start: str | None, end: str | None, names: tuple[str, str] = BOUNDS) -> Period:
    """Return the period between two instants, which are parameters of some names.

    Raises BadRequest if malformed or the wrong way round.
    """
    first = None if start is None else parse_instant(start, names[0])
    last = None if end is None else parse_instant(end, names[1])
    if first and last:
        # An end in whole seconds includes that second.
        begun = (first.second, "" if last.whole_second else first.fraction)
        if begun > (last.second, last.fraction):
            raise BadRequest(f"{names[0]}: expected a date-time that is not after {names[1]}")
    return Period(
        start_ms=first.first_ms if first else None,
        end_ms=last.last_ms if last else None,
        zone=first.zone if first else UTC,
    )


def previous_period(period: Period) -> Period:
    """Return the period of the same length just before one.

    Raises BadRequest without both bounds.
    """
    if period.start_ms is None or period.end_ms is None:
        raise BadRequest("previous: expected start and end to be given as well")
    length_ms = period.end_ms - period.start_ms + 1
    return Period(period.start_ms - length_ms, period.start_ms - 1, period.zone)
