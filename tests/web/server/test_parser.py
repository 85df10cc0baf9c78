"""The strict parser of request heads and chunked bodies."""

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from medamad.domain.errors import ApiError, BadRequest, TooLarge
from medamad.web.server.parser import (
    BYTES_PER_FURTHER_CHUNK,
    FREE_CHUNKS,
    ChunkedBody,
    RequestHeaders,
    read_head,
)

GET = b"GET / HTTP/1.1"
GET_1_0 = b"GET / HTTP/1.0"
HOST = b"Host: a"
END = b"0\r\n\r\n"


def head(*lines: bytes) -> bytes:
    return b"".join(line + b"\r\n" for line in lines)


def test_a_head() -> None:
    text = head(
        b"POST /a?b=%20 HTTP/1.1",
        b"Host: example.com",
        b"content-LENGTH:\t12 \t",
        b"X-Empty:",
        b"X-Text:  a: b  c ",
    )
    parsed = read_head(text)
    assert (parsed.method, parsed.target, parsed.version) == (b"POST", b"/a?b=%20", b"HTTP/1.1")
    assert (parsed.length, parsed.size) == (12, len(text))
    names = (b"host", b"Content-Length", b"x-empty", b"X-TEXT", b"x-none")
    assert [parsed.headers.joined(name) for name in names] == [
        *(b"example.com", b"12", b"", b"a: b  c", None)
    ]


def test_headers() -> None:
    headers = RequestHeaders([(b"a", (b"1",)), (b"b", (b"",)), (b"a", (b"2",))])
    assert (headers.values(b"a"), headers.values(b"b"), headers.values(b"c")) == (
        (b"1", b"2"),
        (b"",),
        (),
    )
    assert (headers.joined(b"A"), headers.joined(b"C")) == (b"1, 2", None)
    assert (b"B" in headers, b"c" in headers) == (True, False)


