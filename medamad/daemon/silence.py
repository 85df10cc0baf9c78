"""Detect websites that have gone quiet, and record since when hits are taken without a break."""

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from attrs import define, frozen
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website
from medamad.query.silence import quiet_since
from medamad.storage.environment.folder import PRESENCE_NAME
from medamad.web.backend import Backend

LOOK_SECONDS: Final = 60.0


@frozen(eq=False)
class Watch:
    """Keeps `quiet` of the backend up to date. Used in the reactor's thread."""

    _backend: Backend
    _listening_since_ms: int
    _log = Logger()

    async def look(self) -> None:
        """Look at each website, except in a demonstration, whose invented traffic ends."""
        backend = self._backend
        if backend.settings.demo:
            return
        websites = backend.store.websites
        try:
            for website in websites.all():
                await self._look_at(website)
        except Unavailable:
            return  # busy; the next look will do
        for number in [number for number in backend.quiet if not websites.has_number(number)]:
            del backend.quiet[number]

    async def _look_at(self, website: Website) -> None:
        backend = self._backend
        rule = partial(
            quiet_since,
            now_ms=int(backend.clock() * 1000),
            listening_since_ms=self._listening_since_ms,
        )
        since_ms = await backend.run_query(lambda: backend.store.read(website, rule))
        was_quiet = website.number in backend.quiet
        if since_ms is not None:
            backend.quiet[website.number] = since_ms // 1000
            if not was_quiet:
                self._log.warn(
                    "{website} has gone quiet: no view for {hours} hours",
                    website=website.hostname,
                    hours=int(backend.clock() - since_ms / 1000) // 3_600,
                )
        elif was_quiet:
            del backend.quiet[website.number]
            self._log.info("{website} is not quiet any more", website=website.hostname)


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
        """Read the file, or start afresh after a break in which hits may have been missed."""
        file = folder / PRESENCE_NAME
        since_ms = now_ms
        # If it is unknown, no absence of the daemon may be taken for silence.
        with suppress(OSError, msgspec.DecodeError):
            known = msgspec.json.decode(file.read_bytes(), type=_Known)
            if 0 <= now_ms - known.until_ms <= BREAK_MS:
                since_ms = min(known.since_ms, now_ms)
        return cls(since_ms, file)

    def note(self, now_ms: int) -> None:
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
