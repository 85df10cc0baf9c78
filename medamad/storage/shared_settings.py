"""What all collectors of a cluster have in common: one is the primary, the others have its copy.

That is the account with its logins, tokens, share links and mailed reports, the websites with all
that is defined for them, and which imports no query sees. Everything else in a store is the
collector's own.

Who is the primary is a matter of epochs: each promotion begins one, and the later one counts.
"""

from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from medamad.domain.errors import Conflict
from medamad.storage.environment.environment import (
    ALERTS,
    ANNOTATIONS,
    GOALS,
    REPORT,
    SHARE,
    TOKEN,
    Databases,
    Txn,
    open_environment,
)
from medamad.storage.environment.files import store_errors
from medamad.storage.environment.meta import (
    HIDDEN_BATCHES,
    ROLE,
    entries,
    read_number,
    verified,
    with_checksum,
    without_checksum,
    write_number,
)
from medamad.storage.errors import Damaged, StoreError
from medamad.storage.import_batches import LAST_BATCH
from medamad.storage.websites import LAST_NUMBER

_IN_META: Final = (
    *(b"account", LAST_NUMBER, TOKEN, SHARE, REPORT, GOALS, ANNOTATIONS, ALERTS),
    *(LAST_BATCH, HIDDEN_BATCHES),
)
"""Names, and prefixes of names."""
_OF_NUMBERS: Final = frozenset((LAST_NUMBER, LAST_BATCH, HIDDEN_BATCHES))
NUMBERS_OF_IMPORTS: Final = frozenset((LAST_BATCH.decode(), HIDDEN_BATCHES.decode()))
"""The keys of changes that nobody made: a promotion makes them, and imports that go on."""
_LOGINS: Final = "logins"
_SHARED: Final = ("meta", "websites", _LOGINS)
_NUMBERS_OF_EPOCH: Final = 1_000
"""How many numbers of websites and imports a promotion leaves to a primary that does not know of it
yet."""
_DIGEST_BYTES: Final = 16


class Epoch(msgspec.Struct, frozen=True, array_like=True):
    """Since when a collector has been the primary. The greater epoch counts."""

    number: int = 1
    primary: int = 0
    cluster: str = ""
    """The identifier of the store that began the cluster."""
    begun_with: tuple[bytes, ...] = ()
    """The `digest` of the settings with which each epoch after the first began."""

    @property
    def rank(self) -> tuple[int, int]:
        """What is greater for the epoch that counts."""
        return self.number, self.primary

    def next(self, primary: int, digest: bytes) -> "Epoch":
        """Return the epoch that begins when a collector is promoted."""
        return Epoch(self.number + 1, primary, self.cluster, (*self.begun_with, digest))


class Role(msgspec.Struct, frozen=True, array_like=True):
    """Which collector a store is, and in which epoch."""

    collector: int
    epoch: Epoch

    @property
    def is_primary(self) -> bool:
        """Whether it is the primary."""
        return self.collector == self.epoch.primary


# Made here, since msgspec crashes if two threads prepare to decode the same type.
_ROLES: Final = msgspec.msgpack.Decoder(Role)


class SharedSettings(msgspec.Struct, frozen=True, array_like=True):
    """A copy of the settings: keys and stored values, by database."""

    stored: dict[str, dict[bytes, bytes]]

    @property
    def version(self) -> bytes:
        """What differs if anything does."""
        return _digest(self.stored, _SHARED)

    @property
    def digest(self) -> bytes:
        """What differs if anything but logins does."""
        return _digest(self.stored, [name for name in _SHARED if name != _LOGINS])

    def changes_from(self, others: "SharedSettings") -> Iterator[dict[str, str | None]]:
        """Return what is here and not there, or not the same; apart from logins.

        What is only there was removed here, or added there since: its value here is None. Websites
        that were added there are left out, as their numbers tell.
        """
        for database in _SHARED:
            if database == _LOGINS:
                continue
            ours, theirs = self.stored.get(database, {}), others.stored.get(database, {})
            for key, stored in ours.items():
                if key != LAST_NUMBER and theirs.get(key) != stored:
                    yield {"database": database, "key": _readable(key), "value": _text(stored)}
            for key in sorted(theirs.keys() - ours.keys() - _OF_NUMBERS):
                if database != "websites" or int.from_bytes(key, "big") <= self._last_website:
                    there = _text(theirs[key])
                    found = {"database": database, "key": _readable(key)}
                    yield {**found, "value": None, "there": there}

    @property
    def _last_website(self) -> int:
        """The greatest number that a website has had here."""
        stored = self.stored.get("meta", {}).get(LAST_NUMBER)
        return 0 if stored is None else int.from_bytes(without_checksum(stored), "big")


