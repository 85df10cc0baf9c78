"""Counting a visitor's views without identifying the visitor.

The browser caches the date of the last response and sends it back with the next view. The date is
of the last day on which the visitor was here; if that is today, its seconds past midnight are the
number of views so far.
"""

import re
from calendar import timegm
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import formatdate
from typing import Final, Literal

from attrs import frozen

from medamad.domain.dimensions import Since
from medamad.domain.errors import BadRequest

MAX_VIEWS: Final = 3_600
"""The maximum count, for any later date."""

REMEMBERED_S: Final = 365 * 86_400
"""How long before today an earlier view may be for the visitor to be a returning one."""

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

    @property
    def body(self) -> Literal["0", "1"]:
        """The body: "0" for the visitor's first view of the day, else "1"."""
        return "1" if self.views_before else "0"

    @property
    def last_modified(self) -> str:
        """The date that the browser caches, and sends with its next view."""
        return http_date(self.midnight + self.views_before)


def answer(if_modified_since: str | None, now: float, zone: tzinfo) -> Ping:
    """Return the response to a ping at `now`, in Unix seconds; days begin at midnight in `zone`.

    Raises BadRequest if there is an If-Modified-Since that is not an HTTP date.
    """
    midnight = _midnight(now, zone)
    if if_modified_since is None:
        return Ping(midnight, 0, Since.NEW)
    received = _read(if_modified_since, now)
    if received < midnight:
        return Ping(midnight, 0, _since(received, midnight, zone))
    return Ping(midnight, min(received - midnight + 1, MAX_VIEWS), Since.DAY)


def http_date(seconds: int) -> str:
    """Return Unix seconds as an HTTP date."""
    return formatdate(seconds, usegmt=True)


def _midnight(now: float, zone: tzinfo) -> int:
    """Return the Unix second when the day began, its first one if midnight is skipped."""
    today = datetime.fromtimestamp(now, zone)
    return int(today.replace(hour=0, minute=0, second=0, microsecond=0, fold=0).timestamp())


def _since(received: int, midnight: int, zone: tzinfo) -> Since:
    """Return when a visitor was here last, who was not since `midnight`."""
    if received < midnight - REMEMBERED_S:
        return Since.NEW
    last, today = (datetime.fromtimestamp(unix_s, zone).date() for unix_s in (received, midnight))
    is_before_week = last < today - timedelta(days=today.weekday())
    if last < today.replace(day=1):
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
