"""The requests of `medamad import` and their handlers, which load batches into the store."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from attrs import define, field
from msgspec import Struct
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.admin.import_requests import (
    TEXT_BYTES,
    ImportDays,
    ImportRobots,
    ImportRows,
    bytes_of,
    counts_of,
    rows_of,
    whole_days,
)
from medamad.admin.protocol import AdminRequest
from medamad.admin.server import ReportProgress
from medamad.domain.errors import ApiError, Conflict, NotFound
from medamad.domain.websites import Website
from medamad.storage.import_batches import ImportBatch, Span
from medamad.storage.import_content import DayCounts
from medamad.storage.imports import ImportedHits
from medamad.storage.store import Store

_PIECE_ROWS: Final = 65_536
"""How many views, or rows of events, are stored together."""
_DAY_ROWS: Final = 8_192
"""How many rows of days are stored together; a day is never split."""
NO_DAYS_IN_CLUSTER: Final = "a cluster has views and events alone, and cannot have daily totals"
MAX_PENDING_BYTES: Final = 32 << 20
"""The size at which fewer rows are also stored, since texts may be long."""


class BeginImport(AdminRequest, frozen=True, kw_only=True):
    """Begin a batch; see `storage.imports.Imports.begin`."""

    website: str
    source: str
    digest: str
    ranges: tuple[tuple[str, int, int], ...]
    newest: int


class HoldImport(AdminRequest, frozen=True):
    """Wait until an import has ended. If the command exits before, the import is abandoned."""

    number: int


class FinishImport(AdminRequest, frozen=True):
    """Finish a batch, which makes it visible."""

    number: int


class UndoImport(AdminRequest, frozen=True):
    """Remove a batch."""

    website: str
    number: int


class ImportFailed(AdminRequest, frozen=True):
    """Note that an import failed."""

    website: str
    reason: str


class Begun(Struct, frozen=True):
    """An import batch and the numbers of its hits."""

    number: int
    spans: tuple[Span, ...]


class Nothing(Struct, frozen=True):
    """An empty result."""


class Ended(Struct, frozen=True, kw_only=True):
    """The contents of a batch, which may be removed by now."""

    number: int
    views: int
    visitors: int
    events: int
    first_ms: int
    last_ms: int

    @classmethod
    def of(cls, batch: ImportBatch) -> "Ended":
        """Return the contents of a batch."""
        return cls(
            number=batch.number,
            views=batch.views,
            visitors=batch.visitors,
            events=batch.events,
            first_ms=batch.first_ms,
            last_ms=batch.last_ms,
        )


@define(eq=False)
class _Incoming:
    """A batch under way: the data received and not stored yet."""

    batch: ImportBatch
    website: Website
    pieces: list[ImportedHits] = field(factory=list)
    days: list[DayCounts] = field(factory=list)
    rows: int = 0
    bytes: int = 0
    ended: "Deferred[None]" = field(factory=Deferred)
    is_held: bool = False


SendImport: TypeAlias = Callable[[ImportBatch, ReportProgress], Awaitable[None]]
"""Sends an unfinished batch to the cluster. Raises Unavailable if that does not take it."""


@define(eq=False)
class ImportHandlers:
    """Handles the requests of `medamad import`, in the reactor's thread."""

    _store: Store
    _clock: Callable[[], float]
    _max_pending_bytes: int = MAX_PENDING_BYTES
    _failures: MutableMapping[int, str] = field(factory=dict, kw_only=True)
    """Why the last import into a website failed, "" if it did not, by number."""
    _send: SendImport | None = field(default=None, kw_only=True)
    """None without a cluster."""
    _check_is_primary: Callable[[], None] = field(default=lambda: None, kw_only=True)
    """Raises an error if another collector of a cluster is its primary."""
    _incoming: dict[int, _Incoming] = field(factory=dict)
    _log = Logger()

    async def begin(self, request: BeginImport, _report: ReportProgress) -> Begun:
        """Begin a batch. One whose command has exited is abandoned."""
        self._check_is_primary()
        website = self._website(request.website)
        for left in list(self._incoming.values()):
            if left.website.number == website.number and not left.is_held:
                await self._abandon(left)
        batch: ImportBatch = await uncancelled(self._begin(website, request))
        return Begun(batch.number, batch.spans)

    async def hold(self, request: HoldImport, _report: ReportProgress) -> Nothing:
        """Wait for the end of a batch or of its command."""
        incoming = self._of(request.number)
        incoming.is_held = True
        try:
            await incoming.ended
        except CancelledError:
            self._start_abandoning(incoming)
            raise
        return Nothing()

    async def rows(self, request: ImportRows, _report: ReportProgress) -> Nothing:
        """Receive rows."""
        incoming = self._of(request.number)
        piece = rows_of(request)
        incoming.pieces.append(piece)
        incoming.rows += max(len(piece.content), len(piece.content.events))
        incoming.bytes += bytes_of(request)
        if incoming.rows >= _PIECE_ROWS or incoming.bytes >= self._max_pending_bytes:
            await self._flush(incoming)
        return Nothing()

    async def days(self, request: ImportDays, _report: ReportProgress) -> Nothing:
        """Receive days that were summed up elsewhere.

        Raises Conflict if the hits are in a cluster, which has no such days.
        """
        if self._store.spool is not None:
            raise Conflict(NO_DAYS_IN_CLUSTER)
        incoming = self._of(request.number)
        counts = counts_of(request, incoming.days[-1].day if incoming.days else 0)
        incoming.days += counts
        incoming.rows += sum(len(each.texts) for each in counts)
        incoming.bytes += sum(
            each.sums.nbytes + sum(TEXT_BYTES + len(text) for text in each.texts) for each in counts
        )
        if incoming.rows >= _DAY_ROWS or incoming.bytes >= self._max_pending_bytes:
            whole, begun = whole_days(incoming.days)
            if whole:
                incoming.days = whole
                await self._flush(incoming)
                incoming.days = begun
        return Nothing()

    async def robots(self, request: ImportRobots, _report: ReportProgress) -> Nothing:
        """Receive what robots read."""
        incoming = self._of(request.number)
        website, batch = incoming.website.number, incoming.batch.number
        await uncancelled(self._store.robots.add_imported(website, batch, request.days))
        return Nothing()

    async def finish(self, request: FinishImport, report: ReportProgress) -> Ended:
        """Make a batch visible. With a cluster, all of it is sent there before.

        Raises Unavailable if the cluster does not take it.
        """
        incoming = self._of(request.number)
        await self._flush(incoming)
        if self._send is not None:
            await self._send(incoming.batch, report)
        whole = await uncancelled(self._store.imports.finish(incoming.batch))
        self._end(incoming)
        self._failures[incoming.website.number] = ""
        self._log.info(
            "import {number} into {website} is complete: views ({views}), events ({events})",
            number=whole.number,
            website=incoming.website.hostname,
            views=whole.views,
            events=whole.events,
        )
        return Ended.of(whole)

    async def undo(self, request: UndoImport, _report: ReportProgress) -> Ended:
        """Remove a batch."""
        self._check_is_primary()
        website = self._website(request.website)
        gone = await uncancelled(self._store.imports.undo(website, request.number))
        incoming = self._incoming.get(request.number)
        if incoming is not None:
            self._end(incoming)
        self._log.info(
            "import {number} into {website} was undone",
            number=gone.number,
            website=website.hostname,
        )
        return Ended.of(gone)

    async def failed(self, request: ImportFailed, _report: ReportProgress) -> Nothing:
        """Keep the reason for alerts, until an import into the website is complete."""
        self._note_failure(self._website(request.website), request.reason)
        return Nothing()

    def _note_failure(self, website: Website, reason: str) -> None:
        self._failures[website.number] = reason
        self._log.warn(
            "an import into {website} failed: {reason}", website=website.hostname, reason=reason
        )

    async def _begin(self, website: Website, request: BeginImport) -> ImportBatch:
        batch = await self._store.imports.begin(
            website,
            source=request.source,
            digest=request.digest,
            ranges=request.ranges,
            newest=request.newest,
            now=int(self._clock()),
        )
        # Even if its command has exited by now: the next one abandons it then.
        self._incoming[batch.number] = _Incoming(batch, website)
        return batch

    async def _flush(self, incoming: _Incoming) -> None:
        pieces, incoming.pieces = incoming.pieces, []
        days, incoming.days = incoming.days, []
        incoming.rows = incoming.bytes = 0
        if pieces:
            await uncancelled(self._store.imports.load(incoming.batch, pieces))
        if days:
            await uncancelled(self._store.imports.load_days(incoming.batch, days))

    async def _abandon(self, incoming: _Incoming) -> None:
        self._end(incoming)
        self._note_failure(incoming.website, "the command ended before the import was complete")
        await self._store.imports.give_up(incoming.website, incoming.batch)

    def _start_abandoning(self, incoming: _Incoming) -> None:
        if incoming.batch.number not in self._incoming:
            return

        def failed(failure: Failure) -> None:
            # If there was no room, the store's maintenance finishes the removal.
            if not failure.check(ApiError):
                self._log.failure("an import could not be abandoned", failure)

        Deferred.fromCoroutine(self._abandon(incoming)).addErrback(failed)

    def _end(self, incoming: _Incoming) -> None:
        self._incoming.pop(incoming.batch.number, None)
        if not incoming.ended.called:
            incoming.ended.callback(None)

    def _of(self, number: int) -> _Incoming:
        incoming = self._incoming.get(number)
        if incoming is None:
            raise NotFound(f"batch: import {number} is not in progress")
        return incoming

    def _website(self, hostname: str) -> Website:
        website = self._store.websites.by_hostname(hostname)
        if website is None:
            raise NotFound(f"hostname: no website {hostname} is registered")
        return website


def uncancelled(work: Any) -> "Deferred[Any]":
    """Return a Deferred whose cancellation leaves the work running to its end."""
    waiting: Deferred[Any] = Deferred()

    def done(result: Any) -> None:
        if not waiting.called:
            waiting.callback(result)

    def failed(failure: Failure) -> None:
        if not waiting.called:
            waiting.errback(failure)

    Deferred.fromCoroutine(work).addCallbacks(done, failed)
    return waiting
