"""The site: its connections, what every response says, and how it shuts down."""

from collections import deque
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final, Protocol

from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger
from twisted.web import server
from twisted.web.http import datetimeToString
from twisted.web.resource import Resource

from medamad.domain.errors import ApiError, Unavailable
from medamad.ingest.networks import Address, is_local, prefix_of
from medamad.web import cors
from medamad.web.backend import Backend
from medamad.web.responses import Headers, Response
from medamad.web.server.admission import HANDSHAKES_AT_ONCE, Connections, Turns, Waiting
from medamad.web.server.channel import Channel
from medamad.web.server.clients import forwarding_headers, is_trusted, peer_address, sender_address
from medamad.web.server.parser import RequestHead
from medamad.web.server.request import Request
from medamad.web.settings import WebSettings

SWEEP_SECONDS: Final = 1.0
EXPIRED_AT_ONCE: Final = 50
"""How many connections whose time is up are closed in a turn of the reactor."""
ARRIVE_SECONDS: Final = 0.2
"""How long a request may take to come over a connection that is to be closed, and the other end of
one over TLS to close it, too."""


class Reactor(Protocol):
    """The part of a reactor that a site needs."""

    def seconds(self) -> float:
        """Return the time that has passed since any fixed moment."""

    def callLater(self, delay: float, call: Callable[..., object], /, *args: object) -> Any:
        """Have `call` made after `delay` seconds."""


class Root(Protocol):
    """What answers requests."""

    def serve(self, request: Request) -> None:
        """Answer a request, now or later."""

    def error_response(self, request: Request, error: ApiError) -> Response:
        """Answer a request of which the body cannot be taken."""


