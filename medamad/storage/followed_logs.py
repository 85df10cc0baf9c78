"""Logs that are followed: how far each was read, stored together with what was counted in it.

A position is replaced only by one that follows from it, in the transaction that adds the counts: so
neither a follower nor a daemon that is killed loses a line or counts it twice.
"""

from collections.abc import Iterator
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
from medamad.storage.request_totals import FOLLOWED, LOADS, ROBOTS, RequestTotals

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


class LoggedView(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """A view that a line stands for, as it is stored. A log contains no country and no width."""

    website: int
    time_ms: int
    visitor: str
    """A hash of address and User-Agent, under a key that the follower alone has, and forgets."""
    network: bytes
    """A hash of the address's network, under the same key; b"" if the line has no address."""
    path: str
    host: str
    referrer: str
    from_page: str | None
    """The path of the website's page that it comes from, None if it comes from elsewhere."""
    utm_source: str
    utm_medium: str
    utm_campaign: str
    utm_term: str
    utm_content: str
    browser: str
    browser_version: str
    os: str
    os_version: str
    device: str
    locale: str
    hosting: bool = False


class LogCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What some lines of a log add: what robots read, and either page loads or views.

    Page loads are counted by browser and path; those of robots have "" for the browser.
    """

    robots: dict[int, dict[int, dict[str, dict[str, int]]]] = {}
    loads: dict[int, dict[int, dict[str, dict[str, int]]]] = {}
    views: tuple[LoggedView, ...] = ()


def advance_log(
    txn: Txn,
    databases: Databases,
    to: LogPosition,
    counts: LogCounts,
    totals: RequestTotals,
) -> None:
    """Add counts to totals, and store the position after them.

    What is of websites that are deleted is left out. Raises Conflict unless the position follows
    the stored one.
    """
    stored = read_position(txn, databases, to.log)
    if to.version != (0 if stored is None else stored.version) + 1:
        raise Conflict(f"{to.log}: it was read by another process meanwhile")
    for kind, by_website in ((ROBOTS, counts.robots), (LOADS, counts.loads)):
        for website, days in by_website.items():
            for day, more in days.items():
                totals.add_in(txn, (website, kind, day, FOLLOWED), more)
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
