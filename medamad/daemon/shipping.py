"""Ship hits to the cluster: run the shipper in its thread, and keep what it has done."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import Any, Final, TypeVar

from attrs import define, evolve
from msgspec.structs import replace
from twisted.logger import Logger

from medamad.admin.protocol import LoadHits, Progress, ResendHits
from medamad.admin.server import ReportProgress
from medamad.clickhouse.client import ClickHouseError, Client, Connecting
from medamad.clickhouse.tables import Layout, OtherTables, check_answers, day_of
from medamad.cluster.removal import Removal
from medamad.cluster.settling import Settling
from medamad.cluster.shipper import MOST_NUMBERS, CannotSend, Shipper, Stopped
from medamad.config.settings import ClusterSettings
from medamad.daemon.thread_pool import Pool
from medamad.domain.cluster import ClusterState
from medamad.domain.errors import Conflict, Unavailable
from medamad.storage.import_batches import ImportBatch
from medamad.storage.spool import Marks, Spool
from medamad.storage.store import Store

T = TypeVar("T")

SHIP_S: Final = 1.0
"""How often what is new is sent."""
REMOVE_S: Final = 60.0
"""How often it is looked for what is to be deleted in the cluster."""
SETTLE_S: Final = 600.0
"""How often it is looked for days to settle."""
ASK_AGAIN_S: Final = 10.0
"""How often a cluster is asked that did not answer the latest question."""
_ANSWERS_WITHIN_S: Final = 2.0
_RETRY_AFTER_S: Final = 10
_REASONS: Final = (ClickHouseError, OtherTables, CannotSend)
"""Why hits cannot be sent at the moment; `str(error)` is for the operator."""
_MARKED_MS: Final = 60_000
"""How often it is stored up to when everything was sent if nothing is."""


def client_of(cluster: ClusterSettings) -> Client:
    """Return a client of the servers of a cluster."""
    return Client(
        Connecting(
            urls=cluster.urls,
            database=cluster.database,
            user=cluster.user,
            password=cluster.password,
            ca_file=cluster.ca_file,
        )
    )


def layout_of(cluster: ClusterSettings) -> Layout:
    """Return how the tables of a cluster are made."""
    return Layout(cluster.name, is_replicated=cluster.is_replicated)


@define(eq=False, kw_only=True)
class Shipping:
    """Sends what the store has, and keeps a ClusterState up to date."""

    state: ClusterState
    _removal: Removal
    _settling: Settling
    _store: Store
    _spool: Spool
    _shipper: Shipper
    _in_thread: Pool
    _clock: Callable[[], float]
    _log = Logger()

    @classmethod
    def start(
        cls, store: Store, cluster: ClusterSettings, reactor: Any, clock: Callable[[], float]
    ) -> "Shipping":
        """Return what ships the hits of a store that is kept for a cluster."""
        if store.spool is None:
            raise ValueError("the store is not kept for a cluster")
        client = client_of(cluster)
        shipper = Shipper(
            store=store,
            spool=store.spool,
            client=client,
            layout=layout_of(cluster),
            collector=cluster.collector,
            quorum=cluster.quorum,
            now_ms=lambda: int(clock() * 1000),
        )
        return cls(
            state=ClusterState(cluster.collector, primary=cluster.collector),
            removal=Removal(client, layout_of(cluster)),
            settling=Settling(client, cluster.quorum),
            store=store,
            spool=store.spool,
            shipper=shipper,
            # Never stopped: a stop would wait for a server that does not answer.
            in_thread=Pool.start("cluster", 1, reactor),
            clock=clock,
        )

    def stop(self) -> None:
        """Read nothing more of the store, and close what is not in use."""
        self._shipper.stop()
        self._shipper.client.close()

    async def ship(self) -> None:
        """Send what is new, until less than a block is left."""
        try:
            while await self._ship_some() >= MOST_NUMBERS:
                pass
        except Stopped:
            return

    async def _ship_some(self) -> int:
        """Send a block; return how many numbers are left, 0 after a failure. Raises Stopped."""
        state, progress = self.state, None
        try:
            progress = await self._in_thread(self._shipper.step)
        except _REASONS as error:
            self._failed(str(error))
        else:
            if state.failure:
                self._log.info("the cluster takes hits again")
            if progress.lacking and not state.lacking:
                self._log.warn("hits are on too few replicas: {why}", why=progress.lacking)
            state.failure, state.lacking = "", progress.lacking
            state.rows += progress.rows
        state.sent_bytes = self._shipper.client.inserted_bytes
        backlog = await self._in_thread(self._shipper.backlog)
        state.waiting, state.unsafe = backlog.waiting, backlog.unsafe
        state.waiting_since = None if backlog.since_ms is None else backlog.since_ms / 1000
        if progress is None or not await self._move_marks(progress.marks):
            return 0
        return progress.left

    async def remove(self) -> None:
        """Delete in the cluster what is deleted here, and what is past its retention."""
        store, deleted = self._store, self._spool.marks.deleted
        if self.state.failure or not self._spool.marks.collector:
            # It may be the cluster of others.
            return
        trusted_ms = store.clock.trusted_ms(int(self._clock() * 1000))
        expired = store.maintenance.retained_since_ms(trusted_ms)
        try:
            if deleted:
                are_gone = await self._in_thread(partial(self._removal.remove_websites, deleted))
                if are_gone:
                    await store.forget_deleted(deleted)
            if self.state.is_primary:
                spool = self._spool
                removed = [batch for batch in spool.hidden if batch[1] not in spool.loading]
                gone = await self._in_thread(partial(self._removal.remove_batches, removed))
                if gone:
                    await store.forget_removed(gone)
                await self._in_thread(partial(self._removal.remove_before, expired))
        except (ClickHouseError, Unavailable) as error:
            self._log.warn("what is to be deleted stays in the cluster: {why}", why=str(error))

    async def settle(self) -> None:
        """Make rows of the visits of days that may get no more hits; day by day, between hits."""
        if self.state.failure or not self._spool.marks.collector or not self.state.is_primary:
            return
        try:
            due = await self._in_thread(
                partial(self._settling.due, day_of(int(self._clock() * 1000)))
            )
            for day in due:
                await self._in_thread(partial(self._settling.settle, day))
        except ClickHouseError as error:
            self._log.warn("visits of earlier days are not settled: {why}", why=str(error))

    async def ask_again(self) -> None:
        """Find out whether the cluster answers again. Nobody may ask anything for a while."""
        if not self.state.unanswered:
            return
        connecting = evolve(self._shipper.client.connecting, timeout_s=_ANSWERS_WITHIN_S)
        with closing(Client(connecting)) as client, suppress(ClickHouseError):
            await self._in_thread(partial(check_answers, client))
            self.state.unanswered = ""

    async def resend(self, request: ResendHits, report: ReportProgress) -> int:
        """Send all hits since a time again; return how many rows these are.

        Raises Unavailable if the cluster does not take them.
        """
        total = 0
        async for rows in self._each(self._shipper.resend(request.since * 1000)):
            total += rows
            report(Progress(text="sending", done=total))
        return total

    async def send_import(self, batch: ImportBatch, report: ReportProgress) -> None:
        """Send an unfinished import batch.

        Raises Unavailable if the cluster does not take it, and NotFound if it was given up.
        """
        segments = await self._store.imports.segments(batch)
        total = 0
        async for rows in self._each(self._shipper.send_import(batch.website, segments)):
            total += rows
            report(Progress(text="sending", done=total))

    async def load(self, _request: LoadHits, report: ReportProgress) -> int:
        """Send the hits from before there was a cluster; return how many rows.

        Raises Conflict if there are days of which only daily totals are left, before anything is
        sent; Unavailable if the cluster does not take the hits.
        """
        store = self._store
        if days := store.partitions.days_with_rollups():
            names = ", ".join(
                f"{website.hostname} ({len(days[website.number])})"
                for website in store.websites.all()
                if website.number in days
            )
            raise Conflict(
                f"of some days, only daily totals are left, which a cluster cannot have: {names}."
                ' Remove them before, by raw_days and after = "nothing" in [retention], or by'
                " undoing the import that brought them"
            )
        total = 0
        async for loaded in self._each(self._shipper.load()):
            await store.mark_loaded(loaded.website, loaded.up_to)
            total += loaded.rows
            report(Progress(text="sending", done=total))
        await store.mark_all_loaded()
        return total

    async def _each(self, blocks: Iterator[T]) -> AsyncIterator[T]:
        """Let blocks be sent; return what is said of each. Raises Unavailable."""
        try:
            while (sent := await self._in_thread(partial(_next, blocks))) is not None:
                yield sent
        except Stopped as error:
            raise Unavailable("the daemon is stopping", retry_after=_RETRY_AFTER_S) from error
        except _REASONS as error:
            raise Unavailable(str(error), retry_after=_RETRY_AFTER_S) from error

    async def _move_marks(self, marks: Marks) -> bool:
        """Store how far the cluster has everything; return whether it could be stored."""
        known = self._spool.marks
        is_other = replace(marks, safe_ms=known.safe_ms) != known
        if is_other or marks.safe_ms - known.safe_ms >= _MARKED_MS:
            try:
                await self._store.move_marks(marks)
            except Unavailable:
                # The writer reports it. What was sent is sent again after a start.
                return False
        return True

    def _failed(self, reason: str) -> None:
        state = self.state
        state.failures += 1
        if reason != state.failure:
            self._log.error("the cluster takes no hits, they stay here: {reason}", reason=reason)
        state.failure = reason


def _next(blocks: Iterator[T]) -> T | None:
    return next(blocks, None)
