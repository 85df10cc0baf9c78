"""The partitions of all websites: loaded at start, extended after each commit, read by queries."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import numpy as np
from attrs import define, evolve, field

from medamad.domain.errors import NotFound
from medamad.domain.zones import DAY_MS
from medamad.storage.dictionary.decode import WebsiteTexts, keep_within
from medamad.storage.environment.access import Leases, QueryAccess, WriterAccess
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.meta import entries
from medamad.storage.environment.writer import Transaction
from medamad.storage.errors import Damaged
from medamad.storage.segments.corrections import Corrected, Correction, read_corrections
from medamad.storage.segments.damage import Damage, span_without_header
from medamad.storage.segments.format import (
    VISITOR,
    Segment,
    SegmentHeader,
    decode_header,
    header_key,
    number_of,
)
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.snapshot import EMPTY, ResultCache, Snapshot, SnapshotReader
from medamad.storage.visitors import VisitorsLastDay, newest_ms, visitor_times
from medamad.storage.wal.log import WriteBatch
from medamad.storage.wal.memtable import Memtable
from medamad.storage.wal.records import RecordKind, Rows, describe_record, read_watermark

T = TypeVar("T")

_SEGMENT_RESULTS_BYTES: Final = 16 << 20
"""What queries cache of the rows of segments.

A bit for each view that matches a filter, for each that begins a visit which does, and for each of
the visit's; and in which rows a goal was reached, and when, in twelve bytes.

