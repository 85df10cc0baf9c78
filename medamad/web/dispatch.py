"""From a request to its handler: the routes of a Klein app and the checks before each of them.

The checks come in a fixed order, so that an error reveals nothing that its recipient may not know:
who calls (401), the hostname (400), whether the caller may use the route (403), and only then what
was sent (400).
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, TypeAlias, TypeVar

from attrs import evolve, frozen
from klein import Klein
from klein.interfaces import IKleinRequest
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from zope.interface import classImplements

from medamad.domain.errors import ApiError, Forbidden, NotFound, TooMany, Unauthorised
from medamad.web import cors, parameters
from medamad.web.auth import Access, caller_of, sender_network
from medamad.web.backend import Backend
from medamad.web.call import ANYONE, NO_PARAMETERS, Call, HitHandler, hit_call, malformed
from medamad.web.parameters import parse_query_string
from medamad.web.responses import (
    NOT_FOUND,
    WRITTEN_BYTES,
    Headers,
    Response,
    Stream,
    allow_header,
    error_response,
    failure_response,
    method_not_allowed,
    stream_of,
)
from medamad.web.server.request import Request

# Not where it is defined: hits and pings are served without Klein, which takes long to import.
classImplements(Request, IKleinRequest)

T = TypeVar("T")

SAFE_METHODS: Final = frozenset((b"GET", b"HEAD"))
"""Methods that change nothing (RFC 9110, section 9.2.1)."""
_log = Logger()


Handler: TypeAlias = Callable[..., Awaitable[Response] | Response]
"""Makes the response of a route from the call and the parameters of the path, by their names."""


@frozen
class Route:
    """A handler and who may call it. `name` is its method and rule, as the log shows it."""

    name: str
    handler: Handler
    access: Access


class Routes:
    """The routes of one Klein app."""

    def __init__(self, app: Klein, backend: Backend) -> None:
        self.app = app
        self.backend = backend
        self.resource = app.resource()
        self.by_name: dict[str, Route] = {}
        # Otherwise werkzeug would redirect to what the Host header says.
        app.url_map.merge_slashes = False
        app.handle_errors(Exception)(self._failed)

    def add(self, method: str, rule: str, handler: Handler, access: Access = Access.COOKIE) -> None:
        """Add a route for a method of a path such as /websites/<hostname>."""
        route = Route(f"{method} {rule}", handler, access)

        def serve(request: Request, **path: str) -> Deferred[bytes]:
            served = Deferred.fromCoroutine(self._serve(request, route, path))
            return served if request.method in SAFE_METHODS else _to_the_end(served)

        self.by_name[route.name] = route
        self.app.route(rule, methods=[method], endpoint=route.name)(serve)

    def add_hits(self, name: str, handler: HitHandler) -> None:
        """Add a route of hits or pings, by its method and rule."""

        def awaited(call: Call) -> Deferred[Response]:
            responding: Deferred[Response] = Deferred()

            def respond(result: Response | Exception) -> None:
                if isinstance(result, Exception):
                    responding.errback(result)
                else:
                    responding.callback(result)

            handler(call, respond)
            return responding

        method, rule = name.split(" ")
        self.add(method, rule, awaited, Access.ANY_PAGE)

    async def _serve(self, request: Request, route: Route, path: dict[str, str]) -> bytes:
        """Begin the response to a request that the router has matched, and return its body."""
        request.route = route.name
        if not request.method.isupper():
            # werkzeug takes "get" for GET, but methods are case-sensitive (RFC 9110, section 9.1).
            raise MethodNotAllowed(self.app.url_map.bind("").allowed_methods(request.local_path))
        call = self._checked(request, route.access)
        response = route.handler(call, **path)
        if not isinstance(response, Response):
            response = await response
        stream = self._stream(call, route.access, response)
        body = request.start_response(response, self._cors_headers(request, route.access))
        if stream is None:
            return body
        await request.send_stream(stream)
        return b""

    def _checked(self, request: Request, access: Access) -> Call:
        """Return the call that a request makes, or raise the first ApiError in order."""
        if access is Access.ANY_PAGE:
            return hit_call(request, self.backend)
        settings = self.backend.settings
        caller = caller_of(request, self.backend) if access.is_authenticated else ANYONE
        if access is not Access.SCRIPT:
            cors.check_host(request.peer, request.headers, settings)
        if access.is_authenticated:
            access.check(caller)
        changes = request.method not in SAFE_METHODS
        if changes and (access.is_authenticated or access is Access.LOGIN):
            if caller.is_account:
                cors.check_change(request.peer, request.headers, settings)
            if settings.demo and access in (Access.COOKIE, Access.CHANGE, Access.ANNOTATE):
                raise Forbidden("this is a demonstration: nothing can be changed")
        if changes and access not in (Access.LOGIN, Access.FORM):
            self.backend.check_is_primary()
        if request.malformed:
            raise malformed()
        if access is not Access.FORM:
            parameters.check_type(request.headers, request.body)
        text = request.query_string
        sent = parse_query_string(text) if text else NO_PARAMETERS
        return Call(request, self.backend, sent, caller)

    def _stream(self, call: Call, access: Access, response: Response) -> Stream | None:
        """Return the stream of a body that is long or made piece by piece, None for any other.

        Long statistics are limited per network, since share links may be public. Raises TooMany,
        Unavailable.
        """
        body, request = response.body, call.request
        if request.method != b"GET" or len(body) <= WRITTEN_BYTES:
            return response.stream
        if access is not Access.STATISTICS:
            return stream_of(body)
        unsent = self.backend.unsent_to_guests if call.caller.is_share else self.backend.unsent
        return stream_of(body, unsent.hold(sender_network(request, self.backend), len(body)))

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read.

        If the request needs a login and has none, that error takes precedence.
        """
        access = self.access(request.method.decode("ascii"), request.local_path)
        if access is not None and access.is_authenticated:
            try:
                caller_of(request, self.backend)
            except (Unauthorised, TooMany) as missing:
                error = missing
        response = error_response(error)
        return evolve(response, headers=(*self._error_headers(request), *response.headers))

    def access(self, method: str, path: str) -> Access | None:
        """Return who may call a method of a path, None if there is no such route."""
        try:
            name, _ = self.app.url_map.bind("").match(path, method)
        except HTTPException:
            return None
        return self.by_name[name].access

    def _failed(self, request: Request, failure: Failure) -> bytes:
        """Begin the response to a request that failed or matches no route, and return its body."""
        error = failure.value
        headers = self._error_headers(request)
        if isinstance(error, MethodNotAllowed) and request.method == b"OPTIONS":
            response = _options(request, error, headers)
        elif isinstance(error, HTTPException):
            response = _unrouted(request, error)
        else:
            response = failure_response(failure, request.route)
        return request.start_response(response, headers)

    def _error_headers(self, request: Request) -> Headers:
        return self._cors_headers(request, Access.ANY_PAGE if _is_hit(request) else Access.COOKIE)

    def _cors_headers(self, request: Request, access: Access) -> Headers:
        if access is Access.ANY_PAGE:
            return cors.ANY_EXPOSED
        if access in (Access.OPEN, Access.SCRIPT, Access.FORM):
            return ()
        return cors.cors_headers(request.headers, self.backend.settings)


