"""The events that trackers send, and servers for their visitors."""

from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.domain.accounts import Scope
from medamad.domain.errors import BadRequest, Forbidden
from medamad.ingest.networks import Sender
from medamad.ingest.ping import Ping
from medamad.ingest.ping import answer as answer_ping
from medamad.web import cors
from medamad.web.auth import token_of, websites_of
from medamad.web.backend import Backend
from medamad.web.dispatch import Access, Call, Routes
from medamad.web.parameters import parse_query
from medamad.web.responses import Headers, Response, failure_response
from medamad.web.server import clients
from medamad.web.server.request import Request

HIT: Final = "/event/hit"
PING: Final = "/event/ping"
IGNORED: Final = b"X-Medamad-Ignored"
_COUNTED: Final = b"n="
_FOR_A_DAY: Final = (b"Cache-Control", b"private, no-cache, max-age=86400")

EncodedNoContent: TypeAlias = Callable[[], bytes]


def sender_of(request: Request, backend: Backend) -> Sender:
    """Tell who sends a hit."""
    headers = request.headers
    return Sender(
        address=clients.sender_address(request.peer, headers, backend.settings),
        user_agent=_text(request, b"User-Agent"),
        accept_language=_text(request, b"Accept-Language"),
        origin=_text(request, b"Origin"),
        gpc=backend.pipeline.rules.respect_gpc and headers.joined(b"Sec-GPC") == b"1",
        sent_bytes=request.sent_bytes,
    )


def _text(request: Request, name: bytes) -> str:
    values = request.headers.values(name)
    return values[0].decode("latin-1") if values else ""


def _stored(ignored: str | None) -> Response:
    return Response(HTTPStatus.NO_CONTENT, headers=ignored_headers(ignored))


def ignored_headers(ignored: str | None) -> Headers:
    """Return what tells why a hit is ignored, if it is."""
    return ((IGNORED, ignored.encode("ascii")),) if ignored else ()


async def hit(call: Call) -> Response:
    """Take a hit; the answer comes once it is on disk, or names why it is ignored."""
    backend, request = call.backend, call.request
    return _stored(await _collect(request, backend))


def _collect(request: Request, backend: Backend) -> Coroutine[Any, Any, str | None]:
    """Have a hit taken: of a tracker, or of a server that shows a token."""
    sender = sender_of(request, backend)
    if b"Authorization" in request.headers:
        return _collect_of_server(request, backend, sender)
    return backend.pipeline.collect(request.body, sender)


async def _collect_of_server(request: Request, backend: Backend, sender: Sender) -> str | None:
    token = token_of(request, backend)
    if token is None:
        return await backend.pipeline.collect(request.body, sender)
    if token.scope is Scope.READ:
        raise Forbidden("this takes a token whose scope is full or send")
    return await backend.pipeline.collect_stated(request.body, sender, websites_of(token))


def ping(call: Call) -> Response:
    """Tell a visitor's browser whether it was here today, and let it count."""
    return _ping(call.request, call.backend)


def _ping(request: Request, backend: Backend) -> Response:
    answer = ping_of(request, backend)
    body = str(answer.views_before) if _is_counted(request) else answer.body
    return Response(
        HTTPStatus.OK, body.encode("ascii"), b"text/plain; charset=utf-8", ping_headers(answer)
    )


def _is_counted(request: Request) -> bool:
    """Return whether the number of views is asked for. What follows is for the browser's cache."""
    return request.query.startswith(_COUNTED)


def _check_query(request: Request) -> None:
    """Raise BadRequest for a query that is badly encoded; with `n` it need not be encoded."""
    if request.query and not _is_counted(request):
        parse_query(request.query)
    elif b"%00" in request.query:
        raise BadRequest("n: expected text without NUL")


def ping_of(request: Request, backend: Backend) -> Ping:
    """Return what a visitor's browser remembers of today. Raises BadRequest."""
    value = request.headers.joined(b"If-Modified-Since")
    since = None if value is None else value.decode("latin-1")
    return answer_ping(since, backend.clock(), backend.pipeline.rules.zone)


def ping_headers(answer: Ping) -> Headers:
    """Return what makes the browser remember."""
    return (_FOR_A_DAY, (b"Last-Modified", answer.last_modified.encode("ascii")))


@frozen
class Lanes:
    """The same without a router."""

    backend: Backend
    encoded_no_content: EncodedNoContent
    _log = Logger()

    def hit(self, request: Request) -> None:
        """Take a hit."""
        begun = self.backend.seconds()
        collected = Deferred.fromCoroutine(_collect(request, self.backend))
        collected.addCallback(self._collected, request)
        collected.addErrback(self._failed, request, HIT)
        collected.addCallback(self._answered, begun)
        collected.addErrback(self._unanswered)

    def ping(self, request: Request) -> None:
        """Answer a ping."""
        try:
            _check_query(request)
            response = _ping(request, self.backend)
        except Exception:  # noqa: BLE001 - whatever it is, it is logged and answered
            self._failed(Failure(), request, PING)
        else:
            request.respond(response, cors.ANY_EXPOSED)

    def _collected(self, ignored: str | None, request: Request) -> None:
        if ignored is None and request.keeps_connection:
            request.respond_encoded(self.encoded_no_content())
        else:
            request.respond(_stored(ignored), cors.ANY_EXPOSED)

    def _answered(self, _: object, begun: float) -> None:
        self.backend.times.hits.add(self.backend.seconds() - begun)

    def _failed(self, failure: Failure, request: Request, where: str) -> None:
        request.respond(failure_response(failure, where), cors.ANY_EXPOSED)

    def _unanswered(self, failure: Failure) -> None:
        self._log.failure("a hit could not be answered", failure)


def lanes(
    backend: Backend, encoded_no_content: EncodedNoContent
) -> Mapping[tuple[bytes, str], Callable[[Request], None]]:
    """Return what answers the requests that are many, by method and path."""
    short = Lanes(backend, encoded_no_content)
    return {(b"POST", HIT): short.hit, (b"GET", PING): short.ping}


def add_to(routes: Routes) -> None:
    """Add the routes of this section."""
    routes.add("POST", HIT, hit, Access.EVENT)
    routes.add("GET", PING, ping, Access.EVENT)
