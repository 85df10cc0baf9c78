"""The hits as they are to be stored: views, leavings and events."""

from typing import TypeAlias

from attrs import frozen

Properties: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of an event's properties, each name once, in the order sent."""


@frozen
class Visitor:
    """A visitor on one day, as a server names them. Never stored but as a keyed hash, for a day."""

    name: str
    day: int
    """The day's number in the proleptic calendar, in the zone whose midnight begins it."""


@frozen(kw_only=True)
class View:
    """A page that was shown: one stored load.

    Texts are in their stored form: `country` an ISO 3166 alpha-2 code and `locale` a BCP 47 tag
    (both "" when unknown), `browser`, `os` and `device` names ("Unknown" when unknown), the
    versions "" when unknown, `referrer` host and path, the UTM fields "" when absent.
    """

    website: int
    time_ms: int
    beacon: str
    first_today: bool
    """The visitor's first view of the day (`p`)."""
    first_of_page: bool
    """The visitor's first view of this page (`q`)."""
    path: str
    referrer: str = ""
    utm_source: str = ""
    utm_medium: str = ""
    utm_campaign: str = ""
    utm_term: str = ""
    utm_content: str = ""
    browser: str = "Unknown"
    browser_version: str = ""
    os: str = "Unknown"
    os_version: str = ""
    device: str = "Unknown"
    country: str = ""
    locale: str = ""
    host: str = ""
    """The hostname that served the page, which `www.` may set apart from the website's."""
    number_today: int = 0
    """The visitor's how-manieth view today, from 1; 0 when the tracker did not say."""
    width_px: int = 0
    """Width of the window; 0 when the tracker did not say."""
    happened_ms: int = 0
    """When it was, where that is stated; 0 for at `time_ms`, when it came."""
    visitor: Visitor | None = None
    """Whose view it is, where that tells whether it is the first of the day and of the page."""
    properties: Properties = ()


@frozen(kw_only=True)
class Leaving:
    """A page that was left (an `unload`), after `duration_ms` (1 to 86,400,000) of being seen."""

    time_ms: int
    beacon: str
    duration_ms: int
    websites: frozenset[int] | None = None
    """Of which websites the page may be, as far as is known: None for any."""


@frozen(kw_only=True)
class Event:
    """Something that happened on a website (a `custom`), in the view of `beacon` if there is."""

    website: int
    time_ms: int
    properties: Properties
    beacon: str = ""
    happened_ms: int = 0
    """When it was, where that is stated; 0 for at `time_ms`, when it came."""


Hit: TypeAlias = View | Leaving | Event
