"""What is served as files: the tracker, the dashboard's pages, the interface's description."""

from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

from medamad.web.gate import Access, Call, Routes
from medamad.web.replies import Headers, Reply

SCRIPT: Final = "script.js"
FIRST_SEGMENTS: Final = ("", "dashboard", SCRIPT)
"""How the paths begin that lead to what is not the interface."""

_FRONTEND: Final = Path(__file__).parents[2] / "frontend"
_DESCRIPTION: Final = Path(__file__).parents[1] / "openapi.yaml"

_TYPES: Final = MappingProxyType(
    {
        ".css": b"text/css; charset=utf-8",
        ".html": b"text/html; charset=utf-8",
        ".js": b"text/javascript; charset=utf-8",
        ".svg": b"image/svg+xml",
        ".yaml": b"application/yaml",
    }
)
_NO_SNIFFING: Final = (b"X-Content-Type-Options", b"nosniff")
_FOR_AN_HOUR: Final = (b"Cache-Control", b"public, max-age=3600")
_ASK_AGAIN: Final = (b"Cache-Control", b"no-cache")

_SCRIPT_HEADERS: Final[Headers] = (
    _FOR_AN_HOUR,
    _NO_SNIFFING,
    (b"Access-Control-Allow-Origin", b"*"),
    (b"Cross-Origin-Resource-Policy", b"cross-origin"),
)
_PAGE_HEADERS: Final[Headers] = (
    _ASK_AGAIN,
    _NO_SNIFFING,
    (
        b"Content-Security-Policy",
        b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"Referrer-Policy", b"no-referrer"),
)


@frozen
class Document:
    """A file as it is served, with headers that say how."""

    body: bytes
    content_type: bytes
    headers: Headers

    @property
    def etag(self) -> bytes:
        """The strong validator of this content (RFC 9110 section 8.8.3)."""
        return b'"%b"' % sha256(self.body).hexdigest()[:20].encode("ascii")

    def __call__(self, call: Call) -> Reply:
        """Give the file, or say that the client has it already."""
        etag = self.etag
        headers = (*self.headers, (b"ETag", etag))
        known = call.request.requestHeaders.getRawHeaders(b"If-None-Match") or ()
        tags = {tag.strip().removeprefix(b"W/") for tag in b",".join(known).split(b",")}
        if etag in tags or b"*" in tags:
            return Reply(HTTPStatus.NOT_MODIFIED, headers=headers)
        return Reply(HTTPStatus.OK, self.body, self.content_type, headers)


def read_document(path: Path, headers: Headers) -> Document:
    """Read a file that is served as long as the process runs."""
    return Document(path.read_bytes(), _TYPES[path.suffix], headers)


def _redirect_to_dashboard(_call: Call) -> Reply:
    return Reply(HTTPStatus.FOUND, headers=((b"Location", b"/dashboard/"), _ASK_AGAIN))


def add_description(routes: Routes) -> None:
    """Add the description of the interface."""
    description = read_document(_DESCRIPTION, (_ASK_AGAIN, _NO_SNIFFING))
    routes.add("GET", "/openapi.yaml", description, Access.OPEN)


def add_to(routes: Routes) -> None:
    """Add what lies beside the interface."""
    script = read_document(_FRONTEND / "tracker" / SCRIPT, _SCRIPT_HEADERS)
    routes.add("GET", f"/{SCRIPT}", script, Access.OPEN)
    routes.add("GET", "/", _redirect_to_dashboard, Access.OPEN)
    routes.add("GET", "/dashboard", _redirect_to_dashboard, Access.OPEN)
    for path in sorted((_FRONTEND / "dashboard").iterdir()):
        if path.suffix in _TYPES:
            page = read_document(path, _PAGE_HEADERS)
            routes.add("GET", f"/dashboard/{path.name}", page, Access.OPEN)
            if path.name == "index.html":
                routes.add("GET", "/dashboard/", page, Access.OPEN)
