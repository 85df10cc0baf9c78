"""The page of a view and where it came from: URL, campaign, referrer, website of an Origin."""

import re
from collections.abc import Container
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from urllib.parse import SplitResult, unquote_plus, urlsplit

from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.domain.websites import MAX_HOSTNAME, canonical_hostname
from medamad.ingest.networks import address_of, is_address
from medamad.storage.websites import Websites

MAX_AUTHORITY: Final = 512
"""Characters of user, host and port that are looked at. The longest host has half of them."""

_LONG_AUTHORITY: Final = re.compile(rf"[^/]*+/[\t\n\r]*+/[^/?#]{{{MAX_AUTHORITY + 1}}}")
"""As `urlsplit` finds it, which passes over tabs and line ends."""


def split_url(url: str) -> SplitResult:
    """Take a URL apart as `urlsplit` does. Raises ValueError for what is none.

    That normalises what stands for the host unless it is ASCII, and the time for this grows with
    the square of the combining characters in a row: so nothing long is normalised.
    """
    if not url.isascii() and _LONG_AUTHORITY.match(url):
        raise ValueError("a host is not that long")
    return urlsplit(url)


MAX_PATH: Final = 2_048
MAX_UTM: Final = 512

_EXPECTED: Final = "u: expected an http or https URL"


def _spelt(word: str) -> str:
    """Return the pattern of a word of which each character may be escaped."""
    return "".join(rf"(?:{char}|%{ord(char):02x}|%{ord(char.upper()):02x})" for char in word)


_UTM: Final = "|".join(
    f"(?P<utm_{name}>{_spelt(name)})"
    for name in ("source", "medium", "campaign", "term", "content")
)
_CAMPAIGN: Final = re.compile(
    rf"&{_spelt('utm_')}(?:{_UTM})(?:=[^&]*|(?=&)|\Z)", re.ASCII | re.IGNORECASE
)
_LONGEST_ESCAPE: Final = len("%F0%9F%98%80")
"""Characters that may stand for a single one."""

_ESCAPED: Final = re.compile(
    r"""(?:%[0-7][\da-f]
    | %(?:c[2-9a-f] | d[\da-f]) %[89ab][\da-f]
    | %(?:e0%[ab] | ed%[89] | e[1-9a-cef]%[89ab])[\da-f] %[89ab][\da-f]
    | %(?:f0%[9ab] | f[1-3]%[89ab] | f4%8)[\da-f] (?:%[89ab][\da-f]){2})++""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""Percent-escapes of UTF-8 (RFC 3629, section 4)."""
_MOST_RUNS: Final = MAX_PATH // 2 + 1
"""So many runs of escapes, and what stands between them, make MAX_PATH characters."""


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
    """Take the URL of a page apart. Raises BadRequest unless it is an http or https URL.

    The path comes as sent, percent-decoded where that gives valid UTF-8, without a trailing
    slash except for "/", cut at MAX_PATH characters; UTM fields are cut at MAX_UTM.
    """
    try:
        parts = split_url(url)
        host = parts.hostname
        parts.port  # noqa: B018 - raises for what is no port
    except ValueError:
        raise BadRequest(_EXPECTED) from None
    if parts.scheme not in {"http", "https"} or not host:
        raise BadRequest(_EXPECTED)
    return Page(_host(host), stored_path(parts.path), **_campaign(parts.query))


def stored_path(path: str) -> str:
    """Return a path of a URL as it is kept; "/" for none."""
    decoded = _ESCAPED.sub(_decoded, path, _MOST_RUNS) if "%" in path else path
    return decoded[:MAX_PATH].rstrip("/") or "/"


def _host(host: str) -> str:
    """Return the one spelling of a hostname, or an address as browsers write it.

    No website is at an address, but a page may be, and its URL is no malformed one. A zone is none
    of a URL's, and may be any text.
    """
    try:
        return canonical_hostname(host, "u")
    except BadRequest:
        if "%" not in host and address_of(host) is not None:
            return host
        raise


def _decoded(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8")


def _campaign(query: str) -> dict[str, str]:
    """Return the UTM fields of a query: names in any case, the first one of a name counts."""
    found: dict[str, str] = {}
    if "utm" in query.lower() or "%" in query:
        for pair in _CAMPAIGN.finditer(f"&{query}"):
            name = pair.lastgroup
            if name is not None and name not in found:
                value = pair[0].partition("=")[2]
                found[name] = unquote_plus(value[: MAX_UTM * _LONGEST_ESCAPE])[:MAX_UTM]
    return found


_SCHEMES: Final = frozenset({"http", "https", "android-app", "ios-app"})
"""Schemes of pages and of apps; an app is named where a page has its host."""

_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){1,9}\Z", re.ASCII)
"""What names of apps and some hosts look like, though no hostname has an underscore."""


def referrer_of(url: str, own_hosts: Container[str]) -> str:
    """Return the referrer as it is kept: host and path, at most MAX_PATH characters.

    No scheme, query, fragment, leading `www.` or trailing slash. "" for none, for an address, for
    what is no URL of a page or app, and for a host in `own_hosts`, with `www.` or without.
    Never raises.
    """
    try:
        parts = split_url(url.strip())
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme not in _SCHEMES or not host or is_address(host):
        return ""
    host = _referrer_host(host).removeprefix("www.")
    if not host or host in own_hosts or f"www.{host}" in own_hosts:
        return ""
    return f"{host}{stored_path(parts.path)}"[:MAX_PATH].rstrip("/")


def _referrer_host(host: str) -> str:
    """Return the one spelling of a hostname or of an app's name, "" when it is neither."""
    try:
        return canonical_hostname(host)
    except BadRequest:
        return host if _NAME.match(host) else ""


OriginRule: TypeAlias = Literal["website", "any"]
"""Whose pages may report for a website: its own, and those of names below it; or all."""

_ORIGIN_SCHEMES: Final = ("http", "https")


def host_of(origin: str) -> str | None:
    """Return the host of an Origin header, None where it tells of none.

    Browsers send "null" from sandboxed frames and pages without referrers, and nothing in some
    requests; apps have schemes of their own. Nobody's page is told by any of these.
    """
    scheme, _, rest = origin.partition("://")
    if scheme not in _ORIGIN_SCHEMES:
        return None
    name, colon, port = rest.rpartition(":")
    host = name if colon and port.isdecimal() else rest
    return host.removesuffix(".")


def websites_of(host: str, websites: Websites) -> frozenset[int]:
    """Return the numbers of the websites that are on a host, or on one that it is below."""
    numbers = set()
    rest = host if len(host) <= MAX_HOSTNAME else ""
    while rest:
        if website := websites.serving(rest):
            numbers.add(website.number)
        rest = rest.partition(".")[2]
    return _shared(frozenset(numbers))


@lru_cache(1_024)
def _shared(numbers: frozenset[int]) -> frozenset[int]:
    """Return the same each time: with each of many leavings that wait, one is kept."""
    return numbers
