"""A request: its address taken apart, its body kept whole and bounded, its answer sent."""

import re
from collections.abc import Callable
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web import server
from twisted.web.http_headers import Headers

from medamad.domain.errors import ApiError
from medamad.ingest.networks import Address
from medamad.web.responses import PHRASES, Flow, Response, Stream, failure_response, send
from medamad.web.responses import Headers as Further
from medamad.web.server.channel import Channel, Owner
from medamad.web.server.parser import RequestHead

_log: Final = Logger()
_ABSOLUTE: Final = re.compile(rb"https?://[^/?#]+(?=[/?#]|\Z)", re.IGNORECASE)
_READ: Final = MappingProxyType(
    {
        name.lower(): name
        for name in (
            *(b"Accept-Language", b"Authorization", b"Connection", b"Content-Type", b"Cookie"),
            *(b"Expect", b"Host", b"If-Modified-Since", b"If-None-Match", b"Origin"),
            *(b"Sec-Fetch-Site", b"User-Agent", b"X-Medamad-Share"),
            *(b"Forwarded", b"Via", b"X-Forwarded-For", b"X-Forwarded-Host"),
            *(b"X-Forwarded-Proto", b"X-Real-IP"),
        )
    }
)
"""The headers that are read of each request, or by Twisted, by their names in lower case.

No other is kept among the headers, see `sent`: Twisted remembers every name that it is told, for
as long as the process runs.
"""
_WITHOUT_BODY: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)


class Request(server.Request):
    """A request of a site.

    `path` and `query` are the two parts of its address as they were sent; `body` is complete, and
    `sent_bytes` is the size of all.
    """

    defaultContentType = None
    channel: Channel | None  # type: ignore[assignment] # None once nobody is there
    site: Owner  # type: ignore[assignment] # ours
    method: bytes
    path: bytes
    query: bytes
    body: bytes = b""
    local_path = ""
    """The decoded path, without the prefix of the mount."""
    malformed = False
    """Whether the path is badly encoded."""
    route = "a request"
    """What answers, by its method and rule, once that is known: a name for the log."""
    requestHeaders: Headers
    responseHeaders: Headers

    def __init__(
        self, channel: Channel, head: RequestHead, serve: "Callable[[Request], None]"
    ) -> None:
        super().__init__(channel, parsePOSTFormSubmission=False)
        self.site = channel.site
        self._serve = serve
        self.peer: Address | None = channel.peer
        self._fields = head.fields
        self.sent_bytes = head.size
        for name, value in head.fields:
            if known := _READ.get(name.lower()):
                self.requestHeaders.addRawHeader(known, value)
        self.method, self.uri, self.clientproto = head.method, head.target, head.version
        absolute = None if head.target[:1] == b"/" else _ABSOLUTE.match(head.target)
        target = head.target[absolute.end() :] if absolute else head.target
        self.path, _, self.query = target.partition(b"?")
        if absolute and not self.path:
            self.path = b"/"
        self.args = {}
        self._received = bytearray()

    def sent(self, name: bytes) -> bytes | None:
        """Return a header as it was sent, also one of those that are not kept; None for none."""
        lowered = name.lower()
        values = [value for name, value in self._fields if name.lower() == lowered]
        return b", ".join(values) if values else None

    def parseCookies(self) -> None:
        """Leave the cookies as they were sent: few answers depend on any."""

    def gotLength(self, length: int | None) -> None:
        """Need no file for a body that is kept in memory."""

    def handleContentChunk(self, data: bytes) -> None:
        """Keep a part of the body."""
        self._received += data
        if self.channel is not None and len(self._received) > self.site.settings.max_body_bytes:
            self._received.clear()
            self.channel.refuse_body()

    def requestReceived(self, _command: bytes, _path: bytes, _version: bytes) -> None:
        """Begin to answer. Forms are none of this interface's, so nothing is parsed as one."""
        self.body = bytes(self._received)
        self._received.clear()
        self.sent_bytes += len(self.body)
        self.process()

    def process(self) -> None:
        """Return the request to what answers it."""
        try:
            self._serve(self)
        except Exception:  # noqa: BLE001 - whatever it is, it is logged and answered
            self.processingFailed(Failure())

    def processingFailed(self, reason: Failure) -> Failure:
        """Answer for a fault of our own that nothing else has answered for."""
        response = failure_response(reason, self.route)
        if not self.startedWriting:
            self.answer(response)
        return reason

    def getRequestHostname(self) -> bytes:
        """Return a name for Klein, which wants one: no route depends on it."""
        return b"localhost"

    @property
    def keeps_connection(self) -> bool:
        """Whether the connection stays open after the answer, as far as it is known now."""
        return self.channel is not None and bool(self.channel.persistent)

    def start_answer(self, response: Response, further: Further = ()) -> bytes:
        """Set the status and the headers of the answer; its body is given back."""
        self.setResponseCode(response.status, PHRASES[response.status])
        put = self.responseHeaders
        for name, value in (*self.site.common_headers(), *further, *response.headers):
            put.addRawHeader(name, value)
        if response.content_type:
            put.setRawHeaders(b"Content-Type", [response.content_type])
        if response.stream is None and response.status not in _WITHOUT_BODY:
            put.setRawHeaders(b"Content-Length", [b"%d" % len(response.body)])
        if self.channel is not None and not self.channel.persistent:
            put.setRawHeaders(b"Connection", [b"close"])
        return response.body

    async def send_stream(self, stream: Stream) -> None:
        """Send a body piece by piece. One that cannot be made to its end is cut off, unfinished."""
        channel = self.channel
        if channel is None:
            stream.close()
            return
        settings = self.site.settings
        end = self.site.seconds() + settings.stream_seconds

        def at_most(seconds: float) -> float:
            return min(seconds, end - self.site.seconds())

        flow = Flow(
            paused=lambda: channel.waits_for_client(at_most(settings.reading_seconds)),
            going_on=lambda: channel.goes_on(at_most(settings.answer_seconds)),
        )
        try:
            if self.method != b"HEAD":
                await send(self, stream, flow)
        except CancelledError:
            raise
        except ApiError as error:
            _log.warn("{route}: cut off: {reason}", route=self.route, reason=str(error))
        except Exception:  # noqa: BLE001 - whatever it is, it is logged
            _log.failure("{route}: an answer was cut off", route=self.route)
        else:
            return
        finally:
            stream.close()
        # The answer has begun, so that it can only be told by its missing end.
        channel.cut()
        # To return is to end it well; the end of the connection cancels this.
        await Deferred()

    def answer(self, response: Response, further: Further = ()) -> None:
        """Send the whole answer, unless there is nobody left to read it."""
        if self.channel is not None:
            self.write(self.start_answer(response, further))
            self.finish()

    def answer_encoded(self, answer: bytes) -> None:
        """Send an answer of which head and body are encoded already."""
        if self.channel is not None:
            self.startedWriting = 1
            self.channel.write(answer)
            self.finish()
