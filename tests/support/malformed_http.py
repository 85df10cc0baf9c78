"""Malformed and unusual HTTP requests, of the kinds that have broken other servers."""

from collections.abc import Iterator

HOST = b"Host: stats.example.com\r\n"
HIT = b"POST /api/event/hit HTTP/1.1\r\n" + HOST
PING = b"GET /api/event/ping HTTP/1.1\r\n" + HOST
BODY = b'{"e":"unload","b":"x","m":5}'
CONTROLS = (*range(0x09), *range(0x0A, 0x20), 0x7F)
CHUNKED = HIT + b"Transfer-Encoding: chunked\r\n\r\n"


def lines(*several: bytes) -> bytes:
    return b"".join(line + b"\r\n" for line in (*several, b""))


def _first_lines() -> Iterator[tuple[str, bytes]]:
    for name, line in {
        "no target": b"GET HTTP/1.1",
        "no version": b"GET /api/event/ping",
        "only a method": b"GET",
        "four words": b"GET /api/event/ping HTTP/1.1 x",
        "two spaces": b"GET  /api/event/ping HTTP/1.1",
        "two spaces before the version": b"GET /api/event/ping  HTTP/1.1",
        "a space first": b" GET /api/event/ping HTTP/1.1",
        "a space last": b"GET /api/event/ping HTTP/1.1 ",
        "a tab": b"GET\t/api/event/ping\tHTTP/1.1",
        "a space in the target": b"GET /api/event/pi ng HTTP/1.1",
        "lower-case version": b"GET /api/event/ping http/1.1",
        "HTTP/0.9": b"GET /api/event/ping HTTP/0.9",
        "HTTP/1.2": b"GET /api/event/ping HTTP/1.2",
        "HTTP/2.0": b"GET /api/event/ping HTTP/2.0",
        "HTTP/1.10": b"GET /api/event/ping HTTP/1.10",
        "HTTP/01.1": b"GET /api/event/ping HTTP/01.1",
        "HTTP/1,1": b"GET /api/event/ping HTTP/1,1",
        "HTTP/1": b"GET /api/event/ping HTTP/1",
        "HTTP/": b"GET /api/event/ping HTTP/",
        "HTTPS/1.1": b"GET /api/event/ping HTTPS/1.1",
        "SIP": b"OPTIONS sip:a@b SIP/2.0",
        "RTSP": b"OPTIONS / RTSP/1.0",
        "a bracket in the method": b"G(T /api/event/ping HTTP/1.1",
        "a comma in the method": b"GE,T /api/event/ping HTTP/1.1",
        "a letter not of ASCII in the method": b"G\xc3\x8bT /api/event/ping HTTP/1.1",
        "quotes around the method": b'"GET" /api/event/ping HTTP/1.1',
        "the preface of HTTP/2": b"PRI * HTTP/2.0",
        "an answer": b"HTTP/1.1 200 OK",
        "a shell": b"() { :; }; echo /api HTTP/1.1",
        "a target too long": b"GET /" + b"a" * 17_000 + b" HTTP/1.1",
        "a query too long": b"GET /?" + b"a=b&" * 5_000 + b" HTTP/1.1",
        "a method too long": b"G" * 17_000 + b" / HTTP/1.1",
    }.items():
        yield f"first line: {name}", lines(line, b"Host: a")
    for control in CONTROLS:
        target = b"/api/%cevent" % control
        yield (
            f"first line: 0x{control:02x} in the target",
            lines(b"GET " + target + b" HTTP/1.1", b"Host: a"),
        )


def _hosts() -> Iterator[tuple[str, bytes]]:
    get = b"GET /api/event/ping HTTP/1.1"
    yield "host: none", lines(get)
    yield "host: two", lines(get, b"Host: a", b"Host: b")
    yield "host: two that agree", lines(get, b"Host: a", b"host: a")
    yield "host: two of HTTP/1.0", lines(get[:-1] + b"0", b"Host: a", b"Host: b")
    for name, host in {
        "empty": b"",
        "a slash": b"a/b",
        "a user": b"user@a",
        "a user and a password": b"user:pass@a",
        "a query": b"a?b",
        "a fragment": b"a#b",
        "two labels without a name between": b"a..b",
        "a dot first": b".a",
        "a long label": b"a" * 64,
        "too long": b"a." * 140,
        "a port of six digits": b"a:123456",
        "a port of letters": b"a:http",
        "two ports": b"a:80:80",
        "a list": b"a, b",
        "a space": b"a b",
        "not of ASCII": b"\xc3\xbc.example",
        "an escape": b"a%2e",
        "half a bracket": b"[::1",
        "nothing in brackets": b"[]",
        "a zone": b"[fe80::1%25eth0]",
        "a quote": b'"a"',
        "markup": b"<script>alert(1)</script>",
        "a backslash": b"a\\b",
        "an asterisk": b"*",
    }.items():
        yield f"host: {name}", lines(get, b"Host: " + host)


