"""Counting a visitor's views without identifying the visitor.

The browser caches the date of the last response and sends it back with the next view. The date is
of the last day on which the visitor was here; if that is today, its seconds past midnight are the
number of views so far. The tracker's address of a day is not used on another, so its date ends with
the day. Where browsers remember for a year, an entity tag has the day on which the date was first
set, and ends it a year later.
"""

import re
from calendar import timegm
from datetime import UTC, date, datetime, timedelta, tzinfo
from email.utils import formatdate
from typing import Final, Literal

from attrs import frozen

from medamad.domain.dimensions import Since
from medamad.domain.errors import BadRequest
from medamad.domain.zones import DAY_S, day_at, start_of_day

MAX_VIEWS: Final = 3_600
"""The maximum count, for any later date."""

REMEMBERED_DAYS: Final = 365
"""For how many days a browser remembers, from the day on which its date was first set."""

_FIRST_DAY: Final = re.compile(r'W/"([0-9]{1,6})')
"""The entity tag of a date. Some proxies append their name to the number."""

_EPOCH: Final = date(1970, 1, 1).toordinal()
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_DAY: Final = r"(?:mon|tue|wed|thu|fri|sat|sun)"
_LONG_DAY: Final = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
_MONTH: Final = rf"(?P<month>{'|'.join(_MONTHS)})"
_TIME: Final = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMS: Final = tuple(
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        rf"{_DAY}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT",
        rf"{_LONG_DAY}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT",
        rf"{_DAY} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})",
    )
)
"""The three forms of an HTTP date (RFC 9110, section 5.6.7): today's, RFC 850's, asctime's."""

_RFC_850: Final = _FORMS[1]
_CENTURY: Final = 100
_FAR_YEARS: Final = 50


@frozen
class Ping:
    """The response to a ping. `midnight` is the Unix second when the day began."""

    midnight: int
    views_before: int
    """The number of earlier views of the day, as far as the browser knows."""
    since: Since
    """When the visitor was here last."""
    first_day: int
    """The day on which the browser's date was first set; days count from 1970-01-01."""
    today: int

    @property
    def body(self) -> Literal["0", "1"]:
        """The body: "0" for the visitor's first view of the day, else "1"."""
        return "1" if self.views_before else "0"

    @property
    def last_modified(self) -> str:
        """The date that the browser caches, and sends with its next view."""
        return http_date(self.midnight + self.views_before)

    @property
    def entity_tag(self) -> str:
        """The day on which the date was first set, where it outlives the day."""
        return f'W/"{self.first_day}"'

    @property
    def remaining_s(self) -> int:
        """For how long a date may stay that outlives the day: until a year after it was set."""
        return (self.first_day + REMEMBERED_DAYS - self.today) * DAY_S


def answer(
    if_modified_since: str | None, now: float, zone: tzinfo, if_none_match: str | None = None
) -> Ping:
    """Return the response to a ping at `now`, in Unix seconds; days begin at midnight in `zone`.

    Raises BadRequest if there is an If-Modified-Since that is not an HTTP date.
    """
    today = day_at(zone, int(now))
    midnight = start_of_day(zone, today)
    if if_modified_since is None:
        return Ping(midnight, 0, Since.NEW, today, today)
    received = _read(if_modified_since, now)
    last_day = min(day_at(zone, received), today)
    tag = _FIRST_DAY.match(if_none_match or "")
    first_day = min(int(tag[1]), last_day) if tag else last_day
    if received >= midnight:
        views_before = min(received - midnight + 1, MAX_VIEWS)
        return Ping(midnight, views_before, Since.DAY, max(first_day, _oldest(today)), today)
    if first_day < _oldest(today):
        return Ping(midnight, 0, Since.NEW, today, today)
    return Ping(midnight, 0, _since(last_day, today), first_day, today)


def _oldest(today: int) -> int:
    """Return the first day of a date that still counts."""
    return today - REMEMBERED_DAYS + 1


def http_date(seconds: int) -> str:
    """Return Unix seconds as an HTTP date."""
    return formatdate(seconds, usegmt=True)


def _since(last_day: int, today: int) -> Since:
    """Return when a visitor was here last whose last day was before today."""
    last, now = (date.fromordinal(_EPOCH + day) for day in (last_day, today))
    is_before_week = last < now - timedelta(days=now.weekday())
    if last < now.replace(day=1):
        return Since.MONTH if is_before_week else Since.MIDWEEK
    return Since.WEEK if is_before_week else Since.DAY


def _read(text: str, now: float) -> int:
    """Return the Unix seconds of an HTTP date."""
    for form in _FORMS:
        if match := form.fullmatch(text.strip()):
            year = int(match["year"])
            if form is _RFC_850:
                year = _full_year(year, now)
            try:
                moment = datetime(
                    year,
                    _MONTHS.index(match["month"].lower()) + 1,
                    int(match["day"]),
                    int(match["hour"]),
                    int(match["minute"]),
                    int(match["second"]),
                    tzinfo=UTC,
                )
            except ValueError:
                break
            return timegm(moment.utctimetuple())
    raise BadRequest("If-Modified-Since: expected an HTTP date")


def _full_year(year: int, now: float) -> int:
    """Return the year of two digits: not more than 50 years ahead, or else in the past."""
    this_year = datetime.fromtimestamp(now, UTC).year
    full = this_year - this_year % _CENTURY + year
    return full - _CENTURY if full > this_year + _FAR_YEARS else full
