"""Import batches on disk: their state, their origins, and their removal.

A view or event is identified for good by the store that counted it first and its number there. When
it is imported, it also gets a number in this store, at a fixed distance from the original one. The
distance is the same in every import of a website, so that a view and its events belong together
even if they are imported separately, in any order.

The segments of a batch name it, and are merged only with each other. Queries do not see them while
the batch is incomplete or being removed. A start removes the batches that it finds in that state.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from typing import Final, TypeVar

import msgspec
import numpy as np
from attrs import define, field, frozen
from msgspec.structs import replace
from numpy.typing import NDArray
from twisted.internet.defer import DeferredLock

from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.environment.meta import (
    decoded,
    entries,
    read_number,
    with_checksum,
    write_number,
)
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.errors import Damaged
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.partitions import Partitions

Numbers = TypeVar("Numbers", int, NDArray[np.int64])


class Span(msgspec.Struct, frozen=True, array_like=True):
    """The hits that have the numbers from `first` to `last` in another store.

    In this store their numbers begin at `at`.
    """

    store: str
    first: int
    last: int
    at: int

    @property
    def end(self) -> int:
        """The greatest number that they can have in this store."""
        return self.at + self.last - self.first

    def place(self, number: Numbers) -> Numbers:
        """Return the number in this store for one in the other store, 0 if it is out of range."""
        return (self.at + number - self.first) * ((self.first <= number) & (number <= self.last))


@frozen
class Origins:
    """The names of a website's hits. `store` is this one's."""

    store: str
    spans: Sequence[Span] = ()

    def of(self, numbers: NDArray[np.integer]) -> tuple[list[str], list[int]]:
        """Return the store that each hit is from, and its number there, by its numbers here."""
        found = numbers.astype(np.uint64)
        which = np.zeros(len(found), np.intp)
        for place, span in enumerate(self.spans, 1):
            inside = (numbers >= span.at) & (numbers <= span.end)
            found[inside] = (
                numbers[inside].astype(np.uint64) - np.uint64(span.at) + np.uint64(span.first)
            )
            which[inside] = place
        stores = [self.store, *(span.store for span in self.spans)]
        return [stores[place] for place in which.tolist()], found.tolist()

    def places(self, store: str, numbers: Numbers) -> Iterator[tuple[Numbers, bool]]:
        """Yield the numbers that hits of a store may have here, and whether they were counted here.

        A number is 0 if there is none.
        """
        for span in self.spans:
            if span.store == store:
                yield span.place(numbers), False
        if store == self.store:
            yield numbers, True


def joined_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the spans with adjacent ones joined."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.store, span.at - span.first, span.first)):
        before = found[-1] if found else None
        if (
            before is not None
            and (before.store, before.at - before.first) == (span.store, span.at - span.first)
            and span.first <= before.last + 1
        ):
            last = max(before.last, span.last)
            found[-1] = Span(span.store, before.first, last, before.at)
        else:
            found.append(span)
    return found


def spans_of(
    known: Sequence[Span], store: str, first: int, last: int, reserve: Callable[[int], int]
) -> Iterator[Span]:
    """Return the numbers here of the hits of a store: those that are known, and new ones.

    `reserve` gives the first of so many new ones. Hits of no store have no numbers for good.
    """
    known = [span for span in known if store and span.store == store]
    while first <= last:
        has = next((span for span in known if span.place(first)), None)
        if has is not None:
            end = min(last, has.last)
            yield Span(store, first, end, has.place(first))
        else:
            end = min([last, *(span.first - 1 for span in known if span.first > first)])
            yield Span(store, first, end, reserve(end - first + 1))
        first = end + 1


LAST_BATCH: Final = b"last-batch"
MOST_NUMBERS: Final = 1 << 48
"""How far apart the numbers of the hits of a batch may be."""
_KEY: Final = struct.Struct(">II")
_WEBSITE: Final = struct.Struct(">I")


class BatchState(IntEnum):
    """How far a batch is. Part of the store's format."""

    UNFINISHED = 0
    COMPLETE = 1
    BEING_REMOVED = 2