@pytest.mark.parametrize(
    ("lines", "length"),
    [
        ([GET_1_0], 0),
        ([GET_1_0, HOST], 0),
        ([GET, HOST], 0),
        ([GET, HOST, b"Content-Length: 0"], 0),
        ([GET, HOST, b"Content-Length: 007"], 7),
        ([GET, HOST, b"Content-Length: " + b"9" * 18], int("9" * 18)),
        ([GET, HOST, b"Transfer-Encoding: Chunked"], None),
        ([b"get \xc3\xbc HTTP/1.1", HOST, b"X: \xff\x01"], 0),
    ],
)
def test_the_length_of_a_body(lines: list[bytes], length: int | None) -> None:
    assert read_head(head(*lines)).length == length


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([GET], "Host: "),
        ([GET, HOST, b"host: a"], "Host: "),
        ([GET_1_0, HOST, HOST], "Host: "),
        ([GET_1_0, b"Host: "], "Host: "),
        ([GET, b"Host: a b"], "Host: "),
        ([GET, b"Host: a/b"], "Host: "),
        ([GET, b"Host: user@a"], "Host: "),
        ([GET, b"Host: a..b"], "Host: "),
        ([GET, b"Host: " + b"a" * 64], "Host: "),
        ([GET, b"Host: " + b"a." * 140], "Host: "),
        ([GET, b"Host: a:123456"], "Host: "),
        ([GET, b"Host: \xff"], "Host: "),
        ([GET, HOST, b"Content-Length: "], "Content-Length: "),
        ([GET, HOST, b"Content-Length: +1"], "Content-Length: "),
        ([GET, HOST, b"Content-Length: -1"], "Content-Length: "),
        ([GET, HOST, b"Content-Length: 1, 1"], "Content-Length: "),
        ([GET, HOST, b"Content-Length: " + b"9" * 19], "Content-Length: "),
        ([GET, HOST, b"Content-Length: " + b"9" * 5_000], "Content-Length: "),
        ([GET, HOST, b"Content-Length: 1", b"Content-Length: 1"], "Content-Length: "),
        ([GET, HOST, b"Transfer-Encoding: "], "Transfer-Encoding: "),
        ([GET, HOST, b"Transfer-Encoding: identity"], "Transfer-Encoding: "),
        ([GET, HOST, b"Transfer-Encoding: gzip, chunked"], "Transfer-Encoding: "),
        ([GET_1_0, b"Transfer-Encoding: chunked"], "Transfer-Encoding: "),
        ([GET, HOST, b"Transfer-Encoding: chunked", b"Content-Length: 1"], "Content-Length: "),
        ([b""], "this is not"),
        ([b"GET /"], "this is not"),
        ([b"GET / HTTP/1.2"], "this is not"),
        ([b"GET / http/1.1"], "this is not"),
        ([b"GET / HTTP/1.1 "], "this is not"),
        ([b" GET / HTTP/1.1"], "this is not"),
        ([b"GET  / HTTP/1.1"], "this is not"),
        ([b"GET /a b HTTP/1.1"], "this is not"),
        ([b"GET /\x7f HTTP/1.1"], "this is not"),
        ([b"GET\t/ HTTP/1.1"], "this is not"),
        ([b"G(T / HTTP/1.1"], "this is not"),
        ([GET, b"Host"], "a header"),
        ([GET, b": a"], "a header"),
        ([GET, b"Host : a"], "a header"),
        ([GET, b" Host: a"], "a header"),
        ([GET, HOST, b"\tb"], "a header"),
        ([GET, HOST, b""], "a header"),
        ([GET, HOST, b"X Y: b"], "a header"),
        ([GET, b"Host: a\nX: b"], "a header"),
        ([GET, b"Host: a\rX: b"], "a header"),
        ([GET, HOST, b"X: \0"], "a header"),
        ([GET, HOST, *[b"X: y"] * 200], "expected at most 200 headers"),
    ],
)
def test_heads_that_others_may_read_differently(lines: list[bytes], message: str) -> None:
    with pytest.raises(BadRequest) as raised:
        read_head(head(*lines))
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "host",
    [
        *(b"a", b"stats.example.com", b"stats.example.com.", b"a:8080", b"a:", b"my_host"),
        *(b"127.0.0.1:80", b"[::1]:1"),
    ],
)
def test_hosts(host: bytes) -> None:
    assert read_head(head(GET, b"Host: " + host)).headers.values(b"Host") == (host,)


@pytest.mark.timeout(10)
def test_a_long_run_of_spaces_is_parsed_fast() -> None:
    value = b"a" + b" " * 16_000 + b"b"
    assert read_head(head(GET, HOST, b"X: " + value)).headers.values(b"X") == (value,)


def test_many_different_fields_are_parsed_as_the_first() -> None:
    for number in range(3_000):
        value = b"browser/%d" % number
        parsed = read_head(head(GET, HOST, b"User-Agent: %b" % value, b"ACCEPT: */*", b"accept:"))
        assert parsed.headers.values(b"User-Agent") == (value,)
        assert parsed.headers.values(b"Accept") == (b"*/*", b"")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_head_or_a_bad_request(data: bytes) -> None:
    for text in (data, head(GET, HOST) + data):
        with contextlib.suppress(BadRequest):
            assert read_head(text).version.startswith(b"HTTP/1.")


def chunk(length: int) -> bytes:
    return b"%x\r\n%b\r\n" % (length, b"x" * length)


def decode(
    data: bytes, part_bytes: int = 1_000_000, max_bytes: int = 1_000_000
) -> tuple[bytes, bytes | None]:
    """Return a body that arrives in parts, and what follows it."""
    body = ChunkedBody(max_bytes)
    rest = None
    for start in range(0, len(data), part_bytes):
        part = data[start : start + part_bytes]
        rest = body.feed(part) if rest is None else rest + part
    return bytes(body.data), rest


