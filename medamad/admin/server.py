"""The daemon's side of the admin socket: listen, and dispatch requests to handlers."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, Union

import msgspec
from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList, maybeDeferred
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory, connectionDone
from twisted.logger import Logger
from twisted.protocols.basic import Int32StringReceiver
from twisted.python.failure import Failure

from medamad.admin.protocol import MAX_FRAME_BYTES, AdminRequest, Done, Progress, Refused, reachable
from medamad.build import VERSION
from medamad.domain.errors import ApiError
from medamad.storage.errors import StoreError

MODE: Final = 0o600
_PROGRESS_INTERVAL_S: Final = 0.1
"""The least interval between progress frames."""
_MAX_RESULT_BYTES: Final = MAX_FRAME_BYTES - 64
_STOPPING: Final = "the daemon is stopping"
_FAULT: Final = "internal error; the daemon's log has the details"

ReportProgress: TypeAlias = Callable[[Progress], None]
Handle: TypeAlias = Callable[[Any, ReportProgress], Awaitable[object]]
Handlers: TypeAlias = Mapping[type[AdminRequest], Handle]
"""The handler of each kind of request."""


class CommandChannel(Int32StringReceiver):
    """The connection of a command. One request is processed at a time, and one more may wait."""

    MAX_LENGTH = MAX_FRAME_BYTES
    _log = Logger()
    transport: Any

    def __init__(self, server: "AdminServer") -> None:
        self._server = server
        self._under_way: Deferred[None] | None = None
        self._waiting: bytes | None = None
        self._reported_at = float("-inf")

    def connectionMade(self) -> None:
        """Register the connection."""
        self._server.channels.add(self)

    def connectionLost(self, _reason: Failure = connectionDone) -> None:
        """Cancel the work: no one is waiting for it."""
        self._server.channels.discard(self)
        self._waiting = None
        self.cancel()

    def stringReceived(self, string: bytes) -> None:
        """Process a request now, or after the previous one."""
        if self._under_way is None:
            self._begin(string)
        else:
            self._waiting = string
            self.pauseProducing()

    def lengthLimitExceeded(self, length: int) -> None:
        """Refuse a frame that is too large, and close."""
        self._send(Refused(f"a request of {length} bytes, more than {MAX_FRAME_BYTES}"))
        self.transport.loseConnection()

    def cancel(self) -> None:
        """Cancel the work under way."""
        if self._under_way is not None:
            self._under_way.cancel()

    async def close(self) -> None:
        """Cancel the work under way, send the response to it, and close."""
        self._waiting = None
        if self._under_way is not None:
            ended: Deferred[None] = Deferred()
            self._under_way.addCallback(lambda _: ended.callback(None))
            self._under_way.cancel()
            await ended
        self.transport.loseConnection()

    def _begin(self, frame: bytes) -> None:
        self._reported_at = float("-inf")
        work = self._under_way = Deferred.fromCoroutine(self._respond(frame))
        work.addErrback(
            lambda failure: self._log.failure("responding to a command failed", failure)
        )
        work.addCallback(self._ended)

    def _ended(self, _: None) -> None:
        self._under_way = None
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._begin(waiting)
            self.resumeProducing()

    async def _respond(self, frame: bytes) -> None:
        self._send(await self._server.respond(frame, self._report))

    def _report(self, progress: Progress) -> None:
        now = self._server.seconds()
        if now - self._reported_at >= _PROGRESS_INTERVAL_S:
            self._reported_at = now
            self._send(progress)

    def _send(self, response: Progress | Done | Refused) -> None:
        self.sendString(msgspec.msgpack.encode(response))


@define(eq=False)
class AdminServer(Factory):
    """The factory of connections."""

    _log = Logger()
    noisy = False

    _handlers: Handlers
    _reactor: Any
    channels: set[CommandChannel] = field(factory=set, init=False)
    _decoder: msgspec.msgpack.Decoder[AdminRequest] = field(init=False)
    _open: AsyncExitStack = field(factory=AsyncExitStack, init=False)

    def __attrs_post_init__(self) -> None:
        self._decoder = msgspec.msgpack.Decoder(_union(self._handlers))

    @classmethod
    def start(cls, data_dir: Path, handlers: Handlers, reactor: Any) -> Self:
        """Listen in the daemon's data directory until `stop`. A failure is only logged."""
        server = cls(handlers, reactor)
        with ExitStack() as opened:
            try:
                path = opened.enter_context(reachable(data_dir))
                # A killed daemon leaves its socket behind.
                Path(path).unlink(missing_ok=True)
                port = reactor.listenUNIX(path, server, mode=MODE)
            except (OSError, CannotListenError) as error:
                cls._log.warn("commands cannot reach the daemon: {error}", error=error)
            else:
                kept = opened.pop_all()
                server._open.callback(kept.close)
                server._open.push_async_callback(server._close, port)
        return server

    def buildProtocol(self, _address: object) -> CommandChannel:
        """Return the protocol of a new connection."""
        return CommandChannel(self)

    def seconds(self) -> float:
        """Return the reactor's time."""
        seconds: float = self._reactor.seconds()
        return seconds

    async def stop(self) -> None:
        """Stop listening and cancel all work; returns when it has ended."""
        await self._open.aclose()

    async def respond(self, frame: bytes, report: ReportProgress) -> Done | Refused:
        """Return the response to a request; errors of the handler become responses."""
        try:
            request = self._decoder.decode(frame)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return Refused(f"not understood by this daemon, version {VERSION}: {error}")
        try:
            result = msgspec.msgpack.encode(await self._handlers[type(request)](request, report))
            if len(result) > _MAX_RESULT_BYTES:
                raise ValueError(f"a result of {len(result)} bytes")
        except CancelledError:
            return Refused(_STOPPING)
        except (ApiError, StoreError) as error:
            return Refused(str(error))
        except Exception:  # noqa: BLE001 - any fault is logged and reported
            self._log.failure("a command's request failed")
            return Refused(_FAULT)
        return Done(msgspec.Raw(result))

    async def _close(self, port: Any) -> None:
        try:
            await maybeDeferred(port.stopListening)
        except OSError as error:
            # The socket file is gone.
            self._log.warn("the admin socket was removed: {error}", error=error)
            port.socket.close()
        await DeferredList(
            [Deferred.fromCoroutine(channel.close()) for channel in list(self.channels)]
        )


def _union(handlers: Iterable[type[AdminRequest]]) -> Any:
    return Union[tuple(handlers)]  # noqa: UP007 - the types are known only at run time
