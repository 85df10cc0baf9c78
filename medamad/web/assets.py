"""Static files, served from memory in the content coding that a client accepts."""

import gzip
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import evolve, frozen
from werkzeug.http import parse_accept_header

from medamad.web.call import Call
from medamad.web.responses import Headers, Response
from medamad.web.server.request import Request

BROTLI: Final = "br"
GZIP: Final = "gzip"
PLAIN: Final = ""

VARY: Final = (b"Vary", b"Accept-Encoding")

_MAX_HEADER: Final = 512
"""The bytes of an Accept-Encoding header that are parsed; browsers send a twentieth of that."""
_MIN_BYTES: Final = 1_024
"""The smallest size of a response that is compressed."""
_LEVEL: Final = 3


def negotiated_coding(request: Request, offered: tuple[str, ...]) -> str:
    """Return the best offered content coding that the client accepts, or PLAIN."""
    accepted = request.headers.joined(b"Accept-Encoding")
    return PLAIN if accepted is None else best_coding(accepted[:_MAX_HEADER], offered)


@lru_cache(256)
def best_coding(accept_encoding: bytes, offered: tuple[str, ...]) -> str:
    """Return the best of the offered codings by an Accept-Encoding header, or PLAIN."""
    accepted = parse_accept_header(accept_encoding.decode("latin-1"))
    best = max(offered, key=accepted.quality, default=PLAIN)
    quality = accepted.quality(best) if best else 0
    return best if quality > 0 and quality >= accepted.quality("identity") else PLAIN


def content_encoding(coding: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of a response in a content coding, which may be PLAIN."""
    if coding == PLAIN:
        return (VARY,)
    return (VARY, (b"Content-Encoding", coding.encode("ascii")))


def gzipped(response: Response) -> Response:
    """Return a response compressed with gzip, unless it is too short to gain anything."""
    if len(response.body) < _MIN_BYTES:
        return evolve(response, headers=(*response.headers, *content_encoding(PLAIN)))
    return evolve(
        response,
        body=gzip.compress(response.body, _LEVEL, mtime=0),
        headers=(*response.headers, *content_encoding(GZIP)),
    )


TYPES: Final = MappingProxyType(
    {
        ".css": b"text/css; charset=utf-8",
        ".html": b"text/html; charset=utf-8",
        ".js": b"text/javascript; charset=utf-8",
        ".json": b"application/json",
        ".png": b"image/png",
        ".svg": b"image/svg+xml",
        ".woff2": b"font/woff2",
        ".yaml": b"application/yaml",
    }
)
REVALIDATE: Final = (b"Cache-Control", b"no-cache")

_SUFFIXES: Final = MappingProxyType({BROTLI: ".br", GZIP: ".gz"})
"""The file suffix of each content coding, the best first."""


@frozen
class Representation:
    """The content in one coding, with its strong validator (RFC 9110, section 8.8.3)."""

    body: bytes
    etag: bytes


@frozen
class Asset:
    """A file with its headers. `representations` are by content coding, including PLAIN."""

    content_type: bytes
    headers: Headers
    representations: Mapping[str, Representation]

    @property
    def content(self) -> bytes:
        """The uncompressed content."""
        return self.representations[PLAIN].body

    def __call__(self, call: Call) -> Response:
        """Return the file, or 304 if the client's copy is current."""
        request = call.request
        coding = negotiated_coding(
            request, tuple(coding for coding in self.representations if coding != PLAIN)
        )
        representation = self.representations[coding]
        headers = (*self.headers, *content_encoding(coding), (b"ETag", representation.etag))
        sent = request.headers.values(b"If-None-Match")
        tags = {tag.strip().removeprefix(b"W/") for tag in b",".join(sent).split(b",")}
        if representation.etag in tags or b"*" in tags:
            return Response(HTTPStatus.NOT_MODIFIED, headers=headers)
        return Response(HTTPStatus.OK, representation.body, self.content_type, headers)


def read_asset(file: Path, headers: Headers) -> Asset:
    """Return the asset of a file and of the compressed copies beside it."""
    bodies = {
        coding: beside.read_bytes()
        for coding, suffix in _SUFFIXES.items()
        if (beside := file.with_name(file.name + suffix)).exists()
    }
    return _asset({**bodies, PLAIN: file.read_bytes()}, TYPES[file.suffix], headers)


def make_asset(content: bytes, content_type: bytes, headers: Headers) -> Asset:
    """Return an asset of content that was made at run time, compressed with gzip."""
    return _asset({GZIP: gzip.compress(content, mtime=0), PLAIN: content}, content_type, headers)


def files_below(folder: Path) -> Mapping[str, Path]:
    """Return the files below a folder by their paths, without the compressed copies.

    Raises FileNotFoundError if the package was built without them.
    """
    files = {
        file.relative_to(folder).as_posix(): file
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.suffix not in _SUFFIXES.values()
    }
    if not files:
        raise FileNotFoundError(f"medamad was installed without {folder}")
    return files


def _asset(bodies: Mapping[str, bytes], content_type: bytes, headers: Headers) -> Asset:
    representations = {coding: Representation(body, _etag(body)) for coding, body in bodies.items()}
    return Asset(content_type, headers, MappingProxyType(representations))


def _etag(body: bytes) -> bytes:
    return b'"%b"' % sha256(body).hexdigest()[:20].encode("ascii")
