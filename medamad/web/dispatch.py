"""The checks before every route, in which order errors come, and how responses are sent."""

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, TypeAlias, TypeVar

import msgspec
from attrs import evolve, frozen
from klein import Klein
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from medamad.domain.accounts import Account, Scope
from medamad.domain.errors import ApiError, BadRequest, Forbidden, NotFound, TooMany, Unauthorised
from medamad.domain.websites import Website, canonical_hostname
from medamad.ingest.networks import Address
from medamad.web import cookies, cors, parameters
from medamad.web.auth import Caller, caller_of, network_of
from medamad.web.backend import Backend
from medamad.web.parameters import QueryParameters, parse_query
from medamad.web.responses import (
    WRITTEN_BYTES,
    Headers,
    Response,
    Stream,
    allow,
    error_response,
    failure_response,
    stream_of,
)
from medamad.web.server import clients
from medamad.web.server.request import Request

T = TypeVar("T")

READING: Final = frozenset((b"GET", b"HEAD"))
_log = Logger()


class Access(Enum):
    """Who may ask. Changes by the cookie come from our own pages only; none is in demo mode."""

    COOKIE = "the account, by its cookie"
    LOGOUT = "the account, by its cookie, in demo mode too"
    CHANGE = "the account, or a full token"
    READ = "the account, or a token that may read"
    STATISTICS = "the account, a token that may read, or a share link"
    LOGIN = "anyone, from our own pages only"
    EVENT = "anyone, from any page"
    SCRIPT = "anyone, by any name of the service, since a website may pass it on as its own"
    OPEN = "anyone"

    @property
    def is_guarded(self) -> bool:
        """Whether nobody passes unknown."""
        return self in _SCOPES

    def check(self, caller: Caller) -> None:
        """Raise Forbidden when somebody who is known may not ask this."""
        if caller.is_share and self is not Access.STATISTICS:
            raise Forbidden("a share link shows the figures of its website, and nothing else")
        if caller.token is not None and caller.token.scope not in _SCOPES[self]:
            wanted = " or ".join(sorted(_SCOPES[self]))
            raise Forbidden(
                f"this takes a token whose scope is {wanted}"
                if wanted
                else "this takes the account's own login, no token may do it"
            )


_READERS: Final = frozenset((Scope.READ, Scope.FULL))
_SCOPES: Final[Mapping[Access, frozenset[Scope]]] = MappingProxyType(
    {
        Access.COOKIE: frozenset(),
        Access.LOGOUT: frozenset(),
        Access.CHANGE: frozenset((Scope.FULL,)),
        Access.READ: _READERS,
        Access.STATISTICS: _READERS,
    }
)
"""What nobody may ask unknown, and the scopes of the tokens that may."""


