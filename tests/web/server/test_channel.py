"""Connections before they have a complete request, and what is rejected there."""

import re
import sys
from collections.abc import Callable

import pytest
import pytest_twisted
from support.malformed_http import REFUSED
from support.web.client import Connection, Kernel, answers, encoded, over_tls
from support.web.daemon_in_memory import Server
from twisted.internet.protocol import Factory, Protocol
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory

from medamad.web.server.sockets import send_at_once

PING = "/event/ping"


@pytest.mark.parametrize("at_once", [100_000, 7, 1])
@pytest_twisted.ensureDeferred
async def test_malformed_requests_are_rejected(server: Server, at_once: int) -> None:
    for name, request in REFUSED.items():
        connection = Connection(server.site)
        # What follows on the same connection is ignored.
        data = request + encoded("GET", PING, {})
        for start in range(0, len(data), at_once):
            connection.push(data[start : start + at_once])
        answer = await connection.answer()
        assert answer.status in {400, 413}, name
        assert answer.error, name
        assert answer.header("Connection") == "close", name
        assert connection.wire.half_closed, name
        assert connection.wire.value() == b"", name
        connection.close()


@pytest_twisted.ensureDeferred
async def test_over_tls_a_rejected_connection_is_closed_with_a_tls_alert(server: Server) -> None:
    connection = over_tls(server.site)
    assert (await connection.talk(b"nonsense\r\n\r\n")).status == 400
    assert connection.wire.disconnecting
    assert not connection.wire.half_closed
    check_drops(connection)


def check_drops(connection: Connection) -> None:
    """Check that of what is sent on nothing is kept, and that there is a bound."""
    data = bytes(100_000)
    references = sys.getrefcount(data)
    for _ in range(10):
        connection.push(data)
    assert sys.getrefcount(data) == references
    assert not connection.wire.aborted
    connection.push(b"x")
    assert connection.wire.aborted


def closed_by_itself(_house: Server, connection: Connection) -> None:
    connection.push(encoded("GET", PING, {"Connection": "close"}))
    assert answers(connection) == 1


def closed_for_its_silence(server: Server, _connection: Connection) -> None:
    server.reactor.advance(server.site.settings.idle_seconds)
    server.site.sweep()


def closed_by_a_stop(server: Server, _connection: Connection) -> None:
    server.site.drain()


@pytest.mark.parametrize("close", [closed_by_itself, closed_for_its_silence, closed_by_a_stop])
def test_over_tls_a_closed_connection_is_dropped_if_it_keeps_sending(
    server: Server, close: Callable[[Server, Connection], None]
) -> None:
    connection = over_tls(server.site)
    close(server, connection)
    assert connection.wire.disconnecting
    # Sending more does not extend its time.
    for _ in range(2):
        assert not connection.wire.aborted
        connection.push(b"x")
        server.reactor.advance(server.site.settings.receive_seconds / 2)
        server.site.sweep()
    assert connection.wire.aborted


def test_over_tls_a_closed_connection_is_dropped_if_it_sends_much(server: Server) -> None:
    connection = over_tls(server.site)
    closed_by_itself(server, connection)
    check_drops(connection)


@pytest.mark.parametrize(
    "host",
    [
        "a",
        "stats.example.com",
        "stats.example.com.",
        "a:8080",
        "a:",
        "my_host",
        "127.0.0.1:80",
        "[::1]:1",
    ],
)
@pytest_twisted.ensureDeferred
async def test_valid_hosts_are_accepted(server: Server, host: str) -> None:
    answer = await Connection(server.site).talk(encoded("GET", PING, {"Host": host}))
    assert answer.status == 200


@pytest_twisted.ensureDeferred
async def test_http_1_0_needs_no_host_and_closes_the_connection(server: Server) -> None:
    for peer in ("203.0.113.9", None):
        connection = Connection(server.site, peer)
        answer = await connection.talk(b"GET /openapi.yaml HTTP/1.0\r\n\r\n")
        assert answer.status == 200
        assert answer.header("Connection") == "close"
        assert connection.wire.disconnecting


@pytest_twisted.ensureDeferred
async def test_a_connection_serves_many_requests(server: Server) -> None:
    connection = Connection(server.site)
    for _ in range(3):
        answer = await connection.talk(encoded("GET", PING, {}))
        assert (answer.status, answer.header("Connection")) == (200, None)
    answer = await connection.talk(encoded("GET", PING, {"Connection": "close"}))
    assert answer.header("Connection") == "close"
    assert connection.wire.disconnecting


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ([b"close"], False),
        ([b"Close"], False),
        ([b"close,TE"], False),
        ([b"keep-alive , close"], False),
        ([b"TE", b"close"], False),
        ([], True),
        ([b"keep-alive"], True),
        ([b"keep-alive, Upgrade", b""], True),
        ([b"closed, un-close"], True),
        ([b"," * 4_000 + b" " * 4_000], True),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_client_may_ask_to_close_the_connection(
    server: Server, lines: list[bytes], stays: bool
) -> None:
    fields = b"".join(b"Connection: %b\r\n" % line for line in lines)
    connection = Connection(server.site)
    answer = await connection.talk(b"GET /event/ping HTTP/1.1\r\nHost: a\r\n%b\r\n" % fields)
    assert answer.status == 200
    assert answer.header("Connection") == (None if stays else "close")
    assert connection.wire.disconnecting is not stays


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    connection = Connection(server.site)
    hit = b'{"e":"load","b":"%d","u":"http://example.com/","p":true,"q":true}'
    data = b"".join(encoded("POST", "/event/hit", {}, hit % i) for i in range(3))
    connection.push(data + encoded("GET", "/nothing", {}) + encoded("GET", PING, {}))
    statuses = []
    for _ in range(5):
        statuses.append((await connection.answer()).status)
        server.reactor.advance(0)
    assert statuses == [204, 204, 204, 404, 200]