def _is_hit(request: Request) -> bool:
    return request.local_path.startswith("/event/")


def _options(request: Request, error: MethodNotAllowed, headers: Headers) -> Response:
    methods = allow_header(error.valid_methods or ())
    added: Headers = ((b"Allow", methods.encode("ascii")),)
    if any(name == b"Access-Control-Allow-Origin" for name, _ in headers):
        added += cors.preflight_headers(methods, is_hit=_is_hit(request))
    return Response(HTTPStatus.NO_CONTENT, headers=added)


def _unrouted(request: Request, error: HTTPException) -> Response:
    """Return the response to a request that matches no route."""
    if request.malformed:
        return error_response(malformed())
    if isinstance(error, MethodNotAllowed):
        return method_not_allowed(error.valid_methods or ())
    return error_response(NotFound(NOT_FOUND))


def _to_the_end(served: Deferred[T]) -> Deferred[T]:
    """Return a Deferred that can be cancelled without cancelling the change that it waits for."""
    waiting: Deferred[T] = Deferred()

    def succeeded(result: T) -> None:
        if not waiting.called:
            waiting.callback(result)

    def failed(failure: Failure) -> None:
        if not waiting.called:
            waiting.errback(failure)
        elif not failure.check(ApiError):
            _log.failure("a change failed after its client had disconnected", failure)

    served.addCallbacks(succeeded, failed)
    return waiting
