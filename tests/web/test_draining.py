"""Draining: how connections end when a site stops."""

from collections.abc import Callable

import pytest
import pytest_twisted
from support.web.client import Connection, Unread, encoded, over_tls
from support.web.daemon_in_memory import Server

from medamad.web.server.site import ARRIVE_S

PING = encoded("GET", "/event/ping", {})
HIT = b"POST /event/hit HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_requests_under_way_are_answered(server: Server) -> None:
    idle, busy = (Connection(server.site) for _ in range(2))
    body = b'{"e":"load","b":"b1","u":"http://example.com/","p":true,"q":true}'
    busy.push(encoded("POST", "/event/hit", {}, body))
    drained = server.site.drain()
    assert server.site.drain() is drained
    assert idle.wire.disconnecting
    assert Connection(server.site).channel is None
    assert not busy.wire.disconnecting
    idle.close()
    answer = await busy.answer()
    assert (answer.status, answer.header("Connection")) == (204, "close")
    assert not drained.called
    assert busy.wire.disconnecting
    busy.close()
    assert drained.called


@pytest.mark.parametrize(
    "part",
    [
        b"G",
        PING[:-1],
        HIT + b"Content-Length: 9\r\n\r\n",
        HIT + b"Content-Length: 9\r\n\r\n{",
        HIT + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
        b"nonsense\r\n\r\n",
        PING + b"G",
    ],
)
def test_incomplete_requests_are_closed_at_once(server: Server, part: bytes) -> None:
    connection = Connection(server.site)
    connection.push(part)
    server.reactor.advance(0)
    assert not connection.wire.disconnecting
    written = connection.wire.value()
    drained = server.site.drain()
    assert connection.wire.disconnecting
    # What was to be read before goes out yet.
    assert not connection.wire.aborted
    assert connection.wire.value() == written
    connection.close()
    assert drained.called


def test_leaving_closes_connections_after_their_next_response(server: Server) -> None:
    connections = [Connection(server.site) for _ in range(2)]
    connections[0].push(PING[:9])
    server.site.close_after_responses()
    assert not any(one.wire.disconnecting for one in connections)
    connections[0].push(PING[9:])
    connections[1].push(PING)
    for one in connections:
        assert one.wire.value().startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"\r\nConnection: close\r\n" in one.wire.value()
        assert one.wire.disconnecting


def test_data_that_has_just_arrived_is_waited_for(server: Server) -> None:
    wires = [Unread() for _ in range(3)]
    channels = [server.site.buildProtocol(wire.getPeer()) for wire in wires]
    for channel, wire in zip(channels, wires, strict=True):
        channel.makeConnection(wire)
    for wire in wires[:2]:
        wire.other_end.send(PING)
    drained = server.site.drain()
    assert [wire.disconnecting for wire in wires] == [False, False, True]
    # The reactor comes to it in its next turn.
    channels[0].dataReceived(wires[0].socket.recv(1_000))
    assert wires[0].value().startswith(b"HTTP/1.1 200 OK\r\n")
    assert [wire.disconnecting for wire in wires] == [True, False, True]
    server.reactor.advance(ARRIVE_S)
    assert [wire.disconnecting for wire in wires] == [True, True, True]
    for channel in channels:
        channel.connectionLost()
    assert drained.called
    for wire in wires:
        wire.socket.close()
        wire.other_end.close()


def test_a_close_under_way_continues(server: Server) -> None:
    connection = Connection(server.site)
    server.reactor.advance(server.site.settings.idle_seconds)
    server.site.sweep()
    assert connection.wire.disconnecting
    drained = server.site.drain()
    assert connection.wire.disconnecting
    assert not connection.wire.aborted
    connection.close()
    assert drained.called


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_pipelined_requests_are_not_accepted(server: Server) -> None:
    connection = Connection(server.site)
    hit = b'{"e":"load","b":"%d","u":"http://example.com/","p":true,"q":true}'
    connection.push(b"".join(encoded("POST", "/event/hit", {}, hit % i) for i in range(2)))
    server.site.drain()
    answer = await connection.answer()
    assert (answer.status, answer.header("Connection")) == (204, "close")
    assert connection.wire.disconnecting
    assert connection.wire.value() == b""
    await server.pipeline.queue.drained()
    (website,) = server.store.websites.all()
    assert server.store.visitors_last_day(website, int(server.now * 1000)) == 1


def test_draining_without_connections_ends_at_once(server: Server) -> None:
    assert server.site.drain().called


def silent(_connection: Connection) -> None:
    pass


def begun(connection: Connection) -> None:
    connection.push(PING[:-1])


def answered(connection: Connection) -> None:
    connection.push(PING)
    assert b" 200 OK" in connection.wire.value()


