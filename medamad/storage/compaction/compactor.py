"""Run jobs: write a job's segments in short steps, publish them at once, purge what they replace.

Every step is a transaction of the writer thread that takes some milliseconds, between batches of
hits. What a step has written does not count before a header names it: until then its key is in the
purge queue, which also holds the keys of replaced segments. A start purges what it finds there.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from attrs import define, field
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.compaction.job import Flush, Job, Merge
from medamad.storage.compaction.planner import Planner
from medamad.storage.compaction.purge import PurgeQueue, in_shrinking_steps
from medamad.storage.compaction.retention import Cutoff
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.dictionary.vacuum import VacuumCursor, remove_unused
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Environment
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.errors import DamagedSegment
from medamad.storage.import_content import ImportedRollup
from medamad.storage.segments.build import Content, Put
from medamad.storage.segments.corrections import (
    Correction,
    delete_correction,
    write_correction,
)
from medamad.storage.segments.format import Segment, encode_header, header_key
from medamad.storage.segments.partition import Partition
from medamad.storage.spool import Spool
from medamad.storage.wal.beacons import BeaconIndex
from medamad.storage.wal.records import wal_key_from, write_watermark

_log: Final = Logger()
_STEP_S: Final = 0.01
_STEP_RECORDS: Final = 2_000
_STEP_BEACONS: Final = 1_000
_STEP_DAYS: Final = 100
_STEP_TEXTS: Final = 500

Writes = Iterator[tuple[bytes, Put] | None]


@define(eq=False)
class Compactor:
    """Runs one job at a time: its callers hold the segments lock."""

    _environment: Environment
    _submit: Submit
    _publish: Callable[[Partition], None]
    planner: Planner
    purge_queue: PurgeQueue
    _beacons: BeaconIndex
    _spool: Spool | None = None
    _trimmed: dict[int, int] = field(factory=dict)
    """By website, up to which number its records have been deleted."""

    async def run_next(
        self, partition: Partition, now_ms: int, cutoff: Cutoff | None = None
    ) -> Job | None:
        """Run the most urgent job of a website to its end and return it.

        When nothing is due any more, purge what the jobs replaced and return None. Raises
        Unavailable when the store cannot take it.
        """
        while not partition.is_deleted:
            try:
                job = await self._submit(partial(self._plan, partition, now_ms, cutoff))
                if job is not None and await self.run(job):
                    return job
            except DamagedSegment as error:
                partition.damage.add_segment(error)
                continue
            except Unavailable:
                # What was written in vain takes up room that is needed now.
                await self.purge()
                raise
            if job is None:
                break
        await self.purge()
        return None

    async def run_all(self, partition: Partition, now_ms: int) -> None:
        """Run whatever is due for a website, apart from retention."""
        while await self.run_next(partition, now_ms) is not None:
            pass

    async def run(self, job: Job) -> bool:
        """Write the segments of a job and publish them; return whether it was published.

        It is False if the website was deleted or the job has become obsolete.
        """
        try:
            if isinstance(job, Flush):
                await self._index_beacons(job.cut.watermark)
            writes = job.writes()
            while not await self._submit(partial(self._write_step, job, writes)):
                pass
            is_published = await self._submit(partial(self._publish_job, job))
        except BaseException:
            self._discard(job)
            raise
        if not is_published:
            self._discard(job)
        elif isinstance(job, Flush):
            await self.trim_wal(job.partition)
        return is_published

    async def purge(self) -> None:
        """Delete the replaced and discarded segments that no query reads any more."""
        while await self._submit(self.purge_queue.purge_one):
            pass

    # Imports

    async def add_segment(self, partition: Partition, content: Content) -> None:
        """Add imported views and events, which were never in the write-ahead log."""
        while True:
            try:
                await self.run(await self._submit(partial(self._plan_segment, partition, content)))
            except DamagedSegment as error:
                if error.number in partition.damage.numbers:
                    raise
                partition.damage.add_segment(error)
                continue
            break
        await self.purge()

    async def add_rollups(self, partition: Partition, days: Sequence[ImportedRollup]) -> None:
        """Add the rollups of imported days, some at a time."""
        for begin in range(0, len(days), _STEP_DAYS):
            some = days[begin : begin + _STEP_DAYS]
            await self.run(await self._submit(partial(self._plan_rollups, partition, some)))

    async def remove_batch(self, partition: Partition, batch: int) -> None:
        """Remove the segments of an import batch that is hidden from queries."""
        while not partition.is_deleted:
            job = await self._submit(partial(self._plan_batch_removal, partition, batch))
            if job is None:
                break
            await self.run(job)
        await self.purge()

    # What accompanies jobs

    async def trim_wal(self, partition: Partition) -> None:
        """Delete the records of the write-ahead log up to the watermark: segments have them.

        Those that the cluster may not have yet stay.
        """
        up_to = partition.watermark
        if self._spool is not None:
            up_to = min(up_to, self._spool.marks.safe)
        while not partition.is_deleted and self._trimmed.get(partition.website) != up_to:
            if await self._submit(partial(self._trim_some, partition, up_to)):
                self._trimmed[partition.website] = up_to

    async def _index_beacons(self, watermark: int) -> None:
        """Write the beacons of views up to a watermark to disk, before the log loses them."""

        def step(txn: Transaction) -> int:
            written = self._beacons.write_up_to(txn.lmdb, watermark, _STEP_BEACONS)
            txn.after_commit(lambda: self._beacons.mark_indexed(written))
            return len(written)

        while await self._submit(step) == _STEP_BEACONS:
            pass

    async def vacuum(self, partition: Partition, dictionary: Dictionary) -> None:
        """Delete the texts that no segment, counter or record uses.

        Raises Unavailable when there is no room even for a little of it; what was done stays done.
        """

        def step(place: VacuumCursor, texts: int, txn: Transaction) -> VacuumCursor | None:
            if partition.is_deleted:
                return None
            return remove_unused(partition, dictionary, WriterAccess(txn.lmdb), place, texts)

        try:
            await in_shrinking_steps(self._submit, step, VacuumCursor(), _STEP_TEXTS)
        except DamagedSegment as error:
            partition.damage.add_segment(error)
            _log.error("unused texts are kept, as a segment is damaged: {place}", place=str(error))

    # In the writer thread

    def _plan(
        self, partition: Partition, now_ms: int, cutoff: Cutoff | None, txn: Transaction
    ) -> Job | None:
        if partition.is_deleted:
            return None
        return self.planner.next_job(WriterAccess(txn.lmdb), partition, now_ms, cutoff)

    def _plan_segment(self, partition: Partition, content: Content, txn: Transaction) -> Job:
        return self.planner.add_segment(WriterAccess(txn.lmdb), partition, content)

    def _plan_rollups(
        self, partition: Partition, days: Sequence[ImportedRollup], txn: Transaction
    ) -> Job:
        return self.planner.add_rollups(WriterAccess(txn.lmdb), partition, days)

    def _plan_batch_removal(self, partition: Partition, batch: int, txn: Transaction) -> Job | None:
        return self.planner.remove_batch(WriterAccess(txn.lmdb), partition, batch)

    def _write_step(self, job: Job, writes: Writes, txn: Transaction) -> bool:
        """Write for some milliseconds; return whether everything is written."""
        if job.partition.is_deleted:
            return True
        databases = self._environment.databases
        job.access.txn = txn.lmdb
        until = time.monotonic() + _STEP_S
        for write in writes:
            if write is not None:
                prefix, (is_counters, kind, value) = write
                database = databases.counters if is_counters else databases.segments
                txn.lmdb.put(prefix + bytes((kind,)), value, db=database)
            if time.monotonic() > until:
                return False
        return True

    def _publish_job(self, job: Job, txn: Transaction) -> bool:
        """Publish a job's segments in place of those they replace; return whether that was done."""
        partition, databases = job.partition, self._environment.databases
        website = partition.website
        if partition.is_deleted or job.is_obsolete():
            return False
        members = tuple(job.members) if isinstance(job, Merge) else ()
        segments = [Segment(website, draft.number, draft.header, members) for draft in job.drafts]
        for segment in segments:
            key = header_key(website, segment.number)
            txn.lmdb.put(key, encode_header(key, segment.header), db=databases.headers)
            self.purge_queue.remove(txn.lmdb, segment.key)
        replaced = list(dict.fromkeys([*job.replaced, *partition.merged_over(job.replaced)]))
        for segment in replaced:
            txn.lmdb.delete(header_key(website, segment.number), db=databases.headers)
            self.purge_queue.add(txn.lmdb, segment.key)
        folded = partition.unchanged(job.folded)
        for correction in folded:
            delete_correction(txn.lmdb, databases.corrections, website, correction)
        late: list[Correction] = []
        if isinstance(job, Flush):
            late = partition.memtable.corrections_since(job.cut)
            for correction in late:
                write_correction(txn.lmdb, databases.corrections, website, correction)
            write_watermark(txn.lmdb, self._environment, website, job.cut.watermark)

        def apply() -> None:
            with self._environment.reading() as reading:
                access = WriterAccess(reading)
                if isinstance(job, Merge):
                    partition.merge(job.members, segments[0])
                else:
                    partition.replace(job.replaced, segments, folded, access)
                if isinstance(job, Flush):
                    partition.memtable.drop(job.cut)
                    partition.watermark = job.cut.watermark
                    partition.add_corrections(late, access)
            self._publish(partition)
            self.purge_queue.allow_deletion(segment.key for segment in replaced)

        txn.after_commit(apply)
        return True

    def _discard(self, job: Job) -> None:
        self.purge_queue.allow_deletion(draft.key for draft in job.drafts)

    def _trim_some(self, partition: Partition, up_to: int, txn: Transaction) -> bool:
        """Delete some of the records up to a number; return whether none is left."""
        end = wal_key_from(partition.website, up_to + 1)
        with txn.lmdb.cursor(db=self._environment.databases.wal) as cursor:
            cursor.set_range(wal_key_from(partition.website, 0))
            for _ in range(_STEP_RECORDS):
                key = cursor.key()
                if not key or key >= end:
                    return True
                cursor.delete()  # which moves to the next record
        return False