@pytest_twisted.ensureDeferred
async def test_a_request_may_arrive_byte_by_byte(server: Server) -> None:
    connection = Connection(server.site)
    for byte in b"\r\n" + encoded("GET", PING, {}):
        connection.push(bytes([byte]))
    assert (await connection.answer()).status == 200


@pytest_twisted.ensureDeferred
async def test_too_large_a_body_is_rejected_before_it_is_read(server: Server) -> None:
    server.set(max_body_bytes=100)
    for headers, body in [
        ({"Content-Length": "101"}, b""),
        ({"Content-Length": "101", "Expect": "100-continue"}, b""),
        ({"Content-Length": "9" * 18}, b"x" * 50),
        (
            {"Transfer-Encoding": "chunked", "Content-Length": ""},
            b"60\r\n" + b"x" * 96 + b"\r\n5\r\nabcde\r\n",
        ),
    ]:
        if headers.get("Content-Length") == "":
            del headers["Content-Length"]
        connection = Connection(server.site)
        request = encoded("POST", "/event/hit", headers) + body
        connection.push(request)
        data = connection.wire.value()
        assert b"100 Continue" not in data
        answer = await connection.answer("POST")
        assert answer.status == 413
        assert answer.error == "body: expected at most 100 bytes"
        # It may keep sending for a while, so that it gets to read the response.
        connection.push(b"x" * 500_000)
        assert not connection.wire.aborted
        connection.push(b"x" * 500_001)
        assert connection.wire.aborted


@pytest_twisted.ensureDeferred
async def test_a_body_of_the_maximum_size_is_read(server: Server) -> None:
    server.set(max_body_bytes=100)
    for data in (
        encoded("POST", "/event/hit", {}, b"x" * 100),
        encoded("POST", "/event/hit", {"Transfer-Encoding": "chunked"})
        + b"32\r\n"
        + b"x" * 50
        + b"\r\n32\r\n"
        + b"x" * 50
        + b"\r\n0\r\n\r\n",
    ):
        answer = await Connection(server.site).talk(data, "POST")
        assert answer.status == 400
        assert "JSON" in answer.error


@pytest_twisted.ensureDeferred
async def test_a_body_in_too_many_chunks_is_rejected(server: Server) -> None:
    head = encoded("POST", "/event/hit", {"Transfer-Encoding": "chunked"})
    for chunks in (b"1\r\n{\r\n" * 10_000, b"1\r\n{\r\n" * 258):
        connection = Connection(server.site)
        answer = await connection.talk(head + chunks, "POST")
        assert answer.status == 400
        assert answer.error.startswith("body: expected at most 256 chunks")
        assert answer.header("Connection") == "close"
        assert connection.wire.half_closed


@pytest_twisted.ensureDeferred
async def test_a_100_is_sent_if_expected(server: Server) -> None:
    connection = Connection(server.site)
    connection.push(
        encoded("POST", "/event/hit", {"Content-Length": "2", "Expect": "100-continue"})
    )
    assert connection.wire.value() == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert (await connection.talk(b"{}", "POST")).status == 400


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_response_to_a_closed_connection_is_dropped(server: Server) -> None:
    connection = Connection(server.site)
    body = b'{"e":"load","b":"gone","u":"http://example.com/","p":true,"q":true}'
    connection.push(encoded("POST", "/event/hit", {}, body))
    connection.close()
    await server.pipeline.queue.drained()
    assert connection.wire.value() == b""
    assert (
        server.store.read(server.store.websites.all()[0], lambda seen: len(list(seen.parts))) == 1
    )


@pytest.mark.parametrize("room", [100_000, 100, 10, 0, -1])
def test_what_is_not_sent_at_once_is_sent_in_order(server: Server, room: int) -> None:
    kernel = Kernel(room)
    connection = Connection(server.site, wire=kernel)
    expected = {"Content-Length": "2", "Expect": "100-continue"}
    connection.push(encoded("POST", "/event/hit", expected) + b"{}")
    connection.push(encoded("GET", PING, {}))
    sent = kernel.value() + kernel.waits
    lines = re.findall(rb"HTTP/1.1 (\d+)", sent)
    assert lines == [b"100", b"400", b"200"]
    assert len(kernel.value()) == min(max(room, 0), len(sent))


def test_nothing_is_sent_past_tls() -> None:
    """Its transport passes on what it lacks to the one below."""
    kernel = Kernel(100)
    transport = ProtocolWrapper(WrappingFactory(Factory()), Protocol())
    transport.transport = kernel
    assert transport.writeSomeData is not None
    assert send_at_once(transport, b"secret") == 0
    assert send_at_once(kernel, b"public") == len(b"public")
    assert kernel.value() == b"public"
