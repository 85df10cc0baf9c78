"""The store as the rest of the program uses it: reads return at once, writes are awaited."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Final, TypeVar

import lmdb
from attrs import define, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from medamad.domain.accounts import Account, Share, Token
from medamad.domain.hits import Hit
from medamad.domain.timings import Timings
from medamad.domain.websites import Website
from medamad.storage import visitors
from medamad.storage.accounts import StoredAccount, delete_account, write_account
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.compaction.purge import WebsitePurge
from medamad.storage.compaction.scheduler import Maintenance
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.environment import Environment
from medamad.storage.environment.free_space import Room, Usage
from medamad.storage.environment.trusted_clock import TrustedClock
from medamad.storage.environment.writer import StallWatch, Transaction, Writer
from medamad.storage.errors import Lost
from medamad.storage.grants import Grants, delete_shares_of
from medamad.storage.import_content import Bulk, TextCoding, contents_of
from medamad.storage.imports import Imports
from medamad.storage.segments.registry import Partitions
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import StoreSettings
from medamad.storage.wal.journal import Journal, Outcome, WriteBatch
from medamad.storage.websites import Websites


@frozen(kw_only=True)
class Figures:
    """The figures of one moment."""

    used_bytes: int
    """Of the store's file."""
    map_bytes: int
    """What the file can grow to."""
    free_disk_bytes: int
    segments: int
    """Flushed segments of all websites."""
    memtable_views: int
    """Views of all websites that are in memory, and not flushed yet."""


T = TypeVar("T")

_log: Final = Logger()


