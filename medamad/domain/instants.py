"""Instants as RFC 3339 date-times, and days."""

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import Final

from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.domain.zones import start_of_day

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, without writing its offset
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_DATE_TIME: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"[Tt ]"
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?"
    # A raw `+` in a query arrives as a space.
    r"(?:[Zz]|(?P<sign>[+ -])(?P<offset_hour>[0-9]{2}):(?P<offset_minute>[0-9]{2}))\Z"
)


def second_of(text: str, field: str, zone: tzinfo) -> int:
    """Return the Unix second at which a day such as 2026-01-31 begins by the clock of a zone.

    Or that of an RFC 3339 date-time. Raises BadRequest naming `field`.
    """
    if not is_day(text):
        return parse_instant(text, field).second
    try:
        return start_of_day(zone, date.fromisoformat(text).toordinal() - _EPOCH_DAY)
    except ValueError:
        raise BadRequest(f"{field}: expected a date of the years 0001 to 9999") from None


def second_as_text(unix_s: int) -> str:
    """Return a Unix second as a date-time in UTC, 2026-01-31T18:00:00Z. Raises OverflowError."""
    return f"{(_EPOCH + timedelta(seconds=unix_s)).isoformat()}Z"


def day_as_text(day: int) -> str:
    """Return the date of a day, which is the number of days since 1970-01-01."""
    return date.fromordinal(_EPOCH_DAY + day).isoformat()


def is_day(text: str) -> bool:
    """Return whether a text has the form of a day such as 2026-01-31."""
    return _DAY.match(text) is not None


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
