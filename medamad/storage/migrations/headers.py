"""The headers of segments, which steps read."""

from collections.abc import Iterator

from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.errors import Damaged
from medamad.storage.segments.format import SegmentHeader, decode_header, number_of


def sound_headers(environment: Environment, txn: Txn) -> Iterator[tuple[bytes, SegmentHeader]]:
    """Return the sound headers of all segments by their keys."""
    with txn.cursor(db=environment.databases.headers) as cursor:
        for stored_key, value in cursor:
            key = bytes(stored_key)
            if number_of(key):  # That of 0 is the watermark of a website.
                try:
                    yield key, decode_header(key, value)
                except Damaged:
                    continue


def has_views(header: SegmentHeader) -> bool:
    """Return whether a segment has views of its own: it is no rollup, and not merged of others."""
    return bool(header.views and not header.members and not header.day)
