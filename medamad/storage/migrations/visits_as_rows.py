"""Format 12: a segment has the visits that begin in it as columns."""

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from medamad.storage.backup import BackupProgress
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.files import check_room
from medamad.storage.errors import Damaged, DamagedSegment
from medamad.storage.segments.build import visit_puts
from medamad.storage.segments.format import (
    Segment,
    decode_header,
    encode_header,
    header_key,
    number_of,
    website_of,
)
from medamad.storage.segments.read import open_segment
from medamad.storage.segments.visit_columns import visits_of

_AT_ONCE: Final = 64
"""How many segments a transaction writes."""
_BYTES_PER_VIEW: Final = 8
"""More than the columns take, with the pages of which only a part is used."""
_ROOM_BYTES: Final = 64 << 20


def migrate(environment: Environment, progress: BackupProgress) -> None:
    """Add the columns of visits to all segments. Raises StoreError if the disk has no room."""
    with environment.lmdb.begin() as txn:
        lacking = list(_lacking(environment, txn))
    if lacking:
        needed = _ROOM_BYTES + _BYTES_PER_VIEW * sum(segment.header.views for segment in lacking)
        check_room(environment.path.parent, needed, "to bring this store up to date takes")
    for begin in range(0, len(lacking), _AT_ONCE):
        progress("visits become rows", begin, len(lacking))
        with environment.lmdb.begin(write=True) as txn:
            for segment in lacking[begin : begin + _AT_ONCE]:
                _add_visits(environment, txn, segment)


def _lacking(environment: Environment, txn: Txn) -> Iterator[Segment]:
    """Return the segments with views that have no such columns yet."""
    with txn.cursor(db=environment.databases.headers) as cursor:
        for stored_key, value in cursor:
            key = bytes(stored_key)
            if not number_of(key):
                # That is the watermark of a website.
                continue
            try:
                header = decode_header(key, value)
            except Damaged:
                continue
            is_of_views = header.views and not header.members and not header.day
            if is_of_views and not header.has_visits:
                yield Segment(website_of(key), number_of(key), header)


def _add_visits(environment: Environment, txn: Txn, segment: Segment) -> None:
    databases = environment.databases
    part = open_segment(segment, None, WriterAccess(txn), databases)
    try:
        puts = list(visit_puts(visits_of(part), segment.key, segment.header))
    except DamagedSegment:
        # No figure includes it.
        return
    for _, column, value in puts:
        txn.put(segment.key + bytes((column,)), value, db=databases.segments)
    key = header_key(segment.website, segment.number)
    header = replace(segment.header, has_visits=True)
    txn.put(key, encode_header(key, header), db=databases.headers)