class Site(server.Site):
    """The factory of connections. It keeps no access log: that would be one of addresses."""

    _log = Logger()
    noisy = False
    root: Root

    def __init__(self, backend: Backend, reactor: Reactor) -> None:
        super().__init__(Resource(), reactor=reactor, parsePOSTFormSubmission=False)
        self.backend = backend
        self._reactor = reactor
        self.channels: Connections[Channel] = Connections(reactor.seconds)
        self.turns: Turns[Waiting] = Turns(reactor.callLater)
        """What is done in the turns of the reactor."""
        self.handshakes: Turns[Waiting] = Turns(reactor.callLater, HANDSHAKES_AT_ONCE)
        """What else is: no request waits for these."""
        self.records: Turns[Waiting] = Turns(reactor.callLater)
        """What is decrypted before there are requests in it."""
        self.is_leaving = False
        """Whether every connection closes after the next answer."""
        self._drained: Deferred[None] | None = None
        self._sweep = LoopingCall(self.sweep)
        self._sweep.clock = reactor  # type: ignore[assignment] # mypy knows no zope
        self._common: tuple[int, str, Headers] = (-1, "", ())
        self._stored: tuple[object, bytes] = (None, b"")

    @property
    def settings(self) -> WebSettings:
        """The settings of the moment."""
        return self.backend.settings

    @settings.setter
    def settings(self, settings: WebSettings) -> None:
        self.backend.settings = settings

    @property
    def is_draining(self) -> bool:
        """Whether no further requests are taken."""
        return self._drained is not None

    def startFactory(self) -> None:
        """Begin to watch over the connections."""
        if not self._sweep.running:
            watching = self._sweep.start(SWEEP_SECONDS, now=False)
            watching.addErrback(
                lambda failure: self._log.failure("connections are no longer watched", failure)
            )

    def stopFactory(self) -> None:
        """Stop to watch over the connections."""
        if self._sweep.running:
            self._sweep.stop()

    def buildProtocol(self, addr: IAddress) -> Channel | None:  # type: ignore[override]
        """Take a connection, unless there are as many as there may be and none gives way.

        One that only waits does: whoever opens connections and says nothing keeps nobody out. Where
        none has waited for long, one over which a request is slow to come does, of the network that
        has most of these, or one of which the client receives nothing: whoever says or hears little
        keeps nobody else out.
        """
        if self.is_draining:
            return None
        settings, channels = self.settings, self.channels
        network = self._network_of(peer_address(addr))
        if network is not None and channels.of(network) >= settings.max_connections_per_network:
            leaving = channels.giving_way_within(network)
        elif len(channels) >= settings.max_connections:
            leaving = channels.giving_way(network)
        else:
            return Channel(self, network)
        if leaving is None:
            return None
        self.closed(leaving)
        leaving.cut()
        return Channel(self, network)

    def _network_of(self, peer: Address | None) -> bytes | None:
        """Return the network that a connection is counted under; a proxy brings those of many."""
        if peer is None or is_local(peer) or peer in self.settings.trusted_proxies:
            return None
        return prefix_of(peer)

    def network_of_sender(self, channel: Channel, arrived: bytes) -> bytes | None:
        """Return the network that what a proxy passes on is from, as far as it has arrived."""
        if not is_trusted(channel.peer, self.settings):
            return channel.network
        headers = forwarding_headers(arrived, self.settings)
        sender = sender_address(channel.peer, headers, self.settings)
        return self._network_of(sender)

    def acceptableProtocols(self) -> list[bytes]:
        """Return the one protocol that is spoken."""
        return [b"http/1.1"]

    def log(self, request: object) -> None:
        """Keep no access log."""

    def seconds(self) -> float:
        """Return the reactor's time."""
        return self._reactor.seconds()

    def sweep(self) -> None:
        """Close the connections whose time is up, so many in a turn of the reactor."""
        now = self.seconds()
        self._expire(deque(channel for channel in self.channels if channel.expires <= now), now)

    def _expire(self, channels: deque[Channel], now: float) -> None:
        for _ in range(min(EXPIRED_AT_ONCE, len(channels))):
            channel = channels.popleft()
            if channel.expires <= now:
                channel.expire()
        if channels:
            self._reactor.callLater(0, self._expire, channels, now)

    def waits(self, channel: Channel) -> None:
        """Count a connection, as the latest that began to wait for a request."""
        self.channels.waits(channel)

    def pauses(self, channel: Channel) -> None:
        """Count a connection as one over which a long answer waits for its client."""
        self.channels.pauses(channel)

    def works(self, channel: Channel) -> None:
        """Count a connection as one over which a request comes, or the handshake before."""
        self.channels.works(channel)

    def answers(self, channel: Channel) -> None:
        """Count a connection as one whose request has come, and is being answered."""
        self.channels.answers(channel)

    def takes_more(self) -> bool:
        """Return whether one more request may be taken in this turn of the reactor, and count it."""
        return self.turns.takes_more()

    def has_more(self, channel: Channel) -> None:
        """Have a connection take its next request in a later turn of the reactor."""
        self.turns.add(channel)

    def closed(self, channel: Channel) -> None:
        """Forget a connection."""
        self.turns.remove(channel)
        self.channels.remove(channel)
        if self._drained is not None and not self.channels and not self._drained.called:
            self._drained.callback(None)

    def leave(self) -> None:
        """Have each connection close after its next answer, which says so."""
        self.is_leaving = True
        for channel in self.channels:
            channel.leave()

    def drain(self) -> Deferred[None]:
        """Take no further request; fires when each that was taken is answered and all are gone.

        Every other connection is closed at once, but for those over which something has just
        arrived: they have ARRIVE_SECONDS for the rest of it. As long they have over TLS for the
        other end to close, too.
        """
        if self._drained is None:
            self._drained = Deferred()
            self.leave()
            self._close(channel for channel in self.channels if not channel.has_unread())
            if not self.channels and not self._drained.called:
                self._drained.callback(None)
        return self._drained

    def _close(self, channels: Iterable[Channel]) -> None:
        """Close connections, and after a while those that there are then."""
        for channel in channels:
            channel.close_after_answer()
        if self.channels:
            self._reactor.callLater(ARRIVE_SECONDS, lambda: self._close(self.channels))

    def request(self, channel: Channel, head: RequestHead) -> Request:
        """Make the next request of a connection, of which the body is to come."""
        return Request(channel, head, self.root.serve)

    def error_response(self, channel: Channel, head: RequestHead, error: ApiError) -> Response:
        """Answer a request of which the body cannot be taken."""
        return self.root.error_response(self.request(channel, head), error)

    def common_headers(self) -> Headers:
        """Return the headers of every answer."""
        now, commit = int(self.backend.clock()), self.settings.commit
        if self._common[:2] != (now, commit):
            headers = ((b"Date", datetimeToString(now)), (b"X-Api-Commit", commit.encode("ascii")))
            self._common = (now, commit, headers)
        return self._common[2]

    def encoded_no_content(self) -> bytes:
        """Return an answer of 204 to any origin, as it goes over a connection that stays open."""
        common = self.common_headers()
        if self._stored[0] is not common:
            head = (
                b"HTTP/1.1 %d No Content" % HTTPStatus.NO_CONTENT,
                *(b"%b: %b" % header for header in (*common, *cors.ANY)),
            )
            self._stored = (common, b"\r\n".join((*head, b"", b"")))
        return self._stored[1]


_RETRY_AFTER_S: Final = 10
_log: Final = Logger()


async def drain(site: Site, within_s: float, reactor: Any) -> None:
    """Return when all is done, or given up after a time: then hits are refused, requests cut."""
    queue = site.backend.pipeline.queue

    async def drained() -> None:
        await site.drain()
        await queue.drained()

    site.leave()
    if site.channels:
        await deferLater(reactor, ARRIVE_SECONDS)
    try:
        await Deferred.fromCoroutine(drained()).addTimeout(within_s, reactor)
    except defer.TimeoutError:
        queue.give_up(Unavailable("the daemon is stopping", retry_after=_RETRY_AFTER_S))
        # The answers to that go out in the next turn.
        await deferLater(reactor, 0)
        if site.channels:
            _log.warn("{count} connections were cut", count=len(site.channels))
        for channel in list(site.channels):
            channel.transport.abortConnection()
        # They have gone in the next turn: with them, what they asked for is given up.
        await deferLater(reactor, 0)
