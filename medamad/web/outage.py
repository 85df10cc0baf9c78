"""The site while the store is damaged: every response is a 503, and /health has the reason."""

from collections.abc import Callable
from typing import Final, cast

from attrs import evolve, frozen

from medamad.domain.errors import ApiError, Unavailable
from medamad.web import cors
from medamad.web.backend import Backend
from medamad.web.responses import Response, error_response, json_response
from medamad.web.server.request import Request
from medamad.web.server.site import Reactor, Site
from medamad.web.settings import WebSettings

_RETRY_AFTER_S: Final = 60
_FOR_EVERYONE: Final = "the service is unavailable: its store is damaged"


@frozen
class _Backend:
    """The part of a backend that a site needs."""

    settings: WebSettings
    clock: Callable[[], float]


@frozen
class OutageRoot:
    """Responds to every request; only those who may see /health get the reason."""

    _reason: str
    _settings: WebSettings

    def serve(self, request: Request) -> None:
        """Respond to a request."""
        may_see = may_see_health(request, self._settings)
        if may_see and request.path == b"/health/live":
            request.respond(json_response({"live": True}))
        elif may_see and request.path == b"/health":
            request.respond(_unavailable(f"not ready: {self._reason}"))
        else:
            request.respond(_unavailable(_FOR_EVERYONE))

    def error_response(self, _request: Request, _error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read."""
        return _unavailable(_FOR_EVERYONE)


def may_see_health(request: Request, settings: WebSettings) -> bool:
    """Return whether the sender may see /health."""
    return cors.may_monitor(request.peer, request.headers, settings)


def _unavailable(message: str) -> Response:
    response = error_response(Unavailable(message, retry_after=_RETRY_AFTER_S))
    return evolve(response, headers=(*cors.ANY, *response.headers))


def make_outage_site(
    reason: str, settings: WebSettings, clock: Callable[[], float], reactor: Reactor
) -> Site:
    """Return a site that responds with 503 to everything."""
    # A site uses nothing else of its backend.
    site = Site(cast("Backend", _Backend(settings, clock)), reactor)
    site.root = OutageRoot(reason, settings)
    return site
