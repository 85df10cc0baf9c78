"""Compact a store: write it anew, so that its file has nothing of what was deleted.

LMDB leaves deleted entries in free pages, in the gaps of pages in use and, of keys, in branches. So
every entry is copied into a new file, in order. That takes the old one's name once it is complete
and has been read again: whenever the process is killed, one of the two is there.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import lmdb
from attrs import frozen

from medamad.storage.backup import BackupProgress
from medamad.storage.environment.environment import (
    FILE_NAME,
    Environment,
    check_there,
    open_as_guest,
    take_lock,
)
from medamad.storage.environment.files import (
    Database,
    Txn,
    check_is_store,
    check_room,
    keep_room,
    lock_of,
    open_lmdb,
    store_errors,
    sync,
)
from medamad.storage.environment.folder import COMPACT_NAME, COMPACTED_NAME, remove_unfinished
from medamad.storage.environment.tree_check import TreeCheck
from medamad.storage.errors import DamagedStore
from medamad.storage.websites import tombstones

STILL_DELETING: Final = (
    "the daemon was still deleting data, of which some is left: start it, and compact the store"
    " again some minutes later"
)
"""What to say of `Compacted.is_deleting`."""
_BATCH_BYTES: Final = 32 << 20
"""How much a transaction copies, which LMDB keeps in memory."""
_ROOM_BYTES: Final = 64 << 20
"""How much disk it takes at most besides what is in use."""
_WAIT_S: Final = 0.5


@frozen
class Compacted:
    """What a compaction did."""

    before_bytes: int
    """The size of the file before."""
    after_bytes: int
    is_deleting: bool
    """Whether deleted data is left that the daemon has not yet taken out of the store."""


def compact(directory: Path, progress: BackupProgress) -> Compacted:
    """Write the store of a directory anew, and forget that it was asked for.

    `progress` is called often; what it raises ends the work. Raises NoStore, StoreInUse while a
    daemon runs there, DamagedStore, other StoreErrors, OSError; then the store is as before.
    """
    check_there(directory)
    store, new = directory / FILE_NAME, directory / COMPACTED_NAME
    lock = take_lock(directory)
    try:
        remove_unfinished(store)
        check_is_store(store)
        _check(store, progress, is_private=False)
        environment = open_as_guest(directory)
        try:
            # Some commands write beside a daemon, without the lock. The transaction makes them
            # wait; then they find that the file is no longer the one they have opened.
            with store_errors(store), environment.lmdb.begin(write=True) as txn:
                environment.check_is_ours(txn)
                compacted = _copied(environment, txn, new, progress)
                _check(new, progress, is_private=True)
                new.replace(store)
                # It has the readers of the other store.
                lock_of(store).unlink(missing_ok=True)
                sync(directory)
                txn.abort()
        finally:
            environment.close()
            remove_unfinished(store)
        (directory / COMPACT_NAME).unlink(missing_ok=True)
    finally:
        os.close(lock)
    return compacted


def ask_to_compact(directory: Path, failure: str = "") -> None:
    """Make the next start of the daemon compact the store; `failure` says why this one did not."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(directory / COMPACT_NAME, flags, 0o600), "w") as file:  # noqa: PTH123 - with a mode
        file.write(failure)


def compaction_asked(directory: Path) -> str | None:
    """Return why the last start could not compact the store, "" if none has tried to.

    None if the next start is not to compact it.
    """
    try:
        return (directory / COMPACT_NAME).read_text("utf-8", "replace")
    except OSError:
        return None


def _check(store: Path, progress: BackupProgress, *, is_private: bool) -> None:
    """Read a store in a child process, since damage would end this one. Raises DamagedStore."""
    size = store.stat().st_size
    check = TreeCheck.start(store, is_private=is_private)
    try:
        while not check.wait(_WAIT_S):
            progress("reading it again" if is_private else "checking", 0, size)
        if damage := check.damage():
            raise DamagedStore(f"{store}: {damage}")
    finally:
        check.stop()


def _copied(environment: Environment, txn: Txn, new: Path, progress: BackupProgress) -> Compacted:
    before, used = environment.path.stat().st_size, environment.used_bytes(txn)
    check_room(new.parent, used + _ROOM_BYTES, "compacting this store takes")
    made = open_lmdb(new, 2 * before + 2 * _ROOM_BYTES, is_private=True)
    try:
        done = 0
        with txn.cursor() as trees:
            for name in trees.iternext(values=False):
                tree = environment.lmdb.open_db(bytes(name), txn=txn, create=False)
                copy = made.open_db(bytes(name))
                with txn.cursor(db=tree) as entries:
                    for size in _copied_batches(entries, made, copy):
                        done += size
                        progress("copying", done, max(done, used))
        keep_room(made, new)
    finally:
        made.close()
    sync(new)
    return Compacted(before, new.stat().st_size, _is_deleting(environment, txn))


def _copied_batches(entries: Any, made: lmdb.Environment, copy: Database) -> Iterator[int]:
    """Copy all that a cursor finds into a new tree; return the bytes of each transaction."""
    is_left = entries.first()
    while is_left:
        size = 0
        with made.begin(write=True) as txn, txn.cursor(db=copy) as cursor:
            while is_left and size < _BATCH_BYTES:
                key, value = entries.item()
                cursor.put(key, value, append=True)
                size += len(key) + len(value)
                is_left = entries.next()
        yield size


def _is_deleting(environment: Environment, txn: Txn) -> bool:
    databases = environment.databases
    return any(tombstones(txn, databases.meta)) or txn.stat(databases.purge_queue)["entries"] > 0
