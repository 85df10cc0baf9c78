"""Hits: which are accepted, and how they are stored: views, their ends, and events."""

from typing import Literal, TypeAlias

import msgspec
from attrs import frozen

from medamad.domain.dimensions import WidthClass

BotRule: TypeAlias = Literal["declared", "strict", "off"]
"""Which hits to ignore: declared crawlers; also HTTP libraries and unknown agents; or none."""

OriginRule: TypeAlias = Literal["website", "any"]
"""The pages that may send hits for a website: those on it and its subdomains, or any."""

Properties: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of an event's properties, each name once, in the order sent."""


@frozen
class Visitor:
    """A visitor on one day, by a server's id. Stored as a keyed hash, while the day may grow."""

    name: str
    day: int
    """The day's number in the proleptic calendar, in the zone whose midnight begins it."""


class View(msgspec.Struct, frozen=True):
    """A page that was shown: one stored load. The arguments by position make it fastest.

    Texts are in their stored form: `country` an ISO 3166 alpha-2 code and `locale` a BCP 47 tag
    (both "" when unknown), `browser`, `os` and `device` names ("Unknown" when unknown), the
    major versions "" when unknown, `referrer` host and path, the UTM fields "" when absent.
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
    """The hostname of the page: the website's, with `www.` or without."""
    since: str = ""
    """When the visitor was here last: one of `dimensions.Since`, "" if unknown."""
    width_class: WidthClass = WidthClass.UNKNOWN
    """The class of the window's width."""
    happened_ms: int = 0
    """When it happened, if a server stated it; 0 for `time_ms`, when it arrived."""
    visitor: Visitor | None = None
    """The visitor, if the store has to find out `first_today` and `first_of_page`."""
    properties: Properties = ()
    network: bytes = b""
    """The /24 or /48 it came from, for limits; b"" if no limit of networks applies. Not stored."""
    # What assigns the view to a visit, in memory alone: none of it is ever stored or logged.
    identity: bytes = b""
    """Address (of IPv6 the /64), User-Agent and Accept-Language; or, of a visitor that a server
    names, the name and Accept-Language. b"" if the view belongs to no visit."""
    number_today: int = 0
    """Which view of the visitor's day it is (`n`), 0 if unknown."""
    width_px: int = 0
    """The width of the window, 0 if unknown."""
    from_page: str | None = None
    """The path of the website's page that it comes from, None if it comes from elsewhere."""

    def __repr__(self) -> str:
        """Return a text without anything that identifies the visitor."""
        return f"View(website={self.website}, beacon={self.beacon!r}, path={self.path!r})"


class Unload(msgspec.Struct, frozen=True, kw_only=True):
    """The end of the view of a page that was visible for `duration_ms` (1 to 86,400,000)."""

    time_ms: int
    beacon: str
    duration_ms: int
    websites: frozenset[int] | None = None
    """The websites that the page may belong to, None for any."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened on a website (a `custom`), in the view of `beacon`, if any."""

    website: int
    time_ms: int
    properties: Properties
    beacon: str = ""
    happened_ms: int = 0
    """When it happened, if a server stated it; 0 for `time_ms`, when it arrived."""
    network: bytes = b""
    """As that of a view."""


Hit: TypeAlias = View | Unload | Event
