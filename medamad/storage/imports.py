"""Imports: hits from elsewhere, taken in as batches that can be listed and undone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import define, evolve, field, frozen
from msgspec.structs import replace
from twisted.internet.defer import DeferredLock
from twisted.logger import Logger

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.websites import Website
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.import_batches import (
    BatchState,
    ImportBatch,
    ImportRemoval,
    Origins,
    check_new,
    check_ranges,
    next_number,
    origins_of,
    read_batch,
    read_batches,
    sound_batches,
    spans_of,
    write_batch,
)
from medamad.storage.import_content import (
    Counted,
    DayCounts,
    TextEncoder,
    group_by_day,
    texts_by_dimension,
)
from medamad.storage.segments.build import Content, concatenate
from medamad.storage.segments.counters import VISITORS
from medamad.storage.segments.format import VISITOR, Segment
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.partitions import Partitions
from medamad.storage.segments.parts import (
    NO_TIME,
    EventRows,
    enclosing_bounds,
)
from medamad.storage.segments.visit_limit import VisitLimit, times_in
from medamad.storage.spool import Spool
from medamad.storage.wal.log import WriteAheadLog


@define
class ImportTotals:
    """What an unfinished import batch has received, including hits deleted by retention."""

    visitors: int = 0
    time_bounds: tuple[int, int] = NO_TIME
    days: tuple[int, int] | None = None
    """The first and the last day that came as a rollup."""
    limit: VisitLimit = field(factory=VisitLimit)

    def add(self, content: Content) -> None:
        """Add hits."""
        self.visitors += int(np.count_nonzero(content.flags & VISITOR))
        for times in (content.time_ms, content.events.time_ms):
            if len(times):
                self._reach(int(times.min()), int(times.max()))

    def add_days(self, counts: Iterable[DayCounts]) -> None:
        """Add rollups of days."""
        for each in counts:
            if each.dimension is None and each.counted is Counted.VIEWS:
                self.visitors += int(each.sums[VISITORS].sum())
            self._reach(*each.span)
            first, last = self.days or (each.day, each.day)
            self.days = min(first, each.day), max(last, each.day)

    def _reach(self, first_ms: int, last_ms: int) -> None:
        self.time_bounds = enclosing_bounds([self.time_bounds, (first_ms, last_ms)])


@frozen(eq=False)
class ImportedHits:
    """Some hits of an import batch, ascending by their numbers in this store.

    The codes of `content` are indices into `texts`, of VIEW_DIMENSIONS and PROPERTY.
    """

    content: Content
    texts: Mapping[Dimension, Sequence[str]]


@define(eq=False)
class Imports:
    """The import batches of all websites. A website takes one at a time."""

    _environment: Environment
    _submit: Submit
    _partitions: Partitions
    _compactor: Compactor
    _wal: WriteAheadLog
    _encoder: TextEncoder
    _check_space: Callable[[Txn], None]
    _segments_lock: DeferredLock
    _removal: ImportRemoval
    _spool: Spool | None = None
    _totals: dict[int, ImportTotals] = field(factory=dict)
    """The totals of unfinished batches, by number."""
    _log = Logger()

    def batches(self, website: Website) -> list[ImportBatch]:
        """Return the complete import batches of a website. For any thread."""
        with self._environment.reading() as txn:
            found = sound_batches(txn, self._environment.databases, website.number)
        return [batch for batch in found if batch.state is BatchState.COMPLETE]

    def origins(self, website: Website) -> Origins:
        """Return where the hits of a website are from. For any thread. Raises Damaged."""
        with self._environment.reading() as txn:
            return origins_of(self._environment.store_id(txn), self.batches(website))

    async def begin(
        self,
        website: Website,
        *,
        source: str,
        digest: str,
        ranges: Sequence[tuple[str, int, int]],
        newest: int,
        now: int,
    ) -> ImportBatch:
        """Begin a batch. `ranges` are the numbers of its hits, by store of origin.

        Raises Conflict if the same files were imported before, or another import is under way or
        was finished after the batch `newest`; BadRequest for impossible numbers, NotFound, and
        Unavailable if hits are being refused.
        """
        check_ranges(ranges)
        await self._removal.finish()
        batch = await self._submit(
            partial(
                self._begin,
                website,
                source=source,
                digest=digest,
                ranges=ranges,
                newest=newest,
                now=now,
            )
        )
        self._totals[batch.number] = ImportTotals()
        return batch

    async def load(self, batch: ImportBatch, pieces: Sequence[ImportedHits]) -> None:
        """Store some hits of a batch, ideally a segment's worth.

        Raises NotFound if the batch was abandoned or its website deleted, BadRequest for numbers
        outside its ranges, and Unavailable if hits are being refused.
        """
        for piece in pieces:
            _check_numbers(batch, piece.content)
        # Until the hits are stored nothing uses their codes, so keep the vacuum out.
        async with self._segments_lock:
            partition = await self._submit(partial(self._partition_of, batch))
            contents = [await self._coded(partition, batch, piece) for piece in pieces]
            whole = concatenate(contents)
            whole = await self._submit(partial(self._limited, partition, batch, whole))
            if len(whole) or len(whole.events):
                await self._compactor.add_segment(partition, whole)
        if (totals := self._totals.get(batch.number)) is not None:
            totals.add(whole)

    async def load_days(self, batch: ImportBatch, counts: Sequence[DayCounts]) -> None:
        """Store rollups of days: the counts of a day together, and each day once.

        Raises NotFound if the batch was abandoned or its website deleted, and Unavailable if hits
        are being refused.
        """
        texts = texts_by_dimension(counts)
        first_ms = min((each.span[0] for each in counts), default=0)
        # Until the days are stored nothing uses their codes, so keep the vacuum out.
        async with self._segments_lock:
            partition = await self._submit(partial(self._partition_of, batch))
            found = await self._encoder.codes(partition, texts.items(), max(0, first_ms))
            codes = {
                dimension: dict(zip(known, found[dimension].tolist(), strict=True))
                for dimension, known in texts.items()
            }
            await self._compactor.add_rollups(partition, group_by_day(counts, codes, batch.number))
        if (totals := self._totals.get(batch.number)) is not None:
            totals.add_days(counts)

    async def segments(self, batch: ImportBatch) -> list[Segment]:
        """Return the segments of an unfinished batch, none of them merged. Raises NotFound.

        With a cluster, they stay as they are until the batch is finished or removed.
        """

        def find(txn: Transaction) -> list[Segment]:
            found = self._partition_of(batch, txn).segments_of_batch(batch.number)
            return [segment for segment in found if not segment.members]

        return await self._submit(find)

    async def finish(self, batch: ImportBatch) -> ImportBatch:
        """Complete a batch, which makes it visible; return it with its totals. Raises NotFound."""
        async with self._segments_lock:
            whole, partition = await self._submit(partial(self._finish, batch))
            self._totals.pop(batch.number, None)
            await self._compactor.run_all(partition, whole.last_ms)
        await self._submit(partial(self._partitions.count_visitors, partition))
        return whole

    async def undo(self, website: Website, number: int) -> ImportBatch:
        """Remove a batch, complete or not; return it as it was. Raises NotFound.

        It is hidden at once. Raises Unavailable if there is no space to remove all of it;
        `finish_removals` continues then.
        """
        batch = await self._removal.hide(website.number, number)
        self._totals.pop(number, None)
        await self._removal.finish()
        return batch

    async def give_up(self, website: Website, batch: ImportBatch) -> None:
        """Remove a batch that will not be finished. Raises Unavailable as `undo`."""
        self._log_unfinished(website, batch)
        self._removal.add(batch)
        self._totals.pop(batch.number, None)
        await self._removal.finish()

    async def finish_removals(self) -> None:
        """Remove what is left of batches that were undone, abandoned or never finished.

        Raises Unavailable as `undo`.
        """
        await self._removal.finish()

    # At start

    def load_all(self, txn: Txn, website: Website) -> None:
        """Hide the incomplete batches of a website; the next `finish_removals` removes them."""
        for found in read_batches(txn, self._environment.databases, website.number):
            if isinstance(found, str):
                self._log.error("an import batch is damaged: {place}", place=found)
            elif found.state is not BatchState.COMPLETE:
                self._partitions.get_or_create(website.number).hide(found.number)
                self._removal.add(found)
                if found.state is BatchState.UNFINISHED:
                    self._log_unfinished(website, found)

    def _log_unfinished(self, website: Website, batch: ImportBatch) -> None:
        """Log why an import of this number is not listed."""
        self._log.info(
            "import {number} into {website} was not finished: it is removed",
            number=batch.number,
            website=website.hostname,
        )

    # Steps

    def _begin(
        self,
        website: Website,
        txn: Transaction,
        *,
        source: str,
        digest: str,
        ranges: Sequence[tuple[str, int, int]],
        newest: int,
        now: int,
    ) -> ImportBatch:
        databases = self._environment.databases
        if not self._encoder.has_website(website.number):
            raise NotFound("hostname: the website has been deleted")
        partition = self._partitions.get_or_create(website.number)
        self._check_space(txn.lmdb)
        batches = sound_batches(txn.lmdb, databases, website.number)
        check_new(batches, digest, newest)
        known = origins_of("", batches).spans
        batch = ImportBatch(
            website=website.number,
            number=next_number(txn.lmdb, databases),
            source=source,
            digest=digest,
            made=now,
            spans=tuple(
                span
                for store, first, last in ranges
                for span in spans_of(known, store, first, last, self._wal.reserve)
            ),
        )
        self._wal.write_sequence(txn.lmdb)
        write_batch(txn.lmdb, databases, batch)
        if self._spool is not None:
            self._spool.loading.add(batch.number)
            self._spool.hide(txn, databases.meta, (website.number, batch.number))
        txn.after_commit(lambda: partition.hide(batch.number))
        return batch

    def _partition_of(self, batch: ImportBatch, txn: Transaction) -> Partition:
        """Return the partition of an unfinished batch."""
        databases = self._environment.databases
        partition = self._partitions.find(batch.website)
        if partition is None:
            raise NotFound("hostname: the website has been deleted")
        known = read_batch(txn.lmdb, databases, batch.website, batch.number)
        if known is None or known.state is BatchState.BEING_REMOVED:
            raise _given_up(batch)
        if known.state is BatchState.COMPLETE:
            raise Conflict(f"batch: the import of number {batch.number} has ended")
        return partition

    async def _coded(
        self, partition: Partition, batch: ImportBatch, piece: ImportedHits
    ) -> Content:
        content = piece.content
        times = [*content.time_ms[:1].tolist(), *content.events.time_ms[:1].tolist()]
        codes = await self._encoder.codes(partition, piece.texts.items(), min(times, default=0))
        events = content.events
        return evolve(
            content,
            import_batch=batch.number,
            codes={
                dimension: codes[dimension].take(content.codes[dimension]).astype(np.uint32)
                for dimension in VIEW_DIMENSIONS
            },
            events=EventRows(
                event=events.event,
                time_ms=events.time_ms,
                view=events.view,
                property=codes[Dimension.PROPERTY].take(events.property).astype(np.uint32),
            ),
        )

    def _limited(
        self, partition: Partition, batch: ImportBatch, content: Content, txn: Transaction
    ) -> Content:
        """Return hits whose visits last no longer than a visit may."""
        totals = self._totals.get(batch.number)
        if totals is None:
            return content
        segments = [segment for segment in partition.leaves() if segment.header.views]
        access = WriterAccess(txn.lmdb)
        offsets = totals.limit.offsets(
            content.sequence,
            content.time_ms,
            content.numbers[ViewNumber.VISIT_OFFSET],
            times_in(segments, access, self._environment.databases),
        )
        if offsets is None:
            return content
        return evolve(content, numbers={**content.numbers, ViewNumber.VISIT_OFFSET: offsets})

    def _finish(self, batch: ImportBatch, txn: Transaction) -> tuple[ImportBatch, Partition]:
        partition = self._partition_of(batch, txn)
        headers = [
            segment.header
            for segment in partition.segments_of_batch(batch.number)
            if not segment.members
        ]
        totals = self._totals.get(batch.number)
        if totals is None:  # Its removal is pending.
            raise _given_up(batch)
        bounds = totals.time_bounds
        first_ms, last_ms = (0, 0) if bounds == NO_TIME else bounds
        whole = replace(
            batch,
            state=BatchState.COMPLETE,
            views=sum(header.views for header in headers),
            visitors=totals.visitors,
            events=sum(header.events for header in headers),
            first_ms=first_ms,
            last_ms=last_ms,
            days=totals.days,
        )
        databases, spool = self._environment.databases, self._spool
        write_batch(txn.lmdb, databases, whole)
        if spool is not None:
            spool.reveal(txn, databases.meta, [(batch.website, batch.number)])

        def show() -> None:
            if spool is not None:
                spool.loading.discard(batch.number)
            partition.reveal(batch.number)
            self._partitions.publish(partition)

        txn.after_commit(show)
        return whole, partition


def _given_up(batch: ImportBatch) -> NotFound:
    return NotFound(f"batch: the import of number {batch.number} was given up")


def _check_numbers(batch: ImportBatch, content: Content) -> None:
    for name, numbers in (("view", content.sequence), ("event", content.events.event)):
        steps = np.diff(numbers.astype(np.int64))
        is_sound = np.all(steps > 0) if name == "view" else np.all(steps >= 0)
        inside = np.zeros(len(numbers), np.bool_)
        for span in batch.spans:
            inside |= (numbers >= span.at) & (numbers <= span.end)
        if not is_sound or not np.all(inside):
            raise BadRequest(f"{name}: expected ascending numbers that were given to the batch")
