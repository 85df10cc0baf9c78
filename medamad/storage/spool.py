"""The spool: what stays in the store of a collector until it is in the cluster, and for how long.

The marks are sequence numbers. What is up to `sent` is in the cluster. What is up to `safe` has the
replicas there that the configuration asks for, and may go from here once it is old enough.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

import msgspec
from attrs import define, evolve, field

from medamad.storage.compaction.retention import Cutoff
from medamad.storage.environment.environment import Txn
from medamad.storage.environment.files import Database
from medamad.storage.environment.meta import HIDDEN_BATCHES, MARKS, verified, with_checksum
from medamad.storage.environment.writer import Transaction
from medamad.storage.segments.format import SegmentHeader
from medamad.storage.settings import LEAST_KEPT_HOURS

_HOUR_MS: Final = 3_600_000
_NUMBERS_A_SECOND: Final = 1 << 14
_UTC: Final = ZoneInfo("UTC")

Batch: TypeAlias = tuple[int, int]
"""An import batch: the number of its website, and its own."""


def least_number(now: float) -> int:
    """Return the number after which a collector goes on when it starts; `now` is in Unix seconds.

    A store that was restored from a backup has given the same numbers to other hits since then, and
    these are in the cluster. No collector stores as many hits a second.
    """
    return int(max(now, 0)) * _NUMBERS_A_SECOND


class Marks(msgspec.Struct, frozen=True, array_like=True):
    """How far the cluster has what is stored."""

    collector: int = 0
    """The number under which it was sent, 0 before anything was."""
    since: int = 0
    """What is up to this number was stored before there was a cluster, and is not sent."""
    sent: int = 0
    safe: int = 0
    safe_ms: int = 0
    """When what is up to `safe` had been stored."""
    deleted: tuple[int, ...] = ()
    """The websites whose rows are still to be deleted in the cluster."""
    loaded: dict[int, int] = {}
    """By website, up to which number of those up to `since` the cluster has its hits."""


def read_hidden(txn: Txn, meta: Database) -> frozenset[Batch]:
    """Return the import batches whose rows no query of a cluster sees. Raises Damaged."""
    stored = txn.get(HIDDEN_BATCHES, db=meta)
    if stored is None:
        return frozenset()
    return msgspec.msgpack.decode(verified(HIDDEN_BATCHES, stored), type=frozenset[Batch])


@define(eq=False)
class Spool:
    """What the writer, the compactor and the shipper have in common.

    The writer's thread replaces `marks`; any thread may read.
    """

    kept_hours: int
    marks: Marks = field(factory=Marks)
    stored_up_to: int = 0
    """Whatever has a number up to this is committed, and in the snapshots that queries get."""
    unbound: set[int] = field(factory=set)
    """The numbers of events whose page load may still arrive. The shipper forgets them."""
    loading: set[int] = field(factory=set)
    """The numbers of the import batches that are under way here."""
    hidden: frozenset[Batch] = frozenset()
    """The import batches whose rows in the cluster no query sees: those that are under way, and
    those of which some may be left to be deleted."""

    def load(self, txn: Txn, meta: Database, sequence: int) -> bool:
        """Read the marks; return whether there are none yet, and they have to be stored.

        What is stored then, up to `sequence`, is not for the cluster.
        """
        self.hidden = read_hidden(txn, meta)
        stored = txn.get(MARKS, db=meta)
        if stored is None:
            self.marks = Marks(since=sequence, sent=sequence, safe=sequence)
        else:
            self.marks = msgspec.msgpack.decode(verified(MARKS, stored), type=Marks)
        return stored is None

    def hide(self, txn: Transaction, meta: Database, batch: Batch) -> None:
        """Let no query see the rows of an import batch, once it is committed."""
        self._change_hidden(txn, meta, self.hidden | {batch})

    def reveal(self, txn: Transaction, meta: Database, batches: Iterable[Batch]) -> None:
        """Let queries see the rows of import batches again, or forget batches that have none."""
        self._change_hidden(txn, meta, self.hidden.difference(batches))

    def _change_hidden(self, txn: Transaction, meta: Database, hidden: frozenset[Batch]) -> None:
        value = with_checksum(HIDDEN_BATCHES, msgspec.msgpack.encode(sorted(hidden)))
        txn.lmdb.put(HIDDEN_BATCHES, value, db=meta)
        txn.after_commit(lambda: setattr(self, "hidden", hidden))

    def change(self, txn: Transaction, meta: Database, marks: Marks) -> None:
        """Store marks, which replace those here once they are committed."""
        value = with_checksum(MARKS, msgspec.msgpack.encode(marks))
        txn.lmdb.put(MARKS, value, db=meta)
        txn.after_commit(lambda: setattr(self, "marks", marks))

    def cutoff(self, now_ms: int) -> Cutoff:
        """Return which views and events may go: of those in the cluster, the old ones."""
        marks, kept_ms = self.marks, self.kept_hours * _HOUR_MS
        # What is not safe may be of a visit that began a day before, or correct a view of then.
        before_ms = min(now_ms - kept_ms, marks.safe_ms - LEAST_KEPT_HOURS * _HOUR_MS)

        def includes(header: SegmentHeader) -> bool:
            is_sent = header.first_sequence > marks.since and header.last_sequence <= marks.safe
            # No cluster has the totals of a day.
            return is_sent and header.day is None and header.import_batch not in self.loading

        return Cutoff(before_ms, _UTC, keeps_rollups=False, includes=includes, is_in_cluster=True)

    def limited(self, cutoff: Cutoff) -> Cutoff:
        """Return a cutoff for what was stored before there was a cluster alone."""
        marks = self.marks

        def includes(header: SegmentHeader) -> bool:
            return header.first_sequence <= marks.since and header.last_sequence <= marks.safe

        return evolve(cutoff, includes=includes)
