"""The account and its logins on disk. Not cached, since commands change them beside the daemon."""

import struct
from collections.abc import Callable
from typing import Final

from attrs import evolve, frozen

from medamad.domain.accounts import Account, Login
from medamad.domain.errors import Unauthorised
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.environment.meta import sound, verified, with_checksum
from medamad.storage.environment.writer import Writer
from medamad.storage.grants import delete_grants
from medamad.storage.meta_values import MetaKind

ACCOUNT: Final = MetaKind(b"account", Account, "account")
"""There is one, without a key. If it is damaged, the next start creates another."""
_LOGIN: Final = struct.Struct(">QQ")
MOST_LOGINS: Final = 1_000
"""The most logins at a time: in demo mode anyone may log in any number of times."""


def delete_account(txn: Txn, databases: Databases) -> None:
    """Delete the account with its logins, tokens and share links."""
    ACCOUNT.delete(txn, databases)
    txn.drop(databases.logins, delete=False)
    delete_grants(txn, databases)


def read_login(txn: Txn, databases: Databases, digest: bytes) -> Login | None:
    """Return the login whose token has this SHA-256, or None."""
    stored = txn.get(digest, db=databases.logins)
    return None if stored is None else _login(digest, stored)


def write_login(txn: Txn, databases: Databases, digest: bytes, login: Login) -> None:
    """Store a login under the SHA-256 of its token."""
    value = with_checksum(digest, _LOGIN.pack(login.since, login.last_seen))
    txn.put(digest, value, db=databases.logins)


def add_login(txn: Txn, databases: Databases, digest: bytes, login: Login) -> None:
    """Store a login; beyond MOST_LOGINS, the longest unused ones end."""
    write_login(txn, databases, digest, login)
    too_many = txn.stat(databases.logins)["entries"] - MOST_LOGINS
    if too_many > 0:
        others = [each for each in _all_logins(txn, databases) if each[0] != digest]
        others.sort(key=lambda each: -1 if each[1] is None else each[1].last_seen)
        for other, _ in others[:too_many]:
            txn.delete(other, db=databases.logins)


def touch_login(txn: Txn, databases: Databases, digest: bytes, now: int) -> None:
    """Record that a login was used, unless it has been revoked in the meantime."""
    login = read_login(txn, databases, digest)
    if login is not None and login.last_seen < now:
        write_login(txn, databases, digest, evolve(login, last_seen=now))


def delete_expired_logins(
    txn: Txn, databases: Databases, has_expired: Callable[[Login], bool]
) -> int:
    """Delete the logins that have expired; return how many."""
    logins = _all_logins(txn, databases)
    over = [digest for digest, login in logins if login is None or has_expired(login)]
    for digest in over:
        txn.delete(digest, db=databases.logins)
    return len(over)


def _all_logins(txn: Txn, databases: Databases) -> list[tuple[bytes, Login | None]]:
    with txn.cursor(db=databases.logins) as cursor:
        return [(digest, _login(digest, stored)) for digest, stored in cursor]


def _login(digest: bytes, stored: bytes) -> Login | None:
    """Decode a login; a damaged one is logged and has ended."""
    return sound("one of the logins", lambda: Login(*_LOGIN.unpack(verified(digest, stored))), None)


def revoke_logins(txn: Txn, databases: Databases, keep: bytes | None = None) -> None:
    """Revoke every login except the one whose token has the SHA-256 `keep`."""
    kept = None if keep is None else txn.get(keep, db=databases.logins)
    txn.drop(databases.logins, delete=False)
    if keep is not None and kept is not None:
        txn.put(keep, kept, db=databases.logins)


@frozen(eq=False)
class StoredAccount:
    """The account of an open store and its logins. Reads return at once, writes are awaited.

    The key of a login is the SHA-256 of its token. Each write raises Unavailable, and stores
    nothing, if the store cannot take it.
    """

    _environment: Environment
    _writer: Writer

    def read(self) -> Account | None:
        """Return the account, or None before the first one is made."""
        with self._environment.reading() as txn:
            return ACCOUNT.read(txn, self._environment.databases)

    def login(self, digest: bytes) -> Login | None:
        """Return a login."""
        with self._environment.reading() as txn:
            return read_login(txn, self._environment.databases, digest)

    async def put(self, account: Account) -> None:
        """Store the first account."""
        databases = self._environment.databases
        await self._writer.submit(lambda txn: ACCOUNT.write(txn.lmdb, databases, b"", account))

    async def change(
        self,
        change: Callable[[Account], Account],
        *,
        login: bytes | None = None,
        end_logins: bool = False,
    ) -> Account:
        """Apply a change to the account in the writer thread; return the changed account.

        `end_logins` revokes all logins except `login`. Raises Unauthorised if there is no account
        or `login` has been revoked by then.
        """
        databases = self._environment.databases

        def make(txn: Txn) -> Account:
            account = ACCOUNT.read(txn, databases)
            revoked = login is not None and read_login(txn, databases, login) is None
            if account is None or revoked:
                raise Unauthorised("the login has ended")
            account = change(account)
            ACCOUNT.write(txn, databases, b"", account)
            if end_logins:
                revoke_logins(txn, databases, login)
            return account

        return await self._writer.submit(lambda txn: make(txn.lmdb))

    async def add_login(self, digest: bytes, login: Login) -> None:
        """Store a login; beyond MOST_LOGINS, the longest unused ones end."""
        databases = self._environment.databases
        await self._writer.submit(lambda txn: add_login(txn.lmdb, databases, digest, login))

    async def touch_login(self, digest: bytes, now: int) -> None:
        """Record that a login was used."""
        databases = self._environment.databases
        await self._writer.submit(lambda txn: touch_login(txn.lmdb, databases, digest, now))

    async def end_login(self, digest: bytes) -> None:
        """Revoke one login."""
        databases = self._environment.databases
        await self._writer.submit(lambda txn: txn.lmdb.delete(digest, db=databases.logins))

    async def delete_expired_logins(self, has_expired: Callable[[Login], bool]) -> int:
        """Delete the logins that have expired."""
        databases = self._environment.databases
        return await self._writer.submit(
            lambda txn: delete_expired_logins(txn.lmdb, databases, has_expired)
        )
