"""The HTTP side of the daemon: every request, at the root and under /api, to its routes."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, cast

from attrs import evolve, frozen
from klein import Klein
from twisted.python.failure import Failure

from medamad.accounts.accounts import Accounts
from medamad.accounts.shares import Shares
from medamad.accounts.tokens import Tokens
from medamad.domain.errors import ApiError, BadRequest, Unavailable
from medamad.ingest.pipeline import Pipeline
from medamad.ingest.write_queue import Reactor
from medamad.storage.store import Store
from medamad.web import cors
from medamad.web.backend import Backend, ResourceUsage, RunQuery
from medamad.web.dispatch import Routes
from medamad.web.parameters import percent_decode
from medamad.web.responses import Response, error_response, failure_response, json_response
from medamad.web.routes import (
    account,
    exports,
    files,
    goals,
    grants,
    hits,
    monitoring,
    statistics,
    websites,
)
from medamad.web.server.request import Request
from medamad.web.server.site import Site
from medamad.web.settings import EVENT_NAME, WebSettings

API_PREFIX: Final = "api"
"""The first segment of a path under which the API is served, besides the root."""

_UNROUTABLE: Final = "\N{REPLACEMENT CHARACTER}"
"""Replaces characters and segments that no name contains, so that no route matches."""

_MAX_SEGMENTS: Final = 32
"""The most segments of a path that are decoded; no route or dashboard page has as many."""

_OPTIONS_OF_SERVER: Final = (b"OPTIONS", b"*")
_METHODS: Final = b"DELETE, GET, HEAD, OPTIONS, PATCH, POST"


def interface_routes(backend: Backend) -> Routes:
    """Return the routes of the API."""
    routes = Routes(Klein(), backend)
    for section in (account, hits, grants, websites, goals, statistics, exports):
        section.add_to(routes)
    files.add_description(routes)
    return routes


def file_routes(backend: Backend) -> Routes:
    """Return the routes of the dashboard and the tracker, at the root only."""
    routes = Routes(Klein(), backend)
    files.add_to(routes)
    return routes


def operating_routes(backend: Backend, site: Site) -> Routes:
    """Return the routes of health checks and metrics, at the root only."""
    routes = Routes(Klein(), backend)
    monitoring.add_to(routes, site)
    return routes


class Root:
    """Finds the route of every request.

    Klein routes all of them except hits and pings. There are so many of these that routing by
    Klein would cost as much as everything else, so they are looked up by their exact paths. The
    checks and handlers are the same.
    """

    def __init__(self, backend: Backend, site: Site) -> None:
        self._backend = backend
        self._site = site
        self._interface = interface_routes(backend)
        self._files = file_routes(backend)
        self._operating = operating_routes(backend, site)
        self._event_name = EVENT_NAME
        self._hits = _hit_paths(self._interface, EVENT_NAME)

    def serve(self, request: Request) -> None:
        """Respond to a request, now or later."""
        self._remove_base_path(request)
        event_name = self._backend.settings.event_name
        if event_name != self._event_name:
            self._event_name = event_name
            self._hits = _hit_paths(self._interface, event_name)
        name = self._hits.get((request.method, request.path))
        if name is not None:
            self._serve_hit(request, name)
        elif (request.method, request.path) == _OPTIONS_OF_SERVER:
            request.respond(Response(HTTPStatus.NO_CONTENT, headers=((b"Allow", _METHODS),)))
        else:
            resource = self._routes_of(request).resource
            resource.render(request)  # type: ignore[arg-type] # mypy knows no zope

    def _serve_hit(self, request: Request, name: str) -> None:
        def respond(result: Response | Exception) -> None:
            if result is hits.NOT_IGNORED and request.keeps_connection:
                request.respond_encoded(self._site.encoded_no_content())
                return
            if isinstance(result, Exception):
                result = failure_response(Failure(result), name)
            request.respond(result, cors.ANY_EXPOSED)

        self._interface.serve_hit(request, name, respond)

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read."""
        self._remove_base_path(request)
        return self._routes_of(request).error_response(request, error)

    def _remove_base_path(self, request: Request) -> None:
        """Remove the base path from a request's path, unless the proxy has removed it."""
        base_path = self._backend.settings.base_path
        if not base_path:
            return
        base = base_path.encode("ascii")
        if request.path == base or request.path.startswith(base + b"/"):
            request.path = request.path.removeprefix(base) or b"/"

    def _routes_of(self, request: Request) -> Routes:
        """Return the routes for a request, and set its path within them."""
        segments = _segments(request)
        routes = self._interface
        request.prepath = []
        if segments[0] == API_PREFIX and len(segments) > 1:
            request.prepath.append(segments.pop(0).encode("ascii"))
        elif segments == [self._backend.settings.script_name]:
            segments, routes = [files.SCRIPT], self._files
        elif segments[0] in files.FIRST_SEGMENTS:
            routes = self._files
        elif segments[0] in monitoring.FIRST_SEGMENTS and cors.may_monitor(
            request.peer, request.headers, self._backend.settings
        ):
            routes = self._operating
        if len(segments) > 1 and segments[0] == self._backend.settings.event_name:
            segments[0] = EVENT_NAME
        if segments[0] == "" and len(segments) > 1:
            # The router would ignore another slash.
            segments[0] = _UNROUTABLE
        request.local_path = "/" + "/".join(segments)
        request.postpath = [segment.encode("utf-8") for segment in segments]
        return routes


