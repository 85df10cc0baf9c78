"""Checks by origin and host: who may change something, read across origins, or monitor."""

from typing import Final

from medamad.domain.errors import BadRequest, Forbidden
from medamad.ingest.networks import Address, address_of, is_loopback
from medamad.ingest.page import split_url
from medamad.web.server import clients
from medamad.web.server.parser import RequestHeaders
from medamad.web.settings import WebSettings

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
_MAX_AGE: Final = (b"Access-Control-Max-Age", b"86400")
_EXPOSED: Final = b"X-Api-Commit, X-Medamad-Ignored"
_SENDABLE: Final = b"Authorization, Content-Type"
_SENDABLE_WITH_HIT: Final = b"Content-Type, If-Modified-Since"

ANY: Final = ((b"Access-Control-Allow-Origin", b"*"),)
"""Headers that let pages of any origin read a response, without cookies."""

ANY_EXPOSED: Final = (*ANY, (b"Access-Control-Expose-Headers", _EXPOSED))

_OF_PROXIES: Final = (
    *(b"X-Forwarded-For", b"X-Forwarded-Host", b"X-Forwarded-Proto", b"X-Real-IP"),
    *(b"Forwarded", b"Via"),
)
"""Headers that proxies add to a request."""

OWN_SITES: Final = (b"same-origin", b"none")
"""Values of Sec-Fetch-Site in requests that no other site has caused."""


def check_host(peer: Address | None, headers: RequestHeaders, settings: WebSettings) -> None:
    """Raise BadRequest if a request is for a hostname that is not configured.

    With DNS rebinding, the hostname of a foreign page resolves to our address, so that the browser
    considers us its origin. That needs a public hostname. Other names and addresses pass, since a
    proxy may send the one that it connects to.
    """
    if not settings.hostnames:
        return
    name = clients.host_name(clients.requested_host(peer, headers, settings))
    if name in settings.hostnames or not _is_public(name):
        return
    raise BadRequest("Host: expected one of the hostnames in the service's configuration")


def may_monitor(peer: Address | None, headers: RequestHeaders, settings: WebSettings) -> bool:
    """Return whether a sender may see health and metrics, by its address if that is certain.

    It is uncertain behind a proxy that is not trusted or does not name the sender. A proxy on this
    machine that adds no headers is recognised by the hostname of the request: local clients use an
    address or localhost.
    """
    if any(name in headers for name in _OF_PROXIES):
        if not clients.is_trusted(peer, settings):
            return False
        hops = clients.hops(headers, settings)
        if not hops or not all(map(address_of, hops)):
            return False
    elif (peer is None or is_loopback(peer)) and not _is_local(headers):
        return False
    address = clients.sender_address(peer, headers, settings)
    if address is None:
        return settings.metrics_from_unix
    return address in settings.metrics_from


def check_change(peer: Address | None, headers: RequestHeaders, settings: WebSettings) -> None:
    """Raise Forbidden if a change is requested by a page of another origin.

    Browsers send Sec-Fetch-Site, older ones Origin; a request with neither is not a browser's.
    """
    origin = _only(headers, b"Origin")
    site = _only(headers, b"Sec-Fetch-Site")
    if site in OWN_SITES or (site is None and origin is None):
        return
    if origin is not None:
        text = origin.decode("latin-1")
        if text in settings.cors_origins:
            return
        if site is None and _is_host(text, clients.requested_host(peer, headers, settings)):
            return
    raise Forbidden("this request comes from a page of another origin")


def cors_headers(headers: RequestHeaders, settings: WebSettings) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers that let pages of configured origins read a response."""
    if not settings.cors_origins:
        return ()
    origin = _only(headers, b"Origin")
    vary = (b"Vary", b"Origin")
    if origin is None or origin.decode("latin-1") not in settings.cors_origins:
        return (vary,)
    return (
        vary,
        (b"Access-Control-Allow-Origin", origin),
        (b"Access-Control-Allow-Credentials", b"true"),
        (b"Access-Control-Expose-Headers", b"X-Api-Commit, X-Medamad-Partial"),
    )


def preflight_headers(methods: str, *, is_hit: bool) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of a preflight response, except for the allowed origin."""
    return (
        (b"Access-Control-Allow-Methods", methods.encode("ascii")),
        (b"Access-Control-Allow-Headers", _SENDABLE_WITH_HIT if is_hit else _SENDABLE),
        _MAX_AGE,
    )


def _only(headers: RequestHeaders, name: bytes) -> bytes | None:
    """Return the value of a header; if it is repeated, one that matches nothing."""
    return headers.joined(name)


def _is_local(headers: RequestHeaders) -> bool:
    """Return whether the Host of a request is an address, localhost or missing."""
    name = clients.host_name((_only(headers, b"Host") or b"").decode("latin-1"))
    return name in {"", "localhost"} or address_of(name) is not None


def _is_public(name: str) -> bool:
    """Return whether a hostname can be public: it has a dot and is not an address."""
    return "." in name and address_of(name) is None


def _is_host(origin: str, host: str) -> bool:
    """Return whether an origin is on a host, with or without the scheme's default port."""
    try:
        parts = split_url(origin)
    except ValueError:
        return False
    if not host or not parts.netloc:
        return False
    own_port = _DEFAULT_PORTS.get(parts.scheme)
    if own_port is None:
        return False
    wanted, got = host.lower(), parts.netloc.lower()
    return wanted.removesuffix(own_port) == got.removesuffix(own_port)
