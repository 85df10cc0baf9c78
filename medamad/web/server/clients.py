"""Who sends a request: the address of the sender, and the host that the sender asked for.

Headers of forwarding are believed only from a trusted proxy, only those that it is configured to
write, and of the addresses they list only the right-most that is not a trusted proxy itself: what
stands left of it anybody can write.
"""

import re
from typing import Final, get_args

from twisted.internet.interfaces import IAddress

from medamad.ingest.networks import Address, address_of
from medamad.web.server.parser import RequestHeaders
from medamad.web.settings import ProxyHeader, WebSettings

_FORWARDED_PAIR: Final = re.compile(
    r"""\s*(?P<name>[\w!#$%&'*+.^`|~-]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<token>[^\s;,"]+))\s*"""
)
_FIELDS: Final[dict[ProxyHeader, re.Pattern[bytes]]] = {
    name: re.compile(rb"\r\n%b:([^\r\n]*)" % name.encode("ascii"), re.IGNORECASE)
    for name in get_args(ProxyHeader)
}
"""The field of each header of forwarding, in the head of a request."""
_MOST_LISTED: Final = 64
"""Entries at the end of a list that are told apart; what stands before them is kept as one."""
_LAST_FORWARDED: Final = 1_024
"""Characters at the end of Forwarded that are looked at."""


def peer_address(peer: IAddress) -> Address | None:
    """Return the address at the other end of a connection, None for a unix socket."""
    host = getattr(peer, "host", None)
    return address_of(host) if isinstance(host, str) else None


def is_trusted(peer: Address | None, settings: WebSettings) -> bool:
    """Return whether a peer's headers of forwarding are believed."""
    return settings.trust_unix if peer is None else peer in settings.trusted_proxies


def sender_address(
    peer: Address | None, headers: RequestHeaders, settings: WebSettings
) -> Address | None:
    """Return the sender's address; the nearest one known where a proxy hides what it forwards."""
    if not is_trusted(peer, settings):
        return peer
    nearest = peer
    for hop in reversed(hops(headers, settings)):
        address = address_of(hop)
        if address is None:
            break
        nearest = address
        if address not in settings.trusted_proxies:
            break
    return nearest


def forwarding_headers(arrived: bytes, settings: WebSettings) -> RequestHeaders:
    """Return what a request says of its sender so far, before anything of it has been looked at."""
    head = arrived.partition(b"\r\n\r\n")[0]
    name = settings.proxy_header
    return RequestHeaders((name.encode("ascii"), value) for value in _FIELDS[name].findall(head))


def asked_host(peer: Address | None, headers: RequestHeaders, settings: WebSettings) -> str:
    """Return the host, with its port if any, that the sender's address bar shows; "" if unknown."""
    if is_trusted(peer, settings):
        if settings.proxy_header == "Forwarded":
            told = (element.get("host") for element in _forwarded(headers))
            forwarded = [host for host in told if host]
        else:
            forwarded = _listed(headers, b"X-Forwarded-Host")
        if forwarded:
            return forwarded[-1]
    hosts = headers.values(b"Host") or (b"",)
    return hosts[0].decode("latin-1")


def host_name(host: str) -> str:
    """Return the name or the address in a host, without its port, in lower case."""
    name, colon, port = host.rpartition(":")
    bare = name if colon and (port.isdecimal() or not port) and not host.endswith("]") else host
    return bare.lower().removesuffix(".").removeprefix("[").removesuffix("]")


def hops(headers: RequestHeaders, settings: WebSettings) -> list[str]:
    """Return the addresses that a request came by, the sender's first."""
    if settings.proxy_header == "Forwarded":
        return [element.get("for", "") for element in _forwarded(headers)]
    return _listed(headers, b"X-Forwarded-For")


def _listed(headers: RequestHeaders, name: bytes) -> list[str]:
    values = headers.values(name)
    if not values:
        return []
    listed = b",".join(values).decode("latin-1").rsplit(",", _MOST_LISTED)
    return [part.strip() for part in listed]


def _forwarded(headers: RequestHeaders) -> list[dict[str, str]]:
    """Return the elements of Forwarded (RFC 7239) that stand right of all malformed ones."""
    values = headers.values(b"Forwarded")
    text = ",".join(value.decode("latin-1") for value in values)[-_LAST_FORWARDED:]
    elements: list[dict[str, str]] = [{}]
    begin = position = 0
    while position < len(text):
        pair = _FORWARDED_PAIR.match(text, position)
        end = position if pair is None else pair.end()
        if pair is None or text[end : end + 1] not in ("", ",", ";"):
            # What a stranger sent first must not swallow what the proxy wrote behind it.
            begin = position = text.find(",", begin) + 1
            elements = [{}]
            if not begin:
                return []
            continue
        quoted = pair["quoted"]
        value = pair["token"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        elements[-1][pair["name"].lower()] = value
        position = end + 1
        if text[end : end + 1] == ",":
            elements.append({})
            begin = position
    return elements if text else []
