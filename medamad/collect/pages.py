"""The page that was shown: host, path and campaign out of its URL (contract, section 4)."""

import re
from typing import Final
from urllib.parse import unquote_plus, urlsplit

from attrs import frozen

from medamad.collect.addresses import is_address
from medamad.model.errors import BadRequest
from medamad.model.websites import canonical_hostname

MAX_PATH: Final = 2_048
MAX_UTM: Final = 512

_UTM: Final = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
_EXPECTED: Final = "u: expected an http or https URL"
_ESCAPES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_NO_UTF8: Final = re.compile(r"[\udc80-\udcff]")


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
        parts = urlsplit(url)
        host = parts.hostname
        parts.port  # noqa: B018 - raises for what is no port
    except ValueError:
        raise BadRequest(_EXPECTED) from None
    if parts.scheme not in {"http", "https"} or not host:
        raise BadRequest(_EXPECTED)
    return Page(_host(host), stored_path(parts.path), **_campaign(parts.query))


def stored_path(path: str) -> str:
    """Give a path of a URL as it is kept; "/" for none."""
    decoded = _ESCAPES.sub(_decoded, path) if "%" in path else path
    return decoded[:MAX_PATH].rstrip("/") or "/"


def _host(host: str) -> str:
    """Give the one spelling of a hostname, or an address as it stands.

    No website is at an address, but a page may be, and its URL is no malformed one.
    """
    try:
        return canonical_hostname(host, "u")
    except BadRequest:
        if is_address(host):
            return host
        raise


def _decoded(escapes: re.Match[str]) -> str:
    """Decode a run of percent-escapes; those that give no UTF-8 stay as sent."""
    run = escapes[0]
    octets = bytes.fromhex(run.replace("%", ""))
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        pass
    characters, at = [], 0
    for character in octets.decode("utf-8", "surrogateescape"):
        end = at + 3 * len(character.encode("utf-8", "surrogateescape"))
        characters.append(run[at:end] if _NO_UTF8.match(character) else character)
        at = end
    return "".join(characters)


def _campaign(query: str) -> dict[str, str]:
    """Give the UTM fields of a query: names in any case, the first one of a name counts."""
    found: dict[str, str] = {}
    if "utm" in query.lower() or "%" in query:
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            name = unquote_plus(name).lower()
            if name in _UTM and name not in found:
                found[name] = unquote_plus(value)[:MAX_UTM]
    return found
