"""Limits and timeouts of connections."""

import socket

import pytest
import pytest_twisted
from support.log_failures import LoggedFailures
from support.web.client import Connection, Unread, Wire, encoded
from support.web.daemon_in_memory import Server
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import INegotiated
from zope.interface import directlyProvides

from medamad.web.server.site import TIMED_OUT_PER_TURN

PING = encoded("GET", "/event/ping", {})


def start(server: Server) -> None:
    server.set(idle_seconds=75.0, request_seconds=20.0, answer_seconds=120.0, max_connections=2)
    server.site.startFactory()


def pass_time(server: Server, seconds: int) -> None:
    server.reactor.pump([1.0] * seconds)


def test_an_idle_connection_is_closed(server: Server) -> None:
    start(server)
    connection = Connection(server.site)
    pass_time(server, 74)
    assert not connection.wire.disconnecting
    pass_time(server, 1)
    assert connection.wire.disconnecting
    assert not connection.wire.aborted
    pass_time(server, 11)
    assert not connection.wire.aborted
    pass_time(server, 1)
    assert connection.wire.aborted
    server.site.stopFactory()
    assert server.reactor.getDelayedCalls() == []


def test_a_slow_request_must_arrive_in_time(server: Server) -> None:
    start(server)
    connection = Connection(server.site)
    pass_time(server, 50)
    for byte in PING[:19]:
        connection.push(bytes([byte]))
        pass_time(server, 1)
    assert not connection.wire.disconnecting
    pass_time(server, 1)
    assert connection.wire.disconnecting
    assert connection.wire.value() == b""


@pytest.mark.parametrize(
    "sent", [None, b"", PING[:9], encoded("POST", "/event/hit", {}, b"x")[:-1]]
)
def test_over_tls_a_slow_request_must_arrive_in_time(server: Server, sent: bytes | None) -> None:
    start(server)
    wire = Wire("203.0.113.9")
    directlyProvides(wire, INegotiated)
    connection = Connection(server.site, wire=wire)
    # That of a handshake which does not end, and of a request.
    waits_s = 20
    if sent is not None:
        pass_time(server, 11)
        connection.channel.handshakeCompleted()
        waits_s = 75
        if sent:
            connection.push(sent)
            waits_s = 20
    pass_time(server, waits_s - 1)
    assert (wire.aborted, wire.disconnecting) == (False, False)
    pass_time(server, 1)
    # A connection without a request may close at once.
    assert (wire.aborted, wire.disconnecting) == (sent != b"", sent == b"")


def test_expired_connections_are_closed_a_few_per_turn(server: Server) -> None:
    server.set(
        max_connections=TIMED_OUT_PER_TURN * 3, max_connections_per_network=TIMED_OUT_PER_TURN * 3
    )
    connections = [Connection(server.site) for _ in range(TIMED_OUT_PER_TURN * 2 + 2)]
    server.reactor.advance(75)
    server.site.sweep()
    for closed in (TIMED_OUT_PER_TURN, TIMED_OUT_PER_TURN * 2):
        assert sum(one.wire.disconnecting for one in connections) == closed
        if closed == TIMED_OUT_PER_TURN:
            # Meanwhile one sends something after all, another one goes.
            connections[-1].push(PING[:9])
            connections[-2].close()
        server.reactor.advance(0)
    assert [one for one in connections if not one.wire.disconnecting] == connections[-2:]
    assert server.reactor.getDelayedCalls() == []


@pytest_twisted.ensureDeferred
async def test_a_response_restarts_the_idle_timeout(server: Server) -> None:
    start(server)
    connection = Connection(server.site)
    for _ in range(3):
        pass_time(server, 60)
        assert (await connection.talk(PING)).status == 200
    pass_time(server, 75)
    assert connection.wire.disconnecting


def test_a_rejected_connection_is_closed_soon(server: Server) -> None:
    start(server)
    connection = Connection(server.site)
    connection.push(b"nonsense\r\n\r\n")
    assert connection.wire.half_closed
    pass_time(server, 1)
    assert not connection.wire.aborted
    pass_time(server, 1)
    assert connection.wire.aborted


@pytest_twisted.ensureDeferred
async def test_a_response_must_be_received_in_time(server: Server) -> None:
    start(server)
    server.set(receive_seconds=12.0)
    wires = [Unread(), Unread()]
    for wire in wires:
        channel = server.site.buildProtocol(wire.getPeer())
        channel.makeConnection(wire)
        channel.dataReceived(PING)
        assert b" 200 OK" in wire.value()
        # Linux reports twice the requested size.
        assert wire.socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 131_072
    wires[1].other_end.recv(10_000)
    pass_time(server, 11)
    assert [wire.aborted for wire in wires] == [False, False]
    pass_time(server, 1)
    assert [wire.aborted for wire in wires] == [True, False]
    pass_time(server, 62)
    assert not wires[1].disconnecting
    pass_time(server, 1)
    assert wires[1].disconnecting
    for wire in wires:
        wire.socket.close()
        wire.other_end.close()


def test_a_client_that_keeps_receiving_has_more_time(server: Server) -> None:
    start(server)
    server.set(receive_seconds=12.0)
    wire = Unread()
    channel = server.site.buildProtocol(wire.getPeer())
    channel.makeConnection(wire)
    channel.dataReceived(PING)
    # The transport holds part of it until the kernel accepts it.
    channel.pauseProducing()
    pass_time(server, 11)
    channel.resumeProducing()
    pass_time(server, 11)
    assert not wire.aborted
    pass_time(server, 1)
    assert wire.aborted
    wire.socket.close()
    wire.other_end.close()


@pytest_twisted.ensureDeferred
async def test_settings_take_effect_at_once(server: Server) -> None:
    connection = Connection(server.site)
    assert (await connection.talk(PING)).header("X-Api-Commit") == "c0ffee1"
    server.set(commit="c0ffee2")
    assert (await connection.talk(PING)).header("X-Api-Commit") == "c0ffee2"


@pytest_twisted.ensureDeferred
async def test_responses_are_dated_by_the_clock(server: Server) -> None:
    connection = Connection(server.site)
    assert (await connection.talk(PING)).header("Date") == "Sun, 15 Jun 2025 15:06:40 GMT"
    server.now += 1
    answer = await connection.talk(PING)
    assert answer.header("Date") == "Sun, 15 Jun 2025 15:06:41 GMT"
    assert answer.header("Server") is None


@pytest_twisted.ensureDeferred
async def test_a_response_must_begin_in_time(server: Server, website: str) -> None:
    start(server)
    owner = await server.owner()
    asked: Deferred[bytes] = Deferred()
    server.site.backend.run_query = lambda _question, **_: asked
    connection = Connection(server.site)
    headers = {"Cookie": f"_me_sess={owner.cookie}"}
    connection.push(encoded("GET", f"/website/{website}/pages", headers))
    pass_time(server, 119)
    assert not connection.wire.disconnecting
    pass_time(server, 1)
    assert connection.wire.disconnecting
    connection.close()
    assert asked.called
    assert len(server.site.connections) == 0


@pytest_twisted.ensureDeferred
async def test_an_error_outside_of_routes_is_500(
    server: Server, logged_failures: LoggedFailures
) -> None:
    def broken(_request: object) -> None:
        raise ZeroDivisionError("a secret")

    server.site.root.serve = broken
    answer = await server.browser().ask("GET", "/user")
    assert answer.status == 500
    assert answer.error == "an internal error; see the server's log"
    assert len(logged_failures.take(ZeroDivisionError)) == 1
