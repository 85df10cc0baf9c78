"""Format 11: a visit ends 24 hours after it began.

The numbers of visits that lasted longer are changed where views have them: in segments and in the
write-ahead log. Rollups of days whose views are gone stay as they are.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
from attrs import frozen
from msgspec.structs import replace
from numpy.typing import NDArray

from medamad.domain.dimensions import ViewNumber
from medamad.storage.backup import BackupProgress
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Database, Environment, Txn
from medamad.storage.environment.meta import write_format
from medamad.storage.errors import Damaged, DamagedSegment
from medamad.storage.migrations.headers import has_views, sound_headers
from medamad.storage.segments.format import (
    Segment,
    SegmentHeader,
    decode_header,
    encode_column,
    encode_header,
    first_visit_of,
    header_key,
    number_of,
)
from medamad.storage.segments.read import open_segment
from medamad.storage.segments.visit_limit import FindTimes, VisitLimit, times_in
from medamad.storage.wal.log import wal_records
from medamad.storage.wal.records import RecordKind, records_of, sound_rows
from medamad.storage.websites import read_websites

FORMAT: Final = 11
_BYTES_PER_VIEW: Final = 4
_OFFSET: Final = ViewNumber.VISIT_OFFSET


class _Put(NamedTuple):
    """A value in place of another, of the same key."""

    database: Database
    key: bytes
    value: bytes


def room_bytes(environment: Environment, txn: Txn) -> int:
    """Return what is to be written, at most."""
    headers = (header for _, header in sound_headers(environment, txn))
    return _BYTES_PER_VIEW * sum(header.views for header in headers if has_views(header))


def migrate(environment: Environment, progress: BackupProgress) -> None:
    """Divide the visits that lasted longer."""
    with environment.lmdb.begin() as txn:
        puts = list(_Search(environment, txn, progress).puts())
    with environment.lmdb.begin(write=True) as txn:
        for put in puts:
            txn.put(put.key, put.value, db=put.database)
        write_format(txn, environment.databases.meta, FORMAT)
        progress("written", len(puts), len(puts))


@frozen(eq=False)
class _Search:
    """Looks for visits that lasted longer."""

    environment: Environment
    txn: Txn
    progress: BackupProgress

    def puts(self) -> Iterator[_Put]:
        """Return what is to be written."""
        by_website = {
            website.number: self._segments(website.number)
            for website in read_websites(self.txn, self.environment.databases)
            if not isinstance(website, str)
        }
        total = sum(map(len, by_website.values()))
        done = 0
        for website, segments in by_website.items():
            limit = VisitLimit()
            access = WriterAccess(self.txn)
            find_times = times_in(segments, access, self.environment.databases)
            changed: dict[int, SegmentHeader] = {}
            for segment in segments:
                self.progress("visits end after 24 hours", done, total)
                yield from self._of_segment(segment, limit, find_times, changed)
                done += 1
            yield from self._of_headers(website, changed)
            yield from self._of_log(website, limit, find_times)

    def _of_headers(self, website: int, changed: Mapping[int, SegmentHeader]) -> Iterator[_Put]:
        """Return the changed headers, and those of the segments that were merged from these."""
        if not changed:
            return
        headers = {**self._headers(website), **changed}

        def first_visit(header: SegmentHeader) -> int:
            members = [headers[number] for number in header.members if number in headers]
            firsts = (
                [first_visit(member) for member in members] if members else [header.first_visit]
            )
            return min(filter(None, firsts), default=0)

        for number, header in headers.items():
            now = replace(header, first_visit=first_visit(header))
            if number in changed or now != header:
                key = header_key(website, number)
                yield _Put(self.environment.databases.headers, key, encode_header(key, now))

    def _headers(self, website: int) -> dict[int, SegmentHeader]:
        """Return the sound headers of a website by number."""
        found = {}
        with self.txn.cursor(db=self.environment.databases.headers) as cursor:
            is_left = cursor.set_range(header_key(website, 1))
            while is_left and cursor.key().startswith(header_key(website, 0)[:4]):
                key, value = map(bytes, cursor.item())
                with suppress(Damaged):
                    found[number_of(key)] = decode_header(key, value)
                is_left = cursor.next()
        return found

    def _segments(self, website: int) -> list[Segment]:
        """Return the segments of a website that are sound and not merged, by number of view."""
        found = [
            Segment(website, number, header)
            for number, header in self._headers(website).items()
            if has_views(header)
        ]
        return sorted(found, key=lambda segment: segment.header.first_sequence)

    def _of_segment(
        self,
        segment: Segment,
        limit: VisitLimit,
        find_times: FindTimes,
        changed: dict[int, SegmentHeader],
    ) -> Iterator[_Put]:
        """Return the new column of a segment, and put its header into `changed`."""
        if not segment.header.first_visit:
            return
        databases = self.environment.databases
        part = open_segment(segment, None, WriterAccess(self.txn), databases)
        try:
            sequence, time_ms, before = part.sequence, part.time_ms, part.numbers(_OFFSET)
        except DamagedSegment:
            # No figure includes it.
            return
        offsets = limit.offsets(sequence, time_ms, before, find_times)
        if offsets is None:
            return
        key = segment.key + bytes((_OFFSET.column,))
        yield _Put(databases.segments, key, encode_column(key, offsets))
        first_visit = first_visit_of(sequence, offsets)
        changed[segment.number] = replace(segment.header, first_visit=first_visit)

    def _of_log(self, website: int, limit: VisitLimit, find_times: FindTimes) -> Iterator[_Put]:
        databases = self.environment.databases
        rows, _ = sound_rows(wal_records(self.txn, databases, website))
        views = rows.get(RecordKind.VIEW)
        if views is None:
            return
        offsets = limit.offsets(
            views["sequence"], views["time_ms"].astype(np.int64), views["visit_offset"], find_times
        )
        if offsets is None:
            return
        are_changed = offsets != views["visit_offset"]
        offset_of = dict(
            zip(views["sequence"][are_changed].tolist(), offsets[are_changed].tolist(), strict=True)
        )
        for record in wal_records(self.txn, databases, website):
            of_record, _ = sound_rows([record])
            if (some := of_record.get(RecordKind.VIEW)) is not None:
                yield from self._of_record(website, some, offset_of)

    def _of_record(
        self, website: int, views: NDArray[Any], offset_of: Mapping[int, int]
    ) -> Iterator[_Put]:
        if offset_of.keys().isdisjoint(views["sequence"].tolist()):
            return
        changed = views.copy()
        changed["visit_offset"] = [
            offset_of.get(sequence, before)
            for sequence, before in zip(
                views["sequence"].tolist(), views["visit_offset"].tolist(), strict=True
            )
        ]
        rows = [(*row[:-1], *row[-1].tolist()) for row in changed.tolist()]
        # The numbers are smaller, so that they still fit into one record, under the same key.
        for key, value in records_of(website, RecordKind.VIEW, rows):
            yield _Put(self.environment.databases.wal, key, value)
