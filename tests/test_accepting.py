import socket
from contextlib import ExitStack

from twisted.internet import reactor
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.tcp import Port

from medamad.accepting import ACCEPTED_AT_ONCE, accept_few


class Counting(Factory):
    """Counts the connections that it refuses."""

    noisy = False
    count = 0

    def buildProtocol(self, _address: object) -> Protocol | None:
        self.count += 1
        return None


def test_of_many_that_come_so_many_are_taken_a_turn() -> None:
    factory = Counting()
    port = Port(0, factory, backlog=ACCEPTED_AT_ONCE * 4, interface="127.0.0.1", reactor=reactor)
    accept_few(port)
    with ExitStack() as stack:
        port.startListening()
        stack.callback(port.stopListening)
        for _ in range(ACCEPTED_AT_ONCE * 3 + 1):
            stack.enter_context(socket.create_connection(("127.0.0.1", port.getHost().port)))
        for turn in range(1, 5):
            port.doRead()
            assert factory.count <= turn * ACCEPTED_AT_ONCE
        assert factory.count == ACCEPTED_AT_ONCE * 3 + 1
