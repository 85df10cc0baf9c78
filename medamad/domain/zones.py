"""Time zones at any instant: the zone of a name, the offset at a second, where a day begins."""

from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

from medamad.domain.errors import BadRequest

DAY_S: Final = 86_400
DAY_MS: Final = 1_000 * DAY_S
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a local time, of no zone yet
# No zone changes its offset near the ends of the calendar: beyond them, the offset there is used.
_FIRST_S: Final = int((datetime(1, 1, 4, tzinfo=UTC) - _EPOCH).total_seconds())
_LAST_S: Final = int((datetime(9999, 12, 28, tzinfo=UTC) - _EPOCH).total_seconds())


@cache
def _names() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text("ascii").split())


def zone_named(name: str, field: str = "timezone") -> tzinfo:
    """Return the IANA time zone of that name, or raise BadRequest naming `field`."""
    if name not in _names():
        raise BadRequest(f"{field}: expected an IANA time zone such as Europe/Berlin")
    return ZoneInfo(name)


def _seconds(offset: timedelta | None) -> int:
    return 0 if offset is None else offset.days * DAY_S + offset.seconds


def offset_at(zone: tzinfo, unix_s: int) -> int:
    """Return the offset from UTC, in seconds, that is in force at an instant."""
    instant = _EPOCH + timedelta(seconds=min(max(unix_s, _FIRST_S), _LAST_S))
    return _seconds(instant.astimezone(zone).utcoffset())


def change_between(zone: tzinfo, low_s: int, high_s: int) -> int:
    """Return the second at which the offset of `low_s` ends, known to be over at `high_s`."""
    before = offset_at(zone, low_s)
    while high_s - low_s > 1:
        middle_s = (low_s + high_s) // 2
        if offset_at(zone, middle_s) == before:
            low_s = middle_s
        else:
            high_s = middle_s
    return high_s


def day_at(zone: tzinfo, unix_s: int) -> int:
    """Return the local date at an instant, as the number of days since 1970-01-01."""
    return (unix_s + offset_at(zone, unix_s)) // DAY_S


def start_of_day(zone: tzinfo, day: int) -> int:
    """Return the Unix second at which a local date begins: its first midnight.

    Where the clock is set forward over midnight, the day begins at that moment; a day that is
    left out altogether begins when the next one does.
    """
    local_s = day * DAY_S
    midnight = _LOCAL_EPOCH + timedelta(seconds=min(max(local_s, _FIRST_S), _LAST_S))
    # PEP 495: of a time that comes twice, fold 0 is the first; of one that is left out, the
    # offset of fold 0 is the one before the gap.
    early = _seconds(midnight.replace(tzinfo=zone, fold=0).utcoffset())
    late = _seconds(midnight.replace(tzinfo=zone, fold=1).utcoffset())
    if late > early:
        return change_between(zone, local_s - late - 1, local_s - early)
    return local_s - early
