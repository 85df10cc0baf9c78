import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.errors import BadRequest
from medamad.web.server.parser import RequestHead, read_head


def head(*lines: bytes) -> bytes:
    return b"".join(line + b"\r\n" for line in lines)


def test_a_head_is_taken_apart() -> None:
    assert read_head(
        head(
            b"POST /a?b=%20 HTTP/1.1",
            b"Host: example.com",
            b"content-LENGTH:\t12 \t",
            b"X-Empty:",
            b"X-Text:  a: b  c ",
        )
    ) == RequestHead(
        b"POST",
        b"/a?b=%20",
        b"HTTP/1.1",
        [
            (b"Host", b"example.com"),
            (b"content-LENGTH", b"12"),
            (b"X-Empty", b""),
            (b"X-Text", b"a: b  c"),
        ],
        12,
        94,
    )


@pytest.mark.parametrize(
    ("lines", "length"),
    [
        ([b"GET / HTTP/1.0"], 0),
        ([b"GET / HTTP/1.0", b"Host: a"], 0),
        ([b"GET / HTTP/1.1", b"Host: a"], 0),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: 0"], 0),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: 007"], 7),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: " + b"9" * 18], int("9" * 18)),
        ([b"GET / HTTP/1.1", b"Host: a", b"Transfer-Encoding: Chunked"], None),
        ([b"get \xc3\xbc HTTP/1.1", b"Host: a", b"X: \xff\x01"], 0),
    ],
)
def test_the_length_of_a_body_is_told(lines: list[bytes], length: int | None) -> None:
    assert read_head(head(*lines)).length == length


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        ([b"GET / HTTP/1.1"], "Host: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"host: a"], "Host: "),
        ([b"GET / HTTP/1.0", b"Host: a", b"Host: a"], "Host: "),
        ([b"GET / HTTP/1.0", b"Host: "], "Host: "),
        ([b"GET / HTTP/1.1", b"Host: a b"], "Host: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: "], "Content-Length: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: +1"], "Content-Length: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: 1, 1"], "Content-Length: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: " + b"9" * 19], "Content-Length: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"Content-Length: 1", b"Content-Length: 1"], "Content-L"),
        ([b"GET / HTTP/1.1", b"Host: a", b"Transfer-Encoding: "], "Transfer-Encoding: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"Transfer-Encoding: identity"], "Transfer-Encoding: "),
        ([b"GET / HTTP/1.1", b"Host: a", b"Transfer-Encoding: gzip, chunked"], "Transfer-Enc"),
        ([b"GET / HTTP/1.0", b"Transfer-Encoding: chunked"], "Transfer-Encoding: "),
        (
            [b"GET / HTTP/1.1", b"Host: a", b"Transfer-Encoding: chunked", b"Content-Length: 1"],
            "Content-Length: ",
        ),
        ([b""], "this is not"),
        ([b"GET /"], "this is not"),
        ([b"GET / HTTP/1.2"], "this is not"),
        ([b"GET / http/1.1"], "this is not"),
        ([b"GET / HTTP/1.1 "], "this is not"),
        ([b" GET / HTTP/1.1"], "this is not"),
        ([b"GET /a b HTTP/1.1"], "this is not"),
        ([b"GET /\x7f HTTP/1.1"], "this is not"),
        ([b"GET\t/ HTTP/1.1"], "this is not"),
        ([b"GET / HTTP/1.1", b"Host"], "a header"),
        ([b"GET / HTTP/1.1", b": a"], "a header"),
        ([b"GET / HTTP/1.1", b"Host : a"], "a header"),
        ([b"GET / HTTP/1.1", b" Host: a"], "a header"),
        ([b"GET / HTTP/1.1", b"Host: a", b"\tb"], "a header"),
        ([b"GET / HTTP/1.1", b"Host: a", b""], "a header"),
        ([b"GET / HTTP/1.1", b"Host: a\nX: b"], "a header"),
        ([b"GET / HTTP/1.1", b"Host: a\rX: b"], "a header"),
        ([b"GET / HTTP/1.1", b"Host: a", b"X: \0"], "a header"),
        ([b"GET / HTTP/1.1", b"Host: a", *[b"X: y"] * 200], "expected at most 200 headers"),
    ],
)
def test_what_others_may_read_differently_is_refused(lines: list[bytes], field: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        read_head(head(*lines))
    assert str(refusal.value).startswith(field)


def test_a_long_run_of_spaces_costs_nothing() -> None:
    value = b"a" + b" " * 16_000 + b"b"
    fields = read_head(head(b"GET / HTTP/1.1", b"Host: a", b"X: " + value)).fields
    assert fields[1] == (b"X", value)


@given(st.binary(max_size=60))
def test_no_bytes_are_a_fault(data: bytes) -> None:
    for text in (data, head(b"GET / HTTP/1.1", b"Host: a") + data):
        with contextlib.suppress(BadRequest):
            assert read_head(text).version.startswith(b"HTTP/1.")
