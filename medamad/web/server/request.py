"""One request: its target and body, and the response to it."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from twisted.internet.address import IPv4Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.domain.errors import ApiError
from medamad.ingest.networks import Address
from medamad.web.responses import (
    Flow,
    Headers,
    Response,
    Stream,
    encoded_head,
    failure_response,
    send,
)
from medamad.web.server.channel import Channel, Owner
from medamad.web.server.parser import RequestHead

_log: Final = Logger()
_ABSOLUTE: Final = re.compile(rb"https?://[^/?#]+(?=[/?#]|\Z)", re.IGNORECASE)
_WITHOUT_BODY: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_LOCALHOST: Final = IPv4Address("TCP", "127.0.0.1", 80)


class Request:
    """A request of a site, as much of one as Klein and our routes need.

    `path` and `query_string` are the two parts of its target as they were sent, but the site may
    remove the base path from `path`; `body` is complete, and `sent_bytes` is the size of all.
    `channel` is None once the request is answered or the client has disconnected.
    """

    body: bytes = b""
    local_path = ""
    """The decoded path, without the prefix of the mount."""
    malformed = False
    """Whether the path is badly encoded."""
    route = "a request"
    """The name of its route for the log, once known."""
    prepath: list[bytes]
    postpath: list[bytes]
    mapper: Any = None
    """Klein's, while it routes the request."""

    def __init__(
        self, channel: Channel, head: RequestHead, serve: "Callable[[Request], None]"
    ) -> None:
        self.channel: Channel | None = channel
        self.site: Owner = channel.site
        self.peer: Address | None = channel.peer
        self.headers = head.headers
        self.method = head.method
        self.sent_bytes = head.size
        self._version = head.version
        self._serve = serve
        self._head = b""
        """The head of the response, until it is sent."""
        self._is_chunked = False
        self._is_head_sent = False
        self._finished: list[Deferred[None]] = []
        absolute = None if head.target[:1] == b"/" else _ABSOLUTE.match(head.target)
        target = head.target[absolute.end() :] if absolute else head.target
        self.path, _, self.query_string = target.partition(b"?")
        if absolute and not self.path:
            self.path = b"/"

    def received(self, body: bytes) -> None:
        """Begin to respond: the body is complete."""
        self.body = body
        self.sent_bytes += len(body)
        try:
            self._serve(self)
        except Exception:  # noqa: BLE001 - any error is logged and answered
            self.processingFailed(Failure())

    def connectionLost(self, reason: Failure) -> None:
        """Cancel the response: the client has disconnected."""
        self.channel = None
        self._fire(lambda finished: finished.errback(reason))

    # What Klein calls

    def getRequestHostname(self) -> bytes:
        """Return a name; no route depends on it."""
        return b"localhost"

    def getHost(self) -> IPv4Address:
        """Return an address; no route depends on it."""
        return _LOCALHOST

    def isSecure(self) -> bool:
        """Return whether a URL would begin with https; no route makes one."""
        return False

    def notifyFinish(self) -> "Deferred[None]":
        """Return a Deferred of the end of the response; it fails if the client disconnects."""
        finished: Deferred[None] = Deferred()
        self._finished.append(finished)
        return finished

    def processingFailed(self, failure: Failure) -> Failure:
        """Respond to an error of our own that nothing else has handled."""
        response = failure_response(failure, self.route)
        if not self._is_head_sent:
            self.respond(response)
        return failure

    def write(self, data: bytes) -> None:
        """Send a part of the body, with the head before the first."""
        if self.channel is None:
            return
        if self.method == b"HEAD":
            data = b""
        elif self._is_chunked and data:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        if not self._is_head_sent:
            self._is_head_sent = True
            data = self._head + data
        if data:
            self.channel.write(data)

    def finish(self) -> None:
        """End the response."""
        channel = self.channel
        if channel is None:
            return
        if self._is_chunked:
            channel.write(b"0\r\n\r\n")
        self.channel = None
        channel.response_done()
        self._fire(lambda finished: finished.callback(None))

    def registerProducer(self, producer: Any, _streaming: bool) -> None:
        """Pause and resume a push producer as the client receives."""
        if self.channel is not None:
            self.channel.start_producing(producer)

    def unregisterProducer(self) -> None:
        """Stop pausing and resuming the producer."""
        if self.channel is not None:
            self.channel.stop_producing()

    def _fire(self, fire: "Callable[[Deferred[None]], None]") -> None:
        waiting, self._finished = self._finished, []
        for finished in waiting:
            fire(finished)

    # What our routes call

    @property
    def keeps_connection(self) -> bool:
        """Whether the connection stays open after the response, as far as is known now."""
        return self.channel is not None and self.channel.keep_alive

    def start_response(self, response: Response, further: Headers = ()) -> bytes:
        """Set the head of the response. Return its body, which is still to be written."""
        headers = [*self.site.common_headers(), *further, *response.headers]
        if response.content_type:
            headers.append((b"Content-Type", response.content_type))
        if response.stream is None and response.status not in _WITHOUT_BODY:
            headers.append((b"Content-Length", b"%d" % len(response.body)))
        if not self.keeps_connection:
            headers.append((b"Connection", b"close"))
        if response.stream is not None and self.method != b"HEAD":
            # A client of HTTP/1.0 sees the end of the body by that of the connection.
            self._is_chunked = self._version == b"HTTP/1.1"
            if self._is_chunked:
                headers.append((b"Transfer-Encoding", b"chunked"))
        self._head = encoded_head(self._version, response.status, headers)
        return b"" if response.status in _WITHOUT_BODY else response.body

    async def send_stream(self, stream: Stream) -> None:
        """Send a body piece by piece. One that cannot be completed is cut off."""
        channel = self.channel
        if channel is None:
            stream.close()
            return
        settings = self.site.settings
        end = self.site.seconds() + settings.stream_seconds

        def at_most(seconds: float) -> float:
            return min(seconds, end - self.site.seconds())

        flow = Flow(
            paused=lambda: channel.pause_response(at_most(settings.receive_seconds)),
            resumed=lambda: channel.continue_response(at_most(settings.answer_seconds)),
        )
        try:
            if self.method != b"HEAD":
                await send(self, stream, flow)
        except CancelledError:
            raise
        except ApiError as error:
            _log.warn(
                "{route}: the response was cut off: {error}", route=self.route, error=str(error)
            )
        except Exception:  # noqa: BLE001 - any error is logged
            _log.failure("{route}: the response was cut off", route=self.route)
        else:
            return
        finally:
            stream.close()
        # The status has been sent, so only a missing end can show that something failed.
        channel.abort()
        # Returning would end the response normally; the end of the connection cancels this.
        await Deferred()

    def respond(self, response: Response, further: Headers = ()) -> None:
        """Send a whole response, unless the client has disconnected."""
        self.write(self.start_response(response, further))
        self.finish()

    def respond_encoded(self, response: bytes) -> None:
        """Send a response whose head and body are encoded already."""
        if self.channel is not None:
            self._is_head_sent = True
            self.channel.write(response)
            self.finish()
