"""TLS in front of a site: handshakes go on in turns of the reactor, a few in each."""

from typing import Any

from twisted.internet.protocol import connectionDone
from twisted.protocols.tls import BufferingTLSTransport, TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure


class _OverTLS(BufferingTLSTransport):
    """TLS of a connection, whose handshake takes longer than most requests."""

    factory: Any
    transport: Any
    wrappedProtocol: Any
    held = b""
    """What has arrived and waits for its turn."""

    @property
    def sender(self) -> bytes | None:
        """The network that sends."""
        network: bytes | None = self.wrappedProtocol.network
        return network

    def dataReceived(self, data: bytes) -> None:
        """Take what arrived; what is of a handshake waits for a turn."""
        if self._handshakeDone:
            super().dataReceived(data)  # type: ignore[no-untyped-call]
            return
        self.held += data
        self.transport.pauseProducing()
        self.factory.wrappedFactory.handshakes.add(self)

    def take_next(self) -> None:
        """Go on with the handshake."""
        held, self.held = self.held, b""
        self.transport.resumeProducing()
        super().dataReceived(held)  # type: ignore[no-untyped-call]

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Forget the connection."""
        self.factory.wrappedFactory.handshakes.remove(self)
        super().connectionLost(reason)


class OverTLS(TLSMemoryBIOFactory):
    """Puts TLS in front of the connections that a site takes; those that it does not are closed."""

    protocol = _OverTLS

    def buildProtocol(self, addr: Any) -> TLSMemoryBIOProtocol | None:  # type: ignore[override]
        """Take a connection, if the site does."""
        taken = self.wrappedFactory.buildProtocol(addr)
        return None if taken is None else self.protocol(self, taken)
