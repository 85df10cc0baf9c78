"""What a command does to a store without asking the daemon, whether it runs or not."""

from pathlib import Path

from attrs import evolve

from medamad.store.account import end_logins, read_account, write_account
from medamad.store.environment import FILE_NAME, open_as_guest
from medamad.store.errors import NoStore


def check_store(directory: Path) -> None:
    """Raise NoStore when there is no store in the directory."""
    if not (directory / FILE_NAME).exists():
        raise NoStore(f"{directory}: there is no store here")


def change_password(directory: Path, password_hash: str, now: int) -> str:
    """Give the account another password and revoke its logins; returns its name.

    The daemon reads the account afresh for each login, so it takes effect at once. Raises NoStore
    when there is no store or no account in it, and StoreError when it cannot be opened.
    """
    environment = open_as_guest(directory)
    try:
        with environment.lmdb.begin(write=True) as txn:
            account = read_account(txn, environment.databases)
            if account is None:
                raise NoStore(f"{directory}: the store has no account yet; start medamad once")
            changed = evolve(account, password_hash=password_hash, updated=now)
            write_account(txn, environment.databases, changed)
            end_logins(txn, environment.databases)
        return account.username
    finally:
        environment.close()
