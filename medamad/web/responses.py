"""Responses: status, headers and body; errors; and bodies that are streamed."""

from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec
from attrs import define, frozen
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IPushProducer
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from medamad.domain.errors import ApiError, RetryLater, Unauthorised
from medamad.domain.instants import day_as_text
from medamad.query.request import Gap, Gaps

WRITTEN_BYTES: Final = 65_536
"""The size of one write: a client has to receive this and what the kernel has buffered within its
time before more is written."""


@define(eq=False)
class Stream:
    """The body of a response. `next_piece` returns one piece after the other, None at the end.

    `close` is called once, when everything was sent or the client is gone.
    """

    next_piece: Callable[[], Awaitable[bytes | None]]
    close: Callable[[], None]


def stream_of(body: bytes, close: Callable[[], None] = lambda: None) -> Stream:
    """Return a stream of a complete body, to be sent as fast as the client receives it."""
    pieces = iter((body,))

    async def next_piece() -> bytes | None:
        return next(pieces, None)

    return Stream(next_piece, close)


@implementer(IPushProducer)
@define(eq=False)
class Flow:
    """The flow control of one response: whether the connection accepts more data."""

    paused: Callable[[], None]
    """Called when the connection begins to wait for the client."""
    resumed: Callable[[], None]
    """Called when the client has received all pieces, so that the next is made."""
    _waiting: "Deferred[None] | None" = None
    _is_paused: bool = False

    def pauseProducing(self) -> None:
        """Accept no more data for now."""
        self._is_paused = True
        self.paused()

    def resumeProducing(self) -> None:
        """Accept more data."""
        self._is_paused = False
        self.resumed()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)

    def stopProducing(self) -> None:
        """Accept no more data. The producer is cancelled when the request ends."""
        self._is_paused = True

    def ready(self) -> "Deferred[None]":
        """Return a Deferred that fires when more data is accepted."""
        if not self._is_paused:
            return succeed(None)
        self._waiting = Deferred()
        return self._waiting


async def send(request: Any, stream: Stream, flow: Flow) -> None:
    """Send all pieces; besides what is being sent, at most one of them is in memory."""
    request.registerProducer(flow, True)
    while (piece := await stream.next_piece()) is not None:
        for begin in range(0, len(piece), WRITTEN_BYTES):
            request.write(piece[begin : begin + WRITTEN_BYTES])
            await flow.ready()
            flow.resumed()
    request.unregisterProducer()


Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Names and values of headers, in the order in which they are sent."""

JSON: Final = b"application/json"
NO_STORE: Final = (b"Cache-Control", b"no-store")
NO_SNIFFING: Final = (b"X-Content-Type-Options", b"nosniff")
"""Keeps browsers from guessing the type of a body that contains text from third parties."""

PHRASES: Final = MappingProxyType(
    {int(status): status.phrase.encode("ascii") for status in HTTPStatus}
)
"""The reason phrase of each status."""

encode_json: Final = msgspec.json.Encoder(decimal_format="number").encode

_ROWS_AT_ONCE: Final = 100
"""How many rows are encoded at once, during which no other thread can run."""


@frozen
class Response:
    """A response. `content_type` is empty if there is no body."""

    status: int
    body: bytes = b""
    content_type: bytes = b""
    headers: Headers = ()
    stream: Stream | None = None
    """The body, if it is sent piece by piece."""


def json_response(value: object, status: int = HTTPStatus.OK) -> Response:
    """Return a response with a value as JSON, which no cache may store."""
    body = _encode_rows(value) if isinstance(value, list) else encode_json(value)
    return Response(status, body, JSON, (NO_STORE, NO_SNIFFING))


def _encode_rows(rows: list[object]) -> bytes:
    if len(rows) <= _ROWS_AT_ONCE:
        return encode_json(rows)
    written = BytesIO()
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        encoded = encode_json(rows[begin : begin + _ROWS_AT_ONCE])
        written.write(b"," if begin else b"[")
        written.write(memoryview(encoded)[1:-1])
    written.write(b"]")
    return written.getvalue()


def no_content(*headers: tuple[bytes, bytes]) -> Response:
    """Return a response without a body."""
    return Response(HTTPStatus.NO_CONTENT, headers=(NO_STORE, *headers))


def encoded_head(version: bytes, status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of a response up to and including the empty line."""
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"%b %d %b\r\n%b\r\n" % (version, status, PHRASES[status], lines)


def encoded_last(response: Response, common: Headers) -> bytes:
    """Return the bytes of a response after which the connection is closed."""
    headers = (
        *common,
        *response.headers,
        (b"Content-Type", response.content_type),
        (b"Content-Length", b"%d" % len(response.body)),
        (b"Connection", b"close"),
    )
    return encoded_head(b"HTTP/1.1", response.status, headers) + response.body


NOT_FOUND: Final = "there is nothing at this address"
FAULT: Final = "an internal error; see the server's log"

_BEARER: Final = (b"WWW-Authenticate", b"Bearer")
"""The authentication scheme for programs (RFC 6750 section 3)."""

_log = Logger()


def _error_object(status: int, message: str, headers: Headers = ()) -> Response:
    """Return a response with the error object."""
    body = encode_json({"error": {"code": int(status), "message": message}})
    return Response(status, body, JSON, (NO_STORE, NO_SNIFFING, *headers))


def error_response(error: ApiError) -> Response:
    """Return the response to an error."""
    headers: Headers = ()
    if isinstance(error, RetryLater):
        headers = ((b"Retry-After", b"%d" % error.retry_after),)
    if isinstance(error, Unauthorised):
        headers = (_BEARER,)
    return _error_object(error.status, str(error), headers)


def failure_response(failure: Failure, where: str) -> Response:
    """Return the response to a request that failed. Log a fault of our own, naming `where`."""
    error = failure.value
    if isinstance(error, ApiError):
        return error_response(error)
    _log.failure("responding to {where} failed", failure, where=where)
    return _error_object(HTTPStatus.INTERNAL_SERVER_ERROR, FAULT)


def method_not_allowed(methods: Iterable[str]) -> Response:
    """Return the response to a method that an address does not support."""
    allowed = allow_header(methods)
    return _error_object(
        HTTPStatus.METHOD_NOT_ALLOWED,
        f"this address takes only {allowed}",
        ((b"Allow", allowed.encode("ascii")),),
    )


def allow_header(methods: Iterable[str]) -> str:
    """Return the value of an Allow header: the methods and OPTIONS, sorted."""
    return ", ".join(sorted({*methods, "OPTIONS"}))


PARTIAL: Final = b"X-Medamad-Partial"


def partial_headers(gaps: Gaps, exclusions: int = 0) -> Headers:
    """Return the header that lists the gaps of a result, or nothing if there are no gaps.

    For each kind of gap it has the first and the last such day, as a dictionary (RFC 8941):
    `figures="2025-01-01/2025-01-31"`; and the number of exclusions, if there are any: `left-out=2`.
    """
    entries = [
        f'{gap.value}="{day_as_text(days[0])}/{day_as_text(days[-1])}"'
        for gap in Gap
        if (days := gaps.days(gap))
    ]
    if exclusions:
        entries.append(f"left-out={exclusions}")
    return ((PARTIAL, ", ".join(entries).encode("ascii")),) if entries else ()
