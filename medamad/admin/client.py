"""The side of the commands: asks a running daemon, and waits for the answer."""

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
    Answer,
    Done,
    Progress,
    Refused,
    Request,
    reachable,
)

T = TypeVar("T")

ANSWERS_WITHIN_S: Final = 20.0
"""How long a daemon may be silent: it tells of the progress of longer work."""
_LENGTH: Final = struct.Struct("!I")
_ANSWERS: Final = msgspec.msgpack.Decoder(Answer)


class NotRunning(Exception):
    """No daemon answers for the folder of the data. `str(error)` is for the operator."""


class NotDone(Exception):
    """The daemon cannot be asked, refused, or has gone. `str(error)` is for the operator."""


def nothing(_progress: Progress) -> None:
    """Tell nobody."""


@frozen(eq=False)
class Connection:
    """A connection to a running daemon. Ask one request at a time; close it in the end."""

    _socket: socket.socket

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; work that is under way for it is cancelled."""
        self._socket.close()

    def ask(
        self, request: Request, result: type[T], progress: Callable[[Progress], None] = nothing
    ) -> T:
        """Return what a request is answered with. Raises NotDone."""
        self.send(request)
        with _said():
            while isinstance(answer := self._receive(), Progress):
                progress(answer)
        if isinstance(answer, Refused):
            raise NotDone(answer.reason)
        return _result(answer, result)

    def send(self, request: Request) -> None:
        """Ask without waiting for the answer. Raises NotDone, and ValueError for one too large."""
        frame = msgspec.msgpack.encode(request)
        if len(frame) > MAX_FRAME_BYTES:
            raise ValueError(f"a request of {len(frame)} bytes")
        with _said():
            self._socket.sendall(_LENGTH.pack(len(frame)) + frame)

    def _receive(self) -> Answer:
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        if length > MAX_FRAME_BYTES:
            raise NotDone(f"the daemon sent an answer of {length} bytes")
        try:
            answer: Answer = _ANSWERS.decode(self._exactly(length))
        except msgspec.MsgspecError as error:
            raise NotDone(_strange(error)) from None
        return answer

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._socket.recv(min(count, 1 << 16))
            if not part:
                raise ConnectionResetError("it has closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


@contextmanager
def _said() -> Iterator[None]:
    """Return what has become of the daemon where a connection fails."""
    try:
        yield
    except TimeoutError:
        raise NotDone("the daemon does not answer") from None
    except OSError as error:
        raise NotDone(f"the daemon has gone: {error}") from None


def connect(data_dir: Path, answers_within_s: float = ANSWERS_WITHIN_S) -> Connection:
    """Connect to the daemon that runs on a folder of data. Raises NotRunning, and NotDone."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(answers_within_s)
    try:
        with reachable(data_dir) as path:
            connection.connect(path)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        connection.close()
        raise NotRunning(f"{data_dir}: no daemon runs on it") from None
    except OSError as error:
        connection.close()
        told = error.strerror or error
        raise NotDone(f"{data_dir}: a daemon there cannot be asked: {told}") from None
    return Connection(connection)


def _result(answer: Done, result: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(answer.result, type=result)
    except msgspec.MsgspecError as error:
        raise NotDone(_strange(error)) from None


def _strange(error: msgspec.MsgspecError) -> str:
    return f"the daemon's answer is not understood, it may be of another version: {error}"
