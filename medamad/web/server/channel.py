"""A connection: requests in the order in which they come, bounded in size and time."""

import re
from fcntl import ioctl
from math import inf
from socket import SO_SNDBUF, SOL_SOCKET
from struct import Struct
from termios import FIONREAD, TIOCOUTQ
from typing import Any, Final, Protocol

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IHandshakeListener, INegotiated
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel, Request
from zope.interface import implementer

from medamad.domain.errors import ApiError, BadRequest, TooLarge
from medamad.ingest.networks import Address
from medamad.web.responses import Headers, Response, encoded_last, error_response
from medamad.web.server.clients import peer_address
from medamad.web.server.parser import MAX_HEAD_BYTES, Chunks, RequestHead, read_head
from medamad.web.settings import WebSettings

SEND_BUFFER_BYTES: Final = 65_536
"""How much of its answers the kernel holds for a connection (Linux takes it twice): by itself it
would take megabytes for each that asks for much and receives nothing."""

_INT: Final = Struct("@i")


def bound_send_buffer(transport: Any) -> None:
    """Have the kernel hold no more than a little of what is sent, where there is a socket."""
    socket = getattr(transport, "socket", None)
    if socket is not None:
        socket.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES)


def unread_bytes(transport: Any) -> int:
    """Return how much has arrived that was not looked at yet, as far as that is known."""
    return _bytes_by(FIONREAD, transport)


def unreceived_bytes(transport: Any) -> int:
    """Return how much of what was sent has not arrived at the other end, as far as that is known.

    What a transport itself still holds comes only on top of that: it goes to the kernel first.
    """
    return _bytes_by(TIOCOUTQ, transport)


def _bytes_by(question: int, transport: Any) -> int:
    """Ask the kernel for a number of bytes; 0 where there is no socket."""
    socket = getattr(transport, "socket", None)
    if socket is None or socket.fileno() < 0:
        return 0
    found: int
    (found,) = _INT.unpack(ioctl(socket.fileno(), question, _INT.pack(0)))
    return found


LINGER_SECONDS: Final = 2.0
"""How long a refused connection may go on sending, so that it reads the refusal."""
LINGER_BYTES: Final = 1_000_000
"""How much is read and dropped of a connection that was refused or closed."""

MOST_AHEAD_BYTES: Final = 16_384
"""How much of further requests is read while one is being answered."""

SHORT_BYTES: Final = 2_048
"""Of how many bytes a request may be taken as it comes, as the usual hits and pings are: longer
ones, and those with chunks, wait for a turn, as what is sent ahead does."""

_CLOSE: Final = re.compile(rb"(?:\A|,)[ \t]*close[ \t]*(?:,|\Z)", re.IGNORECASE)
"""The option of a connection, in a list of such, that it is to be closed."""
_CLOSED: Final = Failure(ConnectionDone())


class Owner(Protocol):
    """What a connection belongs to."""

    @property
    def settings(self) -> WebSettings:
        """The settings of the moment."""

    @property
    def is_leaving(self) -> bool:
        """Whether every connection closes after the next answer."""

    def seconds(self) -> float:
        """Return the reactor's time."""

    def request(self, channel: "Channel", head: RequestHead) -> Request:
        """Make the next request of a connection, of which the body is to come."""

    def error_response(self, channel: "Channel", head: RequestHead, error: ApiError) -> Response:
        """Answer a request of which the body cannot be taken."""

    def waits(self, channel: "Channel") -> None:
        """Count a connection, as the latest that began to wait for a request."""

    def pauses(self, channel: "Channel") -> None:
        """Count a connection as one over which a long answer waits for its client."""

    def network_of_sender(self, channel: "Channel", arrived: bytes) -> bytes | None:
        """Return the network that what a proxy passes on is from, as far as it has arrived."""

    def works(self, channel: "Channel") -> None:
        """Count a connection as one over which a request comes, or the handshake before."""

    def answers(self, channel: "Channel") -> None:
        """Count a connection as one whose request has come, and is being answered."""

    def takes_more(self) -> bool:
        """Return whether one more request may be taken in this turn of the reactor, and count it."""

    def has_more(self, channel: "Channel") -> None:
        """Have a connection take its next request in a later turn of the reactor."""

    def closed(self, channel: "Channel") -> None:
        """Forget a connection."""

    def common_headers(self) -> Headers:
        """Return the headers of every answer."""


