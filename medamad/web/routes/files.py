"""Files: the dashboard's pages and assets, the tracker's scripts, and the OpenAPI description."""

from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from attrs import define, evolve, field

from medamad.build import DASHBOARD, PAGE, SCRIPTS, SHARE_PAGE
from medamad.domain.accounts import SCRIPT_TYPES, Settings
from medamad.domain.errors import NotFound
from medamad.domain.zones import DAY_S, offset_at
from medamad.web.assets import REVALIDATE, TYPES, Asset, files_below, make_asset, read_asset
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import NO_SNIFFING, NOT_FOUND, Headers, Response
from medamad.web.settings import EVENT_NAME

SCRIPT: Final = "script.js"
OPT_OUT: Final = "opt-out.js"
FIRST_SEGMENTS: Final = ("", "dashboard", "share", SCRIPT, "scripts")
"""The first segments of the paths that exist at the root only."""

_DESCRIPTION: Final = Path(__file__).parents[1] / "openapi.yaml"
_HASHED: Final = "assets/"
"""The folder of the files that have a hash of their content in their names."""

_POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    b"connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors %b"
)
_NO_FRAMES: Final = b"'none'"
"""The ancestors that may show the dashboard in a frame."""
_FOREVER_HEADERS: Final[Headers] = (
    (b"Cache-Control", b"public, max-age=31536000, immutable"),
    NO_SNIFFING,
    (b"Cross-Origin-Resource-Policy", b"same-origin"),
)
_HTML_HEADERS: Final[Headers] = (
    REVALIDATE,
    NO_SNIFFING,
    (b"Cross-Origin-Opener-Policy", b"same-origin"),
    (b"Permissions-Policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"Referrer-Policy", b"no-referrer"),
)


def _framed(ancestors: bytes) -> Headers:
    """Return the headers that limit which pages may show this one in a frame."""
    origin = b"same-origin" if ancestors == _NO_FRAMES else b"cross-origin"
    return (
        (b"Content-Security-Policy", _POLICY % ancestors),
        (b"Cross-Origin-Resource-Policy", origin),
    )


_PAGE_HEADERS: Final[Headers] = (*_HTML_HEADERS, *_framed(_NO_FRAMES))
_NO_ROBOTS: Final = (b"X-Robots-Tag", b"noindex, nofollow")


@cache
def read_dashboard(folder: Path = DASHBOARD) -> Mapping[str, Asset]:
    """Return the dashboard's files by their paths below /dashboard/."""
    return {
        path: read_asset(file, _FOREVER_HEADERS if path.startswith(_HASHED) else _PAGE_HEADERS)
        for path, file in files_below(folder).items()
    }


def open_dashboard(call: Call, place: str = PAGE) -> Response:
    """Return a file of the dashboard. Other paths are routes of the page itself, so return that."""
    files = read_dashboard()
    if place not in files and place.startswith(_HASHED):
        raise NotFound(NOT_FOUND)
    if place not in files:
        place = PAGE
    return _below_base_path(call, place)(call)


def _below_base_path(call: Call, place: str) -> Asset:
    """Return a file of the dashboard; a page refers to the others below the base path."""
    file, base_path = read_dashboard()[place], call.backend.settings.base_path
    is_page = place in (PAGE, SHARE_PAGE)
    return _page_below(place, base_path) if base_path and is_page else file


@lru_cache(4)
def _page_below(place: str, base_path: str) -> Asset:
    page = read_dashboard()[place]
    content = page.content.replace(b'="/', b'="%b/' % base_path.encode("ascii"))
    return make_asset(content, page.content_type, page.headers)


def open_share(call: Call, share: str, **_place: str) -> Response:
    """Return the page of a share link, which may be shown in the frames that the link allows.

    What is below it are routes of the page itself.
    """
    try:
        ancestors = " ".join(call.backend.shares.find(share).embed).encode("ascii") or _NO_FRAMES
        status = HTTPStatus.OK
    except NotFound:
        ancestors, status = _NO_FRAMES, HTTPStatus.NOT_FOUND
    headers = (*_HTML_HEADERS, *_framed(ancestors), _NO_ROBOTS)
    response = evolve(_below_base_path(call, SHARE_PAGE), headers=headers)(call)
    return evolve(response, status=status) if response.status == HTTPStatus.OK else response


def _redirect_to_dashboard(call: Call) -> Response:
    location = b"%b/dashboard/" % call.backend.settings.base_path.encode("ascii")
    return Response(HTTPStatus.FOUND, headers=((b"Location", location), REVALIDATE))


@lru_cache(4)
def _description_below(base_path: str) -> Asset:
    content = _DESCRIPTION.read_bytes().replace(b"- url: /", b"- url: %b/" % base_path.encode())
    return make_asset(content, TYPES[_DESCRIPTION.suffix], (REVALIDATE, NO_SNIFFING))


def _describe(call: Call) -> Response:
    return _description_below(call.backend.settings.base_path)(call)


_DEFAULT_SCRIPT: Final = SCRIPT_TYPES[0]
_SUFFIX: Final = ".js"
_PATH: Final = f"{EVENT_NAME}/".encode("ascii")
"""The path in a script that it sends hits to, which occurs nowhere else in it."""
_DAYS: Final = b"/864e5"
"""Where a script divides a time by the length of a day, to which the zone's offset is added."""
_NAMED: Final = "named/"
"""The folder of the same scripts for `/scripts/`, where the API is one level up."""
_RETURNING: Final = "returning/"
"""The folder of all of them for where browsers remember when their visitor was here last."""
_UNCOUNTED: Final = "uncounted/"
"""The folder of all of them for where visitors are not counted, and browsers remember nothing."""

_SCRIPT_HEADERS: Final[Headers] = (
    (b"Cache-Control", b"public, max-age=3600"),
    NO_SNIFFING,
    (b"Access-Control-Allow-Origin", b"*"),
    (b"Cross-Origin-Resource-Policy", b"cross-origin"),
)


@cache
def read_script(name: str) -> Asset:
    """Return a script by the name of its file. There are many, of which few are requested."""
    return read_asset(SCRIPTS / name, _SCRIPT_HEADERS)


def file_name(features: Collection[str]) -> str:
    """Return the file name of a set of features."""
    selected = [name for name in SCRIPT_TYPES if name in features and name != _DEFAULT_SCRIPT]
    return (".".join(selected) or _DEFAULT_SCRIPT) + _SUFFIX


@define(eq=False)
class Scripts:
    """The scripts, with the configured path for hits and the offset of the time zone."""

    _variant: tuple[str, int] = (EVENT_NAME, 0)
    """The path, and the offset in seconds."""
    _made: dict[str, Asset] = field(factory=dict)

    def respond(self, call: Call, name: str) -> Response:
        """Return a script by the name of its file."""
        rules = call.backend.pipeline.rules
        if rules.has_returning:
            name = _RETURNING + name
        elif not rules.has_visitors:
            name = _UNCOUNTED + name
        script = read_script(name)
        offset_s = offset_at(rules.zone, int(call.backend.clock()))
        variant = event_name, _ = call.backend.settings.event_name, offset_s
        if variant == (EVENT_NAME, 0):
            return script(call)
        if variant != self._variant:
            self._variant, self._made = variant, {}
        if name not in self._made:
            content = script.content.replace(_PATH, f"{event_name}/".encode("ascii"))
            if offset_s:
                content = content.replace(_DAYS, _DAYS + b"%+d/%d" % (offset_s, DAY_S))
            self._made[name] = make_asset(content, script.content_type, _SCRIPT_HEADERS)
        return self._made[name](call)

    def selected(self, call: Call) -> Response:
        """Return the script with the features selected in the settings."""
        account = call.backend.store.account.read()
        settings = Settings() if account is None else account.settings
        return self.respond(call, file_name(settings.script_type))

    def named(self, call: Call, name: str) -> Response:
        """Return the script named by the path: features joined by dots, and the suffix."""
        features = set(name.removesuffix(_SUFFIX).split("."))
        if not name.endswith(_SUFFIX) or not features <= set(SCRIPT_TYPES):
            raise NotFound(NOT_FOUND)
        return self.respond(call, _NAMED + file_name(features))


def add_to_interface(routes: Routes) -> None:
    """Add the OpenAPI description, and the script with a visitor's choice not to be counted.

    That one is beside the hits, so it is found wherever these go.
    """
    routes.add("GET", "/openapi.yaml", _describe, Access.OPEN)
    routes.add("GET", f"/{EVENT_NAME}/{OPT_OUT}", read_script(OPT_OUT), Access.SCRIPT)


def add_to(routes: Routes) -> None:
    """Add the dashboard and the scripts."""
    read_dashboard()
    routes.add("GET", "/", _redirect_to_dashboard, Access.OPEN)
    routes.add("GET", "/dashboard", _redirect_to_dashboard, Access.OPEN)
    routes.add("GET", "/dashboard/", open_dashboard, Access.OPEN)
    routes.add("GET", "/dashboard/<path:place>", open_dashboard, Access.OPEN)
    routes.add("GET", "/share/<share>", open_share, Access.OPEN)
    routes.add("GET", "/share/<share>/funnels/<funnel>", open_share, Access.OPEN)
    scripts = Scripts()
    routes.add("GET", f"/{SCRIPT}", scripts.selected, Access.SCRIPT)
    routes.add("GET", "/scripts/<name>", scripts.named, Access.SCRIPT)
