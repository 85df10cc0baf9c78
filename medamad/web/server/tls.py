"""TLS in front of a site: what is encrypted is sent at once."""

from typing import Any, Final

from OpenSSL.SSL import WantReadError
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol

from medamad.web.server.sockets import send_at_once

_FLUSHED_BYTES: Final = 1 << 15


class _TLSTransport(TLSMemoryBIOProtocol):
    """TLS on one connection. Responses are written whole or in large pieces."""

    transport: Any
    _is_buffered = False
    """Whether the transport below may have something to send, which has to be sent first."""

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


class TLSFactory(TLSMemoryBIOFactory):
    """Puts TLS in front of the connections that a site accepts, and closes all others."""

    protocol = _TLSTransport

    def buildProtocol(self, addr: Any) -> TLSMemoryBIOProtocol | None:  # type: ignore[override]
        """Accept a connection, if the site does."""
        channel = self.wrappedFactory.buildProtocol(addr)
        return None if channel is None else self.protocol(self, channel)
