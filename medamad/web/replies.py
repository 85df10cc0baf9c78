"""Replies: the status, headers and body that answer a request."""

from http import HTTPStatus
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

encode_json: Final = msgspec.json.Encoder().encode


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
    return Reply(status, encode_json(value), JSON, (NO_STORE, NO_SNIFFING))


def no_content(*headers: tuple[bytes, bytes]) -> Reply:
    """Answer that it is done, with nothing to say about it."""
    return Reply(HTTPStatus.NO_CONTENT, headers=(NO_STORE, *headers))
