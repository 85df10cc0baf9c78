"""Which connection is evicted when all places are taken."""

from ipaddress import ip_network

import pytest
import pytest_twisted
from support.web.client import Connection, Wire, encoded, over_tls
from support.web.daemon_in_memory import Server
from support.web.slow_clients import HEAD_BYTES, slow
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import INegotiated
from zope.interface import directlyProvides

from medamad.ingest.networks import Networks
from medamad.web.responses import JSON, WRITTEN_BYTES, Response, Stream

PING = encoded("GET", "/event/ping", {})


@pytest_twisted.ensureDeferred
async def test_connections_are_bounded(server: Server, website: str) -> None:
    server.set(max_connections=2)
    owner = await server.owner()
    server.site.backend.run_query = lambda _question, **_: Deferred()
    headers = {"Cookie": f"_me_sess={owner.cookie}"}
    first, second = Connection(server.site), Connection(server.site, "198.51.100.1")
    for one in (first, second):
        one.push(encoded("GET", f"/website/{website}/pages", headers))
    assert Connection(server.site, "198.51.100.2").channel is None
    assert not first.wire.aborted
    first.close()
    assert Connection(server.site, "198.51.100.2").channel is not None


def test_idle_networks_do_not_keep_others_out(server: Server) -> None:
    server.set(max_connections=12, max_connections_per_network=4)
    slow = [Connection(server.site, f"198.51.{number % 3}.1") for number in range(12)]
    for one in slow:
        one.push(b"G")
    others = []
    for peer in ("203.0.113.9", "192.0.2.9", "203.0.113.9"):
        others.append(Connection(server.site, peer))
        assert others[-1].channel is not None
        # Nor do those that come again at once.
        for number in range(3):
            again = Connection(server.site, f"198.51.{number}.2")
            if again.channel is not None:
                again.push(b"G")
        others[-1].push(PING[:-1])
    assert not any(other.wire.aborted for other in others)
    for other in others:
        other.push(PING[-1:])
    server.reactor.advance(0)
    for other in others:
        assert other.wire.value().startswith(b"HTTP/1.1 200 OK\r\n")


def test_slow_connections_are_evicted_before_new_ones(server: Server) -> None:
    server.set(max_connections=12, max_connections_per_network=4)
    slow = [Connection(server.site, f"198.51.{number % 3}.1") for number in range(12)]
    for one in slow:
        one.push(b"G")
    others = [Connection(server.site, f"203.0.113.{number}") for number in range(4)]
    others += [Connection(server.site, f"192.0.2.{number}") for number in range(4)]
    for other in others:
        other.push(PING)
    server.reactor.advance(0)
    assert all(other.wire.value().startswith(b"HTTP/1.1 200 OK\r\n") for other in others)
    assert sum(one.wire.aborted for one in slow) == len(others)


@pytest_twisted.ensureDeferred
async def test_a_client_that_receives_nothing_is_evicted(server: Server) -> None:
    server.set(max_connections=2)
    first, second = slow(server), slow(server)
    for deaf in (first, second):
        deaf.push(encoded("GET", "/openapi.yaml", {}))
        assert HEAD_BYTES < len(deaf.wire.value()) <= WRITTEN_BYTES + HEAD_BYTES
    first.wire.producer.resumeProducing()
    # It has begun to wait later by now.
    assert Connection(server.site, "198.51.100.1").channel is not None
    assert [first.wire.aborted, second.wire.aborted] == [False, True]
    # One that is gone is not counted again.
    second.wire.producer.pauseProducing()
    assert len(server.site.connections) == 2


@pytest_twisted.ensureDeferred
async def test_a_response_being_produced_is_not_evicted(server: Server, website: str) -> None:
    server.set(max_connections=2)
    pieces = iter((succeed(b"x" * (HEAD_BYTES + 1)), Deferred()))
    stream = Stream(lambda: next(pieces), lambda: None)
    owner = await server.owner()
    server.site.backend.run_query = lambda *_asked, **_how: succeed(
        Response(200, b"", JSON, stream=stream)
    )
    receiving, other = slow(server), Connection(server.site, "198.51.100.1")
    headers = {"Cookie": f"_me_sess={owner.cookie}"}
    receiving.push(encoded("GET", f"/website/{website}/pages", headers))
    other.push(PING[:-1])
    receiving.wire.producer.resumeProducing()
    assert Connection(server.site, "198.51.101.1").channel is not None
    assert [receiving.wire.aborted, other.wire.aborted] == [False, True]


def test_a_slow_sender_is_evicted_before_one_that_has_received_since(
    server: Server,
) -> None:
    server.set(max_connections=3)
    slow_ones = [Connection(server.site, f"198.51.100.{number}") for number in range(2)]
    for one in slow_ones:
        one.push(b"G")
    reader = slow(server)
    reader.push(encoded("GET", "/openapi.yaml", {}))
    assert Connection(server.site, "198.51.101.1").channel is not None
    assert [one.wire.aborted for one in (reader, *slow_ones)] == [False, True, False]


@pytest_twisted.ensureDeferred
async def test_over_tls_a_connection_is_idle_after_its_response(server: Server) -> None:
    server.set(max_connections=1)
    answered = over_tls(server.site)
    assert (await answered.talk(PING)).status == 200
    server.reactor.advance(0)
    assert Connection(server.site).channel is not None
    assert answered.wire.aborted


