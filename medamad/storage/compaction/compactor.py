"""Run the jobs that the planner finds due: write segments, publish them, purge what they replace.

All of it happens in the writer thread in short steps, between batches of hits. What a step has
written counts for nothing until a segment's head is there; what is written, or left, without one is
on the list of the doomed and goes, at the next start if not before.
"""

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from attrs import define
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.compaction.planner import CompactionJob, Planner, is_settled
from medamad.storage.compaction.purge import PurgeQueue
from medamad.storage.compaction.retention import Bound, Gone
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.dictionary.vacuum import Place, remove_unused
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Environment
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.errors import DamagedSegment
from medamad.storage.import_content import CodedDay
from medamad.storage.segments.build import Content
from medamad.storage.segments.corrections import (
    Corrected,
    Correction,
    delete_correction,
    write_correction,
)
from medamad.storage.segments.format import Segment, encode_header, header_key
from medamad.storage.segments.partition import Partition
from medamad.storage.wal.memtable import Cut
from medamad.storage.wal.records import KEY_SIZE, journal_key, sequence_of, write_watermark

_log: Final = Logger()
_NUMBER: Final = struct.Struct(">I")
_STEP_S: Final = 0.01
_STEP_RECORDS: Final = 2_000
_STEP_BLOCKS: Final = 100
_STEP_NAMES: Final = 500
_SHORTER: Final = 8
"""How many times shorter a step is made where there is no room for it."""