def answered_for_the_last_time(connection: Connection) -> None:
    connection.push(encoded("GET", "/event/ping", {"Connection": "close"}))
    assert connection.wire.disconnecting


def refused(connection: Connection) -> None:
    connection.push(b"nonsense\r\n\r\n")
    assert connection.wire.disconnecting


@pytest.mark.parametrize("act", [silent, begun, answered, answered_for_the_last_time, refused])
def test_over_tls_the_client_need_not_close(
    server: Server, act: Callable[[Connection], None]
) -> None:
    connection = over_tls(server.site)
    act(connection)
    drained = server.site.drain()
    assert connection.wire.disconnecting
    server.reactor.advance(ARRIVE_S)
    assert connection.wire.transport.disconnecting
    assert not connection.wire.aborted
    connection.close()
    assert drained.called
    server.reactor.advance(ARRIVE_S)
    assert server.reactor.getDelayedCalls() == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_over_tls_a_response_is_waited_for_and_a_moment_longer(server: Server) -> None:
    connection = over_tls(server.site)
    body = b'{"e":"load","b":"b1","u":"http://example.com/","p":true,"q":true}'
    connection.push(encoded("POST", "/event/hit", {}, body))
    server.site.drain()
    server.reactor.advance(ARRIVE_S)
    assert not connection.wire.disconnecting
    answer = await connection.answer()
    assert (answer.status, answer.header("Connection")) == (204, "close")
    assert (connection.wire.disconnecting, connection.wire.transport.disconnecting) == (True, False)
    server.reactor.advance(ARRIVE_S)
    assert connection.wire.transport.disconnecting


class UnreadTLS(Unread):
    """TLS that sends a close alert to a client that does not receive it."""

    def loseConnection(self) -> None:
        if not self.disconnecting:
            self.write(b"close_notify")
        super().loseConnection()

    def resumeProducing(self) -> None:
        """Continue until the other end has closed, too."""


@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
def test_over_tls_a_response_is_waited_for_until_it_is_received(
    server: Server, last: bytes
) -> None:
    wire = UnreadTLS()
    over_tls(server.site, wire).push(PING[:-2] + last + b"\r\n")
    assert b" 200 OK" in wire.value()
    server.site.drain()
    for _ in range(9):
        server.reactor.advance(ARRIVE_S)
        assert (wire.disconnecting, wire.transport.disconnecting) == (True, False)
    wire.other_end.recv(10_000)
    server.reactor.advance(ARRIVE_S)
    assert wire.transport.disconnecting
    wire.socket.close()
    wire.other_end.close()


@pytest.mark.parametrize("act", [silent, begun, answered])
def test_over_tls_a_vanished_client_with_all_its_responses_is_not_waited_for(
    server: Server, act: Callable[[Connection], None]
) -> None:
    wire = UnreadTLS()
    act(over_tls(server.site, wire))
    if wire.value():
        wire.other_end.recv(10_000)
    server.site.drain()
    assert (wire.disconnecting, wire.transport.disconnecting) == (True, False)
    server.reactor.advance(ARRIVE_S)
    assert wire.transport.disconnecting
    wire.socket.close()
    wire.other_end.close()


def test_over_tls_a_client_that_vanished_before_the_deadline_is_not_waited_for(
    server: Server,
) -> None:
    wire = UnreadTLS()
    over_tls(server.site, wire)
    server.reactor.advance(server.site.settings.idle_seconds)
    server.site.sweep()
    assert (wire.disconnecting, wire.transport.disconnecting) == (True, False)
    server.site.drain()
    assert wire.transport.disconnecting
    wire.socket.close()
    wire.other_end.close()


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_over_tls_a_response_at_the_deadline_is_waited_for(
    server: Server,
) -> None:
    wire = UnreadTLS()
    connection = over_tls(server.site, wire)
    body = b'{"e":"load","b":"b1","u":"http://example.com/","p":true,"q":true}'
    connection.push(encoded("POST", "/event/hit", {}, body))
    connection.channel.time_out()
    wire.clear()
    assert wire.disconnecting
    assert (await connection.answer()).status == 204
    server.site.drain()
    server.reactor.advance(ARRIVE_S)
    assert not wire.transport.disconnecting
    wire.socket.close()
    wire.other_end.close()


def test_over_tls_data_that_is_still_arriving_is_read(server: Server) -> None:
    wire = Unread()
    connection = over_tls(server.site, wire)
    server.site.drain()
    wire.other_end.send(b"x")
    server.reactor.advance(ARRIVE_S)
    assert (wire.disconnecting, wire.transport.disconnecting) == (True, False)
    connection.push(wire.socket.recv(10))
    server.reactor.advance(ARRIVE_S)
    assert wire.transport.disconnecting
    wire.socket.close()
    wire.other_end.close()
