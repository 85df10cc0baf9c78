"""Answers that are sent piece by piece, as fast as the client takes them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from attrs import define
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IPushProducer
from zope.interface import implementer

WRITTEN_BYTES: Final = 65_536
"""How much is written at once: what a client has to take within its time, with what the kernel
holds, before it gets more."""


@define(eq=False)
class Stream:
    """The body of an answer. `next_piece` gives a piece after the other, None at the end.

    `close` is called once, when all was sent or nobody takes it any more.
    """

    next_piece: Callable[[], Awaitable[bytes | None]]
    close: Callable[[], None]


def stream_of(body: bytes, close: Callable[[], None] = lambda: None) -> Stream:
    """Give a body that is there as a whole, to be sent as fast as the client takes it."""
    pieces = iter((body,))

    async def next_piece() -> bytes | None:
        return next(pieces, None)

    return Stream(next_piece, close)


@implementer(IPushProducer)
@define(eq=False)
class Flow:
    """Tells whether the connection takes more at the moment."""

    paused: Callable[[], None]
    """Is told when the connection begins to wait for the client."""
    going_on: Callable[[], None]
    """Is told when the next piece is to be made: the client has taken what there was."""
    _waiting: "Deferred[None] | None" = None
    _is_paused: bool = False

    def pauseProducing(self) -> None:
        """Take no more for now."""
        self._is_paused = True
        self.paused()

    def resumeProducing(self) -> None:
        """Take more."""
        self._is_paused = False
        self.going_on()
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)

    def stopProducing(self) -> None:
        """Take no more at all: whoever produces is told by the end of the request."""
        self._is_paused = True

    def ready(self) -> "Deferred[None]":
        """Fire when more is taken."""
        if not self._is_paused:
            return succeed(None)
        self._waiting = Deferred()
        return self._waiting


async def send(request: Any, stream: Stream, flow: Flow) -> None:
    """Send all pieces, with no more than one of them in memory beside what is on its way."""
    request.registerProducer(flow, True)
    while (piece := await stream.next_piece()) is not None:
        for begin in range(0, len(piece), WRITTEN_BYTES):
            request.write(piece[begin : begin + WRITTEN_BYTES])
            await flow.ready()
            flow.going_on()
    request.unregisterProducer()
