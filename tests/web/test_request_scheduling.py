"""How requests are scheduled over reactor turns."""

from ipaddress import ip_network
from typing import get_args

import pytest
from attrs import define
from support.web.client import Connection, answers, encoded, over_tls
from support.web.daemon_in_memory import Server

from medamad.ingest.networks import Networks
from medamad.web.server.admission import HANDSHAKES_PER_TURN, REQUESTS_PER_TURN
from medamad.web.server.channel import SHORT_BYTES
from medamad.web.settings import ProxyHeader

PING = "/event/ping"


def turn(server: Server) -> None:
    """Run the calls that are due, but not those they schedule, as in one reactor turn."""
    for call in list(server.reactor.getDelayedCalls()):
        if call.getTime() <= server.reactor.seconds():
            func, args = call.func, call.args
            call.cancel()
            func(*args)


def ahead(count: int) -> bytes:
    return encoded("GET", PING, {}) * count


def test_one_pipelined_request_is_answered_per_turn(server: Server) -> None:
    connection = Connection(server.site)
    connection.push(ahead(3) + encoded("GET", PING, {})[:9])
    for answered in (1, 2, 3):
        assert answers(connection) == answered
        # Meanwhile no more is read.
        assert connection.wire.producerState == "paused"
        turn(server)
    assert connection.wire.producerState == "producing"
    connection.push(encoded("GET", PING, {})[9:] + b"nonsense\r\n\r\n")
    assert answers(connection) == 4
    turn(server)
    assert b" 400 Bad Request" in connection.wire.value()
    assert connection.wire.producerState == "producing"


def test_pipelined_requests_of_all_connections_are_bounded_per_turn(server: Server) -> None:
    # Connections of a proxy, so that each counts as its own network.
    connections = [Connection(server.site, "127.0.0.1") for _ in range(REQUESTS_PER_TURN * 2)]
    for connection in connections:
        connection.push(ahead(2))
    for answered in (1, 2, 3, 4):
        assert answers(*connections) == answered * REQUESTS_PER_TURN
        turn(server)
    assert [answers(one) for one in connections] == [2] * len(connections)
    turn(server)
    assert not [one for one in connections if one.wire.producerState == "paused"]


@pytest.mark.parametrize(
    "parts",
    [
        [encoded("GET", PING, {"X-A": "a" * SHORT_BYTES})],
        [encoded("GET", PING, {"X-A": "a" * SHORT_BYTES})[:-1], b"\n"],
        [encoded("POST", "/event/hit", {}, b"x" * SHORT_BYTES)],
        [encoded("POST", "/event/hit", {}, b"x" * SHORT_BYTES)[:-1], b"x"],
        [encoded("POST", "/event/hit", {"Transfer-Encoding": "chunked"}) + b"1\r\nx\r\n0\r\n\r\n"],
        [encoded("POST", "/event/hit", {"Transfer-Encoding": "chunked"}), b"1\r\nx\r\n0\r\n\r\n"],
    ],
)
def test_expensive_requests_are_bounded_per_turn(server: Server, parts: list[bytes]) -> None:
    connections = [Connection(server.site, "127.0.0.1") for _ in range(REQUESTS_PER_TURN * 2 + 1)]
    for part in parts:
        while server.reactor.getDelayedCalls():
            turn(server)
        assert answers(*connections) == 0
        for connection in connections:
            connection.push(part)
    for answered in (0, REQUESTS_PER_TURN, REQUESTS_PER_TURN * 2, REQUESTS_PER_TURN * 2 + 1):
        assert answers(*connections) == answered
        turn(server)
    assert not [one for one in connections if one.wire.producerState == "paused"]
    # The next one needs no further data.
    connections[0].push(ahead(1))
    assert answers(connections[0]) == 2


@pytest.mark.parametrize(
    "parts",
    [
        [encoded("GET", PING, {})],
        [encoded("GET", PING, {"X-A": "a" * SHORT_BYTES})],
        [encoded("POST", "/event/hit", {}, b"xx")[:-1], b"x"],
        [encoded("POST", "/event/hit", {"Transfer-Encoding": "chunked"}) + b"1\r\nx\r\n0\r\n\r\n"],
    ],
)
def test_a_busy_network_does_not_delay_others(server: Server, parts: list[bytes]) -> None:
    many = [Connection(server.site) for _ in range(REQUESTS_PER_TURN * 3)]
    for part in parts:
        while server.reactor.getDelayedCalls():
            turn(server)
        for one in many:
            one.push(part)
    peers = ("198.51.100.1", "198.51.100.2", "192.0.2.1", "127.0.0.1", None)
    hits = [Connection(server.site, peer) for peer in peers]
    for hit in hits:
        hit.push(ahead(1))
    assert answers(*many, *hits) <= REQUESTS_PER_TURN
    while (before := answers(*many, *hits)) < len(many) + len(hits):
        turn(server)
        assert answers(*hits) == len(hits)
        assert before < answers(*many, *hits) <= before + REQUESTS_PER_TURN
    # The others were read all the time: they sent no more.
    assert not [one for one in many if one.wire.producerState == "paused"]


