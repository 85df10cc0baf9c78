import pytest
from twisted.web.http import _MalformedChunkedDataError

from medamad.domain.errors import BadRequest
from medamad.web.server.parser import BYTES_OF_A_FURTHER_ONE, MOST_CHUNKS, Chunks

END = b"0\r\n\r\n"


def chunk(length: int) -> bytes:
    return b"%x\r\n%b\r\n" % (length, b"x" * length)


def decode(data: bytes, at_once: int, parts: list[bytes], behind: list[bytes]) -> None:
    """Note the parts of a body as they are handed on, and what is sent behind it."""
    decoder = Chunks(parts.append, behind.append)
    for start in range(0, len(data), at_once):
        decoder.dataReceived(data[start : start + at_once])


def decoded(*chunks: bytes, at_once: int = 1_000_000) -> tuple[list[bytes], list[bytes]]:
    parts: list[bytes] = []
    behind: list[bytes] = []
    decode(b"".join(chunks), at_once, parts, behind)
    return parts, behind


def test_a_body_is_put_together() -> None:
    parts, behind = decoded(chunk(3), b"2;a=b\r\nab\r\n", END, b"GET")
    assert (parts, behind) == ([b"xxx", b"ab"], [b"GET"])
    assert b"".join(decoded(chunk(3), chunk(600), END, at_once=7)[0]) == b"x" * 603


@pytest.mark.parametrize("at_once", [1_000_000, 5])
@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(1)] * MOST_CHUNKS,
        [chunk(BYTES_OF_A_FURTHER_ONE)] * MOST_CHUNKS * 2,
        [chunk(16_384), *[chunk(1)] * (MOST_CHUNKS + 16_384 // BYTES_OF_A_FURTHER_ONE - 1)],
    ],
)
def test_so_many_chunks_are_taken(chunks: list[bytes], at_once: int) -> None:
    parts, behind = decoded(*chunks, END, at_once=at_once)
    length = sum(int(one.partition(b"\r")[0], 16) for one in chunks)
    assert (b"".join(parts), behind) == (b"x" * length, [b""])


@pytest.mark.parametrize("at_once", [1_000_000, 5])
def test_one_more_is_refused_and_the_rest_not_looked_at(at_once: int) -> None:
    parts: list[bytes] = []
    with pytest.raises(BadRequest) as refusal:
        decode(chunk(1) * 10_000, at_once, parts, [])
    assert str(refusal.value) == (
        "body: expected at most 256 chunks, and one more for each 256 bytes"
    )
    # Each brings a byte along, of which so many are worth one more.
    assert len(parts) == MOST_CHUNKS + 1


def test_trailers_are_refused() -> None:
    with pytest.raises(_MalformedChunkedDataError):
        decoded(chunk(1), b"0\r\nX-A: a\r\n\r\n")
