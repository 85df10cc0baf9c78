"""The pixel, which counts a view where no script runs."""

from http import HTTPStatus
from secrets import token_urlsafe
from typing import Final

from attrs import evolve

from medamad.domain.errors import BadRequest
from medamad.ingest.networks import Sender
from medamad.ingest.payload import Load
from medamad.web.dispatch import Access, Call, Routes
from medamad.web.responses import Response
from medamad.web.routes.events import ignored_headers, ping_headers, ping_of, sender_of

PIXEL: Final = "/event/pixel.gif"

_GIF: Final = bytes.fromhex(
    "474946383961 0100 0100 80 00 00 000000 ffffff"  # GIF89a of one pixel and two colours
    "21 f9 04 01 0000 00 00"  # the first colour is transparent
    "2c 0000 0000 0100 0100 00 02 02 44 01 00 3b"
)
_BEACON_BYTES: Final = 12
_ANY_PAGE: Final = (b"Cross-Origin-Resource-Policy", b"cross-origin")


async def pixel(call: Call) -> Response:
    """Take a view of the page that shows the pixel; the answer comes once it is on disk.

    The browser keeps one date for each address of the pixel. What is unique is so for that: the
    visitor's first view of the day (`p`) is taken for the first of its page (`q`) as well.
    """
    request, backend = call.request, call.backend
    ping = ping_of(request, backend)
    page = _page(call)
    ignored = None
    if request.method != b"HEAD":
        is_first = ping.views_before == 0
        load = Load(
            beacon=token_urlsafe(_BEACON_BYTES),
            url=page,
            first_today=is_first,
            first_of_page=is_first,
            referrer=call.query.text("r") or "",
            number_today=ping.views_before + 1,
        )
        ignored = await backend.pipeline.collect_load(load, _sender(call))
    headers = (*ping_headers(ping), _ANY_PAGE, *ignored_headers(ignored))
    return Response(HTTPStatus.OK, _GIF, b"image/gif", headers)


def _page(call: Call) -> str:
    """Return the URL of the page: what the address of the pixel says, else the browser."""
    named = call.query.text("u")
    if named is not None:
        return named
    referer = _referer(call)
    if not referer.startswith(("http://", "https://")):
        raise BadRequest("u: expected the URL of the page, since no Referer gives it")
    return referer


def _sender(call: Call) -> Sender:
    """Tell who sends a view. For an image browsers tell no Origin; Referer begins with it."""
    sender = sender_of(call.request, call.backend)
    return evolve(sender, origin=sender.origin or "/".join(_referer(call).split("/", 3)[:3]))


def _referer(call: Call) -> str:
    return (call.request.headers.joined(b"Referer") or b"").decode("latin-1")


def add_to(routes: Routes) -> None:
    """Add the route of the pixel."""
    routes.add("GET", PIXEL, pixel, Access.EVENT)
