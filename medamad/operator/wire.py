"""What goes over the operator's socket: requests, and the answers to each."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

SOCKET_NAME: Final = "operator.sock"
"""In the folder of the data."""
MAX_FRAME_BYTES: Final = 4 << 20
_MAX_ADDRESS_BYTES: Final = 107
"""What sun_path holds (unix(7))."""


class Request(Struct, frozen=True, tag=True):
    """What a command asks for. Each kind is told apart by the name of its class."""


class Progress(Struct, frozen=True, tag=True):
    """How far the work for a request has come."""

    text: str
    """What is being done, in the words of the command's user."""
    done: int = 0
    total: int = 0
    """How much there is to do, 0 where that is not known."""


class Done(Struct, frozen=True, tag=True):
    """A request was answered."""

    result: msgspec.Raw


class Refused(Struct, frozen=True, tag=True):
    """A request was not answered; `reason` is for the operator."""

    reason: str


Answer: TypeAlias = Progress | Done | Refused


@contextmanager
def reachable(data_dir: Path) -> Iterator[str]:
    """Give a path of the socket, valid within, that is short enough to be an address.

    Raises OSError where the folder cannot be opened.
    """
    path = str(data_dir / SOCKET_NAME)
    if len(os.fsencode(path)) <= _MAX_ADDRESS_BYTES:
        yield path
        return
    folder = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET_NAME}"
    finally:
        os.close(folder)
