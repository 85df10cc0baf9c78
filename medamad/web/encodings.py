"""Content codings: which one a client accepts (RFC 9110 section 12.5.3), and gzip itself."""

import gzip
from functools import lru_cache
from typing import Final

from attrs import evolve
from werkzeug.http import parse_accept_header

from medamad.web.replies import Reply
from medamad.web.request import Request

BROTLI: Final = "br"
GZIP: Final = "gzip"
PLAIN: Final = ""

VARY: Final = (b"Vary", b"Accept-Encoding")

_MAX_HEADER: Final = 512
"""Characters of an Accept-Encoding that are looked at; browsers send a twentieth of that."""
_WORTH_BYTES: Final = 1_024
"""From how many bytes on an answer is compressed."""
_LEVEL: Final = 3


def chosen(request: Request, offered: tuple[str, ...]) -> str:
    """Give the one of the offered codings to use, the first among equals; PLAIN for none."""
    accepted = request.sent(b"Accept-Encoding")
    return PLAIN if accepted is None else _chosen(accepted[:_MAX_HEADER], offered)


@lru_cache(256)
def _chosen(accept_encoding: bytes, offered: tuple[str, ...]) -> str:
    accepted = parse_accept_header(accept_encoding.decode("latin-1"))
    best = max(offered, key=accepted.quality, default=PLAIN)
    quality = accepted.quality(best) if best else 0
    return best if quality > 0 and quality >= accepted.quality("identity") else PLAIN


def content_encoding(coding: str) -> tuple[tuple[bytes, bytes], ...]:
    """Give the headers of an answer that is sent by a coding, or plain where it could be coded."""
    if coding == PLAIN:
        return (VARY,)
    return (VARY, (b"Content-Encoding", coding.encode("ascii")))


def zipped(reply: Reply) -> Reply:
    """Give an answer compressed by gzip, or as it is when it is too short for that."""
    if len(reply.body) < _WORTH_BYTES:
        return evolve(reply, headers=(*reply.headers, *content_encoding(PLAIN)))
    return evolve(
        reply,
        body=gzip.compress(reply.body, _LEVEL, mtime=0),
        headers=(*reply.headers, *content_encoding(GZIP)),
    )
