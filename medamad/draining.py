"""The end of a site: requests under way are answered, and the hits that wait are stored."""

from typing import Any, Final

from twisted.internet import defer
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger

from medamad.model.errors import Unavailable
from medamad.web.site import ARRIVE_SECONDS, Site

_RETRY_AFTER_S: Final = 10
_log: Final = Logger()


async def drain(site: Site, within_s: float, reactor: Any) -> None:
    """Return when all is done, or given up after a time: then hits are refused, requests cut."""
    queue = site.backend.collector.queue

    async def drained() -> None:
        await site.drain()
        await queue.drained()

    site.leave()
    if site.channels:
        await deferLater(reactor, ARRIVE_SECONDS)
    try:
        await Deferred.fromCoroutine(drained()).addTimeout(within_s, reactor)
    except defer.TimeoutError:
        queue.give_up(Unavailable("the daemon is stopping", retry_after=_RETRY_AFTER_S))
        # The answers to that go out in the next turn.
        await deferLater(reactor, 0)
        if site.channels:
            _log.warn("{count} connections were cut", count=len(site.channels))
        for channel in list(site.channels):
            channel.transport.abortConnection()
        # They have gone in the next turn: with them, what they asked for is given up.
        await deferLater(reactor, 0)
