"""A registered website, and the canonical form of a hostname."""

import re
from collections.abc import Mapping
from typing import Any, Final

import idna
from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.domain.website_settings import DEFAULTS, WebsiteSettings

MAX_HOSTNAME: Final = 253
_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)\Z")


@frozen
class Website:
    """A registered website. `number` never changes and is never reused; times in Unix seconds."""

    number: int
    hostname: str
    created: int
    updated: int
    settings: WebsiteSettings = DEFAULTS


def changed_settings(old: WebsiteSettings, changes: Mapping[str, Any]) -> WebsiteSettings:
    """Return settings with some changed, hosts and countries in canonical form.

    Raises BadRequest naming the one that is wrong.
    """
    hosts, countries = changes.get("allowed_hosts"), changes.get("blocked_countries")
    canonical: dict[str, Any] = {}
    if hosts:
        canonical["allowed_hosts"] = [canonical_hostname(host, "allowed_hosts") for host in hosts]
    if countries:
        canonical["blocked_countries"] = [code.upper() for code in countries]
    return old.with_changes({**changes, **canonical})


def canonical_hostname(text: str, field: str = "hostname") -> str:
    """Return the canonical form of a hostname, or raise BadRequest naming `field`.

    Lower case, without one trailing dot, an international name in its ASCII form (IDNA 2008);
    letters, digits and hyphens by RFC 1123; 1 to 253 characters; no port, scheme or address.
    """
    if not text:
        raise BadRequest(f"{field}: expected 1 to {MAX_HOSTNAME} characters, got none")
    if len(text) > MAX_HOSTNAME:
        raise BadRequest(f"{field}: expected at most {MAX_HOSTNAME} characters")
    name = text.removesuffix(".")
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            raise BadRequest(f"{field}: not a hostname") from None
    name = name.lower()
    if len(name) > MAX_HOSTNAME:
        raise BadRequest(f"{field}: expected at most {MAX_HOSTNAME} characters")
    labels = name.split(".")
    if not all(map(_LABEL.match, labels)):
        raise BadRequest(
            f"{field}: expected a hostname of letters, digits and hyphens, "
            "without scheme, port or path"
        )
    if labels[-1].isdigit():
        hint = "; use localhost" if name.startswith("127.") else ""
        raise BadRequest(f"{field}: expected a hostname, not an IP address{hint}")
    return name