def _headers() -> Iterator[tuple[str, bytes]]:
    get = b"GET /api/event/ping HTTP/1.1"
    for name, header in {
        "no colon": b"nonsense",
        "no name": b": a",
        "a space before the colon": b"X-A : a",
        "a tab before the colon": b"X-A\t: a",
        "a space in the name": b"X A: a",
        "a space first": b" X-A: a",
        "folded": b"X-A: a\r\n b",
        "folded by a tab": b"X-A: a\r\n\tb",
        "folded with nothing": b"X-A: a\r\n ",
        "a line feed alone": b"X-A: a\nX-B: b",
        "a carriage return alone": b"X-A: a\rX-B: b",
        "a carriage return twice": b"X-A: a\r\r",
        "NUL in the value": b"X-A: a\0b",
        "NUL in the name": b"X\0A: a",
        "a name not of ASCII": b"X-\xc3\xbc: a",
        "brackets in the name": b"X(A): a",
        "quotes in the name": b'"X-A": a',
        "a slash in the name": b"X/A: a",
        "a name of control characters": b"X\x01\x02: a",
        "too many": b"\r\n".join([b"X-A: a"] * 200),
        "too many short ones": b"\r\n".join([b"a:"] * 3_000),
        "one too long": b"X-A: " + b"a" * 17_000,
        "a name too long": b"a" * 17_000 + b": a",
    }.items():
        yield f"header: {name}", lines(get, b"Host: a", header)
    yield "header: folded first", lines(get, b" Host: a")
    yield "header: the host folded", lines(get, b"Host:", b" a")


def _lengths() -> Iterator[tuple[str, bytes]]:
    for name, length in {
        "empty": b"",
        "negative": b"-1",
        "with a sign": b"+28",
        "hexadecimal": b"0x1c",
        "a fraction": b"28.0",
        "exponent": b"2e1",
        "a word": b"all",
        "with a space": b"2 8",
        "with an underscore": b"2_8",
        "a list": b"28, 28",
        "a list that disagrees": b"28, 29",
        "digits not of ASCII": "٢٨".encode(),
        "superscript": b"\xb2\xb8",
        "5,000 digits": b"9" * 5_000,
        "19 digits": b"9" * 19,
        "2 to the 64th": b"18446744073709551616",
        "more than allowed": b"16385",
        "much more than allowed": b"9" * 18,
        "quoted": b'"28"',
        "semicolon": b"28;",
    }.items():
        yield f"length: {name}", HIT + b"Content-Length: " + length + b"\r\n\r\n" + BODY
    twice = b"Content-Length: %d\r\ncontent-length: %d\r\n\r\n"
    yield "length: two that agree", HIT + twice % (28, 28) + BODY
    yield "length: two that disagree", HIT + twice % (28, 5) + BODY
    yield "length: in two lines", HIT + b"Content-Length:\r\n 28\r\n\r\n" + BODY


def _encodings() -> Iterator[tuple[str, bytes]]:
    whole = b"1c\r\n" + BODY + b"\r\n0\r\n\r\n"
    for name, encoding in {
        "empty": b"",
        "identity": b"identity",
        "gzip": b"gzip",
        "gzip and chunked": b"gzip, chunked",
        "chunked and gzip": b"chunked, gzip",
        "chunked and identity": b"chunked, identity",
        "chunked twice": b"chunked, chunked",
        "quoted": b'"chunked"',
        "with a parameter": b"chunked;q=1",
        "a vertical tab": b"\x0bchunked",
        "cut": b"chunke",
        "longer": b"xchunked",
        "a comma": b"chunked,",
        "NUL": b"chunked\0",
    }.items():
        yield f"encoding: {name}", HIT + b"Transfer-Encoding: " + encoding + b"\r\n\r\n" + whole
    chunked = b"Transfer-Encoding: chunked\r\n"
    yield "encoding: beside a length", HIT + chunked + b"Content-Length: 28\r\n\r\n" + whole
    yield "encoding: after a length", HIT + b"Content-Length: 5\r\n" + chunked + b"\r\n" + whole
    yield "encoding: two headers", HIT + chunked + chunked + b"\r\n" + whole
    yield "encoding: folded", HIT + b"Transfer-Encoding:\r\n chunked\r\n\r\n" + whole
    yield "encoding: a space before the colon", HIT + b"Transfer-Encoding : chunked\r\n\r\n" + whole
    yield (
        "encoding: of HTTP/1.0",
        HIT.replace(b"HTTP/1.1", b"HTTP/1.0") + chunked + b"\r\n" + whole,
    )


