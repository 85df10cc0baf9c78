"""Looks out for websites that have gone quiet, one after another, and says so in the log."""

from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Final

from attrs import define
from twisted.logger import Logger

from medamad.model.errors import Unavailable
from medamad.model.websites import Website
from medamad.stats.quiet import quiet_since
from medamad.store.store import Store
from medamad.web.backend import Ask

LOOK_SECONDS: Final = 60.0


@define(eq=False)
class Watch:
    """Used in the reactor's thread. `quiet` is kept up to date: see Backend."""

    _store: Store
    _ask: Ask
    _clock: Callable[[], float]
    _listening_since_ms: int
    quiet: MutableMapping[int, int]
    _log = Logger()

    async def look(self) -> None:
        """Look at each website."""
        try:
            for website in self._store.websites.all():
                await self._look_at(website)
        except Unavailable:
            return  # much else is asked at the moment
        gone = [number for number in self.quiet if not self._store.websites.has_number(number)]
        for number in gone:
            del self.quiet[number]

    async def _look_at(self, website: Website) -> None:
        rule = partial(
            quiet_since,
            now_ms=int(self._clock() * 1000),
            listening_since_ms=self._listening_since_ms,
        )
        since_ms = await self._ask(lambda: self._store.ask(website, rule))
        was_quiet = website.number in self.quiet
        if since_ms is not None:
            self.quiet[website.number] = since_ms // 1000
            if not was_quiet:
                self._log.warn(
                    "{website} has gone quiet: no view for {hours} hours",
                    website=website.hostname,
                    hours=int(self._clock() - since_ms / 1000) // 3_600,
                )
        elif was_quiet:
            del self.quiet[website.number]
            self._log.info("{website} is not quiet any more", website=website.hostname)