_API: Final = b"/" + API_PREFIX.encode("ascii")


def _hit_paths(routes: Routes, event_name: str) -> Mapping[tuple[bytes, bytes], str]:
    """Return the route's name of each method and path of hits: under both prefixes, by both names.

    A tracker whose tag has a slash at the end of the API address sends two slashes.
    """
    return MappingProxyType(
        {
            (
                method.encode("ascii"),
                prefix + path.replace(EVENT_NAME, name, 1).encode("ascii"),
            ): route
            for route in routes.hits
            for method, path in [route.split(" ")]
            for prefix in (b"", b"/", _API, _API + b"/")
            for name in (EVENT_NAME, event_name)
        }
    )


def _segments(request: Request) -> list[str]:
    """Return the decoded segments of a request's path, and mark the request if one is malformed."""
    if not request.path.startswith(b"/") or request.path.count(b"/") > _MAX_SEGMENTS:
        return [_UNROUTABLE]
    segments = []
    for raw in request.path.removeprefix(b"/").split(b"/"):
        try:
            segment = percent_decode(raw, "path")
        except BadRequest:
            request.malformed = True
            segment = _UNROUTABLE
        segments.append(segment.replace("/", _UNROUTABLE))
    return segments


def make_site(
    *,
    store: Store,
    pipeline: Pipeline,
    accounts: Accounts,
    run_query: RunQuery,
    settings: WebSettings,
    clock: Callable[[], float],
    reactor: Reactor,
) -> Site:
    """Return the site. Its backend's `settings` may be replaced while it runs."""
    backend = Backend(
        store=store,
        pipeline=pipeline,
        accounts=accounts,
        tokens=Tokens(store.tokens, clock),
        shares=Shares(store.shares, partial(accounts.hash_in_turn, is_known=False), clock),
        run_query=run_query,
        clock=clock,
        seconds=reactor.seconds,
        call_later=reactor.callLater,
        settings=settings,
        usage=ResourceUsage(),
    )
    site = Site(backend, reactor)
    site.root = Root(backend, site)
    return site


_RETRY_AFTER_S: Final = 60
_FOR_EVERYONE: Final = "the service is unavailable: its store is damaged"


@frozen
class _OutageBackend:
    """The part of a backend that a site needs while the store is damaged."""

    settings: WebSettings
    clock: Callable[[], float]


@frozen
class OutageRoot:
    """Responds with 503 while the store is damaged; who may see /health gets the reason."""

    _reason: str
    _settings: WebSettings

    def serve(self, request: Request) -> None:
        """Respond to a request."""
        may_see = cors.may_monitor(request.peer, request.headers, self._settings)
        if may_see and request.path == b"/health/live":
            request.respond(json_response({"live": True}))
        elif may_see and request.path == b"/health":
            request.respond(_unavailable(f"not ready: {self._reason}"))
        else:
            request.respond(_unavailable(_FOR_EVERYONE))

    def error_response(self, _request: Request, _error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read."""
        return _unavailable(_FOR_EVERYONE)


def _unavailable(message: str) -> Response:
    response = error_response(Unavailable(message, retry_after=_RETRY_AFTER_S))
    return evolve(response, headers=(*cors.ANY, *response.headers))


def make_outage_site(
    reason: str, settings: WebSettings, clock: Callable[[], float], reactor: Reactor
) -> Site:
    """Return a site that responds with 503 to everything."""
    # A site uses nothing else of its backend.
    site = Site(cast("Backend", _OutageBackend(settings, clock)), reactor)
    site.root = OutageRoot(reason, settings)
    return site
