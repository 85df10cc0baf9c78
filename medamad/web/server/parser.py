"""Parse request heads and chunked bodies, strictly (RFC 9112)."""

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from attrs import frozen

from medamad.domain.errors import BadRequest, TooLarge

MAX_HEAD_BYTES: Final = 16_384
_MAX_FIELDS: Final = 200
_MAX_HOST: Final = 260

_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE: Final = re.compile(rb"(%b) ([!-~\x80-\xff]+) (HTTP/1\.[01])\Z" % _TOKEN)
_FIELD: Final = re.compile(rb"(%b):([^\r\n\0]*)\Z" % _TOKEN)
_HOST: Final = re.compile(
    rb"(?:[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?\Z"
)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}\Z")
_CLOSE: Final = re.compile(rb"(?:\A|,)[ \t]*close[ \t]*(?:,|\Z)", re.IGNORECASE)
"""The connection option `close`, in a list of options."""


HeaderField: TypeAlias = tuple[bytes, tuple[bytes, ...]]
"""The name of a header field in lower case, and its value."""

REPEATED: Final = frozenset(
    (
        *(b"accept", b"accept-encoding", b"accept-language", b"cache-control", b"connection"),
        *(b"content-length", b"content-type", b"dnt", b"host", b"origin", b"pragma", b"priority"),
        *(b"sec-ch-ua", b"sec-ch-ua-mobile", b"sec-ch-ua-platform", b"sec-fetch-dest"),
        *(b"sec-fetch-mode", b"sec-fetch-site", b"sec-fetch-storage-access", b"sec-gpc"),
        *(b"te", b"user-agent", b"via", b"x-forwarded-host", b"x-forwarded-proto"),
    )
)
"""Fields that most requests repeat, and that identify nobody."""
_MAX_KNOWN: Final = 2_048
_MAX_KNOWN_BYTES: Final = 256


class _KnownFields(dict[bytes, HeaderField]):
    """The fields in lines of heads, by line: parsing those again would take most of a hit's time.

    Of bounded size, and without any that identifies a visitor by itself.
    """

    def __missing__(self, line: bytes) -> HeaderField:
        """Parse a line. Raises BadRequest."""
        match = _FIELD.match(line)
        if match is None:
            raise BadRequest("a header is malformed or continues on a second line")
        # A pattern that also strips could be made to backtrack over a run of spaces.
        field = (match[1].lower(), (match[2].strip(b" \t"),))
        if field[0] in REPEATED and len(line) <= _MAX_KNOWN_BYTES:
            if len(self) >= _MAX_KNOWN:
                self.clear()
            self[line] = field
        return field


_known_fields: Final = _KnownFields()


def forget_fields() -> None:
    """Forget the fields that heads have had."""
    _known_fields.clear()


class RequestHeaders:
    """The header fields of a request: the values of each name, in the order they were sent.

    Names are compared without regard to case. Unlike Twisted's `Headers`, this remembers no name
    for longer than the request lives, so clients may send any.
    """

    __slots__ = ("_values",)

    def __init__(self, fields: Sequence[HeaderField] = ()) -> None:
        self._values = dict(fields)
        if len(self._values) < len(fields):
            self._values = {}
            for name, values in fields:
                self._values[name] = self._values.get(name, ()) + values

    def values(self, name: bytes) -> Sequence[bytes]:
        """Return all values of a header, none if it was not sent."""
        return self._values.get(name.lower(), ())

    def joined(self, name: bytes) -> bytes | None:
        """Return the values of a header as one list (RFC 9110 section 5.3), None if not sent."""
        values = self._values.get(name.lower())
        return None if values is None else b", ".join(values)

    def __contains__(self, name: bytes) -> bool:
        """Return whether a header was sent."""
        return name.lower() in self._values

    @property
    def names(self) -> AbstractSet[bytes]:
        """The names of the headers that were sent, in lower case."""
        return self._values.keys()


