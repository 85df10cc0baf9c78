"""What is served as files: the dashboard's page and what it loads, the interface's description."""

from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from attrs import evolve

from medamad.build import GENERATED
from medamad.domain.errors import NotFound
from medamad.web.assets import ASK_AGAIN, TYPES, Asset, files_below, make_asset, read_asset
from medamad.web.auth import Access
from medamad.web.dispatch import Call, Routes
from medamad.web.responses import NO_SNIFFING, NOT_FOUND, Headers, Response

FIRST_SEGMENTS: Final = ("", "dashboard", "share")
"""How the paths begin that lead here."""

_DASHBOARD: Final = GENERATED / "frontend" / "dashboard"
_DESCRIPTION: Final = Path(__file__).parents[1] / "openapi.yaml"
_PAGE: Final = "index.html"
_SHARE_PAGE: Final = "share.html"
_HASHED: Final = "assets/"
"""How the paths begin of what is named by its content."""

_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors %b"
)
_NOWHERE: Final = b"'none'"
"""Where the dashboard may be shown in a frame."""
_FOREVER_HEADERS: Final[Headers] = (
    (b"Cache-Control", b"public, max-age=31536000, immutable"),
    NO_SNIFFING,
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
)
_ON_A_PAGE: Final[Headers] = (
    ASK_AGAIN,
    NO_SNIFFING,
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Permissions-Policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"Referrer-Policy", b"no-referrer"),
)


def _framed(ancestors: bytes) -> Headers:
    """Return the headers that say in whose frames a page may be shown."""
    origin = b"same-origin" if ancestors == _NOWHERE else b"cross-origin"
    return (
        (b"Content-Security-Policy", _POLICY % ancestors),
        (b"Cross-Origin-Resource-Policy", origin),
    )


_PAGE_HEADERS: Final[Headers] = (*_ON_A_PAGE, *_framed(_NOWHERE))
_NO_ROBOTS: Final = (b"X-Robots-Tag", b"noindex, nofollow")


@cache
def read_dashboard(folder: Path = _DASHBOARD) -> Mapping[str, Asset]:
    """Return the dashboard's files by their paths below /dashboard/.

    Raises FileNotFoundError when the package was made without them, or without one of the pages.
    """
    files = files_below(folder)
    for page in (_PAGE, _SHARE_PAGE):
        if page not in files:
            raise FileNotFoundError(f"medamad was installed without {folder / page}")
    return {
        path: read_asset(file, _FOREVER_HEADERS if path.startswith(_HASHED) else _PAGE_HEADERS)
        for path, file in files.items()
    }


def open_dashboard(call: Call, place: str = _PAGE) -> Response:
    """Return a file of the dashboard; whatever is none is a place in the page, which finds it."""
    files = read_dashboard()
    if place not in files and place.startswith(_HASHED):
        raise NotFound(NOT_FOUND)
    return files.get(place, files[_PAGE])(call)


def open_share(call: Call, share: str) -> Response:
    """Return the page of a share link, to be shown in the frames that the link allows."""
    try:
        ancestors = " ".join(call.backend.shares.find(share).embed).encode("ascii") or _NOWHERE
        status = HTTPStatus.OK
    except NotFound:
        ancestors, status = _NOWHERE, HTTPStatus.NOT_FOUND
    headers = (*_ON_A_PAGE, *_framed(ancestors), _NO_ROBOTS)
    response = evolve(read_dashboard()[_SHARE_PAGE], headers=headers)(call)
    return evolve(response, status=status) if response.status == HTTPStatus.OK else response


def _redirect_to_dashboard(_call: Call) -> Response:
    return Response(HTTPStatus.FOUND, headers=((b"Location", b"/dashboard/"), ASK_AGAIN))


@cache
def _read_description() -> Asset:
    content_type = TYPES[_DESCRIPTION.suffix]
    return make_asset(_DESCRIPTION.read_bytes(), content_type, (ASK_AGAIN, NO_SNIFFING))


def add_description(routes: Routes) -> None:
    """Add the description of the interface."""
    routes.add("GET", "/openapi.yaml", _read_description(), Access.OPEN)


def add_to(routes: Routes) -> None:
    """Add the dashboard. Raises FileNotFoundError when the package was made without it."""
    read_dashboard()
    routes.add("GET", "/", _redirect_to_dashboard, Access.OPEN)
    routes.add("GET", "/dashboard", _redirect_to_dashboard, Access.OPEN)
    routes.add("GET", "/dashboard/", open_dashboard, Access.OPEN)
    routes.add("GET", "/dashboard/<path:place>", open_dashboard, Access.OPEN)
    routes.add("GET", "/share/<share>", open_share, Access.OPEN)
