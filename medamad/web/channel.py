"""A connection: HTTP/1.1 as Twisted reads it, with the strictness and the bounds it leaves open."""

import re
from http import HTTPStatus
from typing import Any, Final, Protocol

from twisted.internet.error import ConnectionDone
from twisted.protocols.basic import LineReceiver
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel, Request

from medamad.collect.sender import Address
from medamad.web.clients import peer_address
from medamad.web.errors import error_reply
from medamad.web.replies import Headers, Reply
from medamad.web.settings import WebSettings

LINGER_SECONDS: Final = 2.0
"""How long a refused connection may go on sending, so that it reads the refusal."""
LINGER_BYTES: Final = 1_000_000
CLOSE_SECONDS: Final = 10.0
"""How long a connection that was closed may take to read what it was sent."""

_HOST: Final = re.compile(
    rb"(?:[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?\Z"
)
_MAX_HOST: Final = 260
_CLOSED: Final = Failure(ConnectionDone())


class Owner(Protocol):
    """What a connection belongs to."""

    @property
    def settings(self) -> WebSettings:
        """The settings of the moment."""

    @property
    def is_draining(self) -> bool:
        """Whether no further requests are taken."""

    def seconds(self) -> float:
        """Give the reactor's time."""

    def request(self, channel: "Channel", queued: int) -> Request:
        """Make the next request of a connection."""

    def opened(self, channel: "Channel") -> None:
        """Count a connection."""

    def closed(self, channel: "Channel") -> None:
        """Forget a connection."""

    def common_headers(self) -> Headers:
        """Give the headers of every answer."""


class Channel(HTTPChannel):
    """One connection of a site.

    `expires` is the moment, by the reactor's clock, at which the site closes it: there is always
    one, whether it is silent, sends a request or waits for an answer.
    """

    transport: Any
    timeOut = None
    """Twisted's own timeout is off: it knows idleness only, and logs addresses."""

    def __init__(self, site: Owner) -> None:
        super().__init__()
        self.site = site
        self.requestFactory = site.request  # type: ignore[assignment] # any factory will do
        self.idle = True
        self.refused = False
        self.closing = False
        self.expires = 0.0
        self._swallowed = 0

    def connectionMade(self) -> None:
        """Begin to wait for a request."""
        self.peer: Address | None = peer_address(self.transport.getPeer())
        self.expires = self.site.seconds() + self.site.settings.idle_seconds
        self.site.opened(self)
        super().connectionMade()

    def connectionLost(self, reason: Failure = _CLOSED) -> None:
        """Forget the connection."""
        self.site.closed(self)
        super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        """Take what arrived; the first byte of a request starts its time."""
        if self.refused:
            self._swallow(data)
            return
        if self.idle:
            self.idle = False
            self.expires = self.site.seconds() + self.site.settings.request_seconds
        LineReceiver.dataReceived(self, data)

    def lineReceived(self, line: bytes) -> bool:
        """Take a line of a request's head; True stops the reading of further ones."""
        if line and line[0] in b" \t":
            self.refuse(HTTPStatus.BAD_REQUEST, "a header must not go on in a second line")
        else:
            super().lineReceived(line)
        return self.refused

    def lineLengthExceeded(self, _line: bytes) -> bool:
        """Refuse a line beyond any bound."""
        return self._respondToBadRequestAndDisconnect()

    def headerReceived(self, line: bytes) -> bool:
        """Take a header. A Content-Length of thousands of digits is no number to Python."""
        try:
            return super().headerReceived(line) is True
        except ValueError:
            return self._respondToBadRequestAndDisconnect()

    def allHeadersReceived(self) -> None:
        """Refuse what must not be asked this way, before any of the body is read."""
        problem = self._problem()
        if problem is not None:
            self.refuse(HTTPStatus.BAD_REQUEST, problem)
        elif self.length is not None and self.length > self.site.settings.max_body_bytes:
            self.refuse_body()
        else:
            super().allHeadersReceived()
            if self.site.is_draining:
                self.persistent = False

    def rawDataReceived(self, data: bytes) -> bool:  # type: ignore[override] # LineReceiver's
        """Take a part of a body; True stops the reading of further parts."""
        if not self.refused:
            super().rawDataReceived(data)
        return self.refused

    def allContentReceived(self) -> None:
        """Begin to answer."""
        if not self.refused:
            self.expires = self.site.seconds() + self.site.settings.answer_seconds
            super().allContentReceived()

    def requestDone(self, request: Request) -> None:
        """Begin to wait for the next request."""
        self.idle = True
        self.expires = self.site.seconds() + self.site.settings.idle_seconds
        super().requestDone(request)

    def refuse_body(self) -> None:
        """Refuse a body for its size."""
        most = self.site.settings.max_body_bytes
        self.refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"body: expected at most {most} bytes")

    def refuse(self, status: int, message: str) -> None:
        """Answer what cannot become a request, and take no further one from this connection.

        What is still being sent is read and dropped for a while: closing at once would make the
        other end lose the answer.
        """
        if self.refused:
            return
        self.refused = True
        self.expires = self.site.seconds() + LINGER_SECONDS
        self.transport.write(self._encoded(error_reply(status, message)))
        self._networkProducer.unregisterProducer()
        half_close = getattr(self.transport, "loseWriteConnection", self.transport.loseConnection)
        half_close()

    def expire(self) -> None:
        """Close the connection; if it does not go by itself, cut it."""
        if self.closing or self.refused:
            self.transport.abortConnection()
            return
        self.closing = True
        self.expires = self.site.seconds() + CLOSE_SECONDS
        self.loseConnection()

    def close_after_answer(self) -> None:
        """Close the connection as soon as it waits for no answer."""
        if self.idle:
            self.expire()
        elif not self.line_mode:
            # Of a request whose head is not complete, this is said when it is.
            self.persistent = False

    def _respondToBadRequestAndDisconnect(self) -> bool:
        """Refuse what Twisted's parser refuses."""
        self.refuse(HTTPStatus.BAD_REQUEST, "this is not a well-formed HTTP request")
        return False

    def _problem(self) -> str | None:
        """Say what is wrong with the headers taken together."""
        headers = self.requests[-1].requestHeaders
        hosts = headers.getRawHeaders(b"Host") or ()
        modern = self._version == b"HTTP/1.1"
        if len(hosts) != 1 and (modern or hosts):
            return "Host: expected exactly one (RFC 9112 section 3.2)"
        if hosts and (len(hosts[0]) > _MAX_HOST or not _HOST.match(hosts[0])):
            return "Host: expected a host, and a port if there is one"
        if not modern and headers.hasHeader(b"Transfer-Encoding"):
            return "Transfer-Encoding: HTTP/1.0 has none"
        return None

    def _swallow(self, data: bytes) -> None:
        self._swallowed += len(data)
        if self._swallowed > LINGER_BYTES:
            self.transport.abortConnection()

    def _encoded(self, reply: Reply) -> bytes:
        """Give the bytes of an answer that closes the connection."""
        head = [
            b"HTTP/1.1 %d %b" % (reply.status, HTTPStatus(reply.status).phrase.encode()),
            *(b"%b: %b" % header for header in (*self.site.common_headers(), *reply.headers)),
            b"Content-Type: %b" % reply.content_type,
            b"Content-Length: %d" % len(reply.body),
            b"Connection: close",
        ]
        return b"\r\n".join((*head, b"", reply.body))