def _chunks() -> Iterator[tuple[str, bytes]]:
    for name, chunks in {
        "no number": b"xyz\r\n",
        "negative": b"-1\r\na\r\n",
        "a sign": b"+1\r\na\r\n",
        "0x": b"0x1\r\na\r\n",
        "empty": b"\r\na\r\n",
        "a space first": b" 1\r\na\r\n",
        "a space last": b"1 \r\na\r\n",
        "an underscore": b"1_0\r\n",
        "line feeds alone": b"1\na\n0\n\n" + b"\n" * 1_024,
        "digits not of ASCII": b"\xd9\xa1\r\na\r\n",
        "longer than stated": b"1\r\nab\r\n0\r\n\r\n",
        "shorter than stated": b"5\r\nab\r\n0\r\n\r\n",
        "control characters in an extension": b"1;a\x00b\r\na\r\n",
        "a line feed in an extension": b"1;a\nb\r\na\r\n",
        "an endless extension": b"1;" + b"a" * 20_000,
        "an endless number": b"1" * 20_000,
        "a huge number": b"f" * 16 + b"\r\n" + b"a" * 17_000,
        "too large": b"4001\r\n" + b"a" * 0x4001 + b"\r\n",
        "too large together": (b"1000\r\n" + b"a" * 0x1000 + b"\r\n") * 5,
        "too large one by one": b"1\r\na\r\n" * 16_385,
        "a number that no body can have": b"F" * 20 + b"\r\n",
        "one byte more than allowed": b"4001\r\n",
        "a request as a trailer": b"0\r\nGET / HTTP/1.1\r\n\r\n",
        "a trailer": b"2\r\n{}\r\n0\r\na: b\r\n\r\n",
        "half a trailer": b"2\r\n{}\r\n0\r\na: b\r\n",
        "a letter of a trailer": b"2\r\n{}\r\n0\r\na",
        "endless trailers": b"0\r\n" + b"a: b\r\n" * 20_000,
        "a trailer too long": b"0\r\na: " + b"b" * 100_000,
    }.items():
        yield f"chunk: {name}", CHUNKED + chunks


def _other_protocols() -> Iterator[tuple[str, bytes]]:
    yield from {
        "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) + b"\r\n\r\n",
        "SSH": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "SMTP": b"EHLO example.com\r\nMAIL FROM:<a@example.com>\r\n\r\n",
        "Redis": b"*1\r\n$4\r\nINFO\r\n\r\n",
        "PROXY 1": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "PROXY 2": b"\r\n\r\n\0\r\nQUIT\n" + bytes(40) + b"\r\n\r\n",
        "empty lines": b"\r\n\r\n\r\n\r\n",
        "zeros": bytes(20_000),
        "ones": b"\xff" * 20_000,
        "spaces": b" " * 20_000,
        "line feeds": b"\n" * 20_000,
        "carriage returns": b"\r" * 20_000,
        "one line without an end": b"a" * 20_000,
        "HTTP with line feeds alone": PING.replace(b"\r\n", b"\n") + b"\n" + b" " * 17_000,
    }.items()


REFUSED = dict(
    case
    for table in (
        _first_lines,
        _hosts,
        _headers,
        _lengths,
        _encodings,
        _chunks,
        _other_protocols,
    )
    for case in table()
)
"""What is to be answered 4xx, and then closed."""

