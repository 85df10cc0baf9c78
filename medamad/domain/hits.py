"""Hits: which are accepted, and how they are stored: views, their ends, and events."""

from typing import Final, Literal, TypeAlias

import msgspec
from attrs import define, fields_dict, frozen

from medamad.domain.dimensions import UNKNOWN, ViewNumber, WidthClass

BotRule: TypeAlias = Literal["declared", "strict", "off"]
"""Which hits to ignore: declared crawlers; also HTTP libraries and unknown agents; or none."""

HostingRule: TypeAlias = Literal["count", "count apart", "ignore"]
"""What becomes of hits from networks of hosting providers: they count, as robots, or not at all."""

OriginRule: TypeAlias = Literal["website", "any"]
"""The pages that may send hits for a website: those on it and its subdomains, or any."""

Properties: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values of an event's properties, each name once, in the order sent."""


@frozen
class Visitor:
    """A visitor on one day, whose first views the store has to find.

    One whom a server names is stored as a keyed hash, while the day may grow.
    """

    name: str
    day: int
    """The day's number in the proleptic calendar, in the zone whose midnight begins it."""
    is_stored: bool = True
    """Whether that is so: others are remembered in memory alone, and forgotten with it."""


@define(kw_only=True)
class StoredView:
    """What a view is stored with, besides when it was and where: a field for each of its columns.

    Its name is that of a `Dimension`, `ViewNumber` or `ViewFlag` in lower case. Exports have a
    column of this name, by its type: an enum is exported by the names of its members. What is
    unknown is "" or 0, but `browser`, `os` and `device` are "Unknown".
    """

    path: str
    referrer: str = ""
    """Host and path."""
    utm_source: str = ""
    utm_medium: str = ""
    utm_campaign: str = ""
    utm_term: str = ""
    utm_content: str = ""
    browser: str = UNKNOWN
    browser_version: str = ""
    """The major version, as that of the system."""
    os: str = UNKNOWN
    os_version: str = ""
    device: str = UNKNOWN
    country: str = ""
    """An ISO 3166 alpha-2 code."""
    locale: str = ""
    """A BCP 47 tag."""
    host: str = ""
    """The hostname of the page: the website's, with `www.` or without."""
    since: str = ""
    """When the visitor was here last: one of `dimensions.Since`."""
    width_class: WidthClass = WidthClass.UNKNOWN
    """The class of the window's width."""
    first_today: bool = False
    first_of_page: bool = False
    hosting: bool = False
    """Whether it came from a network of a hosting provider; False also without a list of these."""


NUMBERS_OF_HITS: Final = tuple(
    number for number in ViewNumber if number.attribute in fields_dict(StoredView)
)
"""The numbers that a hit comes with. The others are determined when it is stored."""


@define(kw_only=True, repr=False)
class View(StoredView):
    """A page that was shown: one stored load. Nothing changes it, though it is not frozen.

    A frozen class would take twice as long to make.
    """

    website: int
    time_ms: int
    beacon: str
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
    needs_view: bool = False
    """Whether it is stored only where its view is known."""
    passed_id: bytes = b""
    """By which it is recognised if another collector sends it twice; b"" if it is from none."""


Hit: TypeAlias = View | Unload | Event
