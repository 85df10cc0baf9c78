"""TLS in front of a site: handshakes and long or many records are taken in turns of the reactor."""

from typing import Any, Final

from twisted.internet.protocol import connectionDone
from twisted.protocols.tls import BufferingTLSTransport, TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from medamad.web.server.admission import Turns, Waiting

AT_ONCE_BYTES: Final = 2_048
"""How much of what arrived is decrypted at once, as the usual hits are: it may be ninety records of
a byte, each of which takes microseconds."""


class _OverTLS(BufferingTLSTransport):
    """TLS of a connection, whose handshake takes longer than most requests.

    What has arrived and waits for its turn is held; meanwhile no more is read.
    """

    factory: Any
    transport: Any
    wrappedProtocol: Any
    held = b""
    """What has arrived and waits for its turn."""
    _is_paused = False
    """Whether the connection wants no more for now."""

    @property
    def sender(self) -> bytes | None:
        """The network that sends."""
        network: bytes | None = self.wrappedProtocol.network
        return network

    @property
    def _turns(self) -> Turns[Waiting]:
        site = self.factory.wrappedFactory
        turns: Turns[Waiting] = site.records if self._handshakeDone else site.handshakes
        return turns

    def dataReceived(self, data: bytes) -> None:
        """Take what arrived: at once if it is little, and little comes; else in turns."""
        is_little = self._handshakeDone and not self.held and len(data) <= AT_ONCE_BYTES
        if is_little and self._turns.takes_more():
            super().dataReceived(data)
            return
        self._is_at_work()
        self.held += data
        self.transport.pauseProducing()
        self._go_on()

    def take_next(self) -> None:
        """Go on with what is held."""
        taken, self.held = self.held[:AT_ONCE_BYTES], self.held[AT_ONCE_BYTES:]
        super().dataReceived(taken)
        if self.held:
            self._is_at_work()
        self._go_on()

    def pauseProducing(self) -> None:
        """Read no more, and take nothing of what is held."""
        self._is_paused = True
        self._turns.remove(self)
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Go on, first of all with what is held."""
        self._is_paused = False
        self._go_on()

    def _is_at_work(self) -> None:
        """Have it give way no sooner than a connection over which a request comes."""
        if self.wrappedProtocol.idle:
            self.factory.wrappedFactory.works(self.wrappedProtocol)

    def _go_on(self) -> None:
        if self._is_paused or self._lostTLSConnection:
            return
        if self.held:
            self._turns.add(self)
        else:
            self.transport.resumeProducing()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Forget the connection, and what is held."""
        self._turns.remove(self)
        self.held = b""
        # Nothing is to come of what was decrypted so far; to have OpenSSL say so takes its time.
        self._lostTLSConnection = True
        super().connectionLost(reason)


class OverTLS(TLSMemoryBIOFactory):
    """Puts TLS in front of the connections that a site takes; those that it does not are closed."""

    protocol = _OverTLS

    def buildProtocol(self, addr: Any) -> TLSMemoryBIOProtocol | None:  # type: ignore[override]
        """Take a connection, if the site does."""
        taken = self.wrappedFactory.buildProtocol(addr)
        return None if taken is None else self.protocol(self, taken)