UNFINISHED = {
    "nothing": b"",
    "a letter": b"G",
    "half a line": b"GET /api/event",
    "no end of line": b"GET /api/event/ping HTTP/1.1",
    "half an end of line": b"GET /api/event/ping HTTP/1.1\r",
    "no host yet": b"GET /api/event/ping HTTP/1.1\r\n",
    "half a header": b"GET /api/event/ping HTTP/1.1\r\nHo",
    "no end of the head": PING,
    "half an end of the head": PING + b"\r",
    "line feeds alone": PING.replace(b"\r\n", b"\n") + b"\n",
    "no body": HIT + b"Content-Length: 28\r\n\r\n",
    "half a body": HIT + b"Content-Length: 28\r\n\r\n" + BODY[:10],
    "all but the last of a body": HIT + b"Content-Length: 28\r\n\r\n" + BODY[:-1],
    "no chunk": CHUNKED,
    "half a number": CHUNKED + b"1",
    "chunks with line feeds alone": CHUNKED + b"1\na\n0\n\n",
    "half a chunk": CHUNKED + b"5\r\nab",
    "no end of a chunk": CHUNKED + b"2\r\n{}",
    "no last chunk": CHUNKED + b"2\r\n{}\r\n",
    "half a last chunk": CHUNKED + b"2\r\n{}\r\n0\r\n",
    "half an end of the last chunk": CHUNKED + b"2\r\n{}\r\n0\r\n\r",
    "half a 100": HIT + b"Content-Length: 28\r\nExpect: 100-continue\r\n\r\n",
}
"""Incomplete requests, which are dropped when the client disconnects."""

SOUND_BUT_REFUSED = {
    "an unknown method": (lines(b"BREW /api/event/ping HTTP/1.1", b"Host: a"), 405),
    "a method in lower case": (lines(b"get /api/event/ping HTTP/1.1", b"Host: a"), 405),
    "CONNECT": (lines(b"CONNECT example.com:443 HTTP/1.1", b"Host: a"), 404),
    "CONNECT to ourselves": (lines(b"CONNECT /api/event/hit HTTP/1.1", b"Host: a"), 405),
    "TRACE": (lines(b"TRACE /api/event/hit HTTP/1.1", b"Host: a"), 405),
    "an asterisk": (lines(b"GET * HTTP/1.1", b"Host: a"), 404),
    "a target without a slash": (lines(b"GET api/event/ping HTTP/1.1", b"Host: a"), 404),
    "another scheme": (lines(b"GET ftp://a/api/event/ping HTTP/1.1", b"Host: a"), 404),
    "a scheme alone": (lines(b"GET http:// HTTP/1.1", b"Host: a"), 404),
    "a fragment": (lines(b"GET /api/event/ping#a HTTP/1.1", b"Host: a"), 404),
    "letters not of UTF-8": (lines(b"GET /\xff\xfe HTTP/1.1", b"Host: a"), 400),
    "an escape not of UTF-8": (lines(b"GET /%ff HTTP/1.1", b"Host: a"), 400),
    "an escape of one digit": (lines(b"GET /%2 HTTP/1.1", b"Host: a"), 400),
    "a percent alone": (lines(b"GET /% HTTP/1.1", b"Host: a"), 400),
    "an overlong form": (lines(b"GET /%c0%ae%c0%ae/ HTTP/1.1", b"Host: a"), 400),
    "NUL in the path": (lines(b"GET /%00 HTTP/1.1", b"Host: a"), 404),
    "up and out": (lines(b"GET /../../etc/passwd HTTP/1.1", b"Host: a"), 404),
    "up and out, escaped": (lines(b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1", b"Host: a"), 404),
    "up and out of the assets": (
        lines(b"GET /dashboard/assets/..%2f..%2f..%2fconfig.py HTTP/1.1", b"Host: a"),
        404,
    ),
    "backslashes": (lines(b"GET /..\\..\\etc\\passwd HTTP/1.1", b"Host: a"), 404),
    "many slashes": (lines(b"GET " + b"/" * 8_000 + b" HTTP/1.1", b"Host: a"), 404),
    "many dots": (lines(b"GET " + b"/." * 4_000 + b" HTTP/1.1", b"Host: a"), 404),
    "many parameters": (
        lines(b"GET /api/websites?" + b"a=b&" * 4_000 + b" HTTP/1.1", b"Host: a"),
        401,
    ),
    "a hit without a body": (HIT + b"\r\n", 400),
    "a hit in an empty chunked body": (CHUNKED + b"0\r\n\r\n", 400),
    "a multipart form": (
        HIT
        + b"Content-Type: multipart/form-data; boundary=a\r\nContent-Length: 9\r\n\r\n"
        + b"--a--\r\n\r\n",
        400,
    ),
}
"""Valid HTTP that gets this status; the connection stays open."""
