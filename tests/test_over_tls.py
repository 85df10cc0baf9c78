"""TLS without sockets: bytes of OpenSSL's client in, bytes of ours out."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from attrs import define, field, frozen
from authority import Authority
from OpenSSL import SSL
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from medamad.endpoints import Certificate
from medamad.over_tls import OverTLS
from medamad.web.channel import Channel
from medamad.web.turns import HANDSHAKES_AT_ONCE, Turns


class Echo(Protocol):
    """Sends back what it receives."""

    def __init__(self, network: bytes | None) -> None:
        self.network = network

    def dataReceived(self, data: bytes) -> None:
        self.transport.write(data)


@define(eq=False)
class EchoSite(Factory):
    """Takes every connection, of the network that its address begins with."""

    clock: Clock = field(factory=Clock)
    handshakes: Turns[object] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.handshakes = Turns(self.clock.callLater, HANDSHAKES_AT_ONCE)

    def buildProtocol(self, address: IPv4Address) -> Echo:
        return Echo(address.host.encode())


@define(eq=False)
class Client:
    """A connection over TLS, and both of its ends."""

    factory: OverTLS
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
    def answered(self) -> bool:
        """Whether anything came back."""
        return bool(self.wire.value())

    def shake(self) -> bytes:
        """Go on with the handshake; gives what is to be sent for it."""
        self.came.write(self.wire.value())
        self.wire.clear()
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
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


@pytest.fixture
def factory(tmp_path: Path) -> OverTLS:
    site = EchoSite()
    return OverTLS(
        Certificate(Options(Authority(tmp_path).folder), ""),
        isClient=False,
        wrappedFactory=site,
        clock=site.clock,
    )


def turn(factory: OverTLS) -> None:
    factory.wrappedFactory.handshakes.take()


def test_handshakes_go_on_in_turns_of_networks(factory: OverTLS) -> None:
    clients = [Client(factory) for _ in range(HANDSHAKES_AT_ONCE * 3)]
    other = Client(factory, "b")
    for client in (*clients, other):
        client.push(client.shake())
        assert client.wire.producerState == "paused"
        assert not client.answered
    turn(factory)
    assert other.answered
    assert sum(client.answered for client in clients) == HANDSHAKES_AT_ONCE - 1
    turn(factory)
    assert sum(client.answered for client in clients) == HANDSHAKES_AT_ONCE * 2 - 1


@pytest.mark.parametrize("at_once", [100_000, 100])
def test_after_the_handshake_everything_is_taken_as_it_comes(
    factory: OverTLS, at_once: int
) -> None:
    client = Client(factory)
    for _ in range(2):
        data = client.shake()
        for begin in range(0, len(data), at_once):
            client.push(data[begin : begin + at_once])
            # It waits together with what has come before.
            if begin % (at_once * 2):
                factory.wrappedFactory.clock.advance(0)
        factory.wrappedFactory.clock.advance(0)
    assert client.shake() == b""
    assert client.wire.producerState == "producing"
    client.tls.write(b"hello")
    client.push(client.sent.read())
    # What is written is sent together in the next turn.
    factory.wrappedFactory.clock.advance(0)
    client.came.write(client.wire.value())
    assert client.tls.read() == b"hello"


def test_what_waits_for_its_turn_has_arrived(factory: OverTLS) -> None:
    """As with TLS 1.3, where a request comes with the end of the handshake: a stop waits for it."""
    client = Client(factory)
    channel = Channel(factory.wrappedFactory)
    channel.transport = client.server
    assert not channel.has_unread()
    client.push(client.shake())
    assert channel.has_unread()
    turn(factory)
    assert not channel.has_unread()


def test_a_connection_that_is_gone_goes_on_with_none(factory: OverTLS) -> None:
    client = Client(factory)
    client.push(client.shake())
    client.close()
    client.wire.clear()
    turn(factory)
    assert not client.answered
