"""What TLS has decrypted at once, and what in turns."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from support.certificates import Authority
from support.tls_in_memory import Client, EchoSite, Options
from twisted.internet.error import ConnectionDone

from medamad.web.server.admission import HANDSHAKES_AT_ONCE, TAKEN_AT_ONCE
from medamad.web.server.channel import Channel
from medamad.web.server.endpoints import Certificate
from medamad.web.server.tls import AT_ONCE_BYTES, OverTLS


@pytest.fixture
def factory(tmp_path: Path) -> OverTLS:
    site = EchoSite()
    return OverTLS(
        Certificate(Options(Authority(tmp_path).folder), ""),
        isClient=False,
        wrappedFactory=site,
        clock=site.clock,
    )


def turn(factory: OverTLS) -> None:
    factory.wrappedFactory.handshakes.take()


def turn_of_records(factory: OverTLS) -> None:
    factory.wrappedFactory.records.take()


def test_handshakes_go_on_in_turns_of_networks(factory: OverTLS) -> None:
    clients = [Client(factory) for _ in range(HANDSHAKES_AT_ONCE * 3)]
    other = Client(factory, "b")
    for client in (*clients, other):
        client.push(client.shake())
        assert client.wire.producerState == "paused"
        assert not client.answered
    turn(factory)
    assert other.answered
    assert sum(client.answered for client in clients) == HANDSHAKES_AT_ONCE - 1
    turn(factory)
    assert sum(client.answered for client in clients) == HANDSHAKES_AT_ONCE * 2 - 1


def test_who_shakes_hands_is_at_work(factory: OverTLS) -> None:
    client = Client(factory)
    assert factory.wrappedFactory.working == []
    client.push(client.shake()[:9])
    assert factory.wrappedFactory.working == [client.echo]


@pytest.mark.parametrize("is_idle", [True, False])
def test_of_whom_something_is_held_is_at_work(factory: OverTLS, *, is_idle: bool) -> None:
    client = Client(factory).shake_hands()
    factory.wrappedFactory.working.clear()
    client.echo.idle = is_idle
    client.push(client.records(b"a" * AT_ONCE_BYTES))
    assert factory.wrappedFactory.working == [client.echo] * is_idle
    # What is left after a turn, too.
    turn_of_records(factory)
    assert client.echo.received == []
    assert factory.wrappedFactory.working == [client.echo] * 2 * is_idle


@pytest.mark.parametrize("at_once", [100_000, 100])
def test_after_the_handshake_everything_is_taken_as_it_comes(
    factory: OverTLS, at_once: int
) -> None:
    client = Client(factory)
    for _ in range(2):
        data = client.shake()
        for begin in range(0, len(data), at_once):
            client.push(data[begin : begin + at_once])
            # It waits together with what has come before.
            if begin % (at_once * 2):
                factory.wrappedFactory.clock.advance(0)
        factory.wrappedFactory.clock.advance(0)
    assert client.shake() == b""
    assert client.wire.producerState == "producing"
    client.tls.write(b"hello")
    client.push(client.sent.read())
    # What is written is sent together in the next turn.
    factory.wrappedFactory.clock.advance(0)
    client.came.write(client.wire.value())
    assert client.tls.read() == b"hello"


def test_little_is_taken_as_it_comes(factory: OverTLS) -> None:
    client = Client(factory).shake_hands()
    for number in range(TAKEN_AT_ONCE * 3):
        client.push(client.records(b"hello"))
        assert len(client.echo.received) == number + 1
        assert client.wire.producerState == "producing"
        factory.wrappedFactory.clock.advance(0)


def test_of_many_small_records_so_many_bytes_are_taken_a_turn(factory: OverTLS) -> None:
    client = Client(factory).shake_hands()
    data = client.records(*[b"a"] * 1_000)
    bytes_of_one = len(data) // 1_000
    half = len(data) // 2 + 7
    client.push(data[:half])
    assert client.echo.received == []
    turn_of_records(factory)
    # Not that it could send on meanwhile.
    assert client.wire.producerState == "paused"
    client.push(data[half:])
    turns = 1
    while client.wire.producerState == "paused":
        assert turns * AT_ONCE_BYTES // bytes_of_one == len(client.echo.received)
        turn_of_records(factory)
        turns += 1
    assert client.echo.received == [b"a"] * 1_000


def test_what_is_held_comes_in_the_order_in_which_it_was_sent(factory: OverTLS) -> None:
    client = Client(factory).shake_hands()
    texts = [b"%d," % number * (number * 37 % 5_000) for number in range(1, 40)]
    for text in texts:
        client.push(client.records(text))
        if len(text) % 3:
            turn_of_records(factory)
    while client.wire.producerState == "paused":
        turn_of_records(factory)
    assert b"".join(client.echo.received) == b"".join(texts)


@pytest.mark.parametrize("ends", [False, True])
def test_of_what_many_send_at_once_so_much_is_taken_a_turn(factory: OverTLS, ends: bool) -> None:
    clients = [Client(factory, str(number)).shake_hands() for number in range(TAKEN_AT_ONCE * 3)]

    def taken() -> int:
        if ends:
            return sum(client.wire.disconnecting for client in clients)
        return sum(len(client.echo.received) for client in clients)

    for client in clients:
        if ends:
            with suppress(ssl.SSLWantReadError):
                client.tls.unwrap()
        client.push(client.sent.read() if ends else client.records(b"hello"))
    for turns in (1, 2, 3):
        assert taken() == TAKEN_AT_ONCE * turns
        turn_of_records(factory)


def test_other_networks_wait_for_one_turn(factory: OverTLS) -> None:
    many = [Client(factory).shake_hands() for _ in range(TAKEN_AT_ONCE * 2)]
    other = Client(factory, "b").shake_hands()
    for client in many:
        client.push(client.records(*[b"a"] * 500))
    turn_of_records(factory)
    other.push(other.records(b"hello"))
    turn_of_records(factory)
    assert other.echo.received == [b"hello"]


def test_of_what_comes_with_the_end_of_a_handshake_as_little_is_taken(factory: OverTLS) -> None:
    client = Client(factory)
    client.push(client.shake())
    turn(factory)
    client.push(client.shake() + client.records(*[b"a"] * 500))
    turn(factory)
    assert 0 < len(client.echo.received) < 100
    turn(factory)
    assert len(client.echo.received) < 100
    turn_of_records(factory)
    assert len(client.echo.received) > 100


def test_nothing_is_taken_while_no_more_is_wanted(factory: OverTLS) -> None:
    client = Client(factory).shake_hands()
    client.push(client.records(*[b"a"] * 500))
    turn_of_records(factory)
    taken = len(client.echo.received)
    client.echo.transport.pauseProducing()
    turn_of_records(factory)
    # What was read before it came to pause is held as well.
    client.push(client.records(b"b"))
    turn_of_records(factory)
    assert (len(client.echo.received), client.wire.producerState) == (taken, "paused")
    client.echo.transport.resumeProducing()
    while client.wire.producerState == "paused":
        assert len(client.echo.received) == taken
        turn_of_records(factory)
        assert len(client.echo.received) > taken
        taken = len(client.echo.received)
    assert client.echo.received == [b"a"] * 500 + [b"b"]
    client.echo.transport.pauseProducing()
    assert client.wire.producerState == "paused"
    client.echo.transport.resumeProducing()
    assert client.wire.producerState == "producing"


def test_who_is_to_be_closed_sends_on_in_turns_until_its_own_end(factory: OverTLS) -> None:
    client = Client(factory).shake_hands()
    data = client.records(*[b"a"] * 200)
    with suppress(ssl.SSLWantReadError):
        client.tls.unwrap()
    client.echo.transport.loseConnection()
    client.push(data + client.sent.read())
    turns = 0
    while not client.wire.disconnecting:
        turn_of_records(factory)
        turns += 1
    assert turns == len(data) // AT_ONCE_BYTES + 1
    assert client.echo.received == [b"a"] * 200


def test_what_waits_for_its_turn_has_arrived(factory: OverTLS) -> None:
    """As with TLS 1.3, where a request comes with the end of the handshake: a stop waits for it."""
    client = Client(factory)
    channel = Channel(factory.wrappedFactory)
    channel.transport = client.server
    assert not channel.has_unread()
    client.push(client.shake())
    assert channel.has_unread()
    turn(factory)
    assert not channel.has_unread()


def test_a_connection_that_is_gone_goes_on_with_none(factory: OverTLS) -> None:
    client = Client(factory)
    client.push(client.shake())
    client.close()
    client.wire.clear()
    turn(factory)
    assert not client.answered


def test_nothing_held_of_a_connection_that_is_gone_is_taken(factory: OverTLS) -> None:
    client = Client(factory).shake_hands()
    echo = client.echo
    client.push(client.records(*[b"a"] * 500))
    turn_of_records(factory)
    taken = len(echo.received)
    client.close()
    turn_of_records(factory)
    assert len(echo.received) == taken
    assert client.server.held == b""
    # OpenSSL is not asked what it makes of an end that was not announced.
    assert echo.lost == [ConnectionDone]
