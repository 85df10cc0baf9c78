"""Parse request heads and chunked bodies, strictly (RFC 9112)."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen
from twisted.web.http import _ChunkedTransferDecoder

from medamad.domain.errors import BadRequest

MAX_HEAD_BYTES: Final = 16_384
_MAX_FIELDS: Final = 200
_MAX_HOST: Final = 260

_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE: Final = re.compile(rb"(%b) ([!-~\x80-\xff]+) (HTTP/1\.[01])\r\n" % _TOKEN)
_FIELD: Final = re.compile(rb"(%b):([^\r\n\0]*)\r\n" % _TOKEN)
_FIELDS: Final = re.compile(rb"(?:%b:[^\r\n\0]*\r\n)*\Z" % _TOKEN)
_HOST: Final = re.compile(
    rb"(?:[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?\Z"
)
_LENGTH: Final = re.compile(rb"[0-9]{1,18}\Z")
_FRAMING: Final = (b"host", b"content-length", b"transfer-encoding")
"""The fields that say where a request belongs and where it ends."""


@frozen
class RequestHead:
    """A request's first line and its fields, in order, with names as they were sent.

    `length` is that of the body in bytes, None for a body in chunks; `size` is its own.
    """

    method: bytes
    target: bytes
    version: bytes
    fields: Sequence[tuple[bytes, bytes]]
    length: int | None
    size: int


def read_head(head: bytes) -> RequestHead:
    """Read a head, up to and with the line end of its last field.

    Raises BadRequest for what is malformed, and for what others may read differently: a field
    that goes on in a second line, two lengths or hosts, an encoding of the body besides chunked.
    """
    line = _REQUEST_LINE.match(head)
    if line is None:
        raise BadRequest("this is not a well-formed HTTP request")
    if not _FIELDS.match(head, line.end()):
        raise BadRequest("a header is not well-formed, or goes on in a second line")
    method, target, version = line.groups()
    # A pattern that strips as well could be made to go over a run of spaces again and again.
    fields = [(name, value.strip(b" \t")) for name, value in _FIELD.findall(head, line.end())]
    if len(fields) > _MAX_FIELDS:
        raise BadRequest(f"expected at most {_MAX_FIELDS} headers")
    framing: dict[bytes, list[bytes]] = {name: [] for name in _FRAMING}
    for name, value in fields:
        if (lowered := name.lower()) in framing:
            framing[lowered].append(value)
    is_modern = version == b"HTTP/1.1"
    hosts, lengths, encodings = framing.values()
    _check_host(hosts, needed=is_modern)
    length = _body_length(lengths, encodings, chunks=is_modern)
    return RequestHead(method, target, version, fields, length, len(head))


def _check_host(hosts: Sequence[bytes], *, needed: bool) -> None:
    if len(hosts) != 1 and (needed or hosts):
        raise BadRequest("Host: expected exactly one")
    if hosts and (len(hosts[0]) > _MAX_HOST or not _HOST.match(hosts[0])):
        raise BadRequest("Host: expected a host, and a port if there is one")


def _body_length(
    lengths: Sequence[bytes], encodings: Sequence[bytes], *, chunks: bool
) -> int | None:
    if encodings:
        if lengths:
            raise BadRequest("Content-Length: expected none beside Transfer-Encoding")
        if len(encodings) > 1 or encodings[0].lower() != b"chunked" or not chunks:
            raise BadRequest("Transfer-Encoding: expected chunked, of HTTP/1.1, or none")
        return None
    if not lengths:
        return 0
    if len(lengths) > 1 or not _LENGTH.match(lengths[0]):
        raise BadRequest("Content-Length: expected one number of at most 18 digits")
    return int(lengths[0])


MOST_CHUNKS: Final = 256
"""How many a body of any length may have."""
BYTES_OF_A_FURTHER_ONE: Final = 256
"""Each so many bytes may come in one more."""

_NO_TRAILER_BYTES: Final = len(b"\r\n")


class Chunks(_ChunkedTransferDecoder):
    """Twisted's decoder of chunks, for as many as there may be, and without trailers."""

    def __init__(self, take: Callable[[bytes], None], finish: Callable[[bytes], None]) -> None:
        super().__init__(take, finish)
        # Trailers are nothing that we want, and Twisted does not check them.
        self._maxTrailerHeadersSize = _NO_TRAILER_BYTES
        self._room = MOST_CHUNKS * BYTES_OF_A_FURTHER_ONE

    def _dataReceived_CHUNK_LENGTH(self) -> bool:
        """Read the length of a chunk. Raises BadRequest when it is one too many."""
        is_read = super()._dataReceived_CHUNK_LENGTH()
        if is_read and self.length:
            self._room += self.length - BYTES_OF_A_FURTHER_ONE
            if self._room < 0:
                raise BadRequest(
                    f"body: expected at most {MOST_CHUNKS} chunks, "
                    f"and one more for each {BYTES_OF_A_FURTHER_ONE} bytes"
                )
        return is_read
