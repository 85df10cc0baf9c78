"""Where a visit came from: host and path out of the referrer's URL (contract, section 4)."""

import re
from collections.abc import Container
from typing import Final

from medamad.collect.addresses import is_address
from medamad.collect.pages import MAX_PATH, stored_path
from medamad.collect.urls import split_url
from medamad.model.errors import BadRequest
from medamad.model.websites import canonical_hostname

_SCHEMES: Final = frozenset({"http", "https", "android-app", "ios-app"})
"""Schemes of pages and of apps; an app is named where a page has its host."""

_NAME: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63}){1,9}\Z", re.ASCII)
"""What names of apps and some hosts look like, though no hostname has an underscore."""


def referrer_of(url: str, own_hosts: Container[str]) -> str:
    """Give the referrer as it is kept: host and path, at most MAX_PATH characters.

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
    host = _host(host).removeprefix("www.")
    if not host or host in own_hosts or f"www.{host}" in own_hosts:
        return ""
    return f"{host}{stored_path(parts.path)}"[:MAX_PATH].rstrip("/")


def _host(host: str) -> str:
    """Give the one spelling of a hostname or of an app's name, "" when it is neither."""
    try:
        return canonical_hostname(host)
    except BadRequest:
        return host if _NAME.match(host) else ""
