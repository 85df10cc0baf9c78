import socket
from collections.abc import Callable
from contextlib import ExitStack
from io import StringIO

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.tcp import Port
from twisted.logger import ILogObserver, globalLogPublisher, textFileLogObserver
from twisted.python.failure import Failure

from medamad.daemon.listen import ACCEPTED_AT_ONCE, ListenEndpoint, accept_few
from medamad.daemon.logs import LogLines
from medamad.web.server.endpoints import ListenAddress


class Counting(Factory):
    """Counts the connections that it refuses."""

    noisy = False
    count = 0

    def buildProtocol(self, _address: object) -> Protocol | None:
        self.count += 1
        return None


def test_connections_accepted_per_turn_are_bounded() -> None:
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


class Faulty(Protocol):
    """Fails at what it receives; `lost` fires when its connection has gone."""

    def __init__(self) -> None:
        self.lost: Deferred[None] = Deferred()

    def dataReceived(self, _data: bytes) -> None:
        raise ZeroDivisionError

    def connectionLost(self, _reason: Failure = connectionDone) -> None:
        self.lost.callback(None)


def of_ours(stream: StringIO) -> ILogObserver:
    return LogLines(stream, for_journal=False)


@pytest.mark.parametrize("observer_on", [of_ours, textFileLogObserver])
@pytest_twisted.ensureDeferred
async def test_connection_errors_are_logged_without_addresses(
    observer_on: Callable[[StringIO], ILogObserver],
) -> None:
    factory, faulty, stream = Factory(), Faulty(), StringIO()
    factory.buildProtocol = lambda _address: faulty
    endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
    port = await ListenEndpoint("tcp:0", endpoint, ListenAddress("", 0)).listen(factory)
    observer = observer_on(stream)
    globalLogPublisher.addObserver(observer)
    with socket.create_connection(("127.0.0.1", port.getHost().port)) as client:
        client.send(b"x")
        await faulty.lost
    globalLogPublisher.removeObserver(observer)
    await port.stopListening()
    assert " [Faulty] Unhandled Error" in stream.getvalue()
    assert "127.0.0.1" not in stream.getvalue()
