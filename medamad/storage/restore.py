"""Restore a backup in place of a store, which is kept beside it.

The new file is completed under another name and renamed last, so that whenever the process is
killed, one of the two stores is there.
"""

import os
import secrets
import shlex
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

import lmdb
from attrs import frozen

from medamad.storage.backup import (
    BackupProgress,
    Note,
    damaged_values,
    dated_names,
    read_note,
    unpack,
)
from medamad.storage.environment.environment import FILE_NAME, take_lock
from medamad.storage.environment.files import (
    check_room,
    keep_room,
    lock_of,
    looks_like_store,
    open_lmdb,
    sync,
)
from medamad.storage.environment.folder import (
    PRESENCE_NAME,
    REPLACED,
    RESTORED_NAME,
    STATE_NAME,
    make_folder,
    remove_unfinished,
)
from medamad.storage.environment.meta import MARKS, META, read_number, refusal, write_number
from medamad.storage.environment.owner import as_invoker
from medamad.storage.errors import NoBackup
from medamad.storage.import_batches import LAST_BATCH
from medamad.storage.websites import LAST_NUMBER

_PLACING: Final = "putting it in place"
_ROOM_BYTES: Final = 64 << 20
"""How much the file may grow while its logins are deleted."""
_SEQUENCE: Final = b"sequence"
_GAP_BITS: Final = 32
_GAPS: Final = 1 << 12


@frozen
class Restored:
    """What a restore did."""

    note: Note
    replaced: Path | None
    """Where the previous store is kept; None if there was none."""
    damage: str
    """What is damaged in the store of the backup; "" for nothing."""


def restore(
    backup: Path,
    directory: Path,
    progress: BackupProgress,
    at_last: Callable[[], None] = lambda: None,
) -> Restored:
    """Put the store of a backup into a directory, and delete its logins.

    `at_last` is called before the last steps, which are short and must not be interrupted. Raises
    StoreInUse while a daemon is running there, NoBackup for a file that is not a sound backup,
    other StoreErrors and OSError; then everything is as before.
    """
    with as_invoker(backup, directory):
        opened = backup.open("rb")
    with opened as file:
        try:
            note = _note(file, backup, directory)
            _check_format(note)
            make_folder(directory)
            lock = take_lock(directory)
            try:
                store, new = directory / FILE_NAME, directory / RESTORED_NAME
                remove_unfinished(store)
                _check_room(directory, note)
                try:
                    damaged = unpack(file, note, new, "unpacking", progress)
                    _make_ready(new, note)
                    kept = _put_in_place(new, store, progress, at_last)
                    return Restored(note, kept, damaged_values(damaged) if damaged else "")
                finally:
                    remove_unfinished(store)
            finally:
                os.close(lock)
        except NoBackup as error:
            raise NoBackup(f"{backup}: {error}") from error


def _note(file: BinaryIO, backup: Path, directory: Path) -> Note:
    try:
        return read_note(file)
    except NoBackup as error:
        if not looks_like_store(backup):
            raise
        given = shlex.join(["chown", f"--reference={directory}", str(directory / FILE_NAME)])
        raise NoBackup(
            f"a store's file as it is, not a backup: to have it back, stop the daemon,"
            f" move {FILE_NAME} away, give this one its name and the folder's owner ({given})"
        ) from error


def _check_format(note: Note) -> None:
    if reason := refusal(note.format, note.program):
        raise NoBackup(f"the store in this backup {reason.format(folder='FOLDER')}")


def _check_room(directory: Path, note: Note) -> None:
    check_room(directory, note.bytes + _ROOM_BYTES, "the store of this backup needs")


def _make_ready(new: Path, note: Note) -> None:
    """Delete the logins, advance the numbers, and sync the file.

    The next hits get numbers far beyond the backup's, so that hits which the replaced store has
    counted since are not mistaken for them when they are imported. So do the next websites and
    imports of a collector, since the cluster has the rows of those that were added since. None of
    them was given more numbers than there are seconds.
    """
    env = open_lmdb(new, note.bytes + 2 * _ROOM_BYTES)
    try:
        with env.begin(write=True) as txn:
            txn.drop(env.open_db(b"logins", txn=txn, create=False), delete=False)
            meta = env.open_db(META, txn=txn, create=False)
            gap = (1 + secrets.randbelow(_GAPS)) << _GAP_BITS
            write_number(txn, meta, _SEQUENCE, read_number(txn, meta, _SEQUENCE) + gap)
            if txn.get(MARKS, db=meta) is not None:
                for name in (LAST_NUMBER, LAST_BATCH):
                    last = max(read_number(txn, meta, name), int(time.time()))
                    write_number(txn, meta, name, last)
        keep_room(env, new)
    except lmdb.Error as error:
        raise NoBackup(f"not a store of medamad: {error}") from error
    finally:
        env.close()
    sync(new)


def _put_in_place(
    new: Path, store: Path, progress: BackupProgress, at_last: Callable[[], None]
) -> Path | None:
    progress(_PLACING, 0, 2)
    kept = _kept_as(store)
    progress(_PLACING, 1, 2)
    at_last()
    # Hits since the backup are not in it, and that gap must not look like silence. Do this before
    # the rename, in case the process is killed in between.
    store.with_name(PRESENCE_NAME).unlink(missing_ok=True)
    store.with_name(STATE_NAME).unlink(missing_ok=True)
    # The lock file has the readers of the other store.
    lock_of(store).unlink(missing_ok=True)
    new.replace(store)
    progress(_PLACING, 2, 2)
    lock_of(store).unlink(missing_ok=True)
    with suppress(OSError):
        sync(store.parent)
    return kept


def _kept_as(store: Path) -> Path | None:
    """Link the present store to a second name, with the time; return it, None without a store."""
    for name in dated_names(f"{FILE_NAME}{REPLACED}", "", time.time()):
        kept = store.with_name(name)
        try:
            os.link(store, kept)
        except FileNotFoundError:
            return None
        except FileExistsError:
            continue
        return kept
    return None
