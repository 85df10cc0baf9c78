"""The protocol of the admin socket: frames, requests and responses."""

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
    """Return a path of the socket, valid within, that is short enough to be an address.

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


class Status(Request, frozen=True):
    """Asks what state the daemon is in."""


class State(Struct, frozen=True, kw_only=True):
    """The state of a running daemon. Times are whole Unix seconds, sizes bytes."""

    version: str
    commit: str
    pid: int
    started: int
    listening: tuple[str, ...]
    """Where it takes requests, as the configuration or systemd named it."""
    connections: int
    websites: int
    visitors: int
    """Of all websites, at the moment."""
    accepted: int
    """Hits of the last 24 hours, as far as the daemon has run."""
    refused: dict[str, int]
    """The same of those that were not stored, by reason."""
    last_minute: int
    """Hits accepted in the last full minute."""
    waiting: int
    """Hits that wait to be written."""
    commits: int
    commit_seconds: float
    """How long all of these took together."""
    store_bytes: int
    store_max_bytes: int
    disk_free_bytes: int
    last_backup: int | None
    """When the newest backup in the configured folder was made."""
    backup_failure: str = ""
    """Why the backups need attention; "" if they are fine."""
    lacks: tuple[str, ...]
    """Why no hits are taken; none when they are."""
    warnings: tuple[str, ...]


class AskConfiguration(Request, frozen=True):
    """Asks by which configuration the daemon goes."""


class Configuration(Struct, frozen=True, kw_only=True):
    """By what a running daemon goes."""

    file: str | None
    """None where it goes by the defaults."""
    timezone: str
    """In which days end, as it was when the file was read last."""
    min_free_disk: int | None = None
    """Bytes that stay free, likewise; an earlier version does not tell."""
