"""How much is read from a connection in a reactor turn, by real sockets."""

import socket
from pathlib import Path

import pytest
import pytest_twisted
from support.certificates import Authority
from support.daemon import PATIENCE_S
from support.tls_in_memory import Options
from twisted.internet import reactor
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol

from medamad.web.server.endpoints import Certificate
from medamad.web.server.sockets import READ_BYTES, limit_buffers

SENT = b"x" * READ_BYTES * 20


class Site(Factory):
    """Accepts connections, and knows what was received in one piece, and by TLS."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.pieces: list[int] = []

    def buildProtocol(self, _address: object) -> Protocol:
        return Limited(self)


class Limited(Protocol):
    def __init__(self, site: Site) -> None:
        self.site = site

    def connectionMade(self) -> None:
        limit_buffers(self.transport)

    def dataReceived(self, data: bytes) -> None:
        self.site.received.append(len(data))


@pytest.mark.parametrize("is_tls", [False, True])
@pytest_twisted.ensureDeferred
async def test_little_is_read_in_a_turn(tmp_path: Path, *, is_tls: bool) -> None:
    site, authority = Site(), Authority(tmp_path)
    pieces = site.received

    class Recording(TLSMemoryBIOProtocol):
        def dataReceived(self, data: bytes) -> None:
            site.pieces.append(len(data))
            super().dataReceived(data)

    factory: Factory = site
    if is_tls:
        factory = TLSMemoryBIOFactory(
            Certificate(Options(authority.folder), ""), isClient=False, wrappedFactory=site
        )
        factory.protocol = Recording
        pieces = site.pieces
    port = reactor.listenTCP(0, factory, interface="127.0.0.1")

    def send() -> socket.socket:
        if is_tls:
            connection = authority.connection(port.getHost().port)
            connection.connect()
            sock: socket.socket = connection.sock
        else:
            address = ("127.0.0.1", port.getHost().port)
            sock = socket.create_connection(address, timeout=PATIENCE_S)
        sock.sendall(SENT)
        return sock

    sock = await deferToThread(send)
    while sum(site.received) < len(SENT):
        await deferLater(reactor, 0.01)
    assert max(pieces) == READ_BYTES
    sock.close()
    await port.stopListening()
