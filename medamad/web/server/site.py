"""The site: its connections, the headers of every response, and how it shuts down."""

from collections import deque
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final, Protocol

from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IProtocolNegotiationFactory
from twisted.internet.protocol import Factory
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger
from twisted.web.http import datetimeToString
from zope.interface import implementer

from medamad.domain.errors import ApiError, Unavailable
from medamad.ingest.networks import Address, is_local, prefix_of
from medamad.ingest.write_queue import Reactor
from medamad.web import cors
from medamad.web.backend import Backend
from medamad.web.responses import Headers, Response, encoded_head
from medamad.web.server.channel import Channel
from medamad.web.server.clients import peer_address
from medamad.web.server.limits import Connections
from medamad.web.server.parser import RequestHead
from medamad.web.server.request import Request
from medamad.web.settings import WebSettings

SWEEP_S: Final = 1.0
TIMED_OUT_PER_TURN: Final = 50
"""How many connections are timed out in a reactor turn."""
ARRIVE_S: Final = 0.2
"""At a stop, how long a request may take to arrive, and a TLS client to close its end."""
_RETRY_AFTER_S: Final = 10

_log: Final = Logger()


def _none(*_arrived: object) -> bool:
    return False


class Responder(Protocol):
    """Responds to requests."""

    def serve(self, request: Request) -> None:
        """Respond to a request, now or later."""

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read."""

    def load(self) -> None:
        """Load what the first request would have to wait for. May be called in any thread."""


@implementer(IProtocolNegotiationFactory)
class Site(Factory):
    """The factory of connections. It keeps no access log, which would be one of addresses."""

    noisy = False
    root: Responder

    def __init__(self, backend: Backend, reactor: Reactor) -> None:
        self.backend = backend
        self.reactor = reactor
        self.connections: Connections[Channel] = Connections()
        self.take_hit: Callable[[Channel, bytes], bool] = _none
        self.is_head_of_hit: Callable[[bytes], bool] = _none
        self.forget_heads: Callable[[], None] = lambda: None
        """Forgets what it has remembered of requests: the browsers that sent them."""
        self.is_closing = False
        """Whether every connection closes after its next response."""
        self._drained: Deferred[None] | None = None
        self._sweep = LoopingCall(self.sweep)
        self._sweep.clock = reactor  # type: ignore[assignment] # mypy knows no zope
        self._common: tuple[int, str, Headers] = (-1, "", ())
        self._no_content: tuple[object, bytes] = (None, b"")

    @property
    def settings(self) -> WebSettings:
        """The current settings."""
        return self.backend.settings

    @settings.setter
    def settings(self, settings: WebSettings) -> None:
        self.backend.settings = settings

    @property
    def is_draining(self) -> bool:
        """Whether no further requests are taken."""
        return self._drained is not None

    def unavailable_reasons(self) -> list[str]:
        """Return the reasons why no hits are accepted at the moment."""
        stopping = "the daemon is stopping" if self.is_closing else ""
        return [reason for reason in (stopping, self.backend.store.unavailable_reason()) if reason]

    def startFactory(self) -> None:
        """Begin to time out connections."""
        if not self._sweep.running:
            sweeping = self._sweep.start(SWEEP_S, now=False)
            sweeping.addErrback(
                lambda failure: _log.failure("connections are no longer timed out", failure)
            )

    def stopFactory(self) -> None:
        """Stop timing out connections."""
        if self._sweep.running:
            self._sweep.stop()

    def buildProtocol(self, addr: IAddress) -> Channel | None:  # type: ignore[override] # no None
        """Accept a connection, unless the limit is reached and no other can be evicted for it.

        So opening connections and sending little, or receiving little, locks nobody out.
        """
        if self.is_draining:
            return None
        settings, connections = self.settings, self.connections
        network = self._network_of(peer_address(addr))
        if network is not None and connections.of(network) >= settings.max_connections_per_network:
            evicted = connections.to_evict_within(network)
        elif len(connections) >= settings.max_connections:
            evicted = connections.to_evict()
        else:
            return Channel(self, network)
        if evicted is None:
            return None
        self.remove(evicted)
        evicted.abort()
        return Channel(self, network)

    def _network_of(self, peer: Address | None) -> bytes | None:
        """Return the network of a client; None for a proxy, which serves clients of many."""
        if peer is None or is_local(peer) or peer in self.settings.trusted_proxies:
            return None
        return prefix_of(peer)

    def acceptableProtocols(self) -> list[bytes]:
        """Return the protocol that TLS clients may choose."""
        return [b"http/1.1"]

    def seconds(self) -> float:
        """Return the reactor's time."""
        return self.reactor.seconds()

    def sweep(self) -> None:
        """Time out the connections past their deadline, a bounded number per reactor turn."""
        now = self.seconds()
        self._time_out(
            deque(channel for channel in self.connections if channel.deadline <= now), now
        )

    def _time_out(self, channels: deque[Channel], now: float) -> None:
        for _ in range(min(TIMED_OUT_PER_TURN, len(channels))):
            channel = channels.popleft()
            if channel.deadline <= now:
                channel.time_out()
        if channels:
            self.reactor.callLater(0, self._time_out, channels, now)

    def remove(self, channel: Channel) -> None:
        """Forget a connection that is closed."""
        self.connections.remove(channel)
        self._check_drained()

    def close_after_responses(self) -> None:
        """Close each connection after its next response, which says so."""
        self.is_closing = True
        for channel in self.connections:
            channel.close_after_response()

    def drain(self) -> Deferred[None]:
        """Take no further request. Fires when all that were taken are answered and all are closed.

        Connections are closed at once, except those over which something has just arrived, which
        have ARRIVE_S for the rest of it. A TLS client has as long to close its end.
        """
        if self._drained is None:
            self._drained = Deferred()
            self.close_after_responses()
            self._close(channel for channel in self.connections if not channel.has_unread())
            self._check_drained()
        return self._drained

    def _check_drained(self) -> None:
        if self._drained is not None and not self.connections and not self._drained.called:
            self._drained.callback(None)

    def _close(self, channels: Iterable[Channel]) -> None:
        """Close connections that are not waiting for a response, and the rest after a while."""
        for channel in channels:
            channel.close_when_answered()
        if self.connections:
            self.reactor.callLater(ARRIVE_S, lambda: self._close(self.connections))

    def make_request(self, channel: Channel, head: RequestHead) -> Request:
        """Make a request whose body is still to come."""
        return Request(channel, head, self.root.serve)

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Return the response to a request whose body cannot be read."""
        return self.root.error_response(request, error)

    def common_headers(self) -> Headers:
        """Return the headers of every response."""
        now, commit = int(self.backend.clock()), self.settings.commit
        if self._common[:2] != (now, commit):
            headers = ((b"Date", datetimeToString(now)), (b"X-Api-Commit", commit.encode("ascii")))
            self._common = (now, commit, headers)
        return self._common[2]

    def encoded_no_content(self) -> bytes:
        """Return a 204 response to any origin, as it is sent when the connection stays open."""
        common = self.common_headers()
        if self._no_content[0] is not common:
            encoded = encoded_head(b"HTTP/1.1", HTTPStatus.NO_CONTENT, (*common, *cors.ANY))
            self._no_content = (common, encoded)
        return self._no_content[1]


async def drain(site: Site, within_s: float, reactor: Any) -> None:
    """Return when every request is answered; after a time, fail hits and abort connections."""
    queue = site.backend.pipeline.queue

    async def drained() -> None:
        await site.drain()
        await queue.drained()

    site.close_after_responses()
    if site.connections:
        await deferLater(reactor, ARRIVE_S)
    try:
        await Deferred.fromCoroutine(drained()).addTimeout(within_s, reactor)
    except defer.TimeoutError:
        queue.give_up(Unavailable("the daemon is stopping", retry_after=_RETRY_AFTER_S))
        # The responses to that are written in the next reactor turn.
        await deferLater(reactor, 0)
        if site.connections:
            _log.warn("{count} connections were aborted", count=len(site.connections))
        for channel in list(site.connections):
            channel.abort()
        # They are closed in the next turn, and what they requested is cancelled with them.
        await deferLater(reactor, 0)