@pytest.mark.parametrize("part_bytes", [1_000_000, 7, 1])
def test_a_chunked_body(part_bytes: int) -> None:
    data = chunk(3) + b'2;a="b"\r\nab\r\n' + chunk(600) + END
    assert decode(data, part_bytes) == (b"xxxab" + b"x" * 600, b"")


def test_what_follows_a_chunked_body() -> None:
    assert decode(chunk(3) + END + b"GET ") == (b"xxx", b"GET ")


@pytest.mark.parametrize("part_bytes", [1_000_000, 5])
@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(1)] * FREE_CHUNKS,
        [chunk(BYTES_PER_FURTHER_CHUNK)] * FREE_CHUNKS * 2,
        [chunk(16_384), *[chunk(1)] * (FREE_CHUNKS + 16_384 // BYTES_PER_FURTHER_CHUNK - 1)],
    ],
)
def test_as_many_chunks_as_are_allowed(chunks: list[bytes], part_bytes: int) -> None:
    length = sum(int(one.partition(b"\r")[0], 16) for one in chunks)
    assert decode(b"".join([*chunks, END]), part_bytes) == (b"x" * length, b"")


def test_one_chunk_too_many_ends_decoding() -> None:
    body = ChunkedBody(1_000_000)
    with pytest.raises(BadRequest) as raised:
        body.feed(chunk(1) * 10_000)
    assert str(raised.value) == (
        "body: expected at most 256 chunks, and one more for each 256 bytes"
    )
    # The bytes of those before allow one more.
    assert len(body.data) == FREE_CHUNKS + 1


@pytest.mark.parametrize(
    "data", [b"65\r\n", b"60\r\n" + b"x" * 96 + b"\r\n5\r\n", b"f" * 99 + b"\r\n"]
)
def test_too_large_a_chunk_is_rejected_before_it_arrives(data: bytes) -> None:
    with pytest.raises(TooLarge) as raised:
        decode(data, max_bytes=100)
    assert str(raised.value) == "body: expected at most 100 bytes"


@pytest.mark.parametrize("part_bytes", [1_000_000, 1])
@pytest.mark.parametrize(
    "data",
    [
        *(
            b"xyz\r\n",
            b"-1\r\na",
            b"+1\r\na",
            b"0x1\r\na",
            b"\r\na",
            b" 1\r\na",
            b"1 \r\na",
            b"1_0\r\n",
        ),
        *(b"\xd9\xa1\r\na", b"1\r\nab", b"1\r\na\n", b"1;a\x00\r\n", b"1;a\nb\r\n", b"1;a\\\r\n"),
        *(b"1;" + b"a" * 1_024, b"1" * 1_024, b"1" * 1_024 + b"\r\n"),
        *(b"0\r\na", b"0\r\nX-A: a\r\n\r\n", b"0\r\n\ra"),
    ],
)
def test_malformed_chunks(data: bytes, part_bytes: int) -> None:
    with pytest.raises(BadRequest, match="body: expected well-formed chunks"):
        decode(data, part_bytes)


@pytest.mark.parametrize(
    "data",
    [b"1", b"1\r", b"1\r\n", b"1\r\na", b"1\r\na\r", b"0", b"0\r\n", b"0\r\n\r", b"1\na\n0\n\n"],
)
def test_incomplete_chunks(data: bytes) -> None:
    assert decode(data)[1] is None


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=6),
    st.integers(1, 20),
    st.binary(max_size=5),
)
@example([], 2, b"\n\0\0")
def test_chunks_may_be_split_anywhere(chunks: list[bytes], part_bytes: int, noise: bytes) -> None:
    data = b"".join(b"%X\r\n%b\r\n" % (len(one), one) for one in chunks) + END
    assert decode(data, part_bytes) == (b"".join(chunks), b"")
    with contextlib.suppress(ApiError):
        decode(data[:-1] + noise, part_bytes)
