"""Whose page sends a hit: what an Origin header tells, and the websites that it may report for."""

from functools import lru_cache
from typing import Final, Literal, TypeAlias

from medamad.model.websites import MAX_HOSTNAME
from medamad.store.websites import Websites

OriginRule: TypeAlias = Literal["website", "any"]
"""Whose pages may report for a website: its own, and those of names below it; or all."""

_SCHEMES: Final = ("http", "https")


def host_of(origin: str) -> str | None:
    """Give the host of an Origin header, None where it tells of none.

    Browsers send "null" from sandboxed frames and pages without referrers, and nothing in some
    requests; apps have schemes of their own. Nobody's page is told by any of these.
    """
    scheme, _, rest = origin.partition("://")
    if scheme not in _SCHEMES:
        return None
    name, colon, port = rest.rpartition(":")
    host = name if colon and port.isdecimal() else rest
    return host.removesuffix(".")


def websites_of(host: str, websites: Websites) -> frozenset[int]:
    """Give the numbers of the websites that are on a host, or on one that it is below."""
    numbers = set()
    rest = host if len(host) <= MAX_HOSTNAME else ""
    while rest:
        if website := websites.serving(rest):
            numbers.add(website.number)
        rest = rest.partition(".")[2]
    return _shared(frozenset(numbers))


@lru_cache(1_024)
def _shared(numbers: frozenset[int]) -> frozenset[int]:
    """Give the same each time: with each of many leavings that wait, one is kept."""
    return numbers
