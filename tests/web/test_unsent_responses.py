"""Long responses are sent as fast as they are received, and unsent data is bounded."""

import pytest
import pytest_twisted
from support.web.client import Connection, encoded
from support.web.daemon_in_memory import Server
from support.web.slow_clients import HEAD_BYTES, leave, slow
from twisted.internet.defer import Deferred, succeed

from medamad.accounts.shares import make_share
from medamad.web.responses import JSON, WRITTEN_BYTES, Response
from medamad.web.server.channel import MAX_AHEAD_BYTES
from medamad.web.server.limits import MAX_UNSENT_BYTES, MAX_UNSENT_PER_NETWORK, UnsentResponses


@pytest.fixture
def question(server: Server, website: str) -> bytes:
    """A request for a response of half of what a network may have unsent."""
    body = b"x" * (MAX_UNSENT_PER_NETWORK // 2)
    server.site.backend.run_query = lambda *_asked, **_how: succeed(Response(200, body, JSON))
    owner = pytest_twisted.blockon(Deferred.fromCoroutine(server.owner()))
    return encoded("GET", f"/website/{website}/pages", {"Cookie": f"_me_sess={owner.cookie}"})


def test_a_long_response_is_sent_as_fast_as_it_is_received(server: Server, question: bytes) -> None:
    connection = slow(server)
    wire = connection.wire
    connection.push(question)
    received = bytearray()
    while wire.value():
        assert len(wire.value()) <= WRITTEN_BYTES + HEAD_BYTES
        received += wire.value()
        wire.clear()
        # However long it takes in all.
        server.reactor.advance(10)
        server.site.sweep()
        assert not wire.disconnecting
        wire.producer.resumeProducing()
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: %d" % len(body) in head
    assert body == b"x" * (MAX_UNSENT_PER_NETWORK // 2)
    connection.push(encoded("GET", "/event/ping", {}))
    assert wire.value().startswith(b"HTTP/1.1 200 OK\r\n")


def test_little_is_read_while_a_response_is_unsent(server: Server, question: bytes) -> None:
    connection = slow(server)
    connection.push(question)
    ping = encoded("GET", "/event/ping", {})
    taken = 0
    while connection.wire.producerState == "producing":
        connection.push(ping)
        taken += len(ping)
        assert taken <= MAX_AHEAD_BYTES + len(ping)
    # What was read is answered in order.
    received = b""
    for _ in range(MAX_UNSENT_PER_NETWORK // WRITTEN_BYTES):
        received += connection.wire.value()
        connection.wire.clear()
        connection.wire.producer.resumeProducing()
        server.reactor.advance(0)
    head, _, answers = received.partition(b"\r\n\r\n")
    assert b"application/json" in head
    assert answers.lstrip(b"x").startswith(b"HTTP/1.1 200 OK\r\n")
    assert answers.count(b"\r\nLast-Modified: ") == taken // len(ping)


def test_head_returns_the_length_of_a_long_response(server: Server, question: bytes) -> None:
    connection = slow(server)
    connection.push(question.replace(b"GET ", b"HEAD ", 1))
    head, end, body = connection.wire.value().partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: %d" % (MAX_UNSENT_PER_NETWORK // 2) in head
    assert (end, body) == (b"\r\n\r\n", b"")


@pytest.mark.parametrize("goes", [True, False])
@pytest_twisted.ensureDeferred
async def test_unsent_responses_are_bounded(server: Server, question: bytes, goes: bool) -> None:
    connections = []
    for network in range(MAX_UNSENT_BYTES // MAX_UNSENT_PER_NETWORK):
        for host in (1, 2):
            connections.append(slow(server, f"198.51.{network}.{host}"))
            connections[-1].push(question)
            assert len(connections[-1].wire.value()) <= WRITTEN_BYTES + HEAD_BYTES
        refused = await Connection(server.site, f"198.51.{network}.3").talk(question)
        assert (refused.status, refused.header("Retry-After")) == (429, "10")
        assert refused.error == "too many long responses at once wait to be received there"
    refused = await Connection(server.site).talk(question)
    assert (refused.status, refused.header("Retry-After")) == (503, "10")
    assert refused.error == "too many long responses at once wait to be received"
    # Short and shared responses are still sent.
    for target in ("/event/ping", "/openapi.yaml"):
        asked = encoded("GET", target, {})
        assert (await Connection(server.site, "198.51.0.3").talk(asked)).status == 200
    leave(server, connections, goes=goes)
    assert server.site.backend.unsent == UnsentResponses()
    assert (await Connection(server.site).talk(question)).status == 200


@pytest_twisted.ensureDeferred
async def test_visitors_of_a_share_link_do_not_block_the_owner(
    server: Server, question: bytes
) -> None:
    share = make_share("club", 1, (), "", server.now)
    await server.store.shares.add(share.id.encode(), share)
    path = question.split(b" ")[1].decode()
    shown = encoded("GET", path, {"X-Medamad-Share": share.id})
    connections = [
        slow(server, f"198.51.{number}.1")
        for number in range(2 * MAX_UNSENT_BYTES // MAX_UNSENT_PER_NETWORK)
    ]
    for connection in connections:
        connection.push(shown)
    assert (await Connection(server.site).talk(shown)).status == 503
    assert (await Connection(server.site).talk(question)).status == 200
    leave(server, connections, goes=True)
    assert server.site.backend.unsent_to_guests == UnsentResponses()