def _digest(stored: dict[str, dict[bytes, bytes]], databases: Iterable[str]) -> bytes:
    found = blake2b(digest_size=_DIGEST_BYTES)
    for name in databases:
        for pair in sorted(stored.get(name, {}).items()):
            for part in pair:
                found.update(len(part).to_bytes(4, "big") + part)
        found.update(b"\xff" * 4)
    return found.digest()


def _text(stored: bytes) -> str:
    return without_checksum(stored).decode("utf-8", "replace")


def _readable(key: bytes) -> str:
    """Return a key as text, with binary numbers and digests in hexadecimal."""
    kind, colon, rest = key.partition(b":")
    if not _is_text(kind):
        return key.hex()
    return f"{kind.decode()}{colon.decode()}{rest.decode() if _is_text(rest) else rest.hex()}"


def _is_text(part: bytes) -> bool:
    return part.isascii() and part.decode().isprintable()


def read_role(txn: Txn, databases: Databases) -> Role | None:
    """Return the role of a store, None if it was the first and has always been alone or primary.

    Raises Damaged.
    """
    stored = txn.get(ROLE, db=databases.meta)
    return None if stored is None else _ROLES.decode(verified(ROLE, stored))


def write_role(txn: Txn, databases: Databases, role: Role) -> None:
    """Store the role of a store."""
    value = with_checksum(ROLE, msgspec.msgpack.encode(role))
    txn.put(ROLE, value, db=databases.meta)


def check_is_primary(txn: Txn, databases: Databases) -> None:
    """Raise Conflict if the settings of a store are the copy of another collector's."""
    try:
        role = read_role(txn, databases)
    except Damaged:
        return
    if role is not None and not role.is_primary:
        raise Conflict(
            f"this is collector {role.collector}: settings are changed on the primary, collector"
            f" {role.epoch.primary}"
        )


def read_shared(txn: Txn, databases: Databases) -> SharedSettings:
    """Return a copy of the settings of a store."""
    return SharedSettings({name: dict(_entries(txn, databases, name)) for name in _SHARED})


def _entries(txn: Txn, databases: Databases, database: str) -> Iterator[tuple[bytes, bytes]]:
    prefixes = _IN_META if database == "meta" else (b"",)
    for prefix in prefixes:
        for key, stored in entries(txn, getattr(databases, database), prefix):
            yield bytes(key), bytes(stored)


def write_shared(txn: Txn, databases: Databases, settings: SharedSettings) -> None:
    """Replace the settings of a store by a copy, touching only what differs."""
    for database in _SHARED:
        own, new = dict(_entries(txn, databases, database)), settings.stored[database]
        for key in own.keys() - new.keys():
            txn.delete(key, db=getattr(databases, database))
        for key, stored in new.items():
            if own.get(key) != stored:
                txn.put(key, stored, db=getattr(databases, database))


def begin_epoch(txn: Txn, databases: Databases, role: Role) -> Role:
    """Make a store the primary of a new epoch, after the one in its role; return its new role.

    A primary that does not know of it goes on with the numbers of its websites and imports. None of
    these numbers is given to one here.
    """
    begun = role.epoch.next(role.collector, read_shared(txn, databases).digest)
    promoted = replace(role, epoch=begun)
    write_role(txn, databases, promoted)
    for name in (LAST_NUMBER, LAST_BATCH):
        last = read_number(txn, databases.meta, name)
        after = (last // _NUMBERS_OF_EPOCH + 1) * _NUMBERS_OF_EPOCH
        write_number(txn, databases.meta, name, after)
    return promoted


def join_cluster(
    directory: Path,
    map_size: int,
    settings: SharedSettings,
    role: Role,
    claim: Callable[[str], None],
) -> None:
    """Make an empty directory that of a further collector, with a copy of the primary's settings.

    `claim` is called with the identifier of the new store, before it gets them. Raises StoreError
    if the directory is in use or not empty, and what `claim` does; it can then be repeated.
    """
    environment = open_environment(directory, map_size)
    try:
        with store_errors(environment.path):
            databases = environment.databases
            with environment.reading() as txn:
                if any(read_shared(txn, databases).stored.values()):
                    raise StoreError(
                        f"{directory}: it has a store already, and a further collector begins with"
                        " an empty data directory"
                    )
                store = environment.store_id(txn)
            claim(store)
            with environment.lmdb.begin(write=True) as txn:
                write_shared(txn, databases, settings)
                write_role(txn, databases, role)
    finally:
        environment.close()
