"""How requests are scheduled over reactor turns."""

from support.web.client import Connection, answers, encoded, over_tls
from support.web.daemon_in_memory import Server

from medamad.web.server.sockets import READ_BYTES

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


def test_each_connection_has_its_turn(server: Server) -> None:
    connections = [Connection(server.site) for _ in range(50)]
    for connection in connections:
        connection.push(ahead(3))
    for answered in (1, 2, 3):
        assert [answers(one) for one in connections] == [answered] * len(connections)
        turn(server)
    turn(server)
    assert not [one for one in connections if one.wire.producerState == "paused"]


def test_sequential_requests_are_not_delayed(server: Server) -> None:
    connection = Connection(server.site)
    for answered in range(1, 50):
        connection.push(ahead(1))
        assert answers(connection) == answered


def test_sending_in_parts_does_not_extend_the_timeout(server: Server) -> None:
    connection = Connection(server.site)
    connection.push(encoded("POST", "/event/hit", {"Content-Length": "16000"}))
    expires = connection.channel.deadline
    for _ in range(3):
        server.reactor.advance(1)
        connection.push(b"x" * READ_BYTES)
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
