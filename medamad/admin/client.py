"""The commands' side of the admin socket: send a request to the daemon and wait for the result."""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self, TypeVar

import msgspec
from attrs import frozen

from medamad.admin.protocol import (
    MAX_FRAME_BYTES,
    AdminRequest,
    AdminResponse,
    Done,
    Progress,
    Refused,
    reachable,
)

T = TypeVar("T")

RESPONSE_TIMEOUT_S: Final = 20.0
"""How long the daemon may be silent: it reports the progress of longer work."""
_LENGTH: Final = struct.Struct("!I")
_RESPONSES: Final = msgspec.msgpack.Decoder(AdminResponse)


class NotRunning(Exception):
    """No daemon runs on the data directory. `str(error)` is for the operator."""


class RequestFailed(Exception):
    """The daemon refused, failed or is unreachable. `str(error)` is for the operator."""


def ignore_progress(_progress: Progress) -> None:
    """Ignore progress."""


@frozen(eq=False)
class AdminConnection:
    """A connection to a running daemon, for one request at a time; to be closed."""

    _socket: socket.socket

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the daemon cancels its work for it."""
        self._socket.close()

    def request(
        self,
        request: AdminRequest,
        result: type[T],
        progress: Callable[[Progress], None] = ignore_progress,
    ) -> T:
        """Send a request and return its result. Raises RequestFailed."""
        self.send(request)
        return self.result(result, progress)

    def result(self, result: type[T], progress: Callable[[Progress], None] = ignore_progress) -> T:
        """Wait for the result of the oldest request sent. Raises RequestFailed."""
        with _connection_errors():
            while isinstance(response := self._receive(), Progress):
                progress(response)
        if isinstance(response, Refused):
            raise RequestFailed(response.reason)
        return _result(response, result)

    def send(self, request: AdminRequest) -> None:
        """Send a request without waiting. Raises RequestFailed; ValueError if it is too large."""
        frame = msgspec.msgpack.encode(request)
        if len(frame) > MAX_FRAME_BYTES:
            raise ValueError(f"a request of {len(frame)} bytes")
        with _connection_errors():
            self._socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def _receive(self) -> AdminResponse:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise RequestFailed(f"the daemon sent a response of {length} bytes")
        try:
            response: AdminResponse = _RESPONSES.decode(self._exactly(length))
        except msgspec.MsgspecError as error:
            raise RequestFailed(_unexpected(error)) from None
        return response

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._socket.recv(min(count, 1 << 16))
            if not part:
                raise ConnectionResetError("closed by the daemon")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


@contextmanager
def _connection_errors() -> Iterator[None]:
    """Raise RequestFailed for errors of the connection."""
    try:
        yield
    except TimeoutError:
        raise RequestFailed("the daemon is not responding") from None
    except OSError as error:
        raise RequestFailed(f"the connection to the daemon was lost: {error}") from None


def connect(data_dir: Path, timeout_s: float = RESPONSE_TIMEOUT_S) -> AdminConnection:
    """Connect to the daemon on a data directory. Raises NotRunning, RequestFailed."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        with reachable(data_dir) as path:
            connection.connect(path)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        connection.close()
        raise NotRunning(f"{data_dir}: no daemon runs on it") from None
    except OSError as error:
        connection.close()
        reason = error.strerror or error
        raise RequestFailed(f"{data_dir}: the daemon there cannot be reached: {reason}") from None
    return AdminConnection(connection)


def _result(done: Done, result: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(done.result, type=result)
    except msgspec.MsgspecError as error:
        raise RequestFailed(_unexpected(error)) from None


def _unexpected(error: msgspec.MsgspecError) -> str:
    return f"unexpected response, the daemon may have another version: {error}"