@implementer(IHandshakeListener)
class Channel(HTTPChannel):
    """One connection of a site.

    `expires` is the moment, by the reactor's clock, at which the site closes it: there is always
    one, whether it is silent, sends a request or waits for an answer.

    Of requests that are sent ahead it takes one in a turn of the reactor, and none while answers
    wait for the client to receive them; meanwhile it reads no more. Requests that may be laborious
    wait for such a turn too, and others where many come at once, so that many connections hold the
    reactor no longer than few.
    """

    transport: Any
    _networkProducer: Any
    timeOut = None
    """Twisted's own timeout is off: it knows idleness only, and logs addresses."""

    def __init__(self, site: Owner, network: bytes | None = None) -> None:
        super().__init__()
        self.site = site
        self.network = network
        self.sender = network
        """The network of whoever sends what waits for its turn, also where a proxy passes it on."""
        self.idle = True
        self._was_answered = False
        self._has_answered = False
        self._has_turn = True
        self.refused = False
        self.closing = False
        self._all_was_received = False
        self.expires = 0.0
        self._head: RequestHead | None = None
        self._searched = 0
        self._swallowed = 0
        self._ahead = 0
        self._received = 0

    @property
    def waits_for_turn(self) -> bool:
        """Whether something has come that is to be taken in a later turn, of TLS too."""
        return not self._has_turn or bool(getattr(self.transport, "held", b""))

    @property
    def is_sending(self) -> bool:
        """Whether the client has not received all yet."""
        return unreceived_bytes(self.transport) > 0

    def connectionMade(self) -> None:
        """Begin to wait for a request, or for TLS before."""
        self.peer: Address | None = peer_address(self.transport.getPeer())
        bound_send_buffer(self.transport)
        self._is_over_tls = self._shakes_hands = INegotiated.providedBy(self.transport)
        settings = self.site.settings
        patience_s = settings.request_seconds if self._shakes_hands else settings.idle_seconds
        self.expires = self.site.seconds() + patience_s
        self.site.waits(self)
        super().connectionMade()

    def handshakeCompleted(self) -> None:
        """Begin to wait for a request, of which TLS can now tell."""
        self._shakes_hands = False
        self.expires = self.site.seconds() + self.site.settings.idle_seconds
        self.site.waits(self)

    def connectionLost(self, reason: Failure = _CLOSED) -> None:
        """Forget the connection."""
        self.expires = inf
        self.site.closed(self)
        super().connectionLost(reason)
        # What holds the connection, such as the answer that was under way, holds no more than it.
        self._requestProducer = None
        self._buffer = b""
        self._dataBuffer = []

    def dataReceived(self, data: bytes) -> None:
        """Take what arrived; the first byte of a request starts its time."""
        if self.refused or self.closing:
            self._swallow(data)
            return
        if self.idle:
            self._start_time()
        self._buffer += data
        self._received += len(data)
        if not self._has_turn:
            self._networkProducer.pauseProducing()
        elif not self._busyReceiving:
            self._take_buffered()

    def _start_time(self) -> None:
        """Return a request its time to arrive."""
        self.idle = False
        self.site.works(self)
        self.expires = self.site.seconds() + self.site.settings.request_seconds

    def _take_buffered(self, *, in_turn: bool = False) -> None:
        """Take parts of a body for as long as there are some, and one head if it is complete."""
        if not in_turn and self._has_to_wait():
            self._wait_for_turn()
            return
        self._has_answered = False
        self._busyReceiving = True
        try:
            while self._buffer and not self.refused and not self.transport.disconnecting:
                if self.length is None and not (in_turn or self._handlingRequest):
                    self._wait_for_turn()
                    return
                if not self.line_mode:
                    data, self._buffer = self._buffer, b""
                    self.rawDataReceived(data)
                elif self._has_answered or self._waitingForTransport:
                    self._wait()
                    return
                elif not self._take_head():
                    return
        finally:
            self._busyReceiving = False
        # What TLS decrypts of one read comes in as many parts as it was sent in.
        if self._has_answered and self._is_over_tls:
            self._wait_for_turn()

    def _has_to_wait(self) -> bool:
        """Return whether what has come waits: for what it may take, or for what others have taken."""
        if self._handlingRequest:
            return False
        if self._received > SHORT_BYTES or self.length is None:
            return True
        return not self.site.takes_more()

    def _wait_for_turn(self) -> None:
        """Wait for a later turn of the reactor, and meanwhile read little more."""
        if self._has_turn and self.network is None and self.line_mode:
            self.sender = self.site.network_of_sender(self, self._buffer)
        self._has_turn = False
        if self._received > SHORT_BYTES:
            self._networkProducer.pauseProducing()
        self.site.has_more(self)

    def _wait(self) -> None:
        """Have what was sent ahead wait for the next turn, or for the client to receive."""
        self._networkProducer.pauseProducing()
        if not self._waitingForTransport:
            self._start_time()
            self._wait_for_turn()

    def take_next(self) -> None:
        """Go on with what was sent ahead."""
        self._has_turn = True
        if not self.refused and not self.transport.disconnecting:
            self._networkProducer.resumeProducing()
            self._take_buffered(in_turn=True)

    def resumeProducing(self) -> None:
        """Go on: what was sent has gone out as far as the kernel."""
        super().resumeProducing()
        if self.idle:
            self.expires = self.site.seconds() + self.site.settings.reading_seconds
        if self._buffer and not self._busyReceiving and not self.refused:
            self._wait()

    def _take_head(self) -> bool:
        """Begin a request, or tell that its head is not complete."""
        buffer = self._buffer
        # An empty line before a request is to be passed over (RFC 9112 section 2.2).
        start = 2 if buffer.startswith(b"\r\n") else 0
        end = buffer.find(b"\r\n\r\n", max(start, self._searched - 3))
        if (end if end >= 0 else len(buffer)) > MAX_HEAD_BYTES:
            self.refuse(BadRequest(f"expected at most {MAX_HEAD_BYTES} bytes before the body"))
            return False
        if end < 0:
            self._searched = len(buffer)
            return False
        self._searched = 0
        self._buffer = buffer[end + 4 :]
        try:
            self._begin_request(read_head(buffer[start : end + 2]))
        except BadRequest as error:
            self.refuse(error)
        return True

    def _begin_request(self, head: RequestHead) -> None:
        """Begin to read the body of a request, if there is one, else to answer."""
        self._head = head
        if head.length is not None and head.length > self.site.settings.max_body_bytes:
            self.refuse_body()
            return
        self.requests.append(self.site.request(self, head))
        self._command = head.method
        self._path = head.target  # type: ignore[assignment] # Twisted gives it a wrong type
        self._version = head.version
        if head.length is None:
            self.length = None
            take = self.requests[-1].handleContentChunk
            self._transferDecoder = Chunks(take, self._finishRequestBody)
        elif head.length:
            self._maybeChooseTransferDecoder(b"Content-Length", b"%d" % head.length)
        self.allHeadersReceived()
        if self.site.is_leaving:
            self.persistent = False
        if self.length == 0:
            self.allContentReceived()
        else:
            self.setRawMode()

    def checkPersistence(self, request: Request, version: bytes) -> bool:
        """Return whether the connection may stay open after a request (RFC 9112 section 9.3)."""
        options = request.requestHeaders.getRawHeaders(b"Connection", ())
        return version == b"HTTP/1.1" and not _CLOSE.search(b",".join(options))

    def rawDataReceived(self, data: bytes) -> None:
        """Take a part of a body, or of what was sent ahead of an answer.

        Of that no more is read than a little, also while the client receives nothing.
        """
        if self._handlingRequest:
            self._dataBuffer.append(data)
            self._ahead += len(data)
            if self._ahead > MOST_AHEAD_BYTES:
                self._networkProducer.pauseProducing()
        elif not self.refused:
            try:
                super().rawDataReceived(data)
            except BadRequest as error:
                self.refuse(error, self._head)
            # A chunk that is announced is refused before it arrives.
            announced = getattr(self._transferDecoder, "length", 0)
            if announced > self.site.settings.max_body_bytes:
                self.refuse_body()

    def allContentReceived(self) -> None:
        """Begin to answer."""
        if not self.refused:
            self._ahead = 0
            self.expires = self.site.seconds() + self.site.settings.answer_seconds
            self.site.answers(self)
            super().allContentReceived()

    def goes_on(self, seconds: float) -> None:
        """Return an answer that is sent piece by piece so many seconds to come on."""
        self.expires = self.site.seconds() + seconds
        self.site.answers(self)

    def waits_for_client(self, seconds: float) -> None:
        """Return the client so many seconds to receive what there is of such an answer."""
        self.expires = self.site.seconds() + seconds
        self.site.pauses(self)

    def requestDone(self, request: Request) -> None:
        """Begin to wait for the next request, first of all until the answer has been received."""
        self.idle = self._was_answered = True
        self.expires = self.site.seconds() + self.site.settings.reading_seconds
        self.site.waits(self)
        self._has_answered = True
        if self._busyReceiving:
            super().requestDone(request)
            self._received = len(self._buffer)
            return
        # What was sent ahead is only put back.
        self._busyReceiving = True
        super().requestDone(request)
        self._busyReceiving = False
        self._received = len(self._buffer)
        if self._buffer:
            self._wait()

    def refuse_body(self) -> None:
        """Refuse the body of the request that was begun, for its size."""
        most = self.site.settings.max_body_bytes
        self.refuse(TooLarge(f"body: expected at most {most} bytes"), self._head)

    def refuse(self, error: ApiError, head: RequestHead | None = None) -> None:
        """Answer what cannot become a request, and take no further one from this connection.

        With the head of that request, if it was sound, the site has a say in the answer.
        What is still being sent is read and dropped for a while: closing at once would make the
        other end lose the answer.
        """
        if self.refused:
            return
        self.refused = True
        self.expires = self.site.seconds() + LINGER_SECONDS
        response = self.site.error_response(self, head, error) if head else error_response(error)
        self.transport.write(encoded_last(response, self.site.common_headers()))
        self._networkProducer.unregisterProducer()
        close = self.transport.loseConnection
        # TLS closes its own half first; what is below it is not to be closed meanwhile.
        (close if self._is_over_tls else getattr(self.transport, "loseWriteConnection", close))()

    def expire(self) -> None:
        """Close the connection; if it does not go by itself, or does not read, cut it.

        Over TLS, which closes only when the other end agrees, one that is slow to send is cut, too.
        """
        is_slow = self._shakes_hands or not (self.idle or self._handlingRequest)
        goes_by_itself = not (self._is_over_tls and is_slow)
        if not goes_by_itself or self.closing or self.refused or unreceived_bytes(self.transport):
            self.cut()
            return
        if self.idle and self._was_answered:
            self._was_answered = False
            settings = self.site.settings
            self.expires += settings.idle_seconds - settings.reading_seconds
            return
        self._begin_close()

    def loseConnection(self) -> None:
        """Close the connection, which has some time to receive what was written before.

        Over TLS it goes only when the other end agrees, and that may send on: it is dropped.
        """
        self.closing = True
        self.expires = self.site.seconds() + self.site.settings.reading_seconds
        super().loseConnection()

    def _begin_close(self) -> None:
        """Close the connection, and note whether every answer has been received before.

        Over TLS, what is not received then is its end alone, of which nothing is lost.
        """
        is_answered = not self._handlingRequest
        self._all_was_received = is_answered and not unreceived_bytes(self.transport)
        self.loseConnection()

    def cut(self) -> None:
        """End the connection at once, whatever is still to be sent."""
        self.transport.abortConnection()

    def leave(self) -> None:
        """Have the answer that is under way be the last."""
        if self._handlingRequest:
            self.persistent = False

    def has_unread(self) -> bool:
        """Return whether something has arrived that was not looked at yet, or waits for its turn."""
        waits = (self._buffer and not self._has_turn) or getattr(self.transport, "held", b"")
        return bool(waits) or unread_bytes(self.transport) > 0

    def close_after_answer(self) -> None:
        """Close the connection, at once unless a request is being answered.

        A request that has not come in whole is dropped: nothing of it was acknowledged. What was
        written before goes out first, to whoever reads it. Over TLS, one that was closed before
        does not wait for the other end any more (RFC 8446 section 6.1), which may never look.
        """
        if self.closing or self.refused:
            self._close_for_good()
        elif self._handlingRequest:
            self.persistent = False
        else:
            self._begin_close()

    def _close_for_good(self) -> None:
        """Go on with a close that was begun, as far as nothing that was written is lost by that."""
        if not self._is_over_tls:
            self.transport.loseConnection()
        # TCP that closes before all is read may lose what was not received (RFC 9112 section 9.6).
        elif not self.has_unread() and (
            self._all_was_received or not unreceived_bytes(self.transport)
        ):
            self.transport.transport.loseConnection()

    def _respondToBadRequestAndDisconnect(self) -> None:
        """Refuse a body whose chunks Twisted cannot read."""
        self.refuse(BadRequest("body: expected well-formed chunks"), self._head)

    def _swallow(self, data: bytes) -> None:
        self._swallowed += len(data)
        if self._swallowed > LINGER_BYTES:
            self.transport.abortConnection()