class ImportBatch(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What was imported at once. Times in Unix milliseconds but `made`, which is in seconds."""

    website: int
    number: int
    source: str
    """What it was imported from, as the operator named it."""
    digest: str
    """Identifies the contents of its files."""
    made: int
    spans: tuple[Span, ...]
    """Which numbers its hits came with, and which they have here."""
    state: BatchState = BatchState.UNFINISHED
    views: int = 0
    visitors: int = 0
    events: int = 0
    first_ms: int = 0
    last_ms: int = 0
    days: tuple[int, int] | None = None
    """The first and the last local date that came as a rollup, in days since 1970-01-01."""

    def contains(self, least: int, greatest: int) -> bool:
        """Return whether all numbers from `least` to `greatest` belong to its hits."""
        return any(span.at <= least and greatest <= span.end for span in self.spans)


def read_batches(txn: Txn, databases: Databases, website: int) -> Iterator[ImportBatch | str]:
    """Return the batches of a website; of a damaged one, its place and what is wrong."""
    prefix = _WEBSITE.pack(website)
    for key, value in entries(txn, databases.import_batches, prefix):
        try:
            yield _decoded(key, value)
        except Damaged as error:
            yield f"website {website}, batch {key[4:].hex()}: {error}"


def sound_batches(txn: Txn, databases: Databases, website: int) -> list[ImportBatch]:
    """Return the batches of a website that are not damaged."""
    found = read_batches(txn, databases, website)
    return [batch for batch in found if isinstance(batch, ImportBatch)]


def read_batch(txn: Txn, databases: Databases, website: int, number: int) -> ImportBatch | None:
    """Return one batch, None where there is none. Raises Damaged."""
    key = _KEY.pack(website, number)
    stored = txn.get(key, db=databases.import_batches)
    return None if stored is None else _decoded(key, stored)


def write_batch(txn: Txn, databases: Databases, batch: ImportBatch) -> None:
    """Store a batch, replacing an earlier state of it."""
    key = _KEY.pack(batch.website, batch.number)
    txn.put(key, with_checksum(key, msgspec.msgpack.encode(batch)), db=databases.import_batches)


def delete_batch(txn: Txn, databases: Databases, batch: ImportBatch) -> None:
    """Delete a batch."""
    txn.delete(_KEY.pack(batch.website, batch.number), db=databases.import_batches)


def next_number(txn: Txn, databases: Databases) -> int:
    """Return a number that no batch of this store has had."""
    with txn.cursor(db=databases.import_batches) as cursor:
        used = max((_KEY.unpack(key)[1] for key in cursor.iternext(values=False)), default=0)
    number = max(used, read_number(txn, databases.meta, LAST_BATCH)) + 1
    write_number(txn, databases.meta, LAST_BATCH, number)
    return number


def check_new(batches: Sequence[ImportBatch], digest: str, newest: int) -> None:
    """Raise Conflict if another batch may not be imported, given those that a website has.

    `newest` is the greatest number of a batch that the other one was checked against.
    """
    for batch in batches:
        if batch.state is BatchState.UNFINISHED:
            raise Conflict("another import into this website is under way")
        if batch.state is BatchState.COMPLETE and batch.digest == digest:
            raise Conflict(f"the same was imported before, as number {batch.number}")
        if batch.state is BatchState.COMPLETE and batch.number > newest:
            raise Conflict("another import has come in between: try again")


def check_ranges(ranges: Sequence[tuple[str, int, int]]) -> None:
    """Raise BadRequest for numbers that are not positive, or are too far apart."""
    for store, first, last in ranges:
        if not 0 < first <= last < 1 << 63 or last - first >= MOST_NUMBERS:
            raise BadRequest(
                f"view: expected numbers from 1 that are less than {MOST_NUMBERS} apart, "
                f"got {first} to {last} of the store {store or 'itself'}"
            )


def origins_of(store: str, batches: Sequence[ImportBatch]) -> Origins:
    """Return where the hits of a website are from."""
    spans = [
        span
        for batch in batches
        for span in batch.spans
        if batch.state is BatchState.COMPLETE and span.store
    ]
    return Origins(store, joined_spans(spans))


def _decoded(key: bytes, value: bytes) -> ImportBatch:
    batch = decoded(key, value, ImportBatch, msgspec.msgpack.decode)
    if key != _KEY.pack(batch.website, batch.number):
        raise Damaged("it stands in the place of another")
    return batch


@define(eq=False)
class ImportRemoval:
    """Removes import batches, in the reactor's thread. The next start finds what a stop left."""

    _environment: Environment
    _submit: Submit
    _partitions: Partitions
    _compactor: Compactor
    _segments_lock: DeferredLock
    _delete_others: Callable[[Transaction, Databases, int, int], None]
    """Deletes what else was stored with a batch of a website."""
    _undone: Callable[[Partition], None]
    """Called with a website that has lost hits: some of its texts may be unused now."""
    _left: dict[int, ImportBatch] = field(factory=dict)
    """The batches to remove, by number."""

    def add(self, batch: ImportBatch) -> None:
        """Let `finish` remove a batch that was never complete."""
        self._left[batch.number] = batch

    async def hide(self, website: int, number: int) -> ImportBatch:
        """Hide a batch, which `finish` then removes; return it as it was. Raises NotFound."""
        async with self._segments_lock:
            batch = await self._submit(partial(self._hide_known, website, number))
        self._left[number] = batch
        return batch

    async def finish(self) -> None:
        """Remove the hidden batches. Raises Unavailable; the next call continues then."""
        for batch in list(self._left.values()):
            async with self._segments_lock:
                if batch.number in self._left:
                    await self._remove(batch)
                    del self._left[batch.number]

    async def _remove(self, batch: ImportBatch) -> None:
        partition = self._partitions.find(batch.website)
        if partition is None:
            return  # deleted with its website
        await self._submit(partial(self._hide, batch, partition))
        await self._compactor.remove_batch(partition, batch.number)
        await self._submit(partial(self._delete, batch))
        await self._submit(partial(self._partitions.count_visitors, partition))
        self._undone(partition)

    # Steps

    def _hide_known(self, website: int, number: int, txn: Transaction) -> ImportBatch:
        batch = read_batch(txn.lmdb, self._environment.databases, website, number)
        partition = self._partitions.find(website)
        if partition is None or batch is None or batch.state is BatchState.BEING_REMOVED:
            raise NotFound(f"batch: nothing was imported as number {number}")
        self._hide(batch, partition, txn)
        return batch

    def _hide(self, batch: ImportBatch, partition: Partition, txn: Transaction) -> None:
        write_batch(
            txn.lmdb, self._environment.databases, replace(batch, state=BatchState.BEING_REMOVED)
        )

        def hidden() -> None:
            partition.hide(batch.number)
            self._partitions.publish(partition)

        txn.after_commit(hidden)

    def _delete(self, batch: ImportBatch, txn: Transaction) -> None:
        self._delete_others(txn, self._environment.databases, batch.website, batch.number)
        delete_batch(txn.lmdb, self._environment.databases, batch)
