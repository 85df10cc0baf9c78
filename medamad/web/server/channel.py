"""One HTTP/1.1 connection: requests in order, bounded in size, in time and in work per turn.

This is a protocol of our own rather than Twisted's `HTTPChannel`: the limits of time and of work in
a reactor turn, the backpressure and the strict parser would replace nearly all of that class, and
could only do so through its private attributes. It parses heads and bodies where they
arrived, creates one object per request, calls the application directly and sends a response with
one write, which leaves room for twice the throughput. h11 would cost more than all of this.
"""

from collections.abc import Callable
from math import inf
from typing import Any, Final, Protocol

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import (
    IHandshakeListener,
    INegotiated,
    IPushProducer,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol as TwistedProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from medamad.domain.errors import ApiError
from medamad.ingest.networks import Address
from medamad.ingest.write_queue import Reactor
from medamad.web.responses import Headers, Response, encoded_last, error_response
from medamad.web.server.clients import peer_address
from medamad.web.server.limits import Connections, ConnectionState
from medamad.web.server.parser import RequestHead, RequestParser, wants_close
from medamad.web.server.sockets import (
    READ_BYTES,
    limit_buffers,
    send_at_once,
    unread_bytes,
    unsent_bytes,
)
from medamad.web.settings import WebSettings

LINGER_S: Final = 2.0
"""How long a refused client may keep sending, so that it can read the error."""
LINGER_BYTES: Final = 1_000_000
"""How much is read and dropped on a connection that was refused or closed."""
MAX_AHEAD_BYTES: Final = 16_384
"""How much of further requests is read before the current one is answered."""

_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_CLOSED: Final = Failure(ConnectionDone())


_OPEN: Final = (ConnectionState.IDLE, ConnectionState.READING)
_ANSWERING: Final = (ConnectionState.RESPONDING, ConnectionState.PAUSED)
_ENDING: Final = (ConnectionState.REFUSED, ConnectionState.CLOSING, ConnectionState.CLOSED)


class Owner(Protocol):
    """The site that a connection belongs to."""

    connections: "Connections[Channel]"

    @property
    def reactor(self) -> Reactor:
        """The reactor."""

    @property
    def settings(self) -> WebSettings:
        """The current settings."""

    @property
    def is_closing(self) -> bool:
        """Whether every connection closes after its next response."""

    def seconds(self) -> float:
        """Return the reactor's time."""

    @property
    def take_hit(self) -> "Callable[[Channel, bytes], bool]":
        """Takes a hit that arrived whole, and returns whether what arrived is one, and no more."""

    @property
    def is_head_of_hit(self) -> Callable[[bytes], bool]:
        """Returns whether what arrived is the head of a hit that `take_hit` takes with its body."""

    def make_request(self, channel: "Channel", head: RequestHead, /) -> Any:
        """Make a request whose body is still to come."""

    def error_response(self, request: Any, error: ApiError, /) -> Response:
        """Return the response to a request whose body cannot be read."""

    def remove(self, channel: "Channel", /) -> None:
        """Forget a connection that is closed."""

    def common_headers(self) -> Headers:
        """Return the headers of every response."""


@implementer(IHandshakeListener, IPushProducer)
class Channel(TwistedProtocol):
    """One connection of a site.

    `deadline` is the moment, by the reactor's clock, at which the site calls `time_out`; there is
    always one. `keep_alive` says whether the connection stays open after the current response.

    In a reactor turn, at most READ_BYTES are read and one request is parsed, and none while the
    client does not receive; further ones that have arrived are parsed in the next turns, and until
    then nothing more is read.
    """

    transport: Any

    def __init__(self, site: Owner, network: bytes | None = None) -> None:
        self.site = site
        self.network = network
        self.state = ConnectionState.IDLE
        self.deadline = inf
        self.keep_alive = True
        self.is_in_hit = False
        """Whether a hit that arrived whole waits for its response."""
        self._request: Any = None
        """The request that is being read or answered."""
        self._parser = RequestParser()
        self._dropped = 0
        self._head = b""
        """The head of a hit that is taken whole once its body arrives."""
        self._is_deferred = False
        """Whether what has arrived is parsed in the next reactor turn."""
        self._is_parsing = False
        self._has_responded = False
        """Whether a request was answered while it was being parsed."""
        self._is_reading_paused = False
        self._is_client_slow = False
        """Whether the transport's buffer is full."""
        self._is_buffered = False
        """Whether the transport's buffer may hold something, which has to be sent first."""
        self._may_be_unreceived = False
        """Whether the client may not have received the last response yet."""
        self._was_all_received = False
        """Whether every response had been received when the connection was closed."""
        self._producer: Any = None
        """What writes a long response."""

    def connectionMade(self) -> None:
        """Wait for a request, after the handshake if this is TLS."""
        transport = self.transport
        self.peer: Address | None = peer_address(transport.getPeer())
        if ITCPTransport.providedBy(transport):
            transport.setTcpNoDelay(True)
        limit_buffers(transport)
        transport.registerProducer(self, True)
        self._is_tls = INegotiated.providedBy(transport)
        self.site.connections.add(self)
        settings = self.site.settings
        if self._is_tls:
            self._enter(ConnectionState.HANDSHAKE, settings.request_seconds)
        else:
            self._enter(ConnectionState.IDLE, settings.idle_seconds)

    def handshakeCompleted(self) -> None:
        """Wait for a request, now that TLS is negotiated."""
        self._enter(ConnectionState.IDLE, self.site.settings.idle_seconds)

    def connectionLost(self, reason: Failure = _CLOSED) -> None:
        """Remove the connection, and cancel its request."""
        self.state = ConnectionState.CLOSED
        self.deadline = inf
        self.is_in_hit = False
        self.site.remove(self)
        self._parser.buffer = b""
        request, self._request, self._producer = self._request, None, None
        if request is not None:
            request.connectionLost(reason)

    def _enter(self, state: ConnectionState, seconds: float) -> None:
        self.deadline = self.site.seconds() + seconds
        if self.state not in _ENDING:
            self.state = state
            self._record_state()

    def _record_state(self) -> None:
        # While what has arrived is deferred, the client waits for us.
        recorded = ConnectionState.RESPONDING if self._is_deferred else self.state
        self.site.connections.enter(self, recorded)

    # Reading

    def dataReceived(self, data: bytes) -> None:
        """Parse what arrived; the first byte of a request starts its time limit."""
        if self.state in _ENDING:
            self._dropped += len(data)
            if self._dropped > LINGER_BYTES:
                self.abort()
            return
        is_first = self.state is ConnectionState.IDLE
        if is_first or self._head:
            data = self._head + data
            if self._take_hit(data):
                return
            self.state = ConnectionState.READING
        self._parser.feed(data)
        if self._is_deferred:
            self._pause_reading()
        elif self.state in _ANSWERING:
            if len(self._parser.buffer) > MAX_AHEAD_BYTES:
                self._pause_reading()
        else:
            self._parse()
        if is_first and self.state is ConnectionState.READING:
            # Most requests arrive whole, and are already being answered.
            self._enter(ConnectionState.READING, self.site.settings.request_seconds)

    def _take_hit(self, arrived: bytes) -> bool:
        """Take a hit that has arrived whole, or the head of one; return whether this is either.

        Some proxies, such as Caddy, send the head first. It waits for the body.
        """
        is_first, self._head = not self._head, b""
        if self._is_client_slow or self._is_deferred or len(arrived) > READ_BYTES:
            return False
        if self.site.take_hit(self, arrived):
            return True
        if is_first and self.site.is_head_of_hit(arrived):
            self._head = arrived
            self._enter(ConnectionState.READING, self.site.settings.request_seconds)
        return bool(self._head)

    def _parse(self) -> None:
        """Parse at most one request, as far as it has arrived."""
        parser = self._parser
        self._has_responded = False
        self._is_parsing = True
        try:
            while parser.buffer and self.state is ConnectionState.READING:
                if not self._parse_part():
                    break
        except ApiError as error:
            self.refuse(error)
        finally:
            self._is_parsing = False
        if self.state in _ANSWERING:
            if len(parser.buffer) > MAX_AHEAD_BYTES:
                self._pause_reading()
        elif self._has_responded and self.state is ConnectionState.IDLE:
            if parser.buffer:
                self._defer_buffered()
            elif self._is_tls:
                # One read may be decrypted in many parts, each of which would be parsed at once.
                self._defer()

    def _parse_part(self) -> bool:
        """Parse a head or a body. Return whether there may be more to parse. Raises ApiError."""
        parser = self._parser
        if parser.is_in_body:
            body = parser.next_body()
            if body is not None:
                self._respond(body)
            return body is not None
        if self._is_client_slow:
            self._pause_reading()
            return False
        head = parser.next_head()
        if head is not None:
            self._begin(head)
        return head is not None

    def _begin(self, head: RequestHead) -> None:
        """Make a request, and respond unless its body is still to come. Raises TooLarge."""
        self._request = self.site.make_request(self, head)
        is_http_1_1 = head.version == b"HTTP/1.1"
        self.keep_alive = is_http_1_1 and not wants_close(head.headers)
        if head.length != 0:
            self._parser.begin_body(head.length, self.site.settings.max_body_bytes)
        expected = head.headers.values(b"expect")
        if expected and is_http_1_1 and expected[0].lower() == b"100-continue":
            self.write(_CONTINUE)
        if head.length == 0:
            self._respond(b"")

    def _respond(self, body: bytes) -> None:
        """Hand a complete request to the application."""
        if self.site.is_closing:
            self.keep_alive = False
        self._enter(ConnectionState.RESPONDING, self.site.settings.answer_seconds)
        self._request.received(body)

    def _defer(self) -> None:
        """Parse what has arrived in the next reactor turn."""
        if not self._is_deferred:
            self._is_deferred = True
            self._record_state()
            self.site.reactor.callLater(0, self._parse_deferred)

    def _parse_deferred(self) -> None:
        self._is_deferred = False
        if self.state in _OPEN:
            self._record_state()
            self._resume_reading()
            self._parse()

    def _defer_buffered(self) -> None:
        """Defer pipelined requests, unless the client has to receive something first."""
        self._pause_reading()
        if not self._is_client_slow:
            self._enter(ConnectionState.READING, self.site.settings.request_seconds)
            self._defer()

    def _pause_reading(self) -> None:
        if not self._is_reading_paused:
            self._is_reading_paused = True
            self.transport.pauseProducing()

    def _resume_reading(self) -> None:
        if (
            self._is_reading_paused
            and not self._is_client_slow
            and not self.transport.disconnecting
        ):
            self._is_reading_paused = False
            self.transport.resumeProducing()

    # Hits that arrive whole

    def begin_hit(self) -> None:
        """Wait for the response to a hit."""
        self.is_in_hit = self.keep_alive = True
        self._enter(ConnectionState.RESPONDING, self.site.settings.answer_seconds)

    def end_hit(self, response: bytes) -> None:
        """Send the response to a hit, unless the client has disconnected."""
        if self.is_in_hit:
            self.write(response)
            self.response_done()

    # Writing, as the response to a request

    def write(self, data: bytes) -> None:
        """Send a response, or part of a long one."""
        if not self._is_buffered and self._producer is None:
            sent = send_at_once(self.transport, data)
            if sent == len(data):
                return
            data = data[sent:]
        self._is_buffered = True
        self.transport.write(data)

    def start_producing(self, producer: Any) -> None:
        """Pause and resume a push producer as the client receives."""
        self._producer = producer

    def stop_producing(self) -> None:
        """Stop pausing and resuming the producer."""
        self._producer = None

    def continue_response(self, seconds: float) -> None:
        """Set how much time the next piece of a long response may take."""
        self._enter(ConnectionState.RESPONDING, seconds)

    def pause_response(self, seconds: float) -> None:
        """Set how much time the client has to receive what was sent of a long response."""
        self._enter(ConnectionState.PAUSED, seconds)

    def response_done(self) -> None:
        """Wait for the client to receive the response, then for the next request."""
        self._request, self.is_in_hit = None, False
        self._may_be_unreceived = self._has_responded = True
        self._enter(ConnectionState.IDLE, self.site.settings.receive_seconds)
        if not self.keep_alive:
            self.close()
            return
        self._resume_reading()
        if self._parser.buffer and not self._is_parsing and self.state is ConnectionState.IDLE:
            self._defer_buffered()

    def pauseProducing(self) -> None:
        """Stop sending and reading: the transport's buffer is full."""
        self._is_client_slow = True
        if self._producer is not None:
            self._producer.pauseProducing()
        if self.state not in _ANSWERING:
            self._pause_reading()

    def resumeProducing(self) -> None:
        """Send and read again: the buffer has been passed to the kernel."""
        self._is_client_slow = self._is_buffered = False
        if self._producer is not None:
            self._producer.resumeProducing()
        if self.state in _ANSWERING:
            return
        self._resume_reading()
        if self.state is ConnectionState.IDLE:
            self.deadline = self.site.seconds() + self.site.settings.receive_seconds
        if self._parser.buffer and not self._is_parsing and self.state in _OPEN:
            self._defer_buffered()

    def stopProducing(self) -> None:
        """Stop a long response: the transport is closing."""
        if self._producer is not None:
            self._producer.stopProducing()

    # Closing: `close` sends the rest first, `abort` drops it. All other ways end in one of these.

    def refuse(self, error: ApiError) -> None:
        """Send an error for what cannot be read as a request, and take no further request.

        If the head was sound, the site chooses the response. What is still arriving is read and
        dropped for a while: closing at once would make the client lose the response.
        """
        if self.state in _ENDING:
            return
        request = self._request
        response = self.site.error_response(request, error) if request else error_response(error)
        self.site.connections.enter(self, ConnectionState.READING)
        self.state = ConnectionState.REFUSED
        self.deadline = self.site.seconds() + LINGER_S
        self.transport.write(encoded_last(response, self.site.common_headers()))
        self.transport.unregisterProducer()
        close: Callable[[], None] = self.transport.loseConnection
        if not self._is_tls:
            # TLS closes its own half first, and needs the connection below for that.
            close = getattr(self.transport, "loseWriteConnection", close)
        close()

    def time_out(self) -> None:
        """Close the connection; abort it if it was closed before or the client does not receive.

        TLS closes only when the client agrees, so while one sends too slowly, it is aborted.
        """
        is_slow = self.state in (ConnectionState.HANDSHAKE, ConnectionState.READING)
        if self.state in _ENDING or (self._is_tls and is_slow) or unsent_bytes(self.transport):
            self.abort()
        elif self.state is ConnectionState.IDLE and self._may_be_unreceived:
            self._may_be_unreceived = False
            settings = self.site.settings
            self.deadline += settings.idle_seconds - settings.receive_seconds
        else:
            self._close_early()

    def close(self) -> None:
        """Close the connection, with some time to receive what was written before.

        TLS closes only when the client agrees; what arrives until then is dropped.
        """
        self.state = ConnectionState.CLOSING
        self.deadline = self.site.seconds() + self.site.settings.receive_seconds
        self._resume_reading()  # a TLS client closes its end too
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def _close_early(self) -> None:
        """Close before a further response, and record whether all others have been received."""
        is_answered = self.state not in _ANSWERING
        self._was_all_received = is_answered and not unsent_bytes(self.transport)
        self.close()

    def abort(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        self.state = ConnectionState.CLOSED
        self.transport.abortConnection()

    def close_after_response(self) -> None:
        """Close the connection after the current response, if there is one."""
        if self.state in _ANSWERING:
            self.keep_alive = False

    def has_unread(self) -> bool:
        """Return whether something has arrived that was not parsed yet."""
        is_deferred = self._is_deferred and bool(self._parser.buffer)
        return is_deferred or unread_bytes(self.transport) > 0

    def close_when_answered(self) -> None:
        """Close the connection, after the response if a request is being answered.

        An incomplete request is dropped: nothing of it was acknowledged. What was written before is
        sent first, if the client receives it. TLS that was closed before no longer waits for the
        client to close as well (RFC 8446 section 6.1), which it may never do.
        """
        if self.state in _ENDING:
            self._finish_closing()
        elif self.state in _ANSWERING:
            self.keep_alive = False
        else:
            self._close_early()

    def _finish_closing(self) -> None:
        """Finish a close that was begun, unless something written would be lost."""
        if not self._is_tls:
            self.transport.loseConnection()
        # TCP that closes with unread data may lose what was sent (RFC 9112 section 9.6).
        elif not self.has_unread() and (self._was_all_received or not unsent_bytes(self.transport)):
            self.transport.transport.loseConnection()
