"""What the texts of endpoints say: the port, and the certificate, which a reload may renew."""

from collections.abc import Iterable
from typing import Any, Final

from attrs import define, frozen
from OpenSSL.SSL import Connection
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from zope.interface import implementer

OF_TCP: Final = ("tcp", "tcp6", "ssl")
"""What the texts of endpoints of TCP begin with; the last one speaks TLS."""


@implementer(IOpenSSLServerConnectionCreator)
@define(eq=False)
class Certificate:
    """What each new connection of a port goes by; `options` may be replaced at any time."""

    options: Any
    """Twisted's CertificateOptions: key, certificate and chain."""

    def serverConnectionForTLS(self, _protocol: Any) -> Connection:
        """Give the TLS of a new connection."""
        return Connection(self.options.getContext(), None)


@frozen
class Bound:
    """What the text of an endpoint of TCP says: where to listen, and by what certificate."""

    port: int
    interface: str
    backlog: int
    certificate: Certificate | None
    """None where no TLS is spoken."""

    @property
    def is_ipv6(self) -> bool:
        """Whether it is an address of IPv6; one of none in particular takes IPv4 too, by itself."""
        return ":" in self.interface


def read_bound(text: str) -> Bound:
    """Read the text of a `tcp`, `tcp6` or `ssl` endpoint, and the files that it names.

    Raises whatever Twisted's parser and OpenSSL raise when they cannot be used.
    """
    asked = _Asked()
    serverFromString(asked, text).listen(None)
    return asked.heard[0]


def ports_of_both(bounds: Iterable[Bound]) -> set[int]:
    """Give the ports that IPv4 and IPv6 have an endpoint of their own for."""
    of_ipv6, of_ipv4 = set[int](), set[int]()
    for bound in bounds:
        (of_ipv6 if bound.is_ipv6 else of_ipv4).add(bound.port)
    return of_ipv6 & of_ipv4


class _Asked:
    """In the place of a reactor: hears what an endpoint would listen on."""

    def __init__(self) -> None:
        self.heard: list[Bound] = []

    def listenTCP(self, port: int, _factory: Any, backlog: int, interface: str) -> Deferred[None]:
        """Hear of a plain port (IReactorTCP)."""
        self.heard.append(Bound(port, interface, backlog, None))
        return Deferred()

    def listenSSL(
        self,
        port: int,
        _factory: Any,
        contextFactory: Any,  # noqa: N803 - called by this name
        backlog: int,
        interface: str,
    ) -> Deferred[None]:
        """Hear of a port that speaks TLS (IReactorSSL)."""
        contextFactory.getContext()  # a key that is not the certificate's is found out here
        self.heard.append(Bound(port, interface, backlog, Certificate(contextFactory)))
        return Deferred()
