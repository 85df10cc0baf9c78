"""The requests of `medamad follow` and their handlers."""

from zlib import crc32

import msgspec
from attrs import frozen
from msgspec import Struct

from medamad.admin.imports import uncancelled
from medamad.admin.protocol import AdminRequest
from medamad.admin.server import ReportProgress
from medamad.storage.followed_logs import FilePlace, FollowedWebsite, LogCounts, LogPosition
from medamad.storage.store import Store


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
    """`Followed.known` of the last response."""


class Followed(Struct, frozen=True):
    """How far a log was read, and the websites by hostname, None for those that are known."""

    version: int
    files: tuple[FilePlace, ...]
    known: int
    """A checksum of the websites."""
    websites: dict[str, FollowedWebsite] | None
    is_damaged: bool = False
    """Whether how far it was read is not known any more, so that lines might be counted twice."""


@frozen(eq=False)
class FollowHandlers:
    """Handles the requests of `medamad follow`, in the reactor's thread."""

    _store: Store

    async def find(self, request: FindPlace, _report: ReportProgress) -> Followed:
        """Return how far a log was read."""
        position = self._store.log_position(request.log)
        if position is None:
            followed = self._followed(LogPosition(request.log), 0)
            return msgspec.structs.replace(followed, is_damaged=True)
        return self._followed(position, 0)

    async def add(self, request: AddLines, _report: ReportProgress) -> Followed:
        """Add what some lines count. Raises Conflict, Unavailable."""
        position = LogPosition(request.log, request.version, request.files)
        await uncancelled(self._store.follow_log(position, request.counts))
        return self._followed(position, request.known)

    def _followed(self, position: LogPosition, known: int) -> Followed:
        websites = {
            website.hostname: FollowedWebsite(website.number, website.settings)
            for website in self._store.websites.all()
        }
        now = crc32(msgspec.msgpack.encode(websites))
        is_known = now == known
        return Followed(position.version, position.files, now, None if is_known else websites)
