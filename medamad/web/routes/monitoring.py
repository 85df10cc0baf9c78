"""Health checks and metrics, for the addresses in the configuration.

For other addresses, and under /api, these paths do not exist.
"""

from functools import partial
from http import HTTPStatus
from typing import Final

from medamad.domain.errors import Unavailable
from medamad.web.auth import Access
from medamad.web.dispatch import Call, Routes
from medamad.web.metrics import Exposition, unavailable_reasons
from medamad.web.responses import NO_SNIFFING, NO_STORE, Response, json_response
from medamad.web.server.site import Site

FIRST_SEGMENTS: Final = ("health", "metrics")
"""The first segments of the paths in this module."""

_RETRY_AFTER_S: Final = 10


def health(site: Site, _call: Call) -> Response:
    """Respond that hits are accepted. Raises Unavailable with the reasons if they are not."""
    reasons = unavailable_reasons(site)
    if reasons:
        raise Unavailable(f"not ready: {'; '.join(reasons)}", retry_after=_RETRY_AFTER_S)
    return json_response({"live": True, "ready": True})


def live(_call: Call) -> Response:
    """Respond that the daemon is running, whether or not hits are accepted."""
    return json_response({"live": True})


def expose(exposition: Exposition, call: Call) -> Response:
    """Return the metrics of the daemon."""
    accept = (call.request.headers.joined(b"Accept") or b"").decode("latin-1")
    text, media_type = exposition.text(accept)
    return Response(HTTPStatus.OK, text, media_type, (NO_STORE, NO_SNIFFING))


def add_to(routes: Routes, site: Site) -> None:
    """Add the routes of this module."""
    routes.add("GET", "/health", partial(health, site), Access.OPEN)
    routes.add("GET", "/health/live", live, Access.OPEN)
    routes.add("GET", "/metrics", partial(expose, Exposition.of(site)), Access.OPEN)
