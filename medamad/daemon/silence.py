"""Keeps up to date which websites have gone quiet, by the rule of `medamad.alerts.silence`."""

from functools import partial
from typing import Final

from attrs import frozen
from twisted.logger import Logger

from medamad.alerts.silence import quiet_since
from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website
from medamad.query.request import Cancellation
from medamad.web.backend import Backend

WATCH_EVERY_S: Final = 60.0


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
            backend.check_complete()
            for website in websites.all():
                await self._look_at(website)
        except Unavailable:
            return  # busy, or hits are missing; the next look will do
        for number in [number for number in backend.quiet if not websites.has_number(number)]:
            del backend.quiet[number]

    async def _look_at(self, website: Website) -> None:
        backend = self._backend
        rule = partial(
            quiet_since,
            now_ms=int(backend.clock() * 1000),
            listening_since_ms=self._listening_since_ms,
        )
        sources = backend.settings.sources
        since_ms = await backend.run_query(
            lambda: backend.engine.read(website, sources, Cancellation(), rule)
        )
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