@pytest.mark.parametrize("written", get_args(ProxyHeader))
def test_networks_behind_a_proxy_alternate_too(server: Server, written: ProxyHeader) -> None:
    server.set(trusted_proxies=Networks([ip_network("127.0.0.1")]), proxy_header=written)

    def passed_on(sender: str) -> Connection:
        value = f"198.51.100.7, {sender}" if written == "X-Forwarded-For" else f"for={sender}"
        connection = Connection(server.site, "127.0.0.1")
        # Headers in a body are not believed.
        body = b"\r\n%b: 192.0.2.8\r\n" % written.encode()
        # With a cookie, so that it is not taken as a hit that arrives whole.
        headers = {written.lower(): value, "Cookie": "a=b"}
        connection.push(encoded("POST", "/event/hit", headers, body))
        return connection

    many = [passed_on("203.0.113.9") for _ in range(REQUESTS_PER_TURN * 3)]
    hits = [passed_on(sender) for sender in ("198.51.100.1", "198.51.100.2", "192.0.2.1")]
    # A neighbour of those many waits with them.
    neighbour = passed_on("203.0.113.10")
    assert answers(*many, *hits) == REQUESTS_PER_TURN
    for answered in range(2, 4):
        turn(server)
        assert answers(*hits) == len(hits)
        assert answers(*many, *hits, neighbour) == answered * REQUESTS_PER_TURN
    assert answers(neighbour) == 0
    turn(server)
    assert answers(neighbour) == 1


def test_little_is_read_from_a_waiting_connection(server: Server) -> None:
    many = [Connection(server.site) for _ in range(REQUESTS_PER_TURN + 1)]
    for one in many:
        one.push(ahead(1))
    assert answers(many[-1]) == 0
    assert many[-1].wire.producerState == "producing"
    many[-1].push(ahead(1))
    assert many[-1].wire.producerState == "paused"
    for answered in (1, 2):
        turn(server)
        assert answers(many[-1]) == answered
    turn(server)
    assert many[-1].wire.producerState == "producing"


def test_sequential_requests_are_not_delayed(server: Server) -> None:
    connection = Connection(server.site)
    for answered in range(1, REQUESTS_PER_TURN * 3):
        connection.push(ahead(1))
        assert answers(connection) == answered
        turn(server)


def test_waiting_for_turns_does_not_extend_the_timeout(server: Server) -> None:
    connection = Connection(server.site)
    connection.push(encoded("POST", "/event/hit", {"Content-Length": "16000"}))
    expires = connection.channel.deadline
    for _ in range(3):
        server.reactor.advance(1)
        connection.push(b"x" * SHORT_BYTES)
        turn(server)
    assert connection.channel.deadline == expires


def test_splitting_requests_does_not_speed_them_up(server: Server) -> None:
    connection = over_tls(server.site)
    # Each part that was encrypted by itself comes by itself.
    for _ in range(3):
        connection.push(ahead(1))
    for answered in (1, 2, 3):
        assert answers(connection) == answered
        turn(server)
    connection.push(ahead(1))
    assert answers(connection) == 4


def test_nothing_is_answered_while_responses_are_unsent(server: Server) -> None:
    connection = Connection(server.site)
    connection.push(ahead(1))
    # The transport has more than it takes.
    connection.wire.producer.pauseProducing()
    connection.push(ahead(3))
    turn(server)
    assert answers(connection) == 1
    assert connection.wire.producerState == "paused"
    connection.wire.producer.resumeProducing()
    assert answers(connection) == 1
    turn(server)
    assert answers(connection) == 2
    connection.wire.producer.pauseProducing()
    turn(server)
    assert answers(connection) == 2
    assert connection.wire.producerState == "paused"
    connection.wire.producer.resumeProducing()
    turn(server)
    turn(server)
    assert answers(connection) == 4
    assert connection.wire.producerState == "producing"


def test_a_connection_with_pipelined_requests_is_not_idle(server: Server) -> None:
    server.set(max_connections=1)
    connection = Connection(server.site)
    connection.push(ahead(2))
    assert Connection(server.site).channel is None
    turn(server)
    assert Connection(server.site).channel is not None
    assert answers(connection) == 2


def test_requests_of_a_closed_connection_are_dropped(server: Server) -> None:
    connections = [Connection(server.site) for _ in range(3)]
    for connection in connections:
        connection.push(ahead(2))
    connections[0].close()
    connections[1].channel.close()
    turn(server)
    assert [answers(one) for one in connections] == [1, 1, 2]


@define(eq=False)
class Shaking:
    """A connection whose handshake continues in turns."""

    sender_network: bytes | None = None
    taken: int = 0

    def run_turn(self) -> None:
        self.taken += 1


def test_handshakes_do_not_delay_requests(server: Server) -> None:
    shaking = [Shaking() for _ in range(REQUESTS_PER_TURN * 2)]
    for one in shaking:
        server.site.handshakes.add(one)
    connections = [Connection(server.site) for _ in range(REQUESTS_PER_TURN * 2)]
    for connection in connections:
        connection.push(ahead(1))
    assert answers(*connections) == REQUESTS_PER_TURN
    turn(server)
    assert answers(*connections) == REQUESTS_PER_TURN * 2
    assert sum(one.taken for one in shaking) == HANDSHAKES_PER_TURN
