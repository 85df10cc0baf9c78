"""Format 13: segments have counters of visits, and say by rows which visit each view belongs to.

It adds all that segments have of visits, so that format 12, which had added columns of them, needs
no module of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from medamad.domain.dimensions import ViewNumber
from medamad.storage.backup import BackupProgress
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.meta import write_format
from medamad.storage.errors import DamagedSegment
from medamad.storage.migrations.headers import has_views, sound_headers
from medamad.storage.segments.build import (
    Put,
    merged_visit_puts,
    offsets_put,
    visit_counters_put,
    visit_puts,
)
from medamad.storage.segments.format import (
    COUNTER_KINDS,
    Column,
    Segment,
    SegmentHeader,
    encode_header,
    header_key,
    number_of,
    website_of,
)
from medamad.storage.segments.read import open_part, open_segment
from medamad.storage.segments.visit_columns import numbers_elsewhere
from medamad.storage.segments.visit_counters import counters_of_visits

FORMAT: Final = 13
_AT_ONCE: Final = 64
"""How many segments a transaction writes."""
_SEGMENT_BYTES: Final = 16
"""More than what a segment gets takes for each view, even with half a million pages."""
_MERGED_BYTES: Final = 6
"""The same for a merged segment."""
_LAST_BYTES: Final = 2
"""The same for what the last transaction writes."""
_EVENT_BYTES: Final = 68
"""The column of format 12 that had a byte for each visit."""
_NUMBERS: Final = ViewNumber.VISIT_OFFSET.column


def room_bytes(environment: Environment, txn: Txn) -> int:
    """Return what is left to write, at most."""
    left_bytes = 0
    for key, header in sound_headers(environment, txn):
        if header.day is None:
            segment = Segment(website_of(key), number_of(key), header)
            added = _MERGED_BYTES if header.members else _SEGMENT_BYTES
            has_all = _has_all(environment, txn, segment)
            left_bytes += header.views * (_LAST_BYTES + (0 if has_all else added))
    return left_bytes


def migrate(environment: Environment, progress: BackupProgress) -> None:
    """Add to all segments what they lack. A transaction adds all that some of them do.

    What earlier formats have as well changes in the last transaction.
    """
    with environment.lmdb.begin() as txn:
        headers = dict(sound_headers(environment, txn))
    leaves = [key for key, header in headers.items() if has_views(header)]
    known: dict[tuple[int, int], Segment] = {}
    offsets: dict[bytes, bytes] = {}
    for begin in range(0, len(leaves), _AT_ONCE):
        progress("visits become rows", begin, len(leaves))
        with environment.lmdb.begin(write=True) as txn:
            for key in leaves[begin : begin + _AT_ONCE]:
                segment = Segment(website_of(key), number_of(key), headers[key])
                known[_place(key)] = _add_visits(environment, txn, segment, offsets)
    # In the order of their numbers, of which those of members are smaller.
    merged = [key for key, header in headers.items() if header.members]
    for place, key in enumerate(merged):
        progress("visits of merged segments", place, len(merged))
        with environment.lmdb.begin(write=True) as txn:
            segment = _merge_visits(environment, txn, key, headers[key], known)
            known[_place(key)] = segment
    with environment.lmdb.begin(write=True) as txn:
        for key, value in offsets.items():
            txn.put(key, value, db=environment.databases.segments)
            txn.delete(key[:-1] + bytes((_EVENT_BYTES,)), db=environment.databases.segments)
        for segment in known.values():
            key = header_key(segment.website, segment.number)
            txn.put(key, encode_header(key, segment.header), db=environment.databases.headers)
        write_format(txn, environment.databases.meta, FORMAT)
        progress("written", len(known), len(known))


def _place(key: bytes) -> tuple[int, int]:
    return website_of(key), number_of(key)


def _has_all(environment: Environment, txn: Txn, segment: Segment) -> bool:
    """Return whether a run that was ended has added to a segment all that it lacked."""
    # Format 12 had most of the other columns, too.
    column = Column.VIEW_ELSEWHERE if segment.header.members else Column.VISIT_EVENT
    key = segment.key + bytes((column,))
    return txn.get(key, db=environment.databases.segments) is not None


def _add_visits(
    environment: Environment, txn: Txn, segment: Segment, offsets: dict[bytes, bytes]
) -> Segment:
    """Add the columns and counters of visits, and put the new numbers of visits into `offsets`.

    Return the segment with its new header.
    """
    header = replace(segment.header, had_columns_of_visits=False, has_visits=True)
    changed = Segment(segment.website, segment.number, header)
    has_all = _has_all(environment, txn, segment)
    access = WriterAccess(txn)
    part = open_segment(changed if has_all else segment, None, access, environment.databases)
    try:
        visits = part.visits()
        puts = [] if has_all else list(visit_puts(visits, segment.key))
        if header.has_counters and not has_all:
            puts += (
                visit_counters_put(kind, counters_of_visits(part, kind), segment.key)
                for kind in COUNTER_KINDS
            )
        _, column, value = offsets_put(
            numbers_elsewhere(part.numbers(ViewNumber.VISIT_OFFSET), visits.offsets), segment.key
        )
    except DamagedSegment:
        # No figure includes it.
        return segment
    _write(environment, txn, segment.key, puts)
    offsets[segment.key + bytes((column,))] = value
    return changed


def _merge_visits(
    environment: Environment,
    txn: Txn,
    key: bytes,
    header: SegmentHeader,
    known: Mapping[tuple[int, int], Segment],
) -> Segment:
    """Add the counters of visits of a merged segment; return it with its new header."""
    website = website_of(key)
    members = [known[website, number] for number in header.members if (website, number) in known]
    has_visits = len(members) == len(header.members) and all(
        member.header.has_visits for member in members
    )
    segment = Segment(
        website, number_of(key), replace(header, has_visits=has_visits), tuple(members)
    )
    if has_visits and not _has_all(environment, txn, segment):
        access = WriterAccess(txn)
        opened = [open_part(member, None, access, environment.databases) for member in members]
        try:
            puts = list(merged_visit_puts(opened, segment.key))
        except DamagedSegment:
            return Segment(website, number_of(key), header, tuple(members))
        _write(environment, txn, segment.key, puts)
    return segment


def _write(environment: Environment, txn: Txn, key: bytes, puts: Sequence[Put]) -> None:
    databases = environment.databases
    for is_counters, kind, value in puts:
        database = databases.counters if is_counters else databases.segments
        txn.put(key + bytes((kind,)), value, db=database)
