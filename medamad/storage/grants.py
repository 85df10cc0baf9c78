"""What the account has given out, on disk: API tokens, share links, reports that are mailed.

Not cached, since commands create and revoke them beside the daemon.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from attrs import evolve, frozen

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
from medamad.storage.environment.writer import Writer
from medamad.storage.meta_values import MetaKind

G = TypeVar("G", Token, Share, Subscription)


@frozen
class GrantKind(MetaKind[G]):
    """A kind of grant, and the most there may be."""

    most: int

    def place(self, _key: bytes, /) -> str:
        """Return what messages call a grant; its key is secret."""
        return f"one of the {self.what}"

    def in_order(self, txn: Txn, databases: Databases) -> list[tuple[bytes, G]]:
        """Return all grants with their keys, in order of creation."""
        found = self.all(txn, databases)
        return sorted(found, key=lambda one: (one[1].created, one[1].number, one[0]))

    def insert(self, txn: Txn, databases: Databases, key: bytes, grant: G) -> None:
        """Store another grant. Raises Conflict if there are too many."""
        if self.count(txn, databases) >= self.most:
            raise Conflict(f"there are {self.most} {self.what} already, revoke one first")
        known = (each for _, each in self.all(txn, databases))
        same_second = [each.number for each in known if each.created == grant.created]
        number = max(same_second, default=-1) + 1
        self.write(txn, databases, key, evolve(grant, number=number))


TOKENS: Final = GrantKind(TOKEN, Token, "tokens", MAX_TOKENS)
"""Tokens, keyed by their SHA-256."""
SHARES: Final = GrantKind(SHARE, Share, "share links", MAX_SHARES)
"""Share links, keyed by their ids."""
REPORTS: Final = GrantKind(REPORT, Subscription, "mailed reports", MAX_ALL_SUBSCRIPTIONS)
"""Reports that are mailed, keyed by their ids."""
GRANT_KINDS: Final[tuple[GrantKind[Any], ...]] = (TOKENS, SHARES, REPORTS)


def delete_grants(txn: Txn, databases: Databases) -> None:
    """Revoke all grants of every kind."""
    for kind in GRANT_KINDS:
        kind.delete_all(txn, databases)


def delete_shares_of(txn: Txn, databases: Databases, website: int) -> None:
    """Revoke the share links of a website."""
    for key, share in SHARES.all(txn, databases):
        if share.website == website:
            SHARES.delete(txn, databases, key)


def delete_reports_of(txn: Txn, databases: Databases, website: int) -> None:
    """Leave a website out of the reports that are mailed, and end those of no other."""
    for key, report in REPORTS.all(txn, databases):
        if website in report.websites:
            left = tuple(number for number in report.websites if number != website)
            if left:
                REPORTS.write(txn, databases, key, evolve(report, websites=left))
            else:
                REPORTS.delete(txn, databases, key)


@frozen(eq=False)
class Grants(Generic[G]):
    """The grants of a kind in an open store. Reads return at once, writes are awaited."""

    _environment: Environment
    _writer: Writer
    _kind: GrantKind[G]

    def find(self, key: bytes) -> G | None:
        """Return a grant, None for a missing or damaged one."""
        with self._environment.reading() as txn:
            return self._kind.read(txn, self._environment.databases, key)

    def all(self) -> list[tuple[bytes, G]]:
        """Return all grants with their keys, in order of creation."""
        with self._environment.reading() as txn:
            return self._kind.in_order(txn, self._environment.databases)

    async def add(self, key: bytes, grant: G) -> None:
        """Store another grant. Raises Conflict if there are too many."""
        databases = self._environment.databases
        await self._writer.submit(lambda txn: self._kind.insert(txn.lmdb, databases, key, grant))

    async def change(self, key: bytes, change: Callable[[G], G]) -> None:
        """Apply a change to a grant, unless it has been revoked in the meantime."""
        databases, kind = self._environment.databases, self._kind

        def make(txn: Txn) -> None:
            grant = kind.read(txn, databases, key)
            if grant is not None:
                kind.write(txn, databases, key, change(grant))

        await self._writer.submit(lambda txn: make(txn.lmdb))

    async def revoke(self, key: bytes) -> bool:
        """Revoke a grant; return whether it existed."""
        databases = self._environment.databases
        return await self._writer.submit(lambda txn: self._kind.delete(txn.lmdb, databases, key))
