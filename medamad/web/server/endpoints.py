"""Endpoint texts: the address that each names, and its certificate, which a reload may renew."""

import socket
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from attrs import define, frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.python.failure import Failure
from zope.interface import implementer

if TYPE_CHECKING:
    from OpenSSL.SSL import Connection

OF_TCP: Final = ("tcp", "tcp6", "ssl")
"""The kinds of TCP endpoints; the last one speaks TLS."""
EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - what no interface means
EVERYWHERE_IPV6: Final = "::"


@frozen
class ListenAddress:
    """Where somebody listens: a host and its port, or a path."""

    host: str
    port: int | None = None
    """None of a path."""

    def __str__(self) -> str:
        """Return the path, or the host and the port as in a URL."""
        if self.port is None:
            return self.host
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"

    @property
    def is_everywhere(self) -> bool:
        """Whether it means every address of the machine, of IPv4 or of IPv6."""
        return self.host in ("", EVERYWHERE, EVERYWHERE_IPV6)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect to it, over TCP."""
        if self.port is None:
            return False
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def is_ipv6(self) -> bool:
        """Whether it is an IPv6 address. By default, `::` accepts IPv4 connections too."""
        return ":" in self.host

    def keeps_out(self, other: "ListenAddress") -> bool:
        """Return whether nothing can listen on `other` beside it, if it accepts one IP version."""
        if self.port != other.port or self.is_ipv6 != other.is_ipv6:
            return False
        return self.host == other.host or self.is_everywhere or other.is_everywhere

    def numeric(self) -> "ListenAddress":
        """Return it with its hostname resolved, to an IPv4 address as Twisted does.

        Raises OSError or ValueError if it cannot be resolved.
        """
        if self.port is None:
            return self
        if self.is_ipv6:
            return ListenAddress(str(ip_address(self.host)), self.port)
        return ListenAddress(
            socket.gethostbyname(self.host) if self.host else EVERYWHERE, self.port
        )


CIPHERS: Final = b"ECDHE+AESGCM:ECDHE+CHACHA20"
"""The cipher suites of TLS 1.2: authenticated encryption with forward secrecy, so none with CBC.
TLS 1.3 has no others."""
BACKLOG: Final = 1_024
"""The backlog of an endpoint that names none; the same as that of systemd's socket. Beyond, the
kernel has clients try again in a second, and turns proxies away from a unix socket."""
_WITH_BACKLOG: Final = (*OF_TCP, "unix")


@implementer(IOpenSSLServerConnectionCreator)
@define(eq=False)
class Certificate:
    """The TLS options of each new connection of a port; they may be replaced at any time."""

    options: Any
    """Twisted's CertificateOptions: key, certificate and chain."""
    text: str
    """The endpoint whose files these are."""

    def serverConnectionForTLS(self, _protocol: Any) -> "Connection":
        """Return the TLS of a new connection."""
        from OpenSSL.SSL import Connection  # noqa: PLC0415 - not imported without TLS

        return Connection(self.options.getContext(), None)


@frozen
class Bound:
    """A parsed TCP endpoint: where to listen, and with which certificate."""

    port: int
    interface: str
    backlog: int
    certificate: Certificate | None
    """None without TLS."""

    @property
    def address(self) -> ListenAddress:
        """Where to listen."""
        return ListenAddress(self.interface, self.port)


def read_bound(text: str) -> Bound:
    """Read the text of a `tcp`, `tcp6` or `ssl` endpoint, and the files that it names.

    Raises whatever Twisted's parser and OpenSSL raise when they cannot be used.
    """
    recorder = _Recorder(text)
    refused: list[Failure] = []
    read_endpoint(text, recorder).listen(None).addErrback(refused.append)
    for failure in refused:
        failure.raiseException()
    (bound,) = recorder.bounds
    return bound


def read_endpoint(text: str, reactor: Any) -> Any:
    """Read the text of an endpoint, with a backlog of BACKLOG unless it says one itself.

    Raises whatever Twisted's parser raises when it cannot be used.
    """
    kind, colon, rest = text.partition(":")
    if kind in _WITH_BACKLOG:
        # A backlog given by name overrides ours; one given by position is a TypeError.
        with suppress(TypeError):
            return serverFromString(reactor, f"{kind}:backlog={BACKLOG}{colon}{rest}")
    return serverFromString(reactor, text)


def ports_of_both(addresses: Iterable[ListenAddress]) -> set[int | None]:
    """Return the ports that both an IPv4 and an IPv6 address have."""
    of_ipv6, of_ipv4 = set[int | None](), set[int | None]()
    for address in addresses:
        (of_ipv6 if address.is_ipv6 else of_ipv4).add(address.port)
    return of_ipv6 & of_ipv4


class _Recorder:
    """Stands in for a reactor, and records what an endpoint would listen on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.bounds: list[Bound] = []

    def listenTCP(self, port: int, _factory: Any, backlog: int, interface: str) -> Deferred[None]:
        """Record a plain port (IReactorTCP)."""
        self.bounds.append(Bound(port, interface, backlog, None))
        return Deferred()

    def listenSSL(
        self,
        port: int,
        _factory: Any,
        contextFactory: Any,  # noqa: N803 - called by this name
        backlog: int,
        interface: str,
    ) -> Deferred[None]:
        """Record a port that speaks TLS (IReactorSSL)."""
        # Raises here what OpenSSL refuses of the files.
        contextFactory.getContext().set_cipher_list(CIPHERS)
        self.bounds.append(Bound(port, interface, backlog, Certificate(contextFactory, self.text)))
        return Deferred()