@define(eq=False)
class Compactor:
    """Works at one website at a time. Its steps run in the writer thread."""

    _environment: Environment
    _submit: Submit
    _publish: Callable[[Partition], None]
    planner: Planner
    purge_queue: PurgeQueue

    async def tend(
        self,
        partition: Partition,
        now_ms: int,
        bound: Bound | None = None,
        gone: Gone | None = None,
    ) -> None:
        """Do all that is due for a website; hits beyond a bound go, and are counted in `gone`."""
        while not partition.is_deleted:
            try:
                making = await self._submit(partial(self._begin, partition, now_ms, bound))
                if making is None:
                    return
                if await self._make(making) and gone is not None:
                    _count(making, gone)
            except DamagedSegment as error:
                partition.damaged.add(error.number)
                _log.error("a block is damaged and stays as it is: {place}", place=str(error))

    async def _make(self, making: CompactionJob) -> bool:
        """Write and show it; returns whether it was done."""
        try:
            while not await self._submit(partial(self._write_some, making)):
                pass
            is_shown = await self._submit(partial(self._show, making))
        except BaseException:
            self._give_up(making)
            raise
        if not is_shown:
            self._give_up(making)
        elif making.cut is not None:
            await self.clear_journal(making.partition, making.cut.latest_ms)
        return is_shown

    def _give_up(self, making: CompactionJob) -> None:
        self.purge_queue.may_go(piece.key for piece in making.pieces)

    async def add(self, partition: Partition, content: Content) -> None:
        """Put hits that never were in the journal into a segment, with the last if that is small."""
        await self._make(
            await self._submit(partial(self.planner.addition, partition=partition, content=content))
        )

    async def add_days(self, partition: Partition, days: Sequence[CodedDay]) -> None:
        """Put days whose views never were here beside what is there, some at a time."""
        for begin in range(0, len(days), _STEP_BLOCKS):
            some = days[begin : begin + _STEP_BLOCKS]
            await self._make(
                await self._submit(
                    partial(self.planner.addition_of_days, partition=partition, days=some)
                )
            )

    async def remove_batch(self, partition: Partition, batch: int) -> None:
        """Remove the segments of a batch, which no question sees any more."""
        while not partition.is_deleted and await self._submit(
            partial(self._drop_some, partition, batch)
        ):
            pass
        await self.remove_purge_queue()

    async def clear_journal(self, partition: Partition, latest_ms: int | None = None) -> None:
        """Remove the records that a segment has, of which none is later than that, if it is known."""
        place: bytes | None = _NUMBER.pack(partition.website)
        end = _NUMBER.pack(partition.website + 1)
        if latest_ms is not None:
            end = journal_key(partition.website, latest_ms + 1, 0)
        while place is not None and not partition.is_deleted:
            place = await self._submit(partial(self._clear_some, partition, place, end))

    async def remove_unused_names(self, partition: Partition, names: Dictionary) -> None:
        """Remove the names that no segment, counter or record uses.

        Raises Unavailable when the store cannot even do a little of it; what was done stays done.
        """
        place: Place | None = Place()
        most = _STEP_NAMES
        while place is not None and not partition.is_deleted:
            try:
                place = await self._submit(partial(_remove_names, partition, names, place, most))
                most = min(2 * most, _STEP_NAMES)
            except Unavailable:
                # To remove takes room as well, the more the more names it is at once.
                if most == 1:
                    raise
                most = max(1, most // _SHORTER)
            except DamagedSegment as error:
                _log.error("names are kept, since a block is damaged: {place}", place=str(error))
                return

    async def remove_purge_queue(self) -> None:
        """Remove the segments that no question sees any more."""
        while await self._submit(self.purge_queue.remove_one):
            pass

    # In the writer thread

    def _begin(
        self, partition: Partition, now_ms: int, bound: Bound | None, txn: Transaction
    ) -> CompactionJob | None:
        if partition.is_deleted:
            return None
        making = self.planner.next(txn, partition, now_ms, bound)
        if making is None:
            self._forget_idle(txn, partition, now_ms)
        return making

    def _forget_idle(self, txn: Transaction, partition: Partition, now_ms: int) -> None:
        """Remove some of the corrections that turned out to change nothing."""
        settled = [segment for segment in partition.leaves() if is_settled(segment, now_ms)]
        idle = partition.idle_corrections(settled)[:_STEP_RECORDS]
        for correction in idle:
            database = self._environment.databases.corrections
            delete_correction(txn.lmdb, database, partition.website, correction)
        txn.after_commit(lambda: partition.forget(idle))

    def _write_some(self, making: CompactionJob, txn: Transaction) -> bool:
        """Write for a few milliseconds; returns whether all is written."""
        if making.partition.is_deleted:
            return True
        making.writing.txn = txn.lmdb
        return _for_a_while(making.steps(self._environment.databases))

    def _show(self, making: CompactionJob, txn: Transaction) -> bool:
        """Let what was made be seen, and what it replaces no more, all at once.

        Returns whether it was done.
        """
        partition, cut = making.partition, making.cut
        written = making.written()
        if partition.is_deleted or written is None or making.is_overtaken():
            return False
        databases, website = self._environment.databases, partition.website
        segments = []
        for piece, found in written:
            segment = Segment(website, piece.number, found.header, tuple(making.members))
            key = header_key(website, segment.number)
            txn.lmdb.put(key, encode_header(key, segment.header), db=databases.headers)
            self.purge_queue.take_off(txn, segment.key)
            segments.append(segment)
        gone = [*making.replaced, *partition.groups_of(making.replaced)]
        for old in gone:
            txn.lmdb.delete(header_key(website, old.number), db=databases.headers)
            self.purge_queue.add(txn, old.key)
        contained = partition.still(making.contained)
        for correction in contained:
            delete_correction(txn.lmdb, databases.corrections, website, correction)
        later: list[Correction] = []
        if cut is not None:
            later = _since(partition, cut)
            for correction in later:
                write_correction(txn.lmdb, databases.corrections, website, correction)
            write_watermark(txn.lmdb, self._environment, website, cut.watermark)

        def shown() -> None:
            with self._environment.reading() as reading:
                if making.members:
                    partition.group(making.members, segments[0])
                else:
                    partition.replace(making.replaced, segments, contained, WriterAccess(reading))
                if cut is not None:
                    partition.memtable.drop(cut)
                    partition.watermark = cut.watermark
                    partition.correct(later, WriterAccess(reading))
            self._publish(partition)
            self.purge_queue.may_go(old.key for old in gone)

        txn.after_commit(shown)
        return True

    def _drop_some(self, partition: Partition, batch: int, txn: Transaction) -> bool:
        """Take some segments of a batch off, the groups first; returns whether there were any."""
        segments = partition.of_batch(batch)[:_STEP_BLOCKS]
        for segment in segments:
            key = header_key(partition.website, segment.number)
            txn.lmdb.delete(key, db=self._environment.databases.headers)
            self.purge_queue.add(txn, segment.key)

        def dropped() -> None:
            partition.drop(segments)
            self._publish(partition)
            self.purge_queue.may_go(segment.key for segment in segments)

        txn.after_commit(dropped)
        return bool(segments)

    def _clear_some(
        self, partition: Partition, begin: bytes, end: bytes, txn: Transaction
    ) -> bytes | None:
        """Go through some records from a key on; returns where to go on, None at the end."""
        watermark = partition.watermark
        with txn.lmdb.cursor(db=self._environment.databases.wal) as cursor:
            cursor.set_range(begin)
            for _ in range(_STEP_RECORDS):
                key = cursor.key()
                if not key or key >= end:
                    return None
                if len(key) == KEY_SIZE and sequence_of(key) > watermark:
                    cursor.next()
                else:
                    cursor.delete()  # it is at the next record then
            return cursor.key() or None


def _count(making: CompactionJob, gone: Gone) -> None:
    """Count what has gone for being past its time."""
    if making.gone is not None:
        gone.add(making.gone)
    elif not making.pieces:
        gone.days += len(
            {segment.header.day.span for segment in making.replaced if segment.header.day}
        )


def _remove_names(
    partition: Partition, names: Dictionary, place: Place, most: int, txn: Transaction
) -> Place | None:
    if partition.is_deleted:
        return None
    return remove_unused(partition, names, WriterAccess(txn.lmdb), place, most)


def _for_a_while(work: Iterator[None]) -> bool:
    """Go on with some work for a few milliseconds; returns whether all is done."""
    until = time.monotonic() + _STEP_S
    return all(time.monotonic() <= until for _ in work)


def _since(partition: Partition, cut: Cut) -> list[Correction]:
    since = partition.memtable.since(cut)
    raised = zip(since.views.tolist(), since.duration_ms.tolist(), strict=True)
    bound = zip(since.events.tolist(), since.views_of_events.tolist(), strict=True)
    return [
        *(Correction(Corrected.DURATION, view, ms) for view, ms in raised),
        *(Correction(Corrected.VIEW, event, view) for event, view in dict(bound).items()),
    ]
