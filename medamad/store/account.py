"""The account and its logins on disk. Read afresh each time: another process may change them."""

import struct
from collections.abc import Callable
from typing import Final

import msgspec
from attrs import evolve

from medamad.model.accounts import Account, Login
from medamad.store.environment import Databases, Txn

_ACCOUNT_KEY: Final = b"account"
_LOGIN: Final = struct.Struct(">QQ")


def read_account(txn: Txn, databases: Databases) -> Account | None:
    """Give the account, or None when there is none yet."""
    stored = txn.get(_ACCOUNT_KEY, db=databases.meta)
    return None if stored is None else msgspec.json.decode(stored, type=Account)


def write_account(txn: Txn, databases: Databases, account: Account) -> None:
    """Put the account in the place of what was there."""
    txn.put(_ACCOUNT_KEY, msgspec.json.encode(account), db=databases.meta)


def delete_account(txn: Txn, databases: Databases) -> None:
    """Remove the account and all its logins."""
    txn.delete(_ACCOUNT_KEY, db=databases.meta)
    txn.drop(databases.logins, delete=False)


def read_login(txn: Txn, databases: Databases, digest: bytes) -> Login | None:
    """Give the login whose token has that SHA-256."""
    stored = txn.get(digest, db=databases.logins)
    return None if stored is None else Login(*_LOGIN.unpack(stored))


def write_login(txn: Txn, databases: Databases, digest: bytes, login: Login) -> None:
    """Store a login under the SHA-256 of its token."""
    txn.put(digest, _LOGIN.pack(login.since, login.last_seen), db=databases.logins)


def touch_login(txn: Txn, databases: Databases, digest: bytes, now: int) -> None:
    """Note that a login was used, unless it has been revoked in the meantime."""
    login = read_login(txn, databases, digest)
    if login is not None and login.last_seen < now:
        write_login(txn, databases, digest, evolve(login, last_seen=now))


def forget_logins(txn: Txn, databases: Databases, is_over: Callable[[Login], bool]) -> int:
    """Remove the logins that are over; returns how many there were."""
    with txn.cursor(db=databases.logins) as cursor:
        over = [digest for digest, stored in cursor if is_over(Login(*_LOGIN.unpack(stored)))]
    for digest in over:
        txn.delete(digest, db=databases.logins)
    return len(over)


def end_logins(txn: Txn, databases: Databases, keep: bytes | None = None) -> None:
    """Revoke every login but the one whose token has the SHA-256 `keep`."""
    kept = None if keep is None else txn.get(keep, db=databases.logins)
    txn.drop(databases.logins, delete=False)
    if keep is not None and kept is not None:
        txn.put(keep, kept, db=databases.logins)