@frozen
class RequestHead:
    """A request line and its header fields.

    `length` is the size of the body in bytes, None for a chunked body; `size` is that of the head.
    """

    method: bytes
    target: bytes
    version: bytes
    headers: RequestHeaders
    length: int | None
    size: int


def read_head(head: bytes) -> RequestHead:
    """Parse a head, up to and including the line end of its last field.

    Raises BadRequest for what is malformed, and for what another server or proxy may read
    differently: a folded field, two lengths or hosts, a transfer coding other than chunked.
    """
    first, *lines = head.removesuffix(b"\r\n").split(b"\r\n")
    line = _REQUEST_LINE.match(first)
    if line is None:
        raise BadRequest("this is not a well-formed HTTP request")
    method, target, version = line.groups()
    fields = [*map(_known_fields.__getitem__, lines)]
    if len(fields) > _MAX_FIELDS:
        raise BadRequest(f"expected at most {_MAX_FIELDS} headers")
    headers = RequestHeaders(fields)
    is_http_1_1 = version == b"HTTP/1.1"
    _check_host(headers.values(b"host"), required=is_http_1_1)
    length = _body_length(headers, may_be_chunked=is_http_1_1)
    return RequestHead(method, target, version, headers, length, len(head))


def wants_close(headers: RequestHeaders) -> bool:
    """Return whether the client closes the connection after the response."""
    options = headers.joined(b"connection")
    return options is not None and _CLOSE.search(options) is not None


def _check_host(hosts: Sequence[bytes], *, required: bool) -> None:
    if len(hosts) != 1 and (required or hosts):
        raise BadRequest("Host: expected exactly one")
    if hosts and (len(hosts[0]) > _MAX_HOST or not _HOST.match(hosts[0])):
        raise BadRequest("Host: expected a host, and optionally a port")


def _body_length(headers: RequestHeaders, *, may_be_chunked: bool) -> int | None:
    lengths = headers.values(b"content-length")
    codings = headers.values(b"transfer-encoding")
    if codings:
        if lengths:
            raise BadRequest("Content-Length: expected none beside Transfer-Encoding")
        if len(codings) > 1 or codings[0].lower() != b"chunked" or not may_be_chunked:
            raise BadRequest("Transfer-Encoding: expected chunked, in HTTP/1.1, or none")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.match(lengths[0]):
        raise BadRequest("Content-Length: expected one number of at most 18 digits")
    return int(lengths[0])


def _too_large(max_bytes: int) -> TooLarge:
    """Return the error for a body that exceeds the limit."""
    return TooLarge(f"body: expected at most {max_bytes} bytes")


FREE_CHUNKS: Final = 256
"""How many chunks a body may have, whatever its size."""
BYTES_PER_FURTHER_CHUNK: Final = 256
"""How many bytes allow one more chunk."""
_MAX_SIZE_LINE_BYTES: Final = 1_024
_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]+)(?:;[\t -\[\]-~\x80-\xff]*)?\Z")
_CRLF: Final = b"\r\n"


