"""The URL of a page, its campaign and referrer, and the websites of an Origin."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import SplitResult, unquote_plus, urlsplit

from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.domain.paths import MAX_PATH, stored_path
from medamad.domain.websites import MAX_HOSTNAME, Website, canonical_hostname
from medamad.ingest.networks import address_of, is_address
from medamad.storage.websites import Websites

MAX_AUTHORITY: Final = 512
"""Characters of user, host and port that are parsed, twice as many as the longest host has."""

_LONG_AUTHORITY: Final = re.compile(rf"[^/]*+/[\t\n\r]*+/[^/?#]{{{MAX_AUTHORITY + 1}}}")
"""The authority as `urlsplit` finds it, which ignores tabs and line ends."""


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL, as `urlsplit` does. Raises ValueError if it is not one.

    `urlsplit` normalises a host that is not ASCII, in time that grows with the square of the
    combining characters in a row. Long hosts are therefore rejected before.
    """
    if not url.isascii() and _LONG_AUTHORITY.match(url):
        raise ValueError("the host is too long")
    return urlsplit(url)


MAX_UTM: Final = 512
CACHED: Final = 2_048
CACHED_TO: Final = 256
"""How many parsed URLs are cached, and how long these are at most."""

_EXPECTED: Final = "u: expected an http or https URL"


def _spelt(word: str) -> str:
    """Return the pattern of a word whose characters may each be percent-encoded."""
    return "".join(rf"(?:{char}|%{ord(char):02x}|%{ord(char.upper()):02x})" for char in word)


_UTM: Final = "|".join(
    f"(?P<utm_{name}>{_spelt(name)})"
    for name in ("source", "medium", "campaign", "term", "content")
)
_CAMPAIGN: Final = re.compile(
    rf"&{_spelt('utm_')}(?:{_UTM})(?:=[^&]*|(?=&)|\Z)", re.ASCII | re.IGNORECASE
)
_LONGEST_ESCAPE: Final = len("%F0%9F%98%80")
"""The most characters that can encode a single one."""


@frozen
class Page:
    """A page. `host` is canonical; the UTM fields are "" when absent."""

    host: str
    path: str
    utm_source: str = ""
    utm_medium: str = ""
    utm_campaign: str = ""
    utm_term: str = ""
    utm_content: str = ""


def page_of(url: str) -> Page:
    """Return the page of a URL. Raises BadRequest unless it is an http or https URL.

    Pages repeat; a query may identify somebody, and is not kept.
    """
    return (_page_of if "?" in url or len(url) > CACHED_TO else _known_page_of)(url)


def _page_of(url: str) -> Page:
    """Return the page of a URL.

    The path is percent-decoded where that yields valid UTF-8, has no trailing slash except for "/",
    and is cut at MAX_PATH characters; UTM fields are cut at MAX_UTM.
    """
    try:
        parts = split_url(url)
        host = parts.hostname
        parts.port  # noqa: B018 - raises if it is not a port
    except ValueError:
        raise BadRequest(_EXPECTED) from None
    if parts.scheme not in {"http", "https"} or not host:
        raise BadRequest(_EXPECTED)
    return Page(_host(host), stored_path(parts.path), **_campaign(parts.query))


_known_page_of: Final = lru_cache(CACHED)(_page_of)


def _host(host: str) -> str:
    """Return a hostname in its canonical form, or an address as browsers write it.

    No website is at an address, but a page may be, and its URL is well-formed. URLs have no zone
    identifiers, which may be any text.
    """
    try:
        return canonical_hostname(host, "u")
    except BadRequest:
        if "%" not in host and address_of(host) is not None:
            return host
        raise


def _campaign(query: str) -> dict[str, str]:
    """Return the UTM fields of a query: names in any case, the first of a name."""
    found: dict[str, str] = {}
    if "utm" in query.lower() or "%" in query:
        for pair in _CAMPAIGN.finditer(f"&{query}"):
            name = pair.lastgroup
            if name is not None and name not in found:
                value = pair[0].partition("=")[2]
                found[name] = unquote_plus(value[: MAX_UTM * _LONGEST_ESCAPE])[:MAX_UTM]
    return found


_SCHEMES: Final = frozenset({"http", "https", "android-app", "ios-app"})
"""Schemes of pages and of apps; where a page has its host, an app has its name."""

_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){1,9}\Z", re.ASCII)
"""Names of apps, and hosts with an underscore, which hostnames must not have."""


@frozen
class Source:
    """Where a view comes from.

    `referrer` is host and path, at most MAX_PATH characters, without scheme, query, fragment,
    leading `www.` or trailing slash; "" for none. `own_page` is the path of the website's page that
    the view comes from, None if it comes from elsewhere.
    """

    referrer: str = ""
    own_page: str | None = None


_NO_SOURCE: Final = Source()


def referrer_of(url: str, own_hosts: tuple[str, ...]) -> str:
    """Return the referrer as it is stored, "" for a page of the website; see `source_of`."""
    return source_of(url, own_hosts).referrer


def source_of(url: str, own_hosts: tuple[str, ...]) -> Source:
    """Return where a view comes from, by the URL of its referrer.

    An IP address, anything but a URL of a page or app, and a host in `own_hosts`, with `www.` or
    without, are no referrer.
    """
    return (_source_of if "?" in url or len(url) > CACHED_TO else _known_source_of)(url, own_hosts)


def _source_of(url: str, own_hosts: tuple[str, ...]) -> Source:
    try:
        parts = split_url(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return _NO_SOURCE
    if parts.scheme not in _SCHEMES or not host or is_address(host):
        return _NO_SOURCE
    host = _referrer_host(host).removeprefix("www.")
    if not host:
        return _NO_SOURCE
    if host in own_hosts or f"www.{host}" in own_hosts:
        return Source(own_page=stored_path(parts.path))
    return Source(f"{host}{stored_path(parts.path)}"[:MAX_PATH].rstrip("/"))


_known_source_of: Final = lru_cache(CACHED)(_source_of)


def _referrer_host(host: str) -> str:
    """Return the canonical form of a hostname or the name of an app, "" for neither."""
    try:
        return canonical_hostname(host)
    except BadRequest:
        return host if _NAME.match(host) else ""


_ORIGIN_SCHEMES: Final = ("http", "https")


def host_of(origin: str) -> str | None:
    """Return the host of an Origin header, None if it has none.

    Browsers send "null" from sandboxed frames and pages without referrers, and no header in some
    requests; apps have schemes of their own. None of these names a page.
    """
    scheme, _, rest = origin.partition("://")
    if scheme not in _ORIGIN_SCHEMES:
        return None
    name, colon, port = rest.rpartition(":")
    host = name if colon and port.isdecimal() else rest
    return host.removesuffix(".")


def websites_on(host: str, websites: Websites) -> Iterator[Website]:
    """Yield the websites on a host and on its parent domains, the host's own first."""
    rest = host if len(host) <= MAX_HOSTNAME else ""
    while rest:
        if website := websites.serving(rest):
            yield website
        rest = rest.partition(".")[2]


def websites_of(host: str, websites: Websites) -> frozenset[int]:
    """Return the numbers of the websites on a host and on its parent domains."""
    return _shared(frozenset(website.number for website in websites_on(host, websites)))


@lru_cache(1_024)
def _shared(numbers: frozenset[int]) -> frozenset[int]:
    """Return the same object for equal sets: many waiting hits refer to it."""
    return numbers
