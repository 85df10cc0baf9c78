"""TLS without sockets: bytes of OpenSSL's client in, bytes of ours out."""

import ssl
from contextlib import suppress
from pathlib import Path

from attrs import define, field, frozen
from OpenSSL import SSL
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from zope.interface import implementer

from medamad.web.server.admission import HANDSHAKES_PER_TURN, HITS_PER_TURN, TurnScheduler
from medamad.web.server.tls import TLSFactory


@implementer(IHandshakeListener)
class Echo(Protocol):
    """Sends back what it receives."""

    is_negotiated = False

    def __init__(self, network: bytes | None) -> None:
        self.network = network
        self.received: list[bytes] = []
        self.lost: list[type[Exception]] = []
        self.pending = 0
        """How often encrypted data was scheduled to be decrypted."""

    def handshakeCompleted(self) -> None:
        self.is_negotiated = True

    def encrypted_data_pending(self) -> None:
        self.pending += 1

    def dataReceived(self, data: bytes) -> None:
        self.received.append(data)
        self.transport.write(data)

    def connectionLost(self, reason: Failure) -> None:
        self.lost.append(reason.type)


@define(eq=False)
class EchoSite(Factory):
    """Takes every connection, of the network that its address begins with."""

    clock: Clock = field(factory=Clock)
    handshakes: TurnScheduler[object] = field(init=False)
    decryptions: TurnScheduler[object] = field(init=False)
    records: TurnScheduler[object] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.handshakes = TurnScheduler(self.clock.callLater, HANDSHAKES_PER_TURN)
        self.decryptions = TurnScheduler(self.clock.callLater)
        self.records = TurnScheduler(self.clock.callLater, HITS_PER_TURN)

    def buildProtocol(self, address: IPv4Address) -> Echo:
        return Echo(address.host.encode())


@define(eq=False)
class Client:
    """A connection over TLS, and both of its ends."""

    factory: TLSFactory
    network: str = "a"
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
        self.server = self.factory.buildProtocol(IPv4Address("TCP", self.network, 50_000))
        self.server.makeConnection(self.wire)

    @property
    def echo(self) -> Echo:
        return self.server.wrappedProtocol

    @property
    def answered(self) -> bool:
        """Whether anything came back."""
        return bool(self.wire.value())

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
            self.factory.wrappedFactory.clock.advance(0)
        return self

    def records(self, *texts: bytes) -> bytes:
        """Return each text as its own TLS record."""
        for text in texts:
            self.tls.write(text)
        return self.sent.read()

    def push(self, data: bytes) -> None:
        self.server.dataReceived(data)

    def close(self) -> None:
        self.server.connectionLost(Failure(ConnectionDone()))


@frozen
class Options:
    """What Twisted's CertificateOptions are to the certificates in a folder."""

    folder: Path

    def getContext(self) -> SSL.Context:
        context = SSL.Context(SSL.TLS_METHOD)
        context.use_certificate_chain_file(self.folder / "fullchain.pem")
        context.use_privatekey_file(self.folder / "privkey.pem")
        return context
