"""What the account has given out, on disk: API tokens, share links, reports that are mailed.

Not cached, since commands create and revoke them beside the daemon.
"""

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

import msgspec
from attrs import evolve, frozen
from twisted.logger import Logger

from medamad.domain.accounts import MAX_SHARES, MAX_TOKENS, Share, Token
from medamad.domain.errors import Conflict
from medamad.domain.subscriptions import MAX_ALL_SUBSCRIPTIONS, Subscription
from medamad.storage.environment.environment import (
    REPORT,
    SHARE,
    TOKEN,
    Databases,
    Environment,
    Txn,
)
from medamad.storage.environment.meta import verified, with_checksum
from medamad.storage.environment.writer import Writer
from medamad.storage.errors import Damaged

G = TypeVar("G", Token, Share, Subscription)

_log: Final = Logger()


@frozen
class GrantKind(Generic[G]):
    """A kind of grant: the prefix of its names in meta, and the most there may be."""

    prefix: bytes
    type: type[G]
    most: int
    what: str


TOKENS: Final = GrantKind(TOKEN, Token, MAX_TOKENS, "tokens")
"""Tokens, keyed by their SHA-256."""
SHARES: Final = GrantKind(SHARE, Share, MAX_SHARES, "share links")
"""Share links, keyed by their ids."""
REPORTS: Final = GrantKind(REPORT, Subscription, MAX_ALL_SUBSCRIPTIONS, "mailed reports")
"""Reports that are mailed, keyed by their ids."""


def read_grant(txn: Txn, databases: Databases, kind: GrantKind[G], key: bytes) -> G | None:
    """Return a grant, None for a missing or damaged one."""
    name = kind.prefix + key
    stored = txn.get(name, db=databases.meta)
    return None if stored is None else _read(kind, name, stored)


def read_grants(txn: Txn, databases: Databases, kind: GrantKind[G]) -> list[tuple[bytes, G]]:
    """Return all grants of a kind with their keys, in order of creation."""
    found = [
        (name.removeprefix(kind.prefix), grant)
        for name, stored in _stored(txn, databases, kind.prefix)
        if (grant := _read(kind, name, stored)) is not None
    ]
    return sorted(found, key=lambda one: (one[1].created, one[1].number, one[0]))


def insert_grant(txn: Txn, databases: Databases, kind: GrantKind[G], key: bytes, grant: G) -> None:
    """Store another grant. Raises Conflict if there are too many."""
    if sum(1 for _ in _stored(txn, databases, kind.prefix)) >= kind.most:
        raise Conflict(f"there are {kind.most} {kind.what} already, revoke one first")
    known = (each for _, each in read_grants(txn, databases, kind))
    same_second = [each.number for each in known if each.created == grant.created]
    number = max(same_second, default=-1) + 1
    write_grant(txn, databases, kind, key, evolve(grant, number=number))


def write_grant(txn: Txn, databases: Databases, kind: GrantKind[G], key: bytes, grant: G) -> None:
    """Store a grant, replacing any other with its key."""
    name = kind.prefix + key
    txn.put(name, with_checksum(name, msgspec.json.encode(grant)), db=databases.meta)


def delete_grant(txn: Txn, databases: Databases, kind: GrantKind[G], key: bytes) -> bool:
    """Revoke a grant; return whether it existed."""
    return bool(txn.delete(kind.prefix + key, db=databases.meta))


def delete_grants(txn: Txn, databases: Databases) -> None:
    """Revoke all grants of every kind."""
    for prefix in (TOKEN, SHARE, REPORT):
        for name, _ in list(_stored(txn, databases, prefix)):
            txn.delete(name, db=databases.meta)


def delete_shares_of(txn: Txn, databases: Databases, website: int) -> None:
    """Revoke the share links of a website."""
    for key, share in read_grants(txn, databases, SHARES):
        if share.website == website:
            delete_grant(txn, databases, SHARES, key)


def delete_reports_of(txn: Txn, databases: Databases, website: int) -> None:
    """Leave a website out of the reports that are mailed, and end those of no other."""
    for key, report in read_grants(txn, databases, REPORTS):
        if website in report.websites:
            left = tuple(number for number in report.websites if number != website)
            if left:
                write_grant(txn, databases, REPORTS, key, evolve(report, websites=left))
            else:
                delete_grant(txn, databases, REPORTS, key)


def damaged_grants(txn: Txn, databases: Databases) -> Iterator[str]:
    """Return a message for each damaged grant."""
    yield from _damaged(txn, databases, TOKENS)
    yield from _damaged(txn, databases, SHARES)
    yield from _damaged(txn, databases, REPORTS)


def _damaged(txn: Txn, databases: Databases, kind: GrantKind[G]) -> Iterator[str]:
    for name, stored in _stored(txn, databases, kind.prefix):
        try:
            _decode(kind, name, stored)
        except Damaged as error:
            yield f"one of the {kind.what}: {error}"


def _stored(txn: Txn, databases: Databases, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    with txn.cursor(db=databases.meta) as cursor:
        found = cursor.set_range(prefix)
        while found and cursor.key().startswith(prefix):
            yield cursor.item()
            found = cursor.next()


def _read(kind: GrantKind[G], name: bytes, stored: bytes) -> G | None:
    try:
        return _decode(kind, name, stored)
    except Damaged as error:
        _log.error("one of the {what} is damaged: {error}", what=kind.what, error=str(error))
        return None


def _decode(kind: GrantKind[G], name: bytes, stored: bytes) -> G:
    try:
        return msgspec.json.decode(verified(name, stored), type=kind.type)
    except msgspec.DecodeError as error:
        raise Damaged(str(error)) from error


@frozen(eq=False)
class Grants(Generic[G]):
    """The grants of a kind in an open store. Reads return at once, writes are awaited."""

    _environment: Environment
    _writer: Writer
    _kind: GrantKind[G]

    def find(self, key: bytes) -> G | None:
        """Return a grant, None for a missing or damaged one."""
        with self._environment.reading() as txn:
            return read_grant(txn, self._environment.databases, self._kind, key)

    def all(self) -> list[tuple[bytes, G]]:
        """Return all grants with their keys, in order of creation."""
        with self._environment.reading() as txn:
            return read_grants(txn, self._environment.databases, self._kind)

    async def add(self, key: bytes, grant: G) -> None:
        """Store another grant. Raises Conflict if there are too many."""
        databases = self._environment.databases
        await self._writer.submit(
            lambda txn: insert_grant(txn.lmdb, databases, self._kind, key, grant)
        )

    async def change(self, key: bytes, change: Callable[[G], G]) -> None:
        """Apply a change to a grant, unless it has been revoked in the meantime."""
        databases, kind = self._environment.databases, self._kind

        def make(txn: Txn) -> None:
            grant = read_grant(txn, databases, kind, key)
            if grant is not None:
                write_grant(txn, databases, kind, key, change(grant))

        await self._writer.submit(lambda txn: make(txn.lmdb))

    async def revoke(self, key: bytes) -> bool:
        """Revoke a grant; return whether it existed."""
        databases = self._environment.databases
        return await self._writer.submit(
            lambda txn: delete_grant(txn.lmdb, databases, self._kind, key)
        )
