"""What TLS decrypts at once, and what in turns."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from support.certificates import Authority
from support.tls_in_memory import Client, EchoSite, Options
from support.web.client import Kernel

from medamad.web.server.admission import HANDSHAKES_PER_TURN, HITS_PER_TURN, REQUESTS_PER_TURN
from medamad.web.server.channel import Channel
from medamad.web.server.endpoints import Certificate
from medamad.web.server.tls import BYTES_PER_TURN, TLSFactory


@pytest.fixture
def factory(tmp_path: Path) -> TLSFactory:
    site = EchoSite()
    return TLSFactory(
        Certificate(Options(Authority(tmp_path).folder), ""),
        isClient=False,
        wrappedFactory=site,
        clock=site.clock,
    )


def turn(factory: TLSFactory) -> None:
    factory.wrappedFactory.handshakes.run()


def turn_of_records(factory: TLSFactory) -> None:
    factory.wrappedFactory.decryptions.run()


def test_the_handshakes_of_networks_alternate(factory: TLSFactory) -> None:
    clients = [Client(factory) for _ in range(HANDSHAKES_PER_TURN * 3)]
    other = Client(factory, "b")
    for client in (*clients, other):
        client.push(client.shake())
        assert client.wire.producerState == "paused"
        assert not client.answered
    turn(factory)
    assert other.answered
    assert sum(client.answered for client in clients) == HANDSHAKES_PER_TURN - 1
    turn(factory)
    assert sum(client.answered for client in clients) == HANDSHAKES_PER_TURN * 2 - 1


def test_a_handshake_counts_as_reading(factory: TLSFactory) -> None:
    client = Client(factory)
    assert client.echo.pending == 0
    client.push(client.shake()[:9])
    assert client.echo.pending == 1


def test_held_data_counts_as_reading(factory: TLSFactory) -> None:
    client = Client(factory).shake_hands()
    client.echo.pending = 0
    client.push(client.records(b"a" * BYTES_PER_TURN))
    assert client.echo.pending == 1
    # So does what is left after a turn.
    turn_of_records(factory)
    assert client.echo.received == []
    assert client.echo.pending == 2


@pytest.mark.parametrize("at_once", [100_000, 100])
def test_after_the_handshake_data_is_read_at_once(factory: TLSFactory, at_once: int) -> None:
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


def test_little_data_is_read_at_once(factory: TLSFactory) -> None:
    client = Client(factory).shake_hands()
    for number in range(REQUESTS_PER_TURN * 2):
        client.push(client.records(b"hello"))
        assert len(client.echo.received) == number + 1
        assert client.wire.producerState == "producing"
        factory.wrappedFactory.clock.advance(0)


def test_small_records_are_bounded_in_bytes_per_turn(factory: TLSFactory) -> None:
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
        assert turns * BYTES_PER_TURN // bytes_of_one == len(client.echo.received)
        turn_of_records(factory)
        turns += 1
    assert client.echo.received == [b"a"] * 1_000


def test_held_data_is_delivered_in_order(factory: TLSFactory) -> None:
    client = Client(factory).shake_hands()
    texts = [b"%d," % number * (number * 37 % 5_000) for number in range(1, 40)]
    for text in texts:
        client.push(client.records(text))
        if len(text) % 3:
            turn_of_records(factory)
    while client.wire.producerState == "paused":
        turn_of_records(factory)
    assert b"".join(client.echo.received) == b"".join(texts)


@pytest.mark.parametrize(
    ("texts", "at_once"),
    [((b"hello",), HITS_PER_TURN), ((), HITS_PER_TURN), ((b"hel", b"lo"), REQUESTS_PER_TURN)],
)
def test_the_data_of_all_connections_is_bounded_per_turn(
    factory: TLSFactory, texts: tuple[bytes, ...], at_once: int
) -> None:
    ends = not texts
    clients = [
        Client(factory, str(number)).shake_hands() for number in range(at_once + REQUESTS_PER_TURN)
    ]

    def taken() -> int:
        if ends:
            return sum(client.wire.disconnecting for client in clients)
        return sum(b"".join(client.echo.received) == b"hello" for client in clients)

    for client in clients:
        if ends:
            with suppress(ssl.SSLWantReadError):
                client.tls.unwrap()
        client.push(client.sent.read() if ends else client.records(*texts))
    assert taken() == at_once
    turn_of_records(factory)
    assert taken() == len(clients)


def test_other_networks_wait_for_one_turn(factory: TLSFactory) -> None:
    many = [Client(factory).shake_hands() for _ in range(REQUESTS_PER_TURN * 2)]
    other = Client(factory, "b").shake_hands()
    for client in many:
        client.push(client.records(*[b"a"] * 500))
    turn_of_records(factory)
    other.push(other.records(b"hello"))
    turn_of_records(factory)
    assert other.echo.received == [b"hello"]


def test_data_that_comes_with_the_end_of_a_handshake_is_bounded(factory: TLSFactory) -> None:
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


def test_nothing_is_read_from_a_paused_connection(factory: TLSFactory) -> None:
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


def test_a_closing_connection_is_read_in_turns_until_it_ends(factory: TLSFactory) -> None:
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
    assert turns == len(data) // BYTES_PER_TURN + 1
    assert client.echo.received == [b"a"] * 200


def test_held_data_counts_as_arrived(factory: TLSFactory) -> None:
    """As with TLS 1.3, where a request comes with the end of the handshake: a stop waits for it."""
    client = Client(factory)
    channel = Channel(factory.wrappedFactory)
    channel.transport = client.server
    assert not channel.has_unread()
    client.push(client.shake())
    assert channel.has_unread()
    turn(factory)
    assert not channel.has_unread()


def test_a_closed_connection_is_not_read_further(factory: TLSFactory) -> None:
    client = Client(factory)
    client.push(client.shake())
    client.close()
    client.wire.clear()
    turn(factory)
    assert not client.answered


def test_held_data_of_a_closed_connection_is_dropped(factory: TLSFactory) -> None:
    client = Client(factory).shake_hands()
    echo = client.echo
    client.push(client.records(*[b"a"] * 500))
    turn_of_records(factory)
    taken = len(echo.received)
    client.close()
    turn_of_records(factory)
    assert len(echo.received) == taken
    assert client.server.held == b""
    assert len(echo.lost) == 1


def test_what_is_written_is_sent_at_once_and_in_order(factory: TLSFactory) -> None:
    kernel = Kernel(100_000)
    client = Client(factory, wire=kernel).shake_hands()
    kernel.room = 100
    texts = [bytes([number]) * 60 for number in range(5)]
    client.push(client.records(*texts))
    # No turn of the reactor has come since.
    client.came.write(kernel.value() + kernel.waits)
    assert len(kernel.value()) == 100
    assert b"".join(client.tls.read(100) for _ in texts) == b"".join(texts)
