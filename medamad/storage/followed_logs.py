"""Logs that are followed: how far each was read, stored together with what was counted in it.

A position is replaced only by one that follows from it, in the transaction that adds the counts: so
neither a follower nor a daemon that is killed loses a line or counts it twice.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Final

import msgspec
from twisted.logger import Logger

from medamad.domain.errors import Conflict
from medamad.domain.website_settings import DEFAULTS, WebsiteSettings
from medamad.storage.environment.environment import FOLLOWED_LOG, Databases, Txn
from medamad.storage.environment.meta import verified, with_checksum
from medamad.storage.errors import Damaged
from medamad.storage.request_totals import FOLLOWED, LOADS, ROBOTS, add_counts

_NAME_BYTES: Final = 16
_log: Final = Logger()


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
    if to.version != stored.version + 1:
        raise Conflict(f"{to.log}: it was read by another process meanwhile")
    for kind, by_website in ((ROBOTS, counts.robots), (LOADS, counts.loads)):
        for website, days in by_website.items():
            if has_website(website):
                for day, more in days.items():
                    add_counts(txn, databases, (website, kind, day, FOLLOWED), more)
    name = _name(to.log)
    txn.put(name, with_checksum(name, msgspec.msgpack.encode(to)), db=databases.meta)


def read_position(txn: Txn, databases: Databases, log: str) -> LogPosition:
    """Return how far a log was read; a damaged position is logged, and counts as none."""
    name = _name(log)
    stored = txn.get(name, db=databases.meta)
    if stored is not None:
        try:
            return msgspec.msgpack.decode(verified(name, stored), type=LogPosition)
        except (Damaged, msgspec.DecodeError) as error:
            _log.error("the position in a log is damaged: {log}: {error}", log=log, error=error)
    return LogPosition(log)


def _name(log: str) -> bytes:
    return FOLLOWED_LOG + blake2b(log.encode(), digest_size=_NAME_BYTES).digest()
