"""The client of a request: its address, and the host that it requested.

Forwarding headers are trusted only from a trusted proxy, and only those that it is configured to
write. Of the addresses that they list, the right-most one that is not itself a trusted proxy is the
client's: anyone can write what is to the left of it.
"""

import re
from typing import Final

from twisted.internet.interfaces import IAddress

from medamad.ingest.networks import Address, address_of
from medamad.web.server.parser import RequestHeaders
from medamad.web.settings import WebSettings

_FORWARDED_PAIR: Final = re.compile(
    r"""\s*(?P<name>[\w!#$%&'*+.^`|~-]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<token>[^\s;,"]+))\s*"""
)
_MOST_LISTED: Final = 64
"""How many entries at the end of a list are separated; all before them stay one text."""
_LAST_FORWARDED: Final = 1_024
"""How many characters at the end of Forwarded are parsed."""


def peer_address(peer: IAddress) -> Address | None:
    """Return the address at the other end of a connection, None for a unix socket."""
    host = getattr(peer, "host", None)
    return address_of(host) if isinstance(host, str) else None


def is_trusted(peer: Address | None, settings: WebSettings) -> bool:
    """Return whether a peer's forwarding headers are trusted."""
    return settings.trust_unix if peer is None else peer in settings.trusted_proxies


def sender_address(
    peer: Address | None, headers: RequestHeaders, settings: WebSettings
) -> Address | None:
    """Return the address of the client, or the nearest one known if a proxy hides it."""
    if not is_trusted(peer, settings):
        return peer
    return nearest_client(peer, headers.joined(settings.proxy_header.encode("ascii")), settings)


def nearest_client(
    peer: Address | None, forwarded: bytes | None, settings: WebSettings
) -> Address | None:
    """Return the address of a trusted proxy's client, by the forwarding header."""
    nearest = peer
    for hop in reversed(_hops(forwarded, settings)):
        address = address_of(hop)
        if address is None:
            break
        nearest = address
        if address not in settings.trusted_proxies:
            break
    return nearest


def requested_host(peer: Address | None, headers: RequestHeaders, settings: WebSettings) -> str:
    """Return the host, with any port, that the browser's address bar shows; "" if unknown."""
    if is_trusted(peer, settings):
        if settings.proxy_header == "Forwarded":
            elements = _forwarded(headers.joined(b"Forwarded"))
            hosts_listed = (element.get("host") for element in elements)
            forwarded = [host for host in hosts_listed if host]
        else:
            forwarded = _listed(headers.joined(b"X-Forwarded-Host"))
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
    """Return the addresses that a request came through, the client's first."""
    return _hops(headers.joined(settings.proxy_header.encode("ascii")), settings)


def _hops(forwarded: bytes | None, settings: WebSettings) -> list[str]:
    """Return the addresses in a forwarding header."""
    if settings.proxy_header == "Forwarded":
        return [element.get("for", "") for element in _forwarded(forwarded)]
    return _listed(forwarded)


def _listed(value: bytes | None) -> list[str]:
    if not value:
        return []
    return list(map(str.strip, value.decode("latin-1").rsplit(",", _MOST_LISTED)))


def _forwarded(header: bytes | None) -> list[dict[str, str]]:
    """Return the elements of Forwarded (RFC 7239) to the right of all malformed ones."""
    text = (header or b"").decode("latin-1")[-_LAST_FORWARDED:]
    elements: list[dict[str, str]] = [{}]
    begin = position = 0
    while position < len(text):
        pair = _FORWARDED_PAIR.match(text, position)
        end = position if pair is None else pair.end()
        if pair is None or text[end : end + 1] not in ("", ",", ";"):
            # What the client sent must not swallow what the proxy appended.
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