class ChunkedBody:
    """Decodes a chunked body (RFC 9112 section 7.1), without trailers and of bounded size.

    `data` is what has been decoded so far.
    """

    def __init__(self, max_bytes: int) -> None:
        self.data = bytearray()
        self._max_bytes = max_bytes
        self._allowance = FREE_CHUNKS * BYTES_PER_FURTHER_CHUNK
        self._undecoded = b""
        self._missing = 0
        """How many bytes of the current chunk have not arrived."""
        self._expects_line_end = False
        self._is_last = False

    def feed(self, data: bytes) -> bytes | None:
        """Decode what arrived. Return what follows the body, None while it is incomplete.

        Raises BadRequest and TooLarge. A chunk that is too large is refused before it arrives.
        """
        data = self._undecoded + data
        at = 0
        while True:
            if self._missing:
                part = data[at : at + self._missing]
                self.data += part
                at += len(part)
                self._missing -= len(part)
                if self._missing:
                    break
            if self._expects_line_end:
                line_end = data[at : at + 2]
                if line_end != _CRLF:
                    if not _CRLF.startswith(line_end):
                        raise _malformed()
                    break
                at += 2
                self._expects_line_end = False
                if self._is_last:
                    return data[at:]
            end = data.find(_CRLF, at)
            if (len(data) if end < 0 else end) - at >= _MAX_SIZE_LINE_BYTES:
                raise _malformed()
            if end < 0:
                break
            self._begin_chunk(data[at:end])
            at = end + 2
        self._undecoded = data[at:]
        return None

    def _begin_chunk(self, line: bytes) -> None:
        match = _SIZE_LINE.match(line)
        if match is None:
            raise _malformed()
        size = int(match[1], 16)
        if len(self.data) + size > self._max_bytes:
            raise _too_large(self._max_bytes)
        if size:
            self._allowance += size - BYTES_PER_FURTHER_CHUNK
            if self._allowance < 0:
                raise BadRequest(
                    f"body: expected at most {FREE_CHUNKS} chunks, "
                    f"and one more for each {BYTES_PER_FURTHER_CHUNK} bytes"
                )
        self._missing = size
        self._expects_line_end = True
        self._is_last = not size


def _malformed() -> BadRequest:
    return BadRequest("body: expected well-formed chunks")


class RequestParser:
    """Parses what arrives over a connection into heads and bodies.

    `buffer` is what has arrived and was not parsed. Call `next_head`, `begin_body` with its length,
    and `next_body`; they return None for what has not arrived completely.
    """

    def __init__(self) -> None:
        self.buffer = b""
        self._searched = 0
        """How much of the buffer is known not to contain the end of a head."""
        self._body = bytearray()
        """What was read of a body of known length."""
        self._missing = 0
        """How much of that has not arrived."""
        self._chunks: ChunkedBody | None = None

    @property
    def is_in_body(self) -> bool:
        """Whether a body comes next."""
        return self._missing > 0 or self._chunks is not None

    def feed(self, data: bytes) -> None:
        """Add what arrived."""
        self.buffer = self.buffer + data if self.buffer else data

    def next_head(self) -> RequestHead | None:
        """Return the next head. Raises BadRequest."""
        buffer = self.buffer
        # An empty line before a request is ignored (RFC 9112 section 2.2).
        start = 2 if buffer.startswith(b"\r\n") else 0
        end = buffer.find(b"\r\n\r\n", max(start, self._searched - 3))
        if (end if end >= 0 else len(buffer)) > MAX_HEAD_BYTES:
            raise BadRequest(f"expected at most {MAX_HEAD_BYTES} bytes before the body")
        if end < 0:
            self._searched = len(buffer)
            return None
        self._searched = 0
        self.buffer = buffer[end + 4 :]
        return read_head(buffer[start : end + 2])

    def begin_body(self, length: int | None, max_bytes: int) -> None:
        """Read a body next, of a length as in RequestHead. Raises TooLarge."""
        if length is None:
            self._chunks = ChunkedBody(max_bytes)
        elif length > max_bytes:
            raise _too_large(max_bytes)
        else:
            self._missing = length

    def next_body(self) -> bytes | None:
        """Return the body that was begun. Raises BadRequest, TooLarge."""
        data = self.buffer
        if self._chunks is not None:
            self.buffer = b""
            rest = self._chunks.feed(data)
            if rest is None:
                return None
            body, self.buffer, self._chunks = bytes(self._chunks.data), rest, None
            return body
        part, self.buffer = data[: self._missing], data[self._missing :]
        self._missing -= len(part)
        if not self._missing and not self._body:
            return part
        self._body += part
        if self._missing:
            return None
        body, self._body = bytes(self._body), bytearray()
        return body
