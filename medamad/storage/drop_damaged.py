"""Remove damaged data from a store that no daemon uses, so that the store is whole again."""

import os
from collections.abc import Iterator
from pathlib import Path

from attrs import define, frozen

from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import (
    Database,
    Databases,
    Txn,
    open_as_guest,
    take_lock,
)
from medamad.storage.environment.files import store_errors
from medamad.storage.environment.meta import entries
from medamad.storage.environment.tree_check import is_sound
from medamad.storage.errors import DamagedSegment
from medamad.storage.segments.damage import span_without_header
from medamad.storage.segments.format import (
    Segment,
    SegmentHeader,
    decode_header,
    header_key,
    number_of,
)
from medamad.storage.segments.partitions import rollups_of, tree_of
from medamad.storage.segments.parts import enclosing_bounds
from medamad.storage.segments.read import open_part, read_all_values
from medamad.storage.segments.rollup import open_rollup
from medamad.storage.segments.snapshot import with_members
from medamad.storage.wal.records import time_of
from medamad.storage.websites import Websites


@frozen
class Dropped:
    """What is lost of a website with one segment, rollup, record or correction."""

    hostname: str
    what: str
    views: int | None
    """None if nobody knows how many."""
    span_ms: tuple[int, int] | None
    """The first and the last time of what is lost, Unix milliseconds; None if nothing has times."""


def drop_damaged(directory: Path, *, is_dry_run: bool) -> list[Dropped]:
    """Remove what is damaged, unless it is a dry run; return what is lost.

    Merged segments and their counters go without a loss. Raises StoreInUse, other StoreErrors and
    OSError; then everything is as before.
    """
    lock = take_lock(directory)
    try:
        environment = open_as_guest(directory)
        try:
            with store_errors(environment.path), environment.lmdb.begin(write=True) as txn:
                environment.check_is_ours(txn)
                websites = Websites(environment.databases)
                websites.load(txn)
                dropped = [
                    lost
                    for website in websites.all()
                    for lost in _Dropping(
                        txn, environment.databases, website.number, website.hostname
                    ).drop()
                ]
                if is_dry_run:
                    txn.abort()
            return dropped
        finally:
            environment.close()
    finally:
        os.close(lock)


@define(eq=False)
class _Dropping:
    """Drops the damaged data of a website in a transaction."""

    _txn: Txn
    _databases: Databases
    _website: int
    _hostname: str

    def drop(self) -> Iterator[Dropped]:
        headers, lost = self._headers()
        tops = [*tree_of(self._website, headers), *rollups_of(self._website, headers)]
        present = {each.number: each for top in tops for each in with_members(top)}
        # A merged segment that has lost a member is in no tree.
        removed = headers.keys() - present.keys()
        removed |= {number for number, segment in present.items() if self._is_damaged(segment)}
        while over := {
            number
            for number, header in headers.items()
            if number not in removed and not removed.isdisjoint(header.members)
        }:
            removed |= over
        for number in sorted(removed):
            header = headers[number]
            if not header.members:
                yield Dropped(
                    self._hostname,
                    f"segment {number}" if header.day is None else f"rollup {number}",
                    header.views,
                    enclosing_bounds((header.time_bounds, header.event_time_bounds)),
                )
        for number in lost:
            span = span_without_header(self._txn, self._databases, self._website, number)
            if span is not None:
                yield Dropped(self._hostname, f"segment {number}", None, span)
        self._delete_segments(removed | set(lost))
        yield from self._drop_values()

    def _headers(self) -> tuple[dict[int, SegmentHeader], list[int]]:
        """Return the headers by the numbers of segments, and the numbers of damaged ones."""
        headers, lost = {}, []
        for key, value in self._items("headers"):
            if key == header_key(self._website, 0):
                continue
            if is_sound("headers", key, memoryview(value)):
                headers[number_of(key)] = decode_header(key, value)
            else:
                lost.append(number_of(key))
        return headers, lost

    def _is_damaged(self, segment: Segment) -> bool:
        access = WriterAccess(self._txn)
        try:
            if segment.header.day is not None:
                open_rollup(segment, access, self._databases).loaded()
            else:
                read_all_values(open_part(segment, None, access, self._databases))
        except DamagedSegment:
            return True
        return False

    def _delete_segments(self, numbers: set[int]) -> None:
        for number in numbers:
            self._txn.delete(header_key(self._website, number), db=self._databases.headers)
        for name in ("segments", "counters"):
            # The time in the keys is known only from headers, which may be damaged.
            keys = [
                key for key, _ in self._items(name) if int.from_bytes(key[12:16], "big") in numbers
            ]
            for key in keys:
                self._txn.delete(key, db=getattr(self._databases, name))

    def _drop_values(self) -> Iterator[Dropped]:
        """Delete damaged records of the write-ahead log, and damaged corrections."""
        for name, what in (
            ("wal", "a record"),
            ("corrections", "a correction"),
            ("robots", "the robots of a day"),
        ):
            keys = [
                key
                for key, value in self._items(name)
                if not is_sound(name, key, memoryview(value))
            ]
            for key in keys:
                self._txn.delete(key, db=getattr(self._databases, name))
                time_ms = time_of(key) if name == "wal" else None
                span = None if time_ms is None else (time_ms, time_ms)
                yield Dropped(self._hostname, what, None if name == "wal" else 0, span)

    def _items(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        database: Database = getattr(self._databases, name)
        return entries(self._txn, database, header_key(self._website, 0)[:4])
