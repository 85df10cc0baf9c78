"""Replies: the status, headers and body that answer a request."""

from http import HTTPStatus
from io import BytesIO
from types import MappingProxyType
from typing import Final, TypeAlias

import msgspec
from attrs import frozen

from medamad.web.streams import Stream

Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Names and values of headers, in the order in which they are sent."""

JSON: Final = b"application/json"
NO_STORE: Final = (b"Cache-Control", b"no-store")
NO_SNIFFING: Final = (b"X-Content-Type-Options", b"nosniff")
"""What keeps a browser from taking texts that strangers wrote for another kind of content."""

PHRASES: Final = MappingProxyType({int(one): one.phrase.encode("ascii") for one in HTTPStatus})
"""What a status is called in words."""

encode_json: Final = msgspec.json.Encoder().encode

_ROWS_AT_ONCE: Final = 100
"""How many rows are encoded in one go, for as long as which no other thread can run."""


@frozen
class Reply:
    """An answer. `content_type` is empty where there is no body."""

    status: int
    body: bytes = b""
    content_type: bytes = b""
    headers: Headers = ()
    stream: Stream | None = None
    """What the body is made of, where that is sent piece by piece."""


def json_reply(value: object, status: int = HTTPStatus.OK) -> Reply:
    """Answer with a value as JSON, never to be kept by a cache."""
    body = _encode_rows(value) if isinstance(value, list) else encode_json(value)
    return Reply(status, body, JSON, (NO_STORE, NO_SNIFFING))


def _encode_rows(rows: list[object]) -> bytes:
    if len(rows) <= _ROWS_AT_ONCE:
        return encode_json(rows)
    written = BytesIO()
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        some = encode_json(rows[begin : begin + _ROWS_AT_ONCE])
        written.write(b"," if begin else b"[")
        written.write(memoryview(some)[1:-1])
    written.write(b"]")
    return written.getvalue()


def no_content(*headers: tuple[bytes, bytes]) -> Reply:
    """Answer that it is done, with nothing to say about it."""
    return Reply(HTTPStatus.NO_CONTENT, headers=(NO_STORE, *headers))


def encoded_last(reply: Reply, common: Headers) -> bytes:
    """Give the bytes of an answer after which the connection is closed."""
    head = [
        b"HTTP/1.1 %d %b" % (reply.status, PHRASES[reply.status]),
        *(b"%b: %b" % header for header in (*common, *reply.headers)),
        b"Content-Type: %b" % reply.content_type,
        b"Content-Length: %d" % len(reply.body),
        b"Connection: close",
    ]
    return b"\r\n".join((*head, b"", reply.body))
