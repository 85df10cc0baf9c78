"""Malformed HTTP and unusual headers, over sockets, to the real daemon."""

import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection, HTTPResponse
from itertools import product

import pytest
from support.daemon import Client, Daemon, running
from support.malformed_http import PING, REFUSED, SOUND_BUT_REFUSED, UNFINISHED

pytestmark = pytest.mark.daemon

PATIENCE_S = 30
TRUSTING = '[server]\ntrusted_proxies = ["127.0.0.0/8"]\n'

HEADERS = (
    "Accept",
    "Accept-Encoding",
    "Accept-Language",
    "Access-Control-Request-Headers",
    "Access-Control-Request-Method",
    "Authorization",
    "Connection",
    "Content-Type",
    "Cookie",
    "Forwarded",
    "If-Modified-Since",
    "If-None-Match",
    "Origin",
    "Range",
    "Referer",
    "Sec-Fetch-Site",
    "Sec-GPC",
    "TE",
    "Upgrade",
    "User-Agent",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
)
VALUES = (
    b"",
    b"a" * 15_000,
    b"\xff\xfe\xfd",
    "\N{GRINNING FACE}".encode(),
    b"\x01\x02\x1f\x7f",
    b"," * 5_000,
    b";" * 5_000,
    b"=" * 5_000,
    b'"' * 5_001,
    b"\\" * 5_001,
    b"(" * 5_001,
    b"%" * 5_000,
    b"a=b;" * 3_000,
    b"_me_sess=;_me_sess=\xff; _me_sess",
    b"a;q=nan, b;q=1e999, c;q=-1, d;q=",
    b"de-" * 4_000,
    b"*",
    b"null",
    b'[::1]:99999, 1.2.3.4.5, for="[::1',
    b"http://[::1",
    b"bytes=5-2,-,9-",
    b'W/"' + b"a" * 9_000,
    b"1" * 5_000,
    b"<script>alert(1)</script>",
    b"Mon, 99 Foo 99999999999 99:99:99 GMT",
)
TARGETS = (
    ("POST", "/api/event/hit"),
    ("GET", "/api/event/ping"),
    ("GET", "/event/pixel.gif?u=https%3A%2F%2Fexample.com%2F"),
    ("POST", "/api/auth/login"),
    ("GET", "/api/websites"),
    ("GET", "/script.js"),
    ("GET", "/dashboard/"),
    ("OPTIONS", "/api/websites"),
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("malformed")
    with running(folder, configuration=TRUSTING) as daemon:
        daemon.client().add_website("example.com")
        yield daemon


@pytest.fixture(autouse=True)
def still_served(daemon: Daemon) -> Iterator[None]:
    """Check that the next request is answered and that the log has no traceback."""
    yield
    assert Client(daemon.port).request("GET", "/api/event/ping").status == 200
    assert "Traceback" not in daemon.log


def connect(daemon: Daemon) -> socket.socket:
    return socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE_S)


def everything(sock: socket.socket) -> bytes:
    """Return all that comes until the other end closes."""
    received = b""
    while part := sock.recv(65_536):
        received += part
    return received


def test_there_are_many_cases() -> None:
    assert len(REFUSED) + len(UNFINISHED) + len(SOUND_BUT_REFUSED) > 200


@pytest.mark.parametrize("name", REFUSED)
def test_malformed_requests_are_rejected_and_closed(daemon: Daemon, name: str) -> None:
    with connect(daemon) as sock:
        sock.sendall(REFUSED[name])
        answer = everything(sock)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")), answer
    assert b"\r\nConnection: close" in head
    # One response, whatever followed the first line.
    assert body.startswith(b'{"error":{"code":4')
    assert b"HTTP/1.1 " not in body


@pytest.mark.parametrize("name", UNFINISHED)
def test_incomplete_requests_are_dropped(daemon: Daemon, name: str) -> None:
    with connect(daemon) as sock:
        sock.sendall(UNFINISHED[name])
        sock.shutdown(socket.SHUT_WR)
        assert everything(sock) in (b"", b"HTTP/1.1 100 Continue\r\n\r\n")


@pytest.mark.parametrize("name", SOUND_BUT_REFUSED)
def test_unusual_requests_keep_the_connection_open(daemon: Daemon, name: str) -> None:
    data, status = SOUND_BUT_REFUSED[name]
    with connect(daemon) as sock:
        for _ in range(2):
            sock.sendall(data)
            with HTTPResponse(sock) as answer:
                answer.begin()
                assert answer.status == status
                assert answer.getheader("Content-Type") == "application/json"
                assert answer.read().startswith(b'{"error":{"code":%d' % status)
        sock.sendall(PING + b"\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("method", "target"), TARGETS)
def test_unusual_headers_are_accepted(daemon: Daemon, method: str, target: str, step: int) -> None:
    """Send every header with every value, or each target another part of them."""
    first = TARGETS.index((method, target)) % step
    body = b'{"e":"load","b":"%d","u":"https://example.com/","p":true,"q":true}'
    with closing(HTTPConnection("127.0.0.1", daemon.port, timeout=PATIENCE_S)) as connection:
        for number, (name, value) in enumerate(list(product(HEADERS, VALUES))[first::step]):
            connection.putrequest(method, target, skip_accept_encoding=True)
            if method == "POST":
                connection.putheader("Content-Length", str(len(body % number)))
            # The library would not send some of them.
            connection._buffer.append(name.encode() + b": " + value)
            connection.endheaders(body % number if method == "POST" else None)
            with connection.getresponse() as answer:
                answer.read()
                assert answer.status < 500, (name, value)