@frozen
class Call:
    """A request that has passed the gate."""

    request: Request
    backend: Backend
    query: QueryParameters
    caller: Caller
    """Who asks, where nobody may unknown."""

    @property
    def token(self) -> str | None:
        """The token of the session cookie."""
        return cookies.token_of(self.request)

    @property
    def account(self) -> Account:
        """The account that the cookie opens. Raises Unauthorised."""
        return self.backend.accounts.authenticate(self.token)

    @property
    def sender(self) -> Address | None:
        """The sender's address."""
        request = self.request
        return clients.sender_address(request.peer, request.headers, self.backend.settings)

    def ask(self, question: Callable[[], T]) -> Deferred[T]:
        """Have a question answered in the question pool, in the turn of whoever asks."""
        asker = (self.caller.who, network_of(self.request, self.backend))
        return self.backend.ask(question, asker=asker)

    def body(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Decode the body. Raises BadRequest."""
        return parameters.read_body(self.request.body, decoder)

    def website(self, hostname: str) -> Website:
        """Return the website that an address names. Raises BadRequest, NotFound, Forbidden."""
        name = canonical_hostname(hostname)
        website = self.backend.store.websites.by_hostname(name)
        self.caller.check_website(name, website)
        if website is None:
            raise NotFound(f"hostname: no website {name} is registered")
        return website


Serve: TypeAlias = Callable[..., Awaitable[Response] | Response]
"""A route: takes the call, and the parameters of its path by name."""


class Routes:
    """Routes of one Klein app. Each is put behind the gate as it is added."""

    def __init__(self, app: Klein, backend: Backend) -> None:
        self.app = app
        self.backend = backend
        self.resource = app.resource()
        self._accesses: dict[str, Access] = {}
        # No redirects to wherever the Host header says.
        app.url_map.merge_slashes = False
        app.handle_errors(Exception)(self._failed)

    def add(self, method: str, rule: str, serve: Serve, access: Access = Access.COOKIE) -> None:
        """Answer a method of an address, such as /websites/<hostname>, with what `serve` gives."""

        def passed(request: Request, **path: str) -> Deferred[bytes]:
            request.route = route
            asked = Deferred.fromCoroutine(self._serve(request, serve, access, path))
            return asked if request.method in READING else _unhurried(asked)

        route = f"{method} {rule}"
        self._accesses[route] = access
        self.app.route(rule, methods=[method], endpoint=route)(passed)

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Answer a request that cannot reach its route; that nobody is known comes first."""
        access = self.access(request.method.decode("ascii"), request.local_path)
        if access is not None and access.is_guarded:
            try:
                caller_of(request, self.backend)
            except (Unauthorised, TooMany) as missing:
                error = missing
        response = error_response(error)
        return evolve(response, headers=(*self._error_headers(request), *response.headers))

    def access(self, method: str, path: str) -> Access | None:
        """Tell who may ask for a method of a path, None where it has no route."""
        mapper = self.app.url_map.bind("")
        try:
            route, _ = mapper.match(path, method)
        except HTTPException:
            return None
        return self._accesses[route]

    async def _serve(
        self, request: Request, serve: Serve, access: Access, path: dict[str, str]
    ) -> bytes:
        if not request.method.isupper():
            # The router takes "get" for GET; methods are told apart by case (RFC 9110 section 9.1).
            raise MethodNotAllowed(self.app.url_map.bind("").allowed_methods(request.local_path))
        call = self._admit(request, access)
        response = serve(call, **path)
        if not isinstance(response, Response):
            response = await response
        stream = self._stream(call, access, response)
        body = request.start_response(response, self._origin_headers(request, access))
        if stream is None:
            return body
        await request.send_stream(stream)
        return b""

    def _stream(self, call: Call, access: Access, response: Response) -> Stream | None:
        """Return what a body is sent by that is made on the way, or is long.

        Long answers that differ for each who asks are counted, for strangers have links to such.
        Raises TooMany, Unavailable.
        """
        body, request = response.body, call.request
        if request.method != b"GET" or len(body) <= WRITTEN_BYTES:
            return response.stream
        if access is not Access.STATISTICS:
            return stream_of(body)
        unsent = self.backend.unsent_to_guests if call.caller.is_share else self.backend.unsent
        return stream_of(body, unsent.hold(network_of(request, self.backend), len(body)))

    def _admit(self, request: Request, access: Access) -> Call:
        """Let a request pass, or raise an ApiError: 401 first, then a wrong Host, then 403, 400."""
        settings = self.backend.settings
        caller = caller_of(request, self.backend) if access.is_guarded else Caller()
        if access not in (Access.EVENT, Access.SCRIPT):
            cors.check_host(request.peer, request.headers, settings)
        if access.is_guarded:
            access.check(caller)
        if (access.is_guarded or access is Access.LOGIN) and request.method not in READING:
            if caller.is_account:
                cors.check_change(request.peer, request.headers, settings)
            if settings.demo and access in (Access.COOKIE, Access.CHANGE):
                raise Forbidden("this is a demonstration: nothing can be changed")
        if request.malformed:
            raise _malformed()
        if access is not Access.EVENT:
            parameters.check_type(request.headers, request.body)
        query = parse_query(request.query) if request.query else QueryParameters()
        return Call(request, self.backend, query, caller)

    def _failed(self, request: Request, failure: Failure) -> bytes:
        """Answer a request that was refused, found no route, or failed."""
        error = failure.value
        headers = self._error_headers(request)
        if isinstance(error, MethodNotAllowed) and request.method == b"OPTIONS":
            return request.start_response(_options(request, error, headers), headers)
        if isinstance(error, HTTPException) and request.malformed:
            failure = Failure(_malformed())
        return request.start_response(failure_response(failure, request.route), headers)

    def _error_headers(self, request: Request) -> Headers:
        return self._origin_headers(request, Access.EVENT if _is_event(request) else Access.COOKIE)

    def _origin_headers(self, request: Request, access: Access) -> Headers:
        if access is Access.EVENT:
            return cors.ANY_EXPOSED
        if access in (Access.OPEN, Access.SCRIPT):
            return ()
        return cors.cors_headers(request.headers, self.backend.settings)


def _is_event(request: Request) -> bool:
    return request.local_path.startswith("/event/")


def _options(request: Request, error: MethodNotAllowed, headers: Headers) -> Response:
    methods = allow(error.valid_methods or ())
    further: Headers = ((b"Allow", methods.encode("ascii")),)
    if any(name == b"Access-Control-Allow-Origin" for name, _ in headers):
        further += cors.preflight_headers(methods, event=_is_event(request))
    return Response(HTTPStatus.NO_CONTENT, headers=further)


def _malformed() -> ApiError:
    return BadRequest("path: an invalid percent-escape, or not valid UTF-8")


def _unhurried(asked: Deferred[T]) -> Deferred[T]:
    """Return a Deferred that can be cancelled without what it waits for: a change runs to its end."""
    waiting: Deferred[T] = Deferred()

    def done(result: T) -> None:
        if not waiting.called:
            waiting.callback(result)

    def failed(failure: Failure) -> None:
        if not waiting.called:
            waiting.errback(failure)
        elif not failure.check(ApiError):
            _log.failure("a change failed after its sender had gone", failure)

    asked.addCallbacks(done, failed)
    return waiting
