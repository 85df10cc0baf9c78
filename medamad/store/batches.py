"""Batches: what was imported at once, so that it counts once and can be undone as a whole.

The blocks of a batch name it, and are merged among themselves alone. While a batch is not whole,
or is on its way out, no question sees them. One that a start finds so is removed.
"""

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from medamad.model.errors import BadRequest, Conflict
from medamad.store.environment import Databases, Txn
from medamad.store.errors import Damaged
from medamad.store.numbers import read_number, write_number
from medamad.store.origins import Origins, Span, joined_spans
from medamad.store.sealed import sealed, unsealed

LAST_BATCH: Final = b"last-batch"
MOST_NUMBERS: Final = 1 << 48
"""How far apart the numbers of the hits of a batch may be."""
_KEY: Final = struct.Struct(">II")
_WEBSITE: Final = struct.Struct(">I")


class State(IntEnum):
    """What is to be seen of a batch. Part of the store's format."""

    UNFINISHED = 0
    WHOLE = 1
    LEAVING = 2


class Batch(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What was imported at once. Times in Unix milliseconds but `made`, which is in seconds."""

    website: int
    number: int
    source: str
    """What it was imported from, in the operator's words."""
    digest: str
    """What tells the contents of its files from others."""
    made: int
    spans: tuple[Span, ...]
    """Which numbers its hits came with, and which they have here."""
    state: State = State.UNFINISHED
    views: int = 0
    visitors: int = 0
    events: int = 0
    first_ms: int = 0
    last_ms: int = 0
    days: tuple[int, int] | None = None
    """The first and the last local date, of days that were added up elsewhere: as numbers of days
    since 1970-01-01."""

    def contains(self, least: int, greatest: int) -> bool:
        """Tell whether hits of it may have all the numbers between two."""
        return any(span.at <= least and greatest <= span.end for span in self.spans)


def read_batches(txn: Txn, databases: Databases, website: int) -> Iterator[Batch | str]:
    """Give the batches of a website; of a damaged one, where it stands."""
    prefix = _WEBSITE.pack(website)
    with txn.cursor(db=databases.batches) as cursor:
        found = cursor.set_range(prefix)
        while found and cursor.key().startswith(prefix):
            key, value = cursor.item()
            try:
                yield _decoded(key, value)
            except (Damaged, struct.error, msgspec.DecodeError) as error:
                yield f"website {website}, batch {key[4:].hex()}: {error}"
            found = cursor.next()


def sound_batches(txn: Txn, databases: Databases, website: int) -> list[Batch]:
    """Give the batches of a website that are not damaged."""
    found = read_batches(txn, databases, website)
    return [batch for batch in found if isinstance(batch, Batch)]


def read_batch(txn: Txn, databases: Databases, website: int, number: int) -> Batch | None:
    """Give one batch, None where there is none. Raises Damaged."""
    key = _KEY.pack(website, number)
    stored = txn.get(key, db=databases.batches)
    return None if stored is None else _decoded(key, stored)


def write_batch(txn: Txn, databases: Databases, batch: Batch) -> None:
    """Store a batch in the place of what was known of it."""
    key = _KEY.pack(batch.website, batch.number)
    txn.put(key, sealed(key, msgspec.msgpack.encode(batch)), db=databases.batches)


def delete_batch(txn: Txn, databases: Databases, batch: Batch) -> None:
    """Forget a batch."""
    txn.delete(_KEY.pack(batch.website, batch.number), db=databases.batches)


def next_number(txn: Txn, databases: Databases) -> int:
    """Give a number that no batch of this store has had."""
    with txn.cursor(db=databases.batches) as cursor:
        used = max((_KEY.unpack(key)[1] for key in cursor.iternext(values=False)), default=0)
    number = max(used, read_number(txn, databases.meta, LAST_BATCH)) + 1
    write_number(txn, databases.meta, LAST_BATCH, number)
    return number


def check_new(batches: Sequence[Batch], digest: str, newest: int) -> None:
    """Raise Conflict when a batch has been imported, or is being, that another may not join.

    `newest` is the greatest number of a batch that the other one was checked against.
    """
    for batch in batches:
        if batch.state is State.UNFINISHED:
            raise Conflict("another import into this website is under way")
        if batch.state is State.WHOLE and batch.digest == digest:
            raise Conflict(f"the same was imported before, as number {batch.number}")
        if batch.state is State.WHOLE and batch.number > newest:
            raise Conflict("another import has come in between: try again")


def check_ranges(ranges: Sequence[tuple[str, int, int]]) -> None:
    """Raise BadRequest for numbers that are none, or too far apart."""
    for store, first, last in ranges:
        if not 0 < first <= last < 1 << 63 or last - first >= MOST_NUMBERS:
            raise BadRequest(
                f"view: expected numbers from 1 that are less than {MOST_NUMBERS} apart, "
                f"got {first} to {last} of the store {store or 'itself'}"
            )


def origins_of(store: str, batches: Sequence[Batch]) -> Origins:
    """Tell where the hits of a website are from."""
    spans = [
        span
        for batch in batches
        for span in batch.spans
        if batch.state is State.WHOLE and span.store
    ]
    return Origins(store, joined_spans(spans))


def _decoded(key: bytes, value: bytes) -> Batch:
    batch = msgspec.msgpack.decode(unsealed(key, value), type=Batch)
    if key != _KEY.pack(batch.website, batch.number):
        raise Damaged("it stands in the place of another")
    return batch