@pytest.mark.parametrize("is_made", [False, True])
def test_after_its_handshake_a_connection_has_waited_since_then(
    server: Server, is_made: bool
) -> None:
    server.set(max_connections=2)
    wire = Wire("203.0.113.9")
    directlyProvides(wire, INegotiated)
    connection = Connection(server.site, wire=wire)
    other = Connection(server.site, "198.51.100.1")
    if is_made:
        connection.channel.handshakeCompleted()
    assert Connection(server.site, "198.51.101.1").channel is not None
    assert [wire.aborted, other.wire.aborted] == [not is_made, is_made]


def test_an_incomplete_long_request_is_evicted(server: Server) -> None:
    server.set(max_connections=2)
    first, second = Connection(server.site), Connection(server.site)
    long = encoded("POST", "/event/hit", {}, b"x" * 3_000)
    for one in (first, second):
        one.push(long[:-1])
    server.reactor.advance(0)
    assert Connection(server.site, "198.51.100.1").channel is not None
    assert first.wire.aborted
    second.push(long[-1:])
    server.reactor.advance(0)
    assert first.wire.value() == b""
    assert b" 400 " in second.wire.value()


def test_sending_in_parts_does_not_protect_a_slow_request(server: Server) -> None:
    server.set(max_connections=2)
    long, other = Connection(server.site), Connection(server.site, "198.51.100.1")
    body = encoded("POST", "/event/hit", {}, b"x" * 3_000)
    long.push(body[:2_500])
    server.reactor.advance(0)
    other.push(b"G")
    long.push(body[2_500:2_600])
    server.reactor.advance(0)
    assert Connection(server.site, "198.51.101.1").channel is not None
    assert [long.wire.aborted, other.wire.aborted] == [True, False]


def test_the_connections_of_one_browser_do_not_evict_each_other(server: Server) -> None:
    server.set(max_connections=10)
    deaf = [slow(server, f"198.51.{number}.1") for number in range(5)]
    for one in deaf:
        one.push(encoded("GET", "/openapi.yaml", {}))
    others = [Connection(server.site, f"192.0.{number}.1") for number in range(5)]
    for one in others:
        one.push(b"G")
    browser = [Connection(server.site) for _ in range(6)]
    for one in browser[:3]:
        one.push(b"G")
    browser += [Connection(server.site) for _ in range(2)]
    assert not any(one.wire.aborted for one in browser)
    assert sum(one.wire.aborted for one in (*deaf, *others)) == len(browser)


@pytest_twisted.ensureDeferred
async def test_the_connection_that_has_waited_longest_is_evicted(
    server: Server,
) -> None:
    server.set(max_connections=3)
    first, second, third = (Connection(server.site) for _ in range(3))
    second.push(PING[:9])
    assert (await first.talk(PING)).status == 200
    fourth = Connection(server.site, "198.51.100.1")
    assert [one.wire.aborted for one in (first, second, third)] == [False, False, True]
    third.close()
    assert (await fourth.talk(PING)).status == 200
    Connection(server.site)
    assert [one.wire.aborted for one in (first, second, fourth)] == [False, True, False]
    assert len(server.site.connections) == 3


@pytest.mark.parametrize(
    ("peers", "are_of_one"),
    [
        (("203.0.113.9", "203.0.113.200", "203.0.113.9"), True),
        (("2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:ffff::"), True),
        (("203.0.113.9", "203.0.114.9", "203.0.113.9"), False),
        (("2001:db8:0:1::1", "2001:db8:1:1::1", "2001:db8:2:1::1"), False),
        (("10.0.0.1", "10.0.0.1", "10.0.0.1"), False),
        (("127.0.0.1", "127.0.0.1", "127.0.0.1"), False),
        (("192.0.2.7", "192.0.2.7", "192.0.2.7"), False),
        ((None, None, None), False),
    ],
)
def test_the_connections_of_a_network_are_bounded_except_for_proxies(
    server: Server, peers: tuple[str | None, ...], are_of_one: bool
) -> None:
    proxies = Networks([ip_network("192.0.2.0/24")])
    server.set(max_connections_per_network=2, trusted_proxies=proxies)
    connections = []
    for peer in peers:
        connections.append(Connection(server.site, peer))
        if connections[-1].channel is not None:
            connections[-1].push(PING[:9])
    assert [one.wire.aborted for one in connections] == [are_of_one, False, False]
    other = Connection(server.site, "198.51.100.1")
    assert other.channel is not None
    assert [one.wire.aborted for one in connections] == [are_of_one, False, False]


def test_a_network_at_its_limit_evicts_its_own_connections(server: Server) -> None:
    server.set(max_connections_per_network=2)
    other = Connection(server.site, "198.51.100.1")
    first, second = (Connection(server.site) for _ in range(2))
    assert Connection(server.site).channel is not None
    assert [one.wire.aborted for one in (other, first, second)] == [False, True, False]


def test_slow_connections_do_not_keep_their_network_out(server: Server) -> None:
    server.set(max_connections_per_network=3)
    slow_ones = [Connection(server.site) for _ in range(3)]
    for one in slow_ones:
        one.push(b"G")
    visitors = [Connection(server.site, f"203.0.113.{number}") for number in range(3)]
    for visitor in visitors:
        visitor.push(PING)
    server.reactor.advance(0)
    assert [one.wire.aborted for one in (*slow_ones, *visitors)] == [True] * 3 + [False] * 3
    assert all(visitor.wire.value().startswith(b"HTTP/1.1 200 OK") for visitor in visitors)
