"""What a store does in the background: after a start, when a memtable is full, and as time passes."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any, Final

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.domain.errors import Unavailable
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.compaction.purge import WebsitePurge
from medamad.storage.compaction.retention import Bound, Gone, bound_of
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.access import Leases
from medamad.storage.environment.trusted_clock import JUMP_MS, told_doubt
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.registry import Partitions
from medamad.storage.settings import Retention, told_unregistered
from medamad.storage.wal.dedup import DAY_MS, BeaconIndex, UnmatchedBeacons
from medamad.storage.websites import Websites

_STEP_KEYS: Final = 500


@define(eq=False)
class Maintenance:
    """Used in the reactor's thread. `retention` may be replaced at any time."""

    retention: Retention
    _submit: Submit
    _websites: Websites
    _names: Dictionary
    _beacons: BeaconIndex
    _early: UnmatchedBeacons
    _leases: Leases
    _partitions: Partitions
    _removal: WebsitePurge
    _compactor: Compactor
    _one_at_a_time: DeferredLock
    """Held by whatever makes segments, or needs names to stay that nothing uses yet."""
    unsettled: Sequence[Partition] | None = None
    """What is left to be settled by the next tidying, if that is to do it."""
    _waiting: set[int] = field(factory=set)
    """The websites that are waiting to be tended."""
    _trusted_ms: int | None = None
    """By what time hits are old enough to go; None until that is known."""
    _names_day: int | None = None
    """The day on which all names were last found to be due to be looked at."""
    _names_due: set[int] = field(factory=set)
    """The websites whose names are still to be looked at for those that nothing uses."""
    _told: frozenset[str] = frozenset()
    """The tables of retention that name no registered website, as far as the log tells of them."""
    _told_waiting: bool = False
    """Whether the log tells that retention waits for the clock."""
    _closing: bool = False
    _log = Logger()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin what nobody waits for. What fails is done at the next start, if not before."""
        Deferred.fromCoroutine(work).addErrback(self._failed)

    def close(self) -> None:
        """Begin nothing more."""
        self._closing = True

    async def settle(self, to_clear: Sequence[Partition]) -> None:
        """Do after a start what the last run left undone."""
        async with self._one_at_a_time:
            for partition in to_clear:
                await self._compactor.clear_journal(partition)
            await self._compactor.remove_purge_queue()

    async def count_visitors(self) -> None:
        """Have memory know the visitors of the last 24 hours, which writes nothing."""
        for partition in self._partitions.all():
            await self._submit(partial(self._partitions.count_visitors, partition))

    async def _settle_overlay(self) -> None:
        if self.unsettled is not None:
            await self.settle(self.unsettled)
            self.unsettled = None

    async def tidy(self, now_ms: int, trusted_ms: int) -> None:
        """Do what the passing of time asks for; see Store.tidy."""
        self._trusted_ms = trusted_ms
        beacons_ms = trusted_ms - DAY_MS - JUMP_MS
        lacking: list[Unavailable] = []
        # First what makes room for the rest; what there is no room for leaves the rest to be done.
        works: tuple[Callable[[], Awaitable[object]], ...] = (
            self._settle_overlay,
            partial(self._removal.go_on, self._websites.has_number),
            partial(
                self._forget,
                lambda txn: self._beacons.forget_before(txn.lmdb, beacons_ms, _STEP_KEYS),
            ),
            partial(self._forget, lambda _: self._early.let_go(trusted_ms, _STEP_KEYS)),
            *(
                partial(self._count_visitors, partition, now_ms)
                for partition in self._partitions.all()
            ),
            *(partial(self.tend, partition, now_ms) for partition in self._partitions.all()),
            partial(self._look_at_all_names, now_ms // DAY_MS),
        )
        for work in works:
            try:
                await work()
            except Unavailable as error:
                lacking.append(error)
        if lacking:
            raise lacking[0]

    def has_lost_hits(self, partition: Partition) -> None:
        """Remove the names of a website that nothing uses any more, once no question does."""

        async def remove() -> None:
            await self._leases.ended(partition.website)
            self._names_due.add(partition.website)
            await self._remove_unused_names(partition)

        self.start(remove())

    async def tend(self, partition: Partition, now_ms: int) -> None:
        """Have all done that is due for a website, unless it is waiting for that already."""
        if partition.website in self._waiting:
            return
        self._waiting.add(partition.website)
        async with self._one_at_a_time:
            self._waiting.discard(partition.website)
            if not self._closing:
                bound, gone = self._bound(partition, self._trusted_ms), Gone()
                try:
                    await self._compactor.tend(partition, now_ms, bound, gone)
                except Unavailable:
                    # Where there is no room, what was written in vain has to go at once.
                    await self._compactor.remove_purge_queue()
                    raise
                finally:
                    if bound is not None:
                        self._tell(partition, bound, gone)
                    if gone != Gone():
                        self._names_due.add(partition.website)
                await self._compactor.remove_purge_queue()

    async def _count_visitors(self, partition: Partition, now_ms: int) -> None:
        """Have memory know the visitors of the last 24 hours again, where the clock was set."""
        if not partition.is_deleted and not self._partitions.knows_visitors(
            partition.website, now_ms
        ):
            await self._submit(partial(self._partitions.count_visitors, partition, now_ms=now_ms))

    def has_past(self, now_ms: int) -> bool:
        """Return whether anything that was flushed would be past its time at a moment."""
        bound_of_partition = self._bounds(now_ms)
        for partition in self._partitions.all():
            bound = bound_of_partition(partition)
            if bound is not None:
                segments = (
                    partition.leaves() if bound.sums else [*partition.leaves(), *partition.days]
                )
                if any(map(bound.concerns, segments)):
                    return True
        return False

    def _bound(self, partition: Partition, now_ms: int | None) -> Bound | None:
        """Return which hits of a website are to go at a moment."""
        return None if now_ms is None else self._bounds(now_ms)(partition)

    def _bounds(self, now_ms: int) -> Callable[[Partition], Bound | None]:
        """Return what tells the same of any website; once for all that are kept alike."""
        retention = self.retention
        of_others = retention.of_others(self._websites.hostnames())
        bound_by = cache(partial(bound_of, zone=retention.zone, now_ms=now_ms))

        def bound(partition: Partition) -> Bound | None:
            website = self._websites.by_number(partition.website)
            if website is None:
                return None
            return bound_by(retention.websites.get(website.hostname, of_others))

        return bound

    def _tell(self, partition: Partition, bound: Bound, gone: Gone) -> None:
        """Tell the operator what has gone of a website: it cannot be had back."""
        website = self._websites.by_number(partition.website)
        hostname = "" if website is None else website.hostname
        before = datetime.fromtimestamp(bound.before_ms // 1000, bound.zone).date()
        if gone.views or gone.events:
            self._log.info(
                "{website}: views ({views}) and events ({events}) from before {date} were removed;"
                " {remains}",
                website=hostname,
                views=gone.views,
                events=gone.events,
                date=before.isoformat(),
                remains="sums of their days remain" if bound.sums else "nothing of them remains",
            )
        if gone.days:
            self._log.info(
                "{website}: sums of days ({days}) from before {date} were removed",
                website=hostname,
                days=gone.days,
                date=before.isoformat(),
            )

    def tell_unregistered(self) -> None:
        """Tell the operator of tables of retention that name no registered website any more."""
        found = self.retention.unregistered(self._websites.hostnames())
        for hostname in found:
            if hostname not in self._told:
                self._log.warn("{told}", told=told_unregistered(hostname))
        self._told = frozenset(found)

    def tell_waiting(self, left_ms: int) -> None:
        """Tell the operator, once, that retention waits for the clock to be believed; 0 for not."""
        if left_ms and not self._told_waiting:
            self._log.warn("{told}", told=told_doubt(left_ms))
        self._told_waiting = bool(left_ms)

    async def _forget(self, forget: Callable[[Transaction], int]) -> None:
        """Forget some and some, until they are fewer."""
        forgotten = _STEP_KEYS
        while not self._closing and forgotten == _STEP_KEYS:
            forgotten = await self._submit(forget)

    async def _look_at_all_names(self, day: int) -> None:
        """Once a day, remove the names that nothing uses; where there was no room, again."""
        partitions = self._partitions.all()
        if self._names_day != day:
            self._names_day = day
            self._names_due = {partition.website for partition in partitions}
        for partition in partitions:
            await self._remove_unused_names(partition)

    async def _remove_unused_names(self, partition: Partition) -> None:
        """Remove names of a website that is due, unless somebody still reads what used them."""
        async with self._one_at_a_time:
            is_read = self._compactor.purge_queue.is_read(partition.website)
            if partition.website in self._names_due and not is_read and not self._closing:
                await self._compactor.remove_unused_names(partition, self._names)
                self._names_due.discard(partition.website)

    def _failed(self, failure: Failure) -> None:
        if failure.check(Unavailable) and self._closing:
            return
        if failure.check(Unavailable):
            self._log.warn("put off: {reason}", reason=str(failure.value))
        else:
            self._log.failure("work in the background failed", failure)
