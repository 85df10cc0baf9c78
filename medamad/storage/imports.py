"""Imports: hits from elsewhere, taken in as batches that can be listed and undone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import define, evolve, field, frozen
from msgspec.structs import replace
from twisted.internet.defer import DeferredLock
from twisted.logger import Logger

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.websites import Website
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.import_batches import (
    ImportBatch,
    ImportRemoval,
    Origins,
    State,
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
from medamad.storage.import_content import DayCounts, TextCoding, days_of, texts_by_dimension
from medamad.storage.segments.build import Content, concatenate
from medamad.storage.segments.counters import VISITORS
from medamad.storage.segments.format import VISITOR
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import (
    NO_TIME,
    EventRows,
    enclosing_bounds,
)
from medamad.storage.segments.registry import Partitions
from medamad.storage.wal.journal import Journal


@define
class Incoming:
    """It grows with every piece. Of hits that have gone since only this knows the times."""

    visitors: int = 0
    time_bounds: tuple[int, int] = NO_TIME
    days: tuple[int, int] | None = None
    """The first and the last of days that were added up elsewhere."""

    def add(self, content: Content) -> None:
        """Note hits."""
        self.visitors += int(np.count_nonzero(content.flags & VISITOR))
        for times in (content.time_ms, content.events.time_ms):
            if len(times):
                self._reach(int(times.min()), int(times.max()))

    def add_days(self, counts: Iterable[DayCounts]) -> None:
        """Note days."""
        for each in counts:
            if each.dimension is None:
                self.visitors += int(each.sums[VISITORS].sum())
            self._reach(*each.span)
            first, last = self.days or (each.day, each.day)
            self.days = min(first, each.day), max(last, each.day)

    def _reach(self, first_ms: int, last_ms: int) -> None:
        self.time_bounds = enclosing_bounds([self.time_bounds, (first_ms, last_ms)])


@frozen(eq=False)
class Imported:
    """Some hits of a batch, ascending by their numbers in this store.

    The codes of `content` are indices into `texts`, of VIEW_DIMENSIONS and PROPERTY.
    """

    content: Content
    texts: Mapping[Dimension, Sequence[str]]


@define(eq=False)
class Imports:
    """Batches of all websites. One is imported into a website at a time."""

    _environment: Environment
    _submit: Submit
    _partitions: Partitions
    _compactor: Compactor
    _journal: Journal
    _coding: TextCoding
    _check_room: Callable[[Txn], None]
    _one_at_a_time: DeferredLock
    _removal: ImportRemoval
    _incoming: dict[int, Incoming] = field(factory=dict)
    """What came in so far, by the number of each batch that takes more."""
    _log = Logger()

    def batches(self, website: Website) -> list[ImportBatch]:
        """Return the batches that were imported into a website and are whole. For any thread."""
        with self._environment.reading() as txn:
            found = sound_batches(txn, self._environment.databases, website.number)
        return [batch for batch in found if batch.state is State.WHOLE]

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
        """Begin a batch. `ranges` tells which numbers its hits have, of each store.

        Raises Conflict when the same was imported before, when another import is under way or
        has come after the batch `newest`, BadRequest for impossible numbers, NotFound, and
        Unavailable where hits would be refused.
        """
        check_ranges(ranges)
        await self._removal.go_on()
        batch = await self._submit(
            partial(self._begin, website, source, digest, ranges, newest, now)
        )
        self._incoming[batch.number] = Incoming()
        return batch

    async def load(self, batch: ImportBatch, pieces: Sequence[Imported]) -> None:
        """Take in some hits of a batch that was begun; as many as make a segment are best.

        Raises NotFound when the batch was given up or its website deleted, BadRequest for numbers
        that are not its own, and Unavailable where hits would be refused.
        """
        for piece in pieces:
            _check_numbers(batch, piece.content)
        # Nothing uses the names until the hits are there: they must not be tidied away.
        async with self._one_at_a_time:
            partition = await self._submit(partial(self._partition_of, batch))
            contents = [await self._coded(partition, batch, piece) for piece in pieces]
            whole = concatenate(contents)
            if len(whole) or len(whole.events):
                await self._compactor.add_segment(partition, whole)
        if (incoming := self._incoming.get(batch.number)) is not None:
            incoming.add(whole)

    async def load_days(self, batch: ImportBatch, counts: Sequence[DayCounts]) -> None:
        """Take in days that were added up elsewhere: those of a day together, and each day once.

        Raises NotFound when the batch was given up or its website deleted, Unavailable where hits
        would be refused.
        """
        texts = texts_by_dimension(counts)
        first_ms = min((each.span[0] for each in counts), default=0)
        # Nothing uses the names until the days are there: they must not be tidied away.
        async with self._one_at_a_time:
            partition = await self._submit(partial(self._partition_of, batch))
            found = await self._coding.codes(partition, texts.items(), max(0, first_ms))
            codes = {
                dimension: dict(zip(known, found[dimension].tolist(), strict=True))
                for dimension, known in texts.items()
            }
            await self._compactor.add_rollups(partition, days_of(counts, codes, batch.number))
        if (incoming := self._incoming.get(batch.number)) is not None:
            incoming.add_days(counts)

    async def finish(self, batch: ImportBatch) -> ImportBatch:
        """Let a batch be seen; returns it with what it turned out to have. Raises NotFound."""
        async with self._one_at_a_time:
            whole, partition = await self._submit(partial(self._finish, batch))
            self._incoming.pop(batch.number, None)
            await self._compactor.run_all(partition, whole.last_ms)
        await self._submit(partial(self._partitions.count_visitors, partition))
        return whole

    async def undo(self, website: Website, number: int) -> ImportBatch:
        """Remove a batch, whole or not; returns it as it was. Raises NotFound.

        It is out of sight at once. Raises Unavailable where there is no room to remove all of it:
        `tidy` goes on with that.
        """
        batch = await self._removal.hide(website.number, number)
        self._incoming.pop(number, None)
        await self._removal.go_on()
        return batch

    async def give_up(self, website: Website, batch: ImportBatch) -> None:
        """Remove a batch that nobody is going to finish. Raises Unavailable as `undo`."""
        self._tell_unfinished(website, batch)
        self._removal.add(batch)
        self._incoming.pop(batch.number, None)
        await self._removal.go_on()

    async def tidy(self) -> None:
        """Remove what is left of batches that were undone, given up or never finished.

        Raises Unavailable as `undo`.
        """
        await self._removal.go_on()

    # At start

    def load_all(self, txn: Txn, website: Website) -> None:
        """Hide the batches of a website that are not whole: the next tidying removes them."""
        for found in read_batches(txn, self._environment.databases, website.number):
            if isinstance(found, str):
                self._log.error("what is known of an import is damaged: {place}", place=found)
            elif found.state is not State.WHOLE:
                self._partitions.get_or_create(website.number).hide(found.number)
                self._removal.add(found)
                if found.state is State.UNFINISHED:
                    self._tell_unfinished(website, found)

    def _tell_unfinished(self, website: Website, batch: ImportBatch) -> None:
        """Tell the operator why the number of an import is missing from then on."""
        self._log.info(
            "the import of number {number} into {website} was not finished: nothing of it stays",
            number=batch.number,
            website=website.hostname,
        )

    # Steps

    def _begin(  # noqa: PLR0917 - given by name above
        self,
        website: Website,
        source: str,
        digest: str,
        ranges: Sequence[tuple[str, int, int]],
        newest: int,
        now: int,
        txn: Transaction,
    ) -> ImportBatch:
        databases = self._environment.databases
        if not self._coding.has_website(website.number):
            raise NotFound("hostname: the website has been deleted")
        partition = self._partitions.get_or_create(website.number)
        self._check_room(txn.lmdb)
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
                for span in spans_of(known, store, first, last, self._journal.reserve)
            ),
        )
        self._journal.write_sequence(txn.lmdb)
        write_batch(txn.lmdb, databases, batch)
        txn.after_commit(lambda: partition.hide(batch.number))
        return batch

    def _partition_of(self, batch: ImportBatch, txn: Transaction) -> Partition:
        """Return the partition of a batch that takes more."""
        databases = self._environment.databases
        partition = self._partitions.find(batch.website)
        if partition is None:
            raise NotFound("hostname: the website has been deleted")
        known = read_batch(txn.lmdb, databases, batch.website, batch.number)
        if known is None or known.state is State.LEAVING:
            raise _given_up(batch)
        if known.state is State.WHOLE:
            raise Conflict(f"batch: the import of number {batch.number} has ended")
        return partition

    async def _coded(self, partition: Partition, batch: ImportBatch, piece: Imported) -> Content:
        content = piece.content
        times = [*content.time_ms[:1].tolist(), *content.events.time_ms[:1].tolist()]
        codes = await self._coding.codes(partition, piece.texts.items(), min(times, default=0))
        events = content.events
        return evolve(
            content,
            batch=batch.number,
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

    def _finish(self, batch: ImportBatch, txn: Transaction) -> tuple[ImportBatch, Partition]:
        partition = self._partition_of(batch, txn)
        headers = [
            segment.header
            for segment in partition.segments_of_batch(batch.number)
            if not segment.members
        ]
        incoming = self._incoming.get(batch.number)
        if incoming is None:  # Its removal waits for its turn.
            raise _given_up(batch)
        bounds = incoming.time_bounds
        first_ms, last_ms = (0, 0) if bounds == NO_TIME else bounds
        whole = replace(
            batch,
            state=State.WHOLE,
            views=sum(header.views for header in headers),
            visitors=incoming.visitors,
            events=sum(header.events for header in headers),
            first_ms=first_ms,
            last_ms=last_ms,
            days=incoming.days,
        )
        write_batch(txn.lmdb, self._environment.databases, whole)

        def shown() -> None:
            partition.reveal(batch.number)
            self._partitions.publish(partition)

        txn.after_commit(shown)
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
