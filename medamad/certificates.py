"""TLS by an endpoint's text: the certificate of a port, which a reload may renew."""

from typing import Any, Final

from attrs import define, frozen
from OpenSSL.SSL import Connection
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from zope.interface import implementer

KIND: Final = "ssl"
"""What the text of an endpoint that speaks TLS begins with."""


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
class Secured:
    """What the text of a TLS endpoint says: where to listen, and by what certificate."""

    port: int
    interface: str
    backlog: int
    certificate: Certificate


def read_secured(text: str) -> Secured:
    """Read the text of a TLS endpoint, and the files that it names.

    Raises whatever Twisted's parser and OpenSSL raise when they cannot be used.
    """
    asked = _Asked()
    serverFromString(asked, text).listen(None)
    port, interface, backlog, options = asked.heard[0]
    options.getContext()  # a key that does not belong to the certificate is found out here
    return Secured(port, interface, backlog, Certificate(options))


class _Asked:
    """In the place of a reactor (IReactorSSL): hears what an endpoint would listen on."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, str, int, Any]] = []

    def listenSSL(
        self,
        port: int,
        _factory: Any,
        contextFactory: Any,  # noqa: N803 - called by this name
        backlog: int,
        interface: str,
    ) -> Deferred[None]:
        """Hear it."""
        self.heard.append((port, interface, backlog, contextFactory))
        return Deferred()