@define(eq=False)
class Store:
    """An open store. Reads are cheap and may be made anywhere; writes go to the writer thread.

    `broken` fires with the reason when the store can no longer be trusted; the program is to stop.
    """

    settings: StoreSettings
    websites: Websites
    account: StoredAccount
    tokens: Grants[Token]
    shares: Grants[Share]
    clock: TrustedClock
    broken: "Deferred[str]"
    _environment: Environment
    _journal: Journal
    _names: Dictionary
    _room: Room
    _writer: Writer
    _partitions: Partitions
    _removal: WebsitePurge
    _compactor: Compactor
    _coding: TextCoding
    imports: Imports
    _one_at_a_time: DeferredLock
    _maintenance: Maintenance

    async def close(self, within_s: float | None = None) -> None:
        """Finish what was submitted, then close the file. Nothing may be asked afterwards.

        Where a write does not end within a time, the file stays open until the process ends.
        """
        self._maintenance.close()
        if self._writer.stop(within_s):
            self._environment.close(is_sound=not self.broken.called)
        else:
            # What a killed process leaves of a transaction, LMDB takes for never begun.
            _log.warn(
                "{path} is left open, as a write into it does not end: all that was answered"
                " is stored",
                path=self._environment.path,
            )

    def fail(self, reason: str) -> None:
        """Stop trusting the store: fire `broken`, and leave it marked as not closed."""
        if not self.broken.called:
            self.broken.callback(reason)

    def apply(self, settings: StoreSettings) -> None:
        """Go by other settings from now on; the map's size stays until the next start."""
        self.settings = settings
        self._room.min_free_disk = settings.min_free_disk
        self._maintenance.retention = settings.retention
        self._maintenance.tell_unregistered()
        self._names.bounds = settings.new_values
        self._names.default_bound = settings.other_new_values

    # Reading

    def ask(self, website: Website, question: Callable[[Snapshot], T]) -> T:
        """Put a question to what is stored of a website now. For any thread.

        What the snapshot gives, and whatever was borrowed of it, is valid for the question alone.
        """
        return self._partitions.ask(website.number, question)

    def snapshot(self, website: Website) -> AbstractContextManager[Snapshot]:
        """Keep the present state of a website readable until the context ends. Any thread."""
        return self._partitions.snapshot(website.number)

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        return self._partitions.visitors_last_day(website.number, now_ms)

    def live_visitors(self, website: Website, now_ms: int) -> int:
        """Count the views begun in the last five minutes whose page has not been left."""
        return self.ask(website, lambda snapshot: visitors.live_visitors(snapshot, now_ms))

    def usage(self) -> Usage:
        """Return how much of the store is in use."""
        with self._environment.reading() as txn:
            return self._room.usage(txn)

    @property
    def commits(self) -> Timings:
        """How long commits took."""
        return self._writer.commits

    def lack(self) -> str:
        """Return why no hits are stored at the moment, "" when they are."""
        try:
            self._environment.opened.check()
            with self._environment.reading() as txn:
                room = self._room.lack(txn)
        except Lost as error:
            return str(error)
        except OSError as error:
            return f"the folder of the store cannot be reached: {error.strerror}"
        except lmdb.Error as error:
            return f"the store cannot be read: {error}"
        return room or self._writer.lack

    @property
    def stall_watch(self) -> StallWatch:
        """Whether a write does not end. Somebody has to have it look."""
        return self._writer.stall_watch

    def is_running_out(self, process: int) -> bool:
        """Return whether what a process reads, as a backup, may soon keep hits from being stored."""
        try:
            with self._environment.reading() as txn:
                return self._room.is_running_out(txn, process)
        except (OSError, lmdb.Error):  # which `lack` tells of
            return False

    def figures(self) -> Figures:
        """Return what the store holds, and has room for."""
        usage, partitions = self.usage(), self._partitions.all()
        try:
            free_disk_bytes = self._room.free_disk()
        except OSError:
            free_disk_bytes = 0
        return Figures(
            used_bytes=usage.used,
            map_bytes=usage.total,
            free_disk_bytes=free_disk_bytes,
            segments=sum(len(partition.leaves()) for partition in partitions),
            memtable_views=sum(len(partition.memtable) for partition in partitions),
        )

    def unregistered_tables(self) -> list[str]:
        """Return the websites that retention names and that are not registered."""
        return self.settings.retention.unregistered(self.websites.hostnames())

    def retention_waits_ms(self, now_ms: int) -> int:
        """Return for how much longer what is past its time stays, as the clock is in doubt.

        0 when it is believed, or nothing is past its time by what it shows.
        """
        left_ms = self.clock.doubt_left_ms(now_ms)
        return left_ms if left_ms and self._maintenance.has_past(now_ms) else 0

    # Writing. Each raises Unavailable, and keeps nothing, when the store cannot take it.

    async def append(self, hits: Sequence[Hit]) -> list[Outcome]:
        """Store hits in order; returns what became of each once all are committed and synced."""
        batch = await self._writer.submit(lambda txn: self._append(txn, hits))
        for website in batch.records:
            partition = self._partitions.find(website)
            if partition is not None and self._compactor.planner.is_due(partition):
                self._maintenance.start(self._maintenance.tend(partition, hits[-1].time_ms))
        return batch.outcomes

    async def load(self, website: Website, bulk: Bulk) -> None:
        """Store what happened before, without regard to bounds on new values."""
        if not len(bulk) and not len(bulk.event):
            return
        partition = self._partitions.of(website.number)
        # Nothing uses the names until the views are there: they must not be tidied away.
        async with self._one_at_a_time:
            codes = await self._coding.codes(partition, bulk.used_texts(), bulk.time_bounds()[0])
            first = await self._writer.submit(partial(self._reserve, bulk.sequence_numbers()))
            sizes = bulk.cut(
                self._compactor.planner.room(partition), self._compactor.planner.sizes.chunk_views
            )
            for content in contents_of(bulk, first, codes, sizes):
                await self._compactor.add(partition, content)
                await self._compactor.remove_purge_queue()
            await self._compactor.tend(partition, bulk.time_bounds()[1])
        await self._writer.submit(partial(self._partitions.count_visitors, partition))

    async def add_website(self, hostname: str, now: int) -> Website:
        """Register a website. Raises Conflict when the hostname is taken."""
        website = await self._writer.submit(lambda txn: self.websites.add(txn, hostname, now))
        self._maintenance.tell_unregistered()
        return website

    async def rename_website(self, website: Website, hostname: str, now: int) -> Website:
        """Return a website another hostname. Raises NotFound, and BadRequest when it is taken."""
        renamed = await self._writer.submit(
            lambda txn: self.websites.rename(txn, website.number, hostname, now)
        )
        self._maintenance.tell_unregistered()
        return renamed

    async def delete_website(self, website: Website) -> None:
        """Delete a website; its hits are gone from sight at once. Raises NotFound."""

        def change(txn: Transaction) -> None:
            self.websites.delete(txn, website.number)
            delete_shares_of(txn.lmdb, self._environment.databases, website.number)
            txn.after_commit(lambda: self._forget(website.number))

        await self._writer.submit(change)
        self._maintenance.tell_unregistered()
        self._maintenance.start(self._removal.remove(website.number))

    async def replace_account(self, account: Account) -> None:
        """Put a new account in the place of all there is: account, logins, websites and hits."""

        def change(txn: Transaction) -> list[int]:
            databases = self._environment.databases
            delete_account(txn.lmdb, databases)
            write_account(txn.lmdb, databases, account)
            numbers = self.websites.clear(txn)
            txn.after_commit(lambda: self._forget(*numbers))
            return numbers

        for number in await self._writer.submit(change):
            self._maintenance.start(self._removal.remove(number))
        self._maintenance.tell_unregistered()

    def let_go_of_texts(self) -> None:
        """Let go of what is kept for questions that nobody asks. For any thread, now and then."""
        self._partitions.let_go_of_texts(self.settings.text_bytes)

    async def tidy(self, now_ms: int, trusted_ms: int | None = None) -> None:
        """Do what the passing of time asks for, in small steps.

        Hits of more than a day ago are flushed, what became known of flushed ones is folded in,
        those past their time go, as does what is left of imports that were undone or given up;
        beacons of more than a day ago, what came before a load that never did, and readers that
        have died are forgotten. What goes for good does so by `trusted_ms`, `now_ms` where that is
        not given.
        Raises Unavailable when the store cannot take it; then it is for the next time.
        """
        self._environment.lmdb.reader_check()
        self._room.long_readers.tell()
        self._maintenance.tell_waiting(0 if trusted_ms is None else self.retention_waits_ms(now_ms))
        try:
            await self.imports.tidy()
        finally:
            await self._maintenance.tidy(now_ms, now_ms if trusted_ms is None else trusted_ms)

    # In the writer thread

    def _reserve(self, numbers: int, txn: Transaction) -> int:
        first = self._journal.reserve(numbers)
        self._journal.keep_sequence(txn.lmdb)
        return first

    def _append(self, txn: Transaction, hits: Sequence[Hit]) -> WriteBatch:
        self._room.check(txn.lmdb)
        batch = self._journal.write(txn.lmdb, hits, self.websites.has_number, self._partitions)
        txn.after_commit(batch.committed)
        txn.after_commit(lambda: self._partitions.extend(batch))
        return batch

    def _forget(self, *numbers: int) -> None:
        self._partitions.forget(numbers)
        for number in numbers:
            self._names.forget(number)
