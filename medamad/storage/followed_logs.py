"""Logs that are followed: how far each was read, stored together with what was counted in it.

A position is replaced only by one that follows from it, in the transaction that adds the counts: so
neither a follower nor a daemon that is killed loses a line or counts it twice.
"""

from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Final

import msgspec

from medamad.domain.errors import Conflict
from medamad.domain.website_settings import DEFAULTS, WebsiteSettings
from medamad.storage.environment.environment import FOLLOWED_LOG, Databases, Txn
from medamad.storage.environment.meta import (
    decoded,
    entries,
    is_verified,
    sound,
    with_checksum,
)
from medamad.storage.request_totals import FOLLOWED, LOADS, ROBOTS, add_counts

_NAME_BYTES: Final = 16


class FilePlace(msgspec.Struct, frozen=True):
    """How far a file of a log was read. `mark` is a hash of what is around, which identifies it."""

    inode: int
    offset: int
    mark: bytes


class LogPosition(msgspec.Struct, frozen=True):
    """How far a log was read: the files that may still grow, the newest last.

    `version` counts the positions that the log has had.
    """

    log: str
    version: int = 0
    files: tuple[FilePlace, ...] = ()


class FollowedWebsite(msgspec.Struct, frozen=True):
    """What a follower needs to know of a website."""

    number: int
    settings: WebsiteSettings = DEFAULTS


class LogCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What some lines of a log add: what robots read, and all page loads by browser and path.

    In page loads, those of robots have "" for the browser.
    """

    robots: dict[int, dict[int, dict[str, dict[str, int]]]] = {}
    loads: dict[int, dict[int, dict[str, dict[str, int]]]] = {}


def advance_log(
    txn: Txn,
    databases: Databases,
    to: LogPosition,
    counts: LogCounts,
    has_website: Callable[[int], bool],
) -> None:
    """Add counts, and store the position after them.

    What is of websites that are deleted is left out. Raises Conflict unless the position follows
    the stored one.
    """
    stored = read_position(txn, databases, to.log)
    if to.version != (0 if stored is None else stored.version) + 1:
        raise Conflict(f"{to.log}: it was read by another process meanwhile")
    for kind, by_website in ((ROBOTS, counts.robots), (LOADS, counts.loads)):
        for website, days in by_website.items():
            if has_website(website):
                for day, more in days.items():
                    add_counts(txn, databases, (website, kind, day, FOLLOWED), more)
    name = _name(to.log)
    txn.put(name, with_checksum(name, msgspec.msgpack.encode(to)), db=databases.meta)


def read_position(txn: Txn, databases: Databases, log: str) -> LogPosition | None:
    """Return how far a log was read, None if that is damaged, which is logged."""
    name = _name(log)
    stored = txn.get(name, db=databases.meta)
    if stored is None:
        return LogPosition(log)
    decode = msgspec.msgpack.decode
    return sound(f"the place in {log}", lambda: decoded(name, stored, LogPosition, decode), None)


def damaged_positions(txn: Txn, databases: Databases) -> Iterator[str]:
    """Return a message for each position in a log that is damaged."""
    for name, stored in entries(txn, databases.meta, FOLLOWED_LOG):
        if not is_verified(name, stored):
            yield f"the place in a followed log, {name[-4:].hex()}: its checksum does not match"


def _name(log: str) -> bytes:
    return FOLLOWED_LOG + blake2b(log.encode(), digest_size=_NAME_BYTES).digest()
