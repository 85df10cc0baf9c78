"""TLS in front of a site: handshakes and long or many records are scheduled by reactor turns."""

from typing import Any, Final

from OpenSSL.SSL import WantReadError
from twisted.internet.protocol import connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from medamad.web.server.admission import Scheduled, TurnScheduler
from medamad.web.server.sockets import send_at_once

_HEAD_BYTES: Final = 5
"""What a record begins with: its type, its version and its length as two bytes."""
_LENGTH: Final = slice(3, 5)
_FLUSHED_BYTES: Final = 1 << 15
BYTES_PER_TURN: Final = 2_048
"""How much of what arrived is decrypted at once, enough for most hits: it may be ninety records of
one byte, each of which takes microseconds."""


class _TLSTransport(TLSMemoryBIOProtocol):
    """TLS on one connection, whose handshake takes longer than most requests.

    What is scheduled for a later reactor turn is held; meanwhile nothing more is read. What is
    written is encrypted and sent at once: responses are written whole or in large pieces.
    """

    factory: Any
    transport: Any
    wrappedProtocol: Any
    held = b""
    """What has arrived and is to be decrypted in a later turn."""
    _is_paused = False
    """Whether reading is paused."""
    _is_buffered = False
    """Whether the transport below may have something to send, which has to be sent first."""

    @property
    def sender_network(self) -> bytes | None:
        """The network of the client."""
        network: bytes | None = self.wrappedProtocol.network
        return network

    @property
    def _scheduler(self) -> TurnScheduler[Scheduled]:
        site = self.factory.wrappedFactory
        scheduler: TurnScheduler[Scheduled] = (
            site.decryptions if self.wrappedProtocol.is_negotiated else site.handshakes
        )
        return scheduler

    def dataReceived(self, data: bytes) -> None:
        """Decrypt what arrived: at once if it is little and not much else arrives."""
        is_little = not self.held and len(data) <= BYTES_PER_TURN
        if is_little and self.wrappedProtocol.is_negotiated:
            is_one = len(data) - _HEAD_BYTES == int.from_bytes(data[_LENGTH], "big")
            scheduler = self.factory.wrappedFactory.records if is_one else self._scheduler
            if scheduler.try_start():
                super().dataReceived(data)
                return
        self.wrappedProtocol.encrypted_data_pending()
        self.held += data
        self.transport.pauseProducing()
        self._continue()

    def run_turn(self) -> None:
        """Decrypt some of what is held."""
        data, self.held = self.held[:BYTES_PER_TURN], self.held[BYTES_PER_TURN:]
        super().dataReceived(data)
        if self.held:
            self.wrappedProtocol.encrypted_data_pending()
        self._continue()

    def _flushSendBIO(self) -> None:
        """Send what is encrypted."""
        try:
            data = self._tlsConnection.bio_read(_FLUSHED_BYTES)
        except WantReadError:
            return
        sent = 0 if self._is_buffered else send_at_once(self.transport, data)
        if sent < len(data):
            self._is_buffered = True
            self.transport.write(data[sent:])

    def pauseProducing(self) -> None:
        """Read nothing more, and decrypt nothing of what is held."""
        self._is_paused = True
        self._scheduler.remove(self)
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Go on, first with what is held."""
        self._is_paused = False
        self._continue()

    def _continue(self) -> None:
        if self._is_paused or self.transport.disconnecting:
            return
        if self.held:
            self._scheduler.add(self)
        else:
            self.transport.resumeProducing()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Forget the connection, and what is held."""
        site = self.factory.wrappedFactory
        for scheduler in (site.handshakes, site.decryptions):
            scheduler.remove(self)
        self.held = b""
        super().connectionLost(reason)


class TLSFactory(TLSMemoryBIOFactory):
    """Puts TLS in front of the connections that a site accepts, and closes all others."""

    protocol = _TLSTransport

    def buildProtocol(self, addr: Any) -> TLSMemoryBIOProtocol | None:  # type: ignore[override]
        """Accept a connection, if the site does."""
        channel = self.wrappedFactory.buildProtocol(addr)
        return None if channel is None else self.protocol(self, channel)
