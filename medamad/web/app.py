"""The web side put together: one set of routes under /api and at the root, and the documents."""

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, TypeAlias

from klein import Klein

from medamad.accounts.accounts import Accounts
from medamad.accounts.shares import Shares
from medamad.accounts.tokens import Tokens
from medamad.domain.errors import ApiError, BadRequest
from medamad.ingest.pipeline import Pipeline
from medamad.storage.store import Store
from medamad.web.backend import Ask, Backend
from medamad.web.cors import may_look_inside
from medamad.web.dispatch import Routes
from medamad.web.parameters import decode
from medamad.web.responses import Response
from medamad.web.routes import (
    authentication,
    documents,
    events,
    exports,
    monitoring,
    pixel,
    scripts,
    shares,
    statistics,
    tokens,
    user,
    websites,
)
from medamad.web.server.request import Request
from medamad.web.server.site import Reactor, Site
from medamad.web.settings import EVENTS, WebSettings
from medamad.web.usage import Usage

PREFIX: Final = "api"
"""The first segment under which the interface answers, as it does without."""

_UNROUTABLE: Final = "\N{REPLACEMENT CHARACTER}"
"""Stands in a segment for what no name contains, so that its route refuses it."""

_MOST_SEGMENTS: Final = 32
"""How many segments a path may have: no address has near so many, not even of the dashboard."""

_OPTIONS_OF_ALL: Final = (b"OPTIONS", b"*")
_METHODS: Final = b"DELETE, GET, HEAD, OPTIONS, PATCH, POST"

_DOCUMENTS: Final = (*documents.FIRST_SEGMENTS, *scripts.FIRST_SEGMENTS)

Lane: TypeAlias = Callable[[Request], None]
Lanes: TypeAlias = Mapping[tuple[bytes, str], Lane]


def interface_routes(backend: Backend) -> Routes:
    """Make the routes of the interface."""
    routes = Routes(Klein(), backend)
    for section in (
        authentication,
        events,
        pixel,
        user,
        tokens,
        websites,
        shares,
        statistics,
        exports,
    ):
        section.add_to(routes)
    documents.add_description(routes)
    return routes


def documents_routes(backend: Backend) -> Routes:
    """Make the routes of what lies beside the interface, at the root alone."""
    routes = Routes(Klein(), backend)
    documents.add_to(routes)
    scripts.add_to(routes)
    return routes


def operating_routes(backend: Backend, site: Site) -> Routes:
    """Make the routes of what watches over the daemon, at the root alone."""
    routes = Routes(Klein(), backend)
    monitoring.add_to(routes, site)
    return routes


class Root:
    """What every request comes to first.

    The few requests that trackers send all the time have lanes of their own: they are answered
    without a router, by the same rules.
    """

    def __init__(self, backend: Backend, site: Site, lanes: Lanes) -> None:
        self._backend = backend
        self._interface = interface_routes(backend)
        self._documents = documents_routes(backend)
        self._operating = operating_routes(backend, site)
        self._lanes = lanes
        self._event_name = EVENTS
        self._named_lanes = _named(lanes, EVENTS)

    def serve(self, request: Request) -> None:
        """Answer a request, now or later."""
        event_name = self._backend.settings.event_name
        if event_name != self._event_name:
            self._event_name, self._named_lanes = event_name, _named(self._lanes, event_name)
        lane = self._named_lanes.get((request.method, request.path))
        if lane is not None:
            lane(request)
            return
        if (request.method, request.path) == _OPTIONS_OF_ALL:
            request.respond(Response(HTTPStatus.NO_CONTENT, headers=((b"Allow", _METHODS),)))
            return
        resource = self._routes_of(request).resource
        resource.render(request)  # type: ignore[arg-type] # mypy knows no zope

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Answer a request of which the body cannot be taken."""
        return self._routes_of(request).error_response(request, error)

    def _routes_of(self, request: Request) -> Routes:
        """Return the routes among which a request's is, and note its path as they know it."""
        segments = _segments(request)
        routes = self._interface
        request.prepath = []
        if segments[0] == PREFIX and len(segments) > 1:
            request.prepath.append(segments.pop(0).encode("ascii"))
        elif segments == [self._backend.settings.script_name]:
            segments, routes = [scripts.SCRIPT], self._documents
        elif segments[0] in _DOCUMENTS:
            routes = self._documents
        elif segments[0] in monitoring.FIRST_SEGMENTS and self._is_insider(request):
            routes = self._operating
        if len(segments) > 1 and segments[0] == self._backend.settings.event_name:
            segments[0] = EVENTS
        if segments[0] == "" and len(segments) > 1:
            # The router would pass over a further slash.
            segments[0] = _UNROUTABLE
        request.local_path = "/" + "/".join(segments)
        request.postpath = [segment.encode("utf-8") for segment in segments]
        return routes

    def _is_insider(self, request: Request) -> bool:
        settings = self._backend.settings
        return may_look_inside(request.peer, request.headers, settings)


_API: Final = b"/" + PREFIX.encode("ascii")


def _named(lanes: Lanes, event_name: str) -> Mapping[tuple[bytes, bytes], Lane]:
    """Return the lanes by method and path, under both prefixes and both names of events.

    A tracker whose tag names the interface with a slash at its end sends two.
    """
    return MappingProxyType(
        {
            (method, prefix + path.replace(EVENTS, name, 1).encode("ascii")): lane
            for (method, path), lane in lanes.items()
            for prefix in (b"", b"/", _API, _API + b"/")
            for name in (EVENTS, event_name)
        }
    )


def _segments(request: Request) -> list[str]:
    """Return the decoded segments of a request's path, and note whether they are well-formed."""
    if not request.path.startswith(b"/") or request.path.count(b"/") > _MOST_SEGMENTS:
        return [_UNROUTABLE]
    segments = []
    for raw in request.path.removeprefix(b"/").split(b"/"):
        try:
            segment = decode(raw, "path")
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
    ask: Ask,
    settings: WebSettings,
    clock: Callable[[], float],
    reactor: Reactor,
) -> Site:
    """Make the site. Its `settings` may be replaced while it runs."""
    backend = Backend(
        store=store,
        pipeline=pipeline,
        accounts=accounts,
        tokens=Tokens(store.tokens, clock),
        shares=Shares(store.shares, partial(accounts.hash_in_turn, is_known=False), clock),
        ask=ask,
        clock=clock,
        seconds=reactor.seconds,
        call_later=reactor.callLater,
        settings=settings,
        usage=Usage(),
    )
    site = Site(backend, reactor)
    site.root = Root(backend, site, events.lanes(backend, site.encoded_no_content))
    return site
