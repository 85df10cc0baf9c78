"""What a command does to tokens and share links without asking a daemon that may be running."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic

from attrs import frozen

from medamad.model.errors import BadRequest
from medamad.model.websites import Website, canonical_hostname
from medamad.store import grants
from medamad.store.environment import Databases, Txn, open_as_guest
from medamad.store.files import failures_told
from medamad.store.grants import G, Kind
from medamad.store.websites import read_websites


@frozen
class Listed(Generic[G]):
    """Grants of a kind with their keys, in order, and the hostnames of websites by number."""

    grants: list[tuple[bytes, G]]
    hostnames: dict[int, str]


def list_grants(directory: Path, kind: Kind[G]) -> Listed[G]:
    """Give the tokens or the share links. Raises StoreError, as do all of these."""
    with _guest(directory, write=False) as (txn, databases):
        found = grants.read_grants(txn, databases, kind)
        hostnames = {website.number: website.hostname for website in _websites(txn, databases)}
        return Listed(found, hostnames)


def add_grant(directory: Path, kind: Kind[G], key: bytes, grant: G) -> None:
    """Keep another token or share link; it is good at once. Raises Conflict for too many."""
    with _guest(directory, write=True) as (txn, databases):
        grants.add_grant(txn, databases, kind, key, grant)


def revoke_grant(directory: Path, kind: Kind[G], key: bytes) -> bool:
    """Revoke a token or a share link at once; returns whether it was there."""
    with _guest(directory, write=True) as (txn, databases):
        return grants.delete_grant(txn, databases, kind, key)


def website_numbers(directory: Path, hostnames: Iterable[str]) -> list[int]:
    """Give the numbers of websites. Raises BadRequest for one that is not registered."""
    with _guest(directory, write=False) as (txn, databases):
        known = {website.hostname: website.number for website in _websites(txn, databases)}
    names = [canonical_hostname(hostname) for hostname in hostnames]
    for name in names:
        if name not in known:
            raise BadRequest(f"hostname: no website {name} is registered")
    return [known[name] for name in names]


def _websites(txn: Txn, databases: Databases) -> Iterator[Website]:
    return (found for found in read_websites(txn, databases) if not isinstance(found, str))


@contextmanager
def _guest(directory: Path, *, write: bool) -> Iterator[tuple[Txn, Databases]]:
    """Give a transaction of a store beside a daemon that may be running; kept if all went well."""
    environment = open_as_guest(directory)
    try:
        with failures_told(environment.path), environment.lmdb.begin(write=write) as txn:
            if write:
                environment.check_is_ours(txn)
            yield txn, environment.databases
    finally:
        environment.close()
