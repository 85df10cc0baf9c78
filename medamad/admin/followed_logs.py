"""The requests of `medamad follow` and their handlers."""

from collections.abc import Callable
from datetime import datetime
from secrets import token_urlsafe
from typing import Final
from zlib import crc32

import msgspec
from attrs import frozen
from msgspec import Struct
from msgspec.structs import asdict

from medamad.admin.imports import uncancelled
from medamad.admin.protocol import AdminRequest
from medamad.admin.server import ReportProgress
from medamad.domain.hits import View, Visitor
from medamad.domain.zones import DAY_S
from medamad.ingest.pipeline import Pipeline
from medamad.storage.followed_logs import (
    FilePlace,
    FollowedWebsite,
    LogCounts,
    LoggedView,
    LogPosition,
)
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

_BEACON_BYTES: Final = 12
_LOGGED: Final = b"\xff"
"""Begins the identity of a view in a log, so that it is never that of a hit."""


class FindPlace(AdminRequest, frozen=True):
    """Request how far a log was read, by its path."""

    log: str


class AddLines(AdminRequest, frozen=True, kw_only=True):
    """Add what some lines of a log count, and store the places in its files after them.

    `version` is one more than that of the position that they follow.
    """

    log: str
    version: int
    files: tuple[FilePlace, ...]
    counts: LogCounts
    known: int
    """`Followed.known` of the last response, the websites by which the lines were counted."""


class Followed(Struct, frozen=True):
    """How far a log was read, and the websites by hostname, None for those that are known."""

    version: int
    files: tuple[FilePlace, ...]
    known: int
    """A checksum of the websites."""
    websites: dict[str, FollowedWebsite] | None
    is_damaged: bool = False
    """Whether how far it was read is not known any more, so that lines might be counted twice."""
    counted_twice: tuple[str, ...] = ()
    """The websites of the views whose own pages sent views, too, in the last 24 hours."""


@frozen(eq=False)
class FollowHandlers:
    """Handles the requests of `medamad follow`, in the reactor's thread."""

    _store: Store
    _pipeline: Pipeline
    _clock: Callable[[], float]

    async def find(self, request: FindPlace, _report: ReportProgress) -> Followed:
        """Return how far a log was read."""
        position = self._store.log_position(request.log)
        if position is None:
            followed = self._followed(LogPosition(request.log), 0)
            return msgspec.structs.replace(followed, is_damaged=True)
        return self._followed(position, 0)

    async def add(self, request: AddLines, _report: ReportProgress) -> Followed:
        """Add what some lines count. Raises Conflict, Unavailable.

        If the websites are others than those by which they were counted, nothing is stored.
        """
        unchanged = self._followed(LogPosition(request.log, request.version - 1), request.known)
        if unchanged.websites is not None:
            return unchanged
        position = LogPosition(request.log, request.version, request.files)
        counts, now = request.counts, self._clock()
        views = [self._view(view, round(now * 1000)) for view in counts.views]
        outcomes = await uncancelled(self._store.follow_log(position, counts, views))
        for outcome in outcomes:
            if outcome is Outcome.STORED:
                self._pipeline.accepted.count(now)
        latest_s = self._pipeline.last_views_s
        twice = (
            self._store.websites.by_number(number)
            for number in sorted({view.website for view in views})
            if now - latest_s.get(number, 0) <= DAY_S
        )
        hostnames = tuple(website.hostname for website in twice if website is not None)
        return self._followed(position, request.known, hostnames)

    def _view(self, view: LoggedView, now_ms: int) -> View:
        """Return a view as that of a hit which arrives now and states its time."""
        rules, fields = self._pipeline.rules, asdict(view)
        happened_ms = min(fields.pop("time_ms"), now_ms)
        name = fields.pop("visitor")
        day = datetime.fromtimestamp(happened_ms / 1000, rules.zone).toordinal()
        return View(
            **fields,
            time_ms=now_ms,
            happened_ms=happened_ms,
            beacon=token_urlsafe(_BEACON_BYTES),
            visitor=Visitor(name, day, is_stored=False) if rules.has_visitors else None,
            identity=_LOGGED + name.encode() if rules.has_visits else b"",
        )

    def _followed(
        self, position: LogPosition, known: int, counted_twice: tuple[str, ...] = ()
    ) -> Followed:
        websites = {
            website.hostname: FollowedWebsite(website.number, website.settings)
            for website in self._store.websites.all()
        }
        now = crc32(msgspec.msgpack.encode(websites))
        is_known = now == known
        news = None if is_known else websites
        return Followed(position.version, position.files, now, news, counted_twice=counted_twice)
