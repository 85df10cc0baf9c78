"""Background work: after a start, when a memtable is full, and every minute."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, Final

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.domain.errors import Unavailable
from medamad.domain.zones import DAY_MS
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.compaction.purge import WebsitePurge
from medamad.storage.compaction.retention import Cutoff, Removed, cutoff_of
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.access import Leases
from medamad.storage.environment.environment import Databases, Environment
from medamad.storage.environment.trusted_clock import JUMP_MS, doubt_warning
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.request_totals import delete_before, has_before
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.partitions import Partitions
from medamad.storage.settings import Retention, unregistered_warning
from medamad.storage.spool import Spool
from medamad.storage.wal.beacons import BeaconIndex, UnmatchedBeacons
from medamad.storage.wal.named_visitors import NamedVisitors
from medamad.storage.wal.visits import LiveVisits
from medamad.storage.websites import Websites

_STEP_BEACONS: Final = 500


@define(eq=False, kw_only=True)
class Maintenance:
    """Runs in the reactor's thread. `retention` may be replaced at any time."""

    retention: Retention
    _environment: Environment
    _submit: Submit
    _websites: Websites
    _dictionary: Dictionary
    _beacons: BeaconIndex
    _unmatched: UnmatchedBeacons
    _named: NamedVisitors
    _visits: LiveVisits
    _leases: Leases
    _partitions: Partitions
    _website_purge: WebsitePurge
    _compactor: Compactor
    _spool: Spool | None = None
    segments_lock: DeferredLock
    """Held while segments are written, or while new texts wait for the segment that uses them."""
    postponed: Sequence[Partition] | None = None
    """What `finish_last_run` is to be called with by the next `run`."""
    _queued: set[int] = field(factory=set)
    """The websites that wait for `run_due_jobs`."""
    _trusted_ms: int | None = None
    """The time by which retention goes; None until it is known."""
    _vacuum_day: int | None = None
    """The day on which every dictionary was last found to be due for a vacuum."""
    _vacuum_due: set[int] = field(factory=set)
    """The websites whose dictionaries are due for a vacuum."""
    _logged_unregistered: frozenset[str] = frozenset()
    """The retention tables of unregistered websites that were logged."""
    _has_logged_waiting: bool = False
    _closing: bool = False
    _log = Logger()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work that nobody waits for.

        What fails is retried, at the next start if not before.
        """
        Deferred.fromCoroutine(work).addErrback(self._log_failure)

    def close(self) -> None:
        """Start no more work."""
        self._closing = True

    async def finish_last_run(self, to_trim: Sequence[Partition]) -> None:
        """Delete what the last run left: records that were flushed, segments in the purge queue."""
        async with self.segments_lock:
            for partition in to_trim:
                await self._compactor.trim_wal(partition)
            await self._compactor.purge()

    async def count_visitors(self) -> None:
        """Load the visitors of the last 24 hours into memory."""
        for partition in self._partitions.all():
            await self._submit(partial(self._partitions.count_visitors, partition))

    async def run(self, now_ms: int, trusted_ms: int) -> None:
        """Run everything that is due; see `Store.maintain`."""
        self._trusted_ms = trusted_ms
        partitions = self._partitions.all()
        # What frees room comes first. A step that there is no room for does not stop the others.
        steps: tuple[Callable[[], Awaitable[object]], ...] = (
            self._finish_postponed,
            partial(self._website_purge.resume, self._websites.has_number),
            partial(self._expire_beacons, trusted_ms),
            partial(self._expire_unmatched, trusted_ms),
            partial(self._expire_named, trusted_ms),
            partial(self._expire_visits, now_ms),
            *(partial(self._recount_visitors, partition, now_ms) for partition in partitions),
            *(partial(self.run_due_jobs, partition, now_ms) for partition in partitions),
            partial(self._expire_robots, trusted_ms),
            *(partial(self._trim_log, partition) for partition in partitions if self._spool),
            partial(self._vacuum_daily, now_ms // DAY_MS),
        )
        failure: Unavailable | None = None
        for step in steps:
            try:
                await step()
            except Unavailable as error:
                failure = failure or error
        if failure is not None:
            raise failure

    async def run_due_jobs(self, partition: Partition, now_ms: int) -> None:
        """Run every job that is due for a website, unless a run for it is queued."""
        if partition.website in self._queued:
            return
        self._queued.add(partition.website)
        async with self.segments_lock:
            self._queued.discard(partition.website)
            if self._closing:
                return
            cutoffs: Sequence[Cutoff | None] = ()
            if self._trusted_ms is not None:
                cutoffs = self._cutoffs(self._trusted_ms)(partition.website)
            for cutoff in cutoffs or (None,):
                await self._run_jobs(partition, now_ms, cutoff)

    async def _run_jobs(self, partition: Partition, now_ms: int, cutoff: Cutoff | None) -> None:
        removed = Removed()
        try:
            while job := await self._compactor.run_next(partition, now_ms, cutoff):
                removed += job.removed()
        finally:
            if cutoff is not None and removed != Removed():
                self._log_removed(partition, cutoff, removed)
                self._vacuum_due.add(partition.website)

    def vacuum_after_removal(self, partition: Partition) -> None:
        """Delete the texts that a website no longer uses, once no query reads them any more."""

        async def vacuum() -> None:
            await self._leases.ended(partition.website)
            self._vacuum_due.add(partition.website)
            await self._vacuum(partition)

        self.start(vacuum())

    def has_expired(self, now_ms: int) -> bool:
        """Return whether retention would delete something flushed at a moment."""
        cutoffs_of_website = self._cutoffs(now_ms)
        for partition in self._partitions.all():
            for cutoff in cutoffs_of_website(partition.website):
                segments = partition.leaves()
                if not cutoff.keeps_rollups:
                    segments += partition.rollups
                if any(map(cutoff.concerns, segments)):
                    return True
        return bool(self._old_robots(now_ms))

    def retained_since_ms(self, now_ms: int) -> dict[int, int]:
        """Return before when the views of a website are deleted, by its number, if they are."""
        retention, hostnames = self.retention, self._websites.hostnames()
        found: dict[int, int] = {}
        for website in self._websites.all():
            rule = retention.of(website.hostname, hostnames)
            if (cutoff := cutoff_of(rule, retention.zone, now_ms)) is not None:
                found[website.number] = cutoff.before_ms
        return found

    def log_unregistered(self) -> None:
        """Log each retention table that names no registered website, once."""
        unregistered = self.retention.unregistered(self._websites.hostnames())
        for hostname in unregistered:
            if hostname not in self._logged_unregistered:
                self._log.warn("{warning}", warning=unregistered_warning(hostname))
        self._logged_unregistered = frozenset(unregistered)

    def log_waiting(self, left_ms: int) -> None:
        """Log once that retention waits for the clock to be trusted; `left_ms` is 0 if not."""
        if left_ms and not self._has_logged_waiting:
            self._log.warn("{warning}", warning=doubt_warning(left_ms))
        self._has_logged_waiting = bool(left_ms)

    # Steps of `run`

    async def _finish_postponed(self) -> None:
        if self.postponed is not None:
            await self.finish_last_run(self.postponed)
            self.postponed = None

    async def _expire_beacons(self, trusted_ms: int) -> None:
        before_ms = trusted_ms - DAY_MS - JUMP_MS
        await self._repeat(
            lambda txn: self._beacons.expire_before(txn.lmdb, before_ms, _STEP_BEACONS)
        )

    async def _expire_unmatched(self, trusted_ms: int) -> None:
        await self._repeat(lambda _: self._unmatched.expire(trusted_ms, _STEP_BEACONS))

    async def _expire_named(self, trusted_ms: int) -> None:
        await self._repeat(lambda txn: self._named.expire(txn.lmdb, trusted_ms, _STEP_BEACONS))

    async def _expire_robots(self, trusted_ms: int) -> None:
        """Delete the totals of robots of days of which no totals are kept."""
        databases = self._environment.databases
        for website, day in self._old_robots(trusted_ms):
            await self._repeat(partial(_delete_robots, databases, website, day))

    def _old_robots(self, now_ms: int) -> list[tuple[int, int]]:
        """Return the websites with totals of robots to delete, and the first day to keep."""
        cutoffs_of_website = self._cutoffs(now_ms)
        with self._environment.reading() as txn:
            return [
                (number, cutoff.day)
                for number in (website.number for website in self._websites.all())
                for cutoff in cutoffs_of_website(number)
                if not (cutoff.keeps_rollups or cutoff.is_in_cluster)
                and has_before(txn, self._environment.databases, number, cutoff.day)
            ]

    async def _expire_visits(self, now_ms: int) -> None:
        await self._repeat(lambda _: self._visits.expire(now_ms, _STEP_BEACONS))

    async def _repeat(self, step: Callable[[Transaction], int]) -> None:
        """Repeat a step until it deletes fewer than it may."""
        deleted = _STEP_BEACONS
        while not self._closing and deleted == _STEP_BEACONS:
            deleted = await self._submit(step)

    async def _recount_visitors(self, partition: Partition, now_ms: int) -> None:
        """Count the visitors of the last 24 hours again where the clock was set."""
        if not partition.is_deleted and not self._partitions.knows_visitors(
            partition.website, now_ms
        ):
            await self._submit(partial(self._partitions.count_visitors, partition, now_ms=now_ms))

    async def _trim_log(self, partition: Partition) -> None:
        """Delete what was flushed before the cluster had it."""
        async with self.segments_lock:
            await self._compactor.trim_wal(partition)

    async def _vacuum_daily(self, day: int) -> None:
        """Vacuum every dictionary once a day, and those again that there was no room for."""
        partitions = self._partitions.all()
        if self._vacuum_day != day:
            self._vacuum_day = day
            self._vacuum_due = {partition.website for partition in partitions}
        for partition in partitions:
            await self._vacuum(partition)

    async def _vacuum(self, partition: Partition) -> None:
        """Vacuum a dictionary that is due, unless a query still reads what used its texts."""
        async with self.segments_lock:
            is_read = self._compactor.purge_queue.has_readers(partition.website)
            if partition.website in self._vacuum_due and not is_read and not self._closing:
                await self._compactor.vacuum(partition, self._dictionary)
                self._vacuum_due.discard(partition.website)

    # Retention

    def _cutoffs(self, now_ms: int) -> Callable[[int], Sequence[Cutoff]]:
        """Return a function from a website's number to its cutoffs; equal rules are computed once.

        There is one at most, and besides it one for what a cluster has, if there is one.
        """
        retention = self.retention
        default = retention.of_others(self._websites.hostnames())
        cutoff_by_rule = cache(partial(cutoff_of, zone=retention.zone, now_ms=now_ms))

        spool = self._spool
        sent = () if spool is None else (spool.cutoff(now_ms),)

        def cutoffs(number: int) -> Sequence[Cutoff]:
            website = self._websites.by_number(number)
            if website is None:
                return ()
            own = cutoff_by_rule(retention.websites.get(website.hostname, default))
            if own is None:
                return sent
            return (own if spool is None else spool.limited(own), *sent)

        return cutoffs

    def _log_removed(self, partition: Partition, cutoff: Cutoff, removed: Removed) -> None:
        website = self._websites.by_number(partition.website)
        hostname = "" if website is None else website.hostname
        before = datetime.fromtimestamp(cutoff.before_ms // 1000, cutoff.zone).date()
        if removed.views or removed.events:
            self._log.info(
                "{website}: views ({views}) and events ({events}) from before {date} were removed;"
                " {remains}",
                website=hostname,
                views=removed.views,
                events=removed.events,
                date=before.isoformat(),
                remains=_remains(cutoff),
            )
        if removed.days:
            self._log.info(
                "{website}: daily totals ({days}) from before {date} were removed",
                website=hostname,
                days=removed.days,
                date=before.isoformat(),
            )

    def _log_failure(self, failure: Failure) -> None:
        if failure.check(Unavailable):
            if not self._closing:
                self._log.warn("background work is postponed: {reason}", reason=str(failure.value))
        else:
            self._log.failure("background work failed", failure)


def _delete_robots(databases: Databases, website: int, day: int, txn: Transaction) -> int:
    return delete_before(txn.lmdb, databases, website, day, _STEP_BEACONS)


def _remains(cutoff: Cutoff) -> str:
    if cutoff.is_in_cluster:
        return "the cluster has them"
    return "daily totals remain" if cutoff.keeps_rollups else "nothing of them remains"
