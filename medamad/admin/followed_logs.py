"""The requests of `medamad follow` and their handlers."""

from attrs import frozen
from msgspec import Struct

from medamad.admin.imports import uncancelled
from medamad.admin.protocol import AdminRequest
from medamad.admin.server import ReportProgress
from medamad.storage.followed_logs import FilePlace, LogCounts, LogPosition
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


class Followed(Struct, frozen=True):
    """How far a log was read, and the numbers of the websites by hostname."""

    version: int
    files: tuple[FilePlace, ...]
    websites: dict[str, int]


@frozen(eq=False)
class FollowHandlers:
    """Handles the requests of `medamad follow`, in the reactor's thread."""

    _store: Store

    async def find(self, request: FindPlace, _report: ReportProgress) -> Followed:
        """Return how far a log was read."""
        position = self._store.log_position(request.log)
        return Followed(position.version, position.files, self._websites())

    async def add(self, request: AddLines, _report: ReportProgress) -> Followed:
        """Add what some lines count. Raises Conflict, Unavailable."""
        position = LogPosition(request.log, request.version, request.files)
        await uncancelled(self._store.follow_log(position, request.counts))
        return Followed(position.version, position.files, self._websites())

    def _websites(self) -> dict[str, int]:
        return {website.hostname: website.number for website in self._store.websites.all()}
