"""What the daemon answers while its store is damaged: 503 to every request, the reason on /health."""

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
    """Answers every request; only insiders get the reason."""

    _reason: str
    _settings: WebSettings

    def serve(self, request: Request) -> None:
        """Answer a request."""
        is_insider = may_see_health(request, self._settings)
        if is_insider and request.path == b"/health/live":
            request.respond(json_response({"live": True}))
        elif is_insider and request.path == b"/health":
            request.respond(_unavailable(f"not ready: {self._reason}"))
        else:
            request.respond(_unavailable(_FOR_EVERYONE))

    def error_response(self, _request: Request, _error: ApiError) -> Response:
        """Answer a request of which the body cannot be taken."""
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
    """Return a site that answers 503 to everything."""
    # A site itself uses no more of its backend than this.
    site = Site(cast("Backend", _Backend(settings, clock)), reactor)
    site.root = OutageRoot(reason, settings)
    return site
