"""Files of LMDB: opened, kept longer than what they hold, told apart from files that are not."""

import errno
import os
from pathlib import Path
from typing import Final, TypeAlias

import lmdb

from medamad.store.errors import StoreError, WrongFormat

LMDB_VERSION: Final = 0
"""LMDB 0.9: the engine of 1.0 cannot read its files and commits several times slower."""

Txn: TypeAlias = "lmdb.Transaction[bytes]"

_MAX_READERS: Final = 126
_LOCK_BYTES: Final = 8192
"""What LMDB's lock file takes for as many readers."""
_BLOCK: Final = 512
"""The unit of st_blocks."""
_ROOM_PAGES: Final = 1024


def open_lmdb(path: Path, map_size: int, *, readonly: bool = False) -> lmdb.Environment:
    """Open or make a file of LMDB. Raises WrongFormat, and StoreError when the disk is full."""
    _allocate_lock(path)
    try:
        return lmdb.open(
            str(path),
            subdir=False,
            map_size=map_size,
            max_dbs=16,
            max_readers=_MAX_READERS,
            mode=0o600,
            lib_version=LMDB_VERSION,
            readonly=readonly,
        )
    except lmdb.Error as error:
        raise WrongFormat(f"{path}: cannot be opened as a store: {error}") from error


def lock_of(path: Path) -> Path:
    """Give the lock file that LMDB keeps beside a file."""
    return Path(f"{path}-lock")


def keep_room(env: lmdb.Environment, path: Path) -> None:
    """Keep a file longer than what the next transaction takes of it; cheap."""
    # A page that a transaction takes at the end and frees again is never written. Without room
    # the file could end before its last page, as one does that was cut short.
    room = _ROOM_PAGES * env.stat()["psize"]
    needed = (env.info()["last_pgno"] + 1) * env.stat()["psize"] + room
    if path.stat().st_size < needed:
        os.truncate(path, needed + room)


def sync_folder(folder: Path) -> None:
    """Have the disk hold which files are in a folder, and by which names."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def give_to_owner(folder: Path, file: Path) -> None:
    """Let whoever has a folder have a file of it too: root may have made it for the daemon."""
    owner = folder.stat()
    if os.geteuid() == 0:
        os.chown(file, owner.st_uid, owner.st_gid)


def free_bytes(folder: Path) -> int:
    """Give the bytes that are free on the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _allocate_lock(path: Path) -> None:
    """Have the disk hold all of LMDB's lock file, which is written to as memory.

    Else a full disk would end the process by SIGBUS. Raises StoreError when the disk is full.
    """
    lock = lock_of(path)
    try:
        if lock.exists() and lock.stat().st_blocks * _BLOCK >= _LOCK_BYTES:
            return
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, _LOCK_BYTES)
        finally:
            os.close(descriptor)
        give_to_owner(lock.parent, lock)
    except OSError as error:
        # Whatever else is wrong, LMDB tells better, or can do without.
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{lock}: {error.strerror}") from error
