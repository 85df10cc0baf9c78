"""The store as the rest of the program uses it: reads return at once, writes are awaited."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Final, TypeVar

import lmdb
from attrs import define, frozen
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from medamad.domain.accounts import Account, Share, Token
from medamad.domain.alerts import Alerts
from medamad.domain.annotations import Annotations
from medamad.domain.dimensions import Dimension
from medamad.domain.exported_settings import Defined, ExportedSettings, Imported
from medamad.domain.goals import Definitions
from medamad.domain.hits import Event, Hit, View
from medamad.domain.subscriptions import Subscription
from medamad.domain.timings import Timings
from medamad.domain.website_settings import WebsiteSettings
from medamad.domain.websites import Website
from medamad.storage.accounts import ACCOUNT, StoredAccount, delete_account
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.compaction.maintenance import Maintenance
from medamad.storage.compaction.purge import WebsitePurge
from medamad.storage.dictionary.encode import Dictionary, day_of
from medamad.storage.environment.environment import Environment
from medamad.storage.environment.free_space import FreeSpace, MapUsage
from medamad.storage.environment.tree_check import DamagedValue
from medamad.storage.environment.trusted_clock import TrustedClock
from medamad.storage.environment.writer import StallWatch, Transaction, Writer
from medamad.storage.errors import DamagedSegment, Lost
from medamad.storage.followed_logs import LogCounts, LogPosition, advance_log, read_position
from medamad.storage.grants import Grants, delete_reports_of, delete_shares_of
from medamad.storage.imports import Imports
from medamad.storage.passed_hits import (
    WaitingHit,
    count_waiting,
    forget_received,
    read_waiting,
    settle,
    write_waiting,
)
from medamad.storage.request_totals import RequestTotals
from medamad.storage.segments.damage import WAYS_OUT
from medamad.storage.segments.partitions import Partitions
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import StoreSettings
from medamad.storage.shared_settings import (
    Epoch,
    Role,
    SharedSettings,
    begin_epoch,
    read_role,
    read_shared,
    write_role,
    write_shared,
)
from medamad.storage.spool import Batch, Marks, Spool, read_hidden
from medamad.storage.wal.log import Outcome, WriteAheadLog, WriteBatch
from medamad.storage.website_values import (
    WebsiteValues,
    delete_all_values,
    delete_values,
    import_settings,
    read_defined,
)
from medamad.storage.websites import Websites


@frozen(kw_only=True)
class StoreSizes:
    """Sizes of a store at a moment."""

    used_bytes: int
    """Bytes of the file that are in use."""
    map_bytes: int
    """Bytes that the file can grow to."""
    free_disk_bytes: int
    segments: int
    """Segments of all websites."""
    memtable_views: int
    """Views of all websites that are not flushed yet."""


T = TypeVar("T")

_log: Final = Logger()


@define(eq=False)
class Store:
    """An open store. Reads are for any thread; writes go to the writer thread."""

    settings: StoreSettings
    websites: Websites
    account: StoredAccount
    tokens: Grants[Token]
    shares: Grants[Share]
    reports: Grants[Subscription]
    alerts: WebsiteValues[Alerts]
    goals: WebsiteValues[Definitions]
    annotations: WebsiteValues[Annotations]
    robots: RequestTotals
    clock: TrustedClock
    imports: Imports
    broken: "Deferred[str]"
    """Fires with the reason when the store can no longer be trusted and the program has to stop."""
    # The components, which `startup` connects.
    environment: Environment
    wal: WriteAheadLog
    dictionary: Dictionary
    free_space: FreeSpace
    writer: Writer
    partitions: Partitions
    website_purge: WebsitePurge
    compactor: Compactor
    maintenance: Maintenance
    spool: Spool | None = None
    """What stays until a cluster has it; None without one."""

    async def close(self, within_s: float | None = None) -> None:
        """Finish the writes submitted so far, then close the file.

        If they do not end within the time, the file stays open until the process ends.
        """
        self.maintenance.close()
        if self.writer.stop(within_s):
            self.environment.close(is_sound=not self.broken.called)
        else:
            # LMDB ignores the transaction that a killed process did not finish.
            _log.warn(
                "{path} is left open, as a write does not end; everything acknowledged is stored",
                path=self.environment.path,
            )

    def fail(self, reason: str) -> None:
        """Stop trusting the store: fire `broken`, and leave it marked as not closed."""
        if not self.broken.called:
            self.broken.callback(reason)

    def add_damage(self, values: Iterable[DamagedValue]) -> None:
        """Leave segments that have a damaged value out of results from now on. Any thread.

        Other values are verified when they are read, which is at the start at the latest.
        """
        for value in values:
            partition = self.partitions.find(value.website)
            if partition is not None and value.segment:
                partition.damage.add_segment(DamagedSegment(value.segment, value.place))

    def damaged_places(self) -> list[str]:
        """Return what is known to be damaged."""
        of_partitions = [
            place for partition in self.partitions.all() for place in partition.damaged_places()
        ]
        return [*self.websites.damaged, *of_partitions]

    @property
    def damage(self) -> str:
        """What is damaged and what to do about it; "" if nothing is known to be."""
        places = self.damaged_places()
        if not places:
            return ""
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        return f"damaged data is left out of statistics: {places[0]}{more}; {WAYS_OUT}"

    def apply(self, settings: StoreSettings) -> None:
        """Apply changed settings; the size of the map stays until the next start."""
        self.settings = settings
        self.free_space.min_free_disk = settings.min_free_disk
        self.maintenance.retention = settings.retention
        self.maintenance.log_unregistered()
        self.wal.visits.settings = settings.visits
        self.dictionary.bounds = settings.new_values
        self.dictionary.default_bound = settings.other_new_values

    # Reading

    def read(self, website: Website, read: Callable[[Snapshot], T]) -> T:
        """Call `read` with a snapshot of a website and return its result.

        The snapshot, and the arrays borrowed from it, are valid only until the function returns.
        """
        return self.partitions.read(website.number, read)

    def snapshot(self, website: Website) -> AbstractContextManager[Snapshot]:
        """Keep the present state of a website readable until the context ends. Any thread."""
        return self.partitions.snapshot(website.number)

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        return self.partitions.visitors_last_day(website.number, now_ms)

    def limits_reached(self, now_ms: int) -> dict[int, list[Dimension]]:
        """Return the dimensions whose new values count as OTHER today (UTC), by website number."""
        reached, day = self.dictionary.reached, day_of(now_ms)
        found: dict[int, list[Dimension]] = {}
        for number, dimension in sorted(space for space, last in reached.items() if last == day):
            found.setdefault(number, []).append(dimension)
        return found

    def usage(self) -> MapUsage:
        """Return how much of the store's space is in use."""
        with self.environment.reading() as txn:
            return self.free_space.usage(txn)

    @property
    def commits(self) -> Timings:
        """The durations of commits."""
        return self.writer.commits

    def unavailable_reason(self) -> str:
        """Return why no hits are stored at the moment, "" when they are."""
        try:
            self.environment.opened.check()
            with self.environment.reading() as txn:
                shortage = self.free_space.unavailable_reason(txn)
        except Lost as error:
            return str(error)
        except OSError as error:
            return f"the folder of the store cannot be reached: {error.strerror}"
        except lmdb.Error as error:
            return f"the store cannot be read: {error}"
        return shortage or self.writer.unavailable_reason

    @property
    def stall_watch(self) -> StallWatch:
        """Detects writes that do not end, if it is called regularly."""
        return self.writer.stall_watch

    def figures(self) -> StoreSizes:
        """Return the sizes of the store."""
        usage, partitions = self.usage(), self.partitions.all()
        try:
            free_disk_bytes = self.free_space.free_disk()
        except OSError:
            free_disk_bytes = 0
        return StoreSizes(
            used_bytes=usage.used,
            map_bytes=usage.total,
            free_disk_bytes=free_disk_bytes,
            segments=sum(len(partition.leaves()) for partition in partitions),
            memtable_views=sum(len(partition.memtable) for partition in partitions),
        )

    def log_position(self, log: str) -> LogPosition | None:
        """Return how far a log was read, None if that is damaged."""
        with self.environment.reading() as txn:
            return read_position(txn, self.environment.databases, log)

    def hidden_batches(self, website: int) -> frozenset[int]:
        """Return the import batches of a website that no query of a cluster sees.

        They are not complete, or were removed. For any thread.
        """
        partition = self.partitions.find(website)
        hidden: frozenset[int] = frozenset() if partition is None else partition.hidden_batches
        if self.spool is None:
            return hidden
        return hidden.union(batch for of, batch in self.spool.hidden if of == website)

    def unregistered_tables(self) -> list[str]:
        """Return the hostnames of retention tables that are not registered."""
        return self.settings.retention.unregistered(self.websites.hostnames())

    def retention_waits_ms(self, now_ms: int) -> int:
        """Return how much longer expired hits stay because the clock is in doubt.

        0 when it is trusted, or when nothing has expired.
        """
        left_ms = self.clock.doubt_left_ms(now_ms)
        return left_ms if left_ms and self.maintenance.has_expired(now_ms) else 0

    # Writing. All of it raises Unavailable when the store cannot take it; then nothing is stored.

    async def append(self, hits: Sequence[Hit]) -> list[Outcome]:
        """Store hits in order; return the outcome of each once all are committed and synced."""
        return self._appended(await self.writer.submit(lambda txn: self._append(txn, hits)), hits)

    async def follow_log(
        self, to: LogPosition, counts: LogCounts, views: Sequence[View] = ()
    ) -> list[Outcome]:
        """Store what some lines of a log add, and the position after them, all at once.

        `views` are those of the counts. Returns the outcome of each. Raises Conflict unless the
        position follows the stored one.
        """

        def change(txn: Transaction) -> WriteBatch | None:
            self.free_space.check(txn.lmdb)
            databases = self.environment.databases
            advance_log(txn.lmdb, databases, to, counts, self.robots)
            return self._append(txn, views) if views else None

        batch = await self.writer.submit(change)
        return [] if batch is None else self._appended(batch, views)

    def _appended(self, batch: WriteBatch, hits: Sequence[Hit]) -> list[Outcome]:
        """Start what is due after some hits were stored; return the outcome of each."""
        for website in batch.rows:
            partition = self.partitions.find(website)
            if partition is not None and self.compactor.planner.is_memtable_full(partition):
                self.maintenance.start(self.maintenance.run_due_jobs(partition, hits[-1].time_ms))
        return batch.outcomes

    async def add_website(self, hostname: str, now: int) -> Website:
        """Register a website. Raises Conflict when the hostname is taken."""
        website = await self.writer.submit(lambda txn: self.websites.add(txn, hostname, now))
        self.maintenance.log_unregistered()
        return website

    async def rename_website(self, website: Website, hostname: str, now: int) -> Website:
        """Change the hostname of a website. Raises NotFound, and BadRequest when it is taken."""
        renamed = await self.writer.submit(
            lambda txn: self.websites.rename(txn, website.number, hostname, now)
        )
        self.maintenance.log_unregistered()
        return renamed

    def defined_for(self, website: Website) -> Defined:
        """Return all that is defined for a website."""
        with self.environment.reading() as txn:
            return read_defined(txn, self.environment.databases, website)

    async def import_settings(
        self, website: Website, settings: ExportedSettings, now: int
    ) -> Imported:
        """Add settings to those of a website, all or none; return how much was added.

        Raises what `Defined.with_imported` does, NotFound and Unavailable.
        """
        reports = {report.id for _, report in self.reports.all()}
        databases = self.environment.databases

        def change(txn: Transaction) -> Imported:
            current = self.websites.by_number(website.number) or website
            own, imported = import_settings(txn.lmdb, databases, current, settings, reports)
            if own != current.settings:
                self.websites.change_settings(txn, current.number, lambda _: own, now)
            return imported

        return await self.writer.submit(change)

    async def change_website_settings(
        self, website: Website, change: Callable[[WebsiteSettings], WebsiteSettings], now: int
    ) -> Website:
        """Change the settings of a website. Raises NotFound, and what `change` does."""
        return await self.writer.submit(
            lambda txn: self.websites.change_settings(txn, website.number, change, now)
        )

    async def delete_website(self, website: Website) -> None:
        """Delete a website; queries no longer see its hits at once. Raises NotFound."""

        def change(txn: Transaction) -> None:
            self.websites.delete(txn, website.number)
            delete_shares_of(txn.lmdb, self.environment.databases, website.number)
            delete_reports_of(txn.lmdb, self.environment.databases, website.number)
            delete_values(txn.lmdb, self.environment.databases, website.number)
            self._delete_in_cluster(txn, [website.number])
            txn.after_commit(lambda: self._drop(website.number))

        await self.writer.submit(change)
        self.maintenance.log_unregistered()
        self.maintenance.start(self.website_purge.purge(website.number))

    async def replace_account(self, account: Account) -> None:
        """Delete the account with its logins, websites and hits, and store a new one."""

        def change(txn: Transaction) -> list[int]:
            databases = self.environment.databases
            delete_account(txn.lmdb, databases)
            delete_all_values(txn.lmdb, databases)
            ACCOUNT.write(txn.lmdb, databases, b"", account)
            numbers = self.websites.clear(txn)
            self._delete_in_cluster(txn, numbers)
            txn.after_commit(lambda: self._drop(*numbers))
            return numbers

        for number in await self.writer.submit(change):
            self.maintenance.start(self.website_purge.purge(number))
        self.maintenance.log_unregistered()

    def role(self, collector: int) -> Role:
        """Return which collector of a cluster this is, by default the first. Raises Damaged."""
        with self.environment.reading() as txn:
            role = read_role(txn, self.environment.databases)
            own = self.environment.store_id(txn)
        return role or Role(collector, Epoch(primary=collector, cluster=own))

    def shared_settings(self) -> SharedSettings:
        """Return a copy of what all collectors have in common."""
        with self.environment.reading() as txn:
            return read_shared(txn, self.environment.databases)

    async def take_shared(
        self, settings: SharedSettings, role: Role, keep: Callable[[SharedSettings], None]
    ) -> None:
        """Replace the settings by the primary's, in one transaction, and store whose they are.

        Websites that the primary no longer has are deleted with their hits. Before, `keep` is
        called in the writer's thread with the settings as they are.
        """

        def change(txn: Transaction) -> list[int]:
            databases = self.environment.databases
            keep(read_shared(txn.lmdb, databases))
            write_shared(txn.lmdb, databases, settings)
            write_role(txn.lmdb, databases, role)
            if (spool := self.spool) is not None:
                hidden = read_hidden(txn.lmdb, databases.meta)
                txn.after_commit(lambda: setattr(spool, "hidden", hidden))
            gone = self.websites.replace(txn)
            if gone:
                self._delete_in_cluster(txn, gone)
                txn.after_commit(lambda: self._drop(*gone))
            return gone

        for number in await self.writer.submit(change):
            self.maintenance.start(self.website_purge.purge(number))
        self.maintenance.log_unregistered()

    async def begin_epoch(self, role: Role) -> Role:
        """Become the primary; return the new role."""
        databases = self.environment.databases
        return await self.writer.submit(lambda txn: begin_epoch(txn.lmdb, databases, role))

    def hits_waiting(self) -> dict[int, int]:
        """Return how many hits wait for each of the other collectors."""
        with self.environment.reading() as txn:
            return count_waiting(txn, self.environment.databases)

    def hits_waiting_for(self, collector: int, most: int) -> list[WaitingHit]:
        """Return the oldest hits that wait for a collector."""
        with self.environment.reading() as txn:
            return read_waiting(txn, self.environment.databases, collector, most)

    async def keep_waiting(self, hits: Sequence[WaitingHit]) -> None:
        """Store hits that wait for other collectors."""

        def change(txn: Transaction) -> None:
            self.free_space.check(txn.lmdb)
            write_waiting(txn.lmdb, self.environment.databases, hits)

        await self.writer.submit(change)

    async def settle_waiting(
        self, collector: int, answered: Sequence[tuple[WaitingHit, bool]], now_ms: int
    ) -> int:
        """Let hits wait no more for a collector: with each, whether it has taken it.

        Events that no other may have are stored without their view, in the same transaction.
        Return how many entries of hits that wait were deleted.
        """

        def change(txn: Transaction) -> tuple[WriteBatch | None, list[Event], int]:
            databases = self.environment.databases
            left, deleted = settle(txn.lmdb, databases, collector, answered, now_ms)
            return self._append(txn, left) if left else None, left, deleted

        batch, left, deleted = await self.writer.submit(change)
        if batch is not None:
            self._appended(batch, left)
        return deleted

    async def forget_received(self, now_ms: int) -> None:
        """Forget which hits came from other collectors long ago."""
        databases = self.environment.databases
        await self.writer.submit(lambda txn: forget_received(txn.lmdb, databases, now_ms))

    def evict_texts(self) -> None:
        """Drop the least recently used texts from memory. To be called regularly."""
        self.partitions.evict_texts(self.settings.text_bytes)

    async def maintain(self, now_ms: int, trusted_ms: int | None = None) -> None:
        """Run the maintenance that is due, in small steps. To be called about every minute.

        Flushes hits of more than a day ago, folds corrections into segments, applies retention,
        deletes what is left of undone imports and deleted websites, and forgets expired beacons,
        unmatched ones, visits that are over, and readers that have died. What is deleted for good
        expires by `trusted_ms`, or `now_ms` without it. Raises Unavailable when the store has no
        room for some of it, which is retried the next time.
        """
        self.environment.lmdb.reader_check()
        self.free_space.long_readers.log_long_ones()
        self.maintenance.log_waiting(0 if trusted_ms is None else self.retention_waits_ms(now_ms))
        try:
            await self.imports.finish_removals()
        finally:
            await self.maintenance.run(now_ms, now_ms if trusted_ms is None else trusted_ms)

    async def move_marks(self, marks: Marks) -> None:
        """Store how far the cluster has the log."""
        await self._change_marks(
            lambda old: replace(
                old,
                collector=marks.collector,
                sent=marks.sent,
                safe=marks.safe,
                safe_ms=marks.safe_ms,
            )
        )

    async def mark_loaded(self, website: int, up_to: int) -> None:
        """Store how far the cluster has what a website had before there was a cluster."""
        await self._change_marks(lambda old: replace(old, loaded={**old.loaded, website: up_to}))

    async def mark_all_loaded(self) -> None:
        """Store that the cluster also has what was stored here before there was one."""
        await self._change_marks(lambda old: replace(old, since=0, loaded={}))

    async def forget_deleted(self, websites: Sequence[int]) -> None:
        """Store that the cluster has nothing of some deleted websites any more."""
        await self._change_marks(
            lambda old: replace(
                old, deleted=tuple(number for number in old.deleted if number not in websites)
            )
        )

    async def forget_removed(self, batches: Sequence[Batch]) -> None:
        """Store that the cluster has nothing of some removed import batches any more."""
        if (spool := self.spool) is not None:
            meta = self.environment.databases.meta
            await self.writer.submit(lambda txn: spool.reveal(txn, meta, batches))

    async def _change_marks(self, change: Callable[[Marks], Marks]) -> None:
        spool = self.spool
        if spool is not None:
            meta = self.environment.databases.meta
            await self.writer.submit(lambda txn: spool.change(txn, meta, change(spool.marks)))

    # In the writer thread

    def _append(self, txn: Transaction, hits: Sequence[Hit]) -> WriteBatch:
        self.free_space.check(txn.lmdb)
        batch = self.wal.write(txn.lmdb, hits, self.websites.has_number, self.partitions)
        txn.after_commit(batch.remember)
        txn.after_commit(lambda: self.partitions.extend(batch))
        if (spool := self.spool) is not None:
            spool.unbound.update(batch.unbound)
            txn.after_commit(lambda: self._is_stored(spool))
        return batch

    def _delete_in_cluster(self, txn: Transaction, websites: Sequence[int]) -> None:
        spool = self.spool
        if spool is not None:
            deleted = (*spool.marks.deleted, *websites)
            marks = replace(spool.marks, deleted=deleted)
            spool.change(txn, self.environment.databases.meta, marks)

    def _is_stored(self, spool: Spool) -> None:
        spool.stored_up_to = self.wal.last_sequence

    def _drop(self, *numbers: int) -> None:
        self.partitions.drop(numbers)
        for number in numbers:
            self.dictionary.drop(number)
