"""The routes of every request except hits and pings, which Klein matches.

Importing this takes as long as the rest of the start, so it is left to the first such request.
"""

from typing import Final

from klein import Klein

from medamad.domain.errors import BadRequest
from medamad.web import cors
from medamad.web.backend import Backend
from medamad.web.dispatch import Routes
from medamad.web.parameters import percent_decode
from medamad.web.routes import (
    account,
    alerts,
    annotations,
    exclusions,
    exported_settings,
    exports,
    files,
    goals,
    grants,
    hits,
    monitoring,
    reports,
    robots,
    statistics,
    website_settings,
    websites,
)
from medamad.web.server.request import Request
from medamad.web.server.site import Site
from medamad.web.settings import API_PREFIX, EVENT_NAME

_UNROUTABLE: Final = "\N{REPLACEMENT CHARACTER}"
"""Replaces characters and segments that no name contains, so that no route matches."""

_MAX_SEGMENTS: Final = 32
"""The most segments of a path that are decoded; no route or dashboard page has as many."""


def interface_routes(backend: Backend) -> Routes:
    """Return the routes of the API."""
    routes = Routes(Klein(), backend)
    sections = (
        *(account, grants, websites, website_settings, goals, annotations, alerts, reports),
        *(statistics, robots, exports, exported_settings, exclusions),
    )
    for section in sections:
        section.add_to(routes)
    for name, handler in hits.HANDLERS.items():
        routes.add_hits(name, handler)
    files.add_to_interface(routes)
    return routes


def file_routes(backend: Backend) -> Routes:
    """Return the routes of the dashboard and the tracker, at the root only."""
    routes = Routes(Klein(), backend)
    files.add_to(routes)
    reports.add_pages_to(routes)
    return routes


def operating_routes(backend: Backend, site: Site) -> Routes:
    """Return the routes of health checks and metrics, at the root only."""
    routes = Routes(Klein(), backend)
    monitoring.add_to(routes, site)
    return routes


class Routing:
    """Finds the routes of a request, at the root and under the prefix of the API."""

    def __init__(self, backend: Backend, site: Site) -> None:
        self._backend = backend
        self._interface = interface_routes(backend)
        self._files = file_routes(backend)
        self._operating = operating_routes(backend, site)

    def routes_of(self, request: Request) -> Routes:
        """Return the routes for a request, and set its path within them."""
        segments = _segments(request)
        routes = self._interface
        request.prepath = []
        if segments[0] == API_PREFIX and len(segments) > 1:
            request.prepath.append(segments.pop(0).encode("ascii"))
        elif segments == [self._backend.settings.script_name]:
            segments, routes = [files.SCRIPT], self._files
        elif segments[0] in (*files.FIRST_SEGMENTS, reports.FIRST_SEGMENT):
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
