"""Since when the daemon has been taking hits without a break, also over its restarts."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from attrs import define

from medamad.storage.environment.folder import PRESENCE_NAME

BREAK_MS: Final = 900_000
"""The longest absence of the daemon that does not count as a break."""
_WRITTEN_EVERY_MS: Final = 300_000


class _Known(msgspec.Struct, frozen=True):
    """The contents of the file, in Unix milliseconds."""

    since_ms: int
    until_ms: int


@define(eq=False)
class Presence:
    """Since when hits have been taken, in Unix milliseconds. Used in one thread."""

    since_ms: int
    _file: Path
    _written_ms: int | None = None

    @classmethod
    def begin(cls, folder: Path, now_ms: int) -> "Presence":
        """Read the file, or start again after a break in which hits may have been missed."""
        file = folder / PRESENCE_NAME
        since_ms = now_ms
        # If it is unknown, no absence of the daemon may be taken for silence.
        with suppress(OSError, msgspec.DecodeError):
            known = msgspec.json.decode(file.read_bytes(), type=_Known)
            if 0 <= now_ms - known.until_ms <= BREAK_MS:
                since_ms = min(known.since_ms, now_ms)
        return cls(since_ms, file)

    def record(self, now_ms: int) -> None:
        """Record, now and then, that hits are taken at this time."""
        if self._written_ms is None or abs(now_ms - self._written_ms) >= _WRITTEN_EVERY_MS:
            self.end(now_ms)

    def end(self, now_ms: int) -> None:
        """Record that hits have been taken up to this time."""
        fresh = self._file.with_name(f".{self._file.name}.new")
        # If the disk is full, for example, the next start knows less.
        with suppress(OSError):
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(_Known(self.since_ms, now_ms)))
            fresh.replace(self._file)
            self._written_ms = now_ms
