"""TLS without sockets: bytes of OpenSSL's client in, bytes of ours out."""

import ssl
from contextlib import suppress
from pathlib import Path

from attrs import define, field, frozen
from OpenSSL import SSL
from twisted.internet.address import IPv4Address
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import StringTransport

from medamad.web.server.tls import TLSFactory


class Echo(Protocol):
    """Sends back what it receives."""

    def __init__(self) -> None:
        self.received: list[bytes] = []

    def dataReceived(self, data: bytes) -> None:
        self.received.append(data)
        self.transport.write(data)


class EchoSite(Factory):
    """Takes every connection."""

    protocol = Echo


@define(eq=False)
class Client:
    """A connection over TLS, and both of its ends."""

    factory: TLSFactory
    wire: StringTransport = field(factory=StringTransport)
    came: ssl.MemoryBIO = field(factory=ssl.MemoryBIO)
    sent: ssl.MemoryBIO = field(factory=ssl.MemoryBIO)
    tls: ssl.SSLObject = field(init=False)
    server: Protocol = field(init=False)

    def __attrs_post_init__(self) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self.tls = context.wrap_bio(self.came, self.sent)
        self.server = self.factory.buildProtocol(IPv4Address("TCP", "192.0.2.1", 50_000))
        self.server.makeConnection(self.wire)

    @property
    def echo(self) -> Echo:
        return self.server.wrappedProtocol

    def shake(self) -> bytes:
        """Continue the handshake and return what to send."""
        self.came.write(self.wire.value())
        self.wire.clear()
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.sent.read()

    def shake_hands(self) -> "Client":
        """Complete the handshake."""
        while data := self.shake():
            self.push(data)
        return self

    def records(self, *texts: bytes) -> bytes:
        """Return each text as its own TLS record."""
        for text in texts:
            self.tls.write(text)
        return self.sent.read()

    def push(self, data: bytes) -> None:
        self.server.dataReceived(data)


@frozen
class Options:
    """What Twisted's CertificateOptions are to the certificates in a folder."""

    folder: Path

    def getContext(self) -> SSL.Context:
        context = SSL.Context(SSL.TLS_METHOD)
        context.use_certificate_chain_file(self.folder / "fullchain.pem")
        context.use_privatekey_file(self.folder / "privkey.pem")
        return context
