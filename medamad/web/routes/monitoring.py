"""What watches over the daemon may ask, from the addresses that the configuration names.

To any other address, and under /api, there is nothing here.
"""

from functools import partial
from http import HTTPStatus
from typing import Final

from medamad.domain.errors import Unavailable
from medamad.web.auth import Access
from medamad.web.dispatch import Call, Routes
from medamad.web.metrics import Exposition, lacks
from medamad.web.responses import NO_SNIFFING, NO_STORE, Response, json_response
from medamad.web.server.site import Site

FIRST_SEGMENTS: Final = ("health", "metrics")
"""How the paths begin that lead here."""

_RETRY_AFTER_S: Final = 10


def tell_health(site: Site, _call: Call) -> Response:
    """Tell that hits are taken. Raises Unavailable, with the reasons, when they are not."""
    reasons = lacks(site)
    if reasons:
        raise Unavailable(f"not ready: {'; '.join(reasons)}", retry_after=_RETRY_AFTER_S)
    return json_response({"live": True, "ready": True})


def tell_life(_call: Call) -> Response:
    """Tell that the daemon answers, whether or not it takes hits."""
    return json_response({"live": True})


def expose(exposition: Exposition, call: Call) -> Response:
    """Return the figures of the daemon."""
    accept = (call.request.headers.joined(b"Accept") or b"").decode("latin-1")
    text, media_type = exposition.text(accept)
    return Response(HTTPStatus.OK, text, media_type, (NO_STORE, NO_SNIFFING))


def add_to(routes: Routes, site: Site) -> None:
    """Add the routes of this section."""
    routes.add("GET", "/health", partial(tell_health, site), Access.OPEN)
    routes.add("GET", "/health/live", tell_life, Access.OPEN)
    routes.add("GET", "/metrics", partial(expose, Exposition.of(site)), Access.OPEN)
