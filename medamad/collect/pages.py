"""The page that was shown: host, path and campaign out of its URL (contract, section 4)."""

import re
from typing import Final
from urllib.parse import unquote_plus

from attrs import frozen

from medamad.collect.sender import address_of
from medamad.collect.urls import split_url
from medamad.model.errors import BadRequest
from medamad.model.websites import canonical_hostname

MAX_PATH: Final = 2_048
MAX_UTM: Final = 512

_EXPECTED: Final = "u: expected an http or https URL"


def _spelt(word: str) -> str:
    """Give the pattern of a word of which each character may be escaped."""
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
    """Give a path of a URL as it is kept; "/" for none."""
    decoded = _ESCAPED.sub(_decoded, path, _MOST_RUNS) if "%" in path else path
    return decoded[:MAX_PATH].rstrip("/") or "/"


def _host(host: str) -> str:
    """Give the one spelling of a hostname, or an address as browsers write it.

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
    """Give the UTM fields of a query: names in any case, the first one of a name counts."""
    found: dict[str, str] = {}
    if "utm" in query.lower() or "%" in query:
        for pair in _CAMPAIGN.finditer(f"&{query}"):
            name = pair.lastgroup
            if name is not None and name not in found:
                value = pair[0].partition("=")[2]
                found[name] = unquote_plus(value[: MAX_UTM * _LONGEST_ESCAPE])[:MAX_UTM]
    return found