A filter on the views of 30 days of a website that has a million a day takes half of it.
"""


@define(eq=False)
class Partitions:
    """A partition for each website.

    Changed by the writer thread alone; any thread may read.
    """

    _environment: Environment
    _chunk_views: int
    leases: Leases
    _partitions: dict[int, Partition] = field(factory=dict)
    _published: dict[int, Snapshot] = field(factory=dict)
    _visitors: dict[int, VisitorsLastDay] = field(factory=dict)
    _results: ResultCache = field(factory=ResultCache)
    _segment_results: ResultCache = field(factory=lambda: ResultCache(_SEGMENT_RESULTS_BYTES))
    greatest_sequence: int = 0
    """The greatest sequence number that is in use, as `load` found."""

    # For any thread

    def read(self, website: int, read: Callable[[Snapshot], T]) -> T:
        """Call `read` with a snapshot of a website and return its result.

        A segment that turns out to be damaged is logged and left out of the result.
        """
        with self.snapshot(website) as snapshot:
            return snapshot.run(read)

    def read_segments(
        self, website: int, segments: Sequence[Segment], read: Callable[[Snapshot], T]
    ) -> T:
        """Call `read` with a snapshot of some segments alone, none of them merged.

        Queries may not see them. Raises NotFound if one was removed meanwhile, and DamagedSegment.
        """
        with self.snapshot(website) as snapshot:
            partition = self.find(website)
            here = () if partition is None else (leaf.number for leaf in partition.leaves())
            if not {segment.number for segment in segments}.issubset(here):
                raise NotFound("batch: the import was given up")
            return snapshot.with_segments(segments).read_once(read)

    @contextmanager
    def snapshot(self, website: int) -> Iterator[Snapshot]:
        """Keep the present state of a website readable until the context ends."""
        environment = self._environment
        access = QueryAccess(environment.lmdb, environment.page_bytes)
        with self.leases.lease(website):
            published = self._published.get(website, EMPTY)
            partition = self.find(website)
            damage = Damage() if partition is None else partition.damage
            reader = SnapshotReader(
                access,
                environment.databases,
                damage.add_segment,
                self._results,
                self._segment_results,
            )
            yield evolve(published.without(damage.numbers), reader=reader)

    def visitors_last_day(self, website: int, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        counted = self._last_day(website).count(now_ms)
        if counted is not None:
            return counted
        times_ms = self.read(website, lambda found: visitor_times(found, now_ms - DAY_MS))
        return int(np.count_nonzero(times_ms <= now_ms))

    def knows_visitors(self, website: int, now_ms: int) -> bool:
        """Return whether the visitors of the last 24 hours are in memory."""
        return self._last_day(website).knows(now_ms)

    def all(self) -> list[Partition]:
        """Return every partition."""
        return list(self._partitions.values())

    def find(self, website: int) -> Partition | None:
        """Return the partition of a website, None where there is none."""
        return self._partitions.get(website)

    def get_or_create(self, website: int) -> Partition:
        """Return the partition of a website, which is created if there is none."""
        partition = self._partitions.get(website)
        if partition is None:
            created = Partition(
                website=website,
                memtable=Memtable(self._chunk_views),
                texts=WebsiteTexts(self._environment, website),
                databases=self._environment.databases,
            )
            # Another thread may have created it meanwhile.
            partition = self._partitions.setdefault(website, created)
        return partition

    def days_with_rollups(self) -> dict[int, set[int]]:
        """Return the days of which rollups are left, by the number of the website, if any are."""
        found = {
            partition.website: {
                rollup.header.day.number
                for rollup in partition.rollups
                if rollup.header.day is not None
            }
            for partition in self.all()
        }
        return {website: days for website, days in found.items() if days}

    def evict_texts(self, max_bytes: int) -> None:
        """Drop the least recently used texts until the rest fit into `max_bytes`."""
        keep_within(max_bytes, [partition.texts for partition in self.all()])

    # In the writer thread

    def duration_ms(self, website: int, view: int) -> int:
        """Return the longest known duration of a view in the memtable, else 0."""
        partition = self._partitions.get(website)
        return 0 if partition is None else partition.memtable.duration_ms(view)

    def is_flushed(self, website: int, sequence: int) -> bool:
        """Return whether a view or event is in a segment."""
        partition = self._partitions.get(website)
        return partition is not None and sequence <= partition.watermark

    def correction(self, website: int, kind: Corrected, sequence: int) -> int:
        """Return the value of a correction of a flushed hit, 0 for none."""
        return self._partitions[website].correction(kind, sequence)

    def extend(self, batch: WriteBatch) -> None:
        """Add the hits of a batch that was committed, and publish them."""
        for website, rows in batch.rows.items():
            if self.find(website) is None:
                # These are its first hits, so memory knows all of its visitors.
                self._last_day(website).fill((), 0)
            partition = self.get_or_create(website)
            partition.memtable.extend(rows)
            self._last_day(website).add(_visitor_times(rows))
            if website not in batch.corrections:
                self.publish(partition)
        for website, corrections in batch.corrections.items():
            partition = self.get_or_create(website)
            with self._environment.reading() as txn:
                partition.add_corrections(
                    [
                        Correction(kind, sequence, value)
                        for (kind, sequence), value in corrections.items()
                    ],
                    WriterAccess(txn),
                )
            self.publish(partition)

    def publish(self, partition: Partition) -> None:
        """Let queries see a partition as it is now, unless it has been deleted."""
        if not partition.is_deleted:
            self._published[partition.website] = partition.publish()

    def drop(self, websites: Iterable[int]) -> None:
        """Drop websites that were deleted."""
        for website in websites:
            self._published.pop(website, None)
            self._visitors.pop(website, None)
            partition = self._partitions.pop(website, None)
            if partition is not None:
                partition.delete()

    def count_visitors(
        self, partition: Partition, _txn: Transaction, *, now_ms: int | None = None
    ) -> None:
        """Load the visitors of the last 24 hours into memory.

        They are those before the latest view where no time is given.
        """
        if partition.is_deleted:
            return

        def latest(snapshot: Snapshot) -> tuple[list[int], int]:
            latest_ms = newest_ms(snapshot.parts) if now_ms is None else now_ms
            return visitor_times(snapshot, latest_ms - DAY_MS).tolist(), latest_ms

        self._last_day(partition.website).fill(*self.read(partition.website, latest))

    # At start

    def load(
        self,
        txn: Txn,
        website: int,
        rows: Mapping[RecordKind, Rows],
        damaged: Iterable[bytes],
    ) -> bool:
        """Load segments, corrections and the rows of the log; return whether some were flushed.

        `damaged` are the keys of damaged records.
        """
        partition = self.get_or_create(website)
        headers = self._headers(txn, partition)
        partition.segments = tree_of(website, headers)
        partition.rollups = rollups_of(website, headers)
        for key in damaged:
            partition.damage.add_lost(f"{describe_record(key)}: a damaged record")
        try:
            partition.watermark = read_watermark(txn, self._environment, website)
        except Damaged as error:
            # All records count as unflushed, then.
            partition.damage.add_lost(f"website {website}, watermark: {error}")
            partition.watermark = _before(rows, (*partition.segments, *partition.rollups))
        self.greatest_sequence = max(
            self.greatest_sequence,
            partition.watermark,
            *(
                segment.header.last_sequence
                for segment in (*partition.segments, *partition.rollups)
            ),
            *(int(found["sequence"][-1]) for found in rows.values()),
        )
        unflushed = {kind: _after(found, partition.watermark) for kind, found in rows.items()}
        partition.memtable.extend({kind: found for kind, found in unflushed.items() if len(found)})
        corrections = []
        database = self._environment.databases.corrections
        for correction in read_corrections(txn, database, website):
            if isinstance(correction, str):
                partition.damage.add_lost(f"{correction}: it is damaged")
            else:
                corrections.append(correction)
        if corrections:
            partition.add_corrections(corrections, WriterAccess(txn))
        self.publish(partition)
        return any(len(unflushed[kind]) < len(found) for kind, found in rows.items())

    def _headers(self, txn: Txn, partition: Partition) -> dict[int, SegmentHeader]:
        headers: dict[int, SegmentHeader] = {}
        website, databases = partition.website, self._environment.databases
        prefix = header_key(website, 0)[:4]
        for key, value in entries(txn, databases.headers, prefix):
            number = number_of(key)
            if not number:
                # The watermark is among the headers.
                continue
            try:
                headers[number] = decode_header(key, value)
            except Damaged as error:
                partition.damage.add_lost(
                    f"website {website}, segment {number}, header: {error}",
                    span_without_header(txn, databases, website, number),
                )
        return headers

    def _last_day(self, website: int) -> VisitorsLastDay:
        found = self._visitors.get(website)
        return self._visitors.setdefault(website, VisitorsLastDay()) if found is None else found


def tree_of(website: int, headers: Mapping[int, SegmentHeader]) -> list[Segment]:
    """Return the segments that are no member of a merged one."""
    found: dict[int, Segment] = {}

    def segment_of(number: int) -> Segment | None:
        """Return a segment, None where its header or that of a member is damaged."""
        header = headers.get(number)
        if header is None:
            return None
        if number not in found:
            members = [segment_of(member) for member in header.members]
            whole = [member for member in members if member is not None]
            if len(whole) < len(members):
                return None
            found[number] = Segment(website, number, header, tuple(whole))
        return found[number]

    of_views = [number for number, header in headers.items() if header.day is None]
    segments = [segment for number in of_views if (segment := segment_of(number)) is not None]
    inner = {member.number for segment in segments for member in segment.members}
    outer = [segment for segment in segments if segment.number not in inner]
    return sorted(outer, key=lambda segment: segment.header.first_sequence)


def rollups_of(website: int, headers: Mapping[int, SegmentHeader]) -> list[Segment]:
    """Return the rollups in the order of their days."""
    rollups = [
        Segment(website, number, header)
        for number, header in headers.items()
        if header.day is not None
    ]
    return sorted(rollups, key=lambda rollup: rollup.header.key_ms)


def _before(rows: Mapping[RecordKind, Rows], segments: Iterable[Segment]) -> int:
    """Return the sequence number before all rows; without rows, the greatest of segments."""
    if rows:
        return min(int(found["sequence"][0]) for found in rows.values()) - 1
    return max((segment.header.last_sequence for segment in segments), default=0)


def _after(rows: Rows, watermark: int) -> Rows:
    return rows[rows["sequence"].searchsorted(np.uint64(watermark), side="right") :]


def _visitor_times(rows: Mapping[RecordKind, Rows]) -> Sequence[int]:
    views = rows.get(RecordKind.VIEW)
    if views is None:
        return ()
    times: list[int] = views["time_ms"][(views["flags"] & VISITOR) != 0].tolist()
    return times
