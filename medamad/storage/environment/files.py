"""LMDB's files: opened, locked, given spare room, told apart from other files."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

import lmdb
from attrs import frozen

from medamad.storage.errors import Damaged, DamagedStore, Lost, StoreError, WrongFormat

LMDB_VERSION: Final = 0
"""LMDB 0.9: the engine of 1.0 cannot read its files and commits several times slower."""

Txn: TypeAlias = "lmdb.Transaction[bytes]"

DAMAGE: Final = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError)
"""What LMDB raises for a file that is not what was written."""
_MAX_READERS: Final = 126
_LOCK_BYTES: Final = 8192
"""What LMDB's lock file takes for as many readers."""
_READ_AT_ONCE: Final = 1 << 20
_FULL_DISK_BYTES: Final = 1 << 20
_OVER_QUOTA: Final = os.strerror(errno.EDQUOT)
"""All by which an error of LMDB tells it."""
_MAGIC: Final = b"\xde\xc0\xef\xbe"
_MAGIC_AT: Final = 16
"""Where LMDB's first two pages have it."""
_PAGE_SIZES: Final = (4_096, 8_192, 16_384, 32_768)
"""A store's pages are as large as those of the machine that made it, up to LMDB's largest."""
_BLOCK: Final = 512
"""The unit of st_blocks."""
_ROOM_PAGES: Final = 1_024
"""What a file is kept longer, at the least; removing what is old takes so much where it is much."""
_MORE_PAGES: Final = 256
"""By how much more it is made longer, so that it is done seldom."""


@frozen
class OpenedFiles:
    """Which files were opened by some paths: others may have their names by now, or none."""

    _inodes: tuple[tuple[Path, tuple[int, int]], ...] = ()

    @classmethod
    def of(cls, *paths: Path) -> "OpenedFiles":
        """Take note of files that have just been opened. Raises OSError."""
        return cls(tuple((path, _inode(path)) for path in paths))

    def check(self) -> None:
        """Raise Lost when one has its name no more, OSError when that cannot be told; cheap."""
        for path, inode in self._inodes:
            try:
                is_same = _inode(path) == inode
            except (FileNotFoundError, NotADirectoryError):
                is_same = False
            if not is_same:
                raise Lost(
                    f"{path.name} is no longer the file that was opened:"
                    " it was deleted, moved or replaced"
                )


def looks_like_store(path: Path) -> bool:
    """Return whether a file begins as LMDB's do, if only one of its first two pages is sound."""
    with path.open("rb") as file:
        return any(
            file.read(len(_MAGIC)) == _MAGIC
            for page in (0, *_PAGE_SIZES)
            if file.seek(page + _MAGIC_AT)
        )


def check_is_store(path: Path) -> None:
    """Raise WrongFormat for a file that LMDB would not open, StoreError if it cannot be read."""
    try:
        is_store = path.is_file() and looks_like_store(path)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    if not is_store:
        raise WrongFormat(f"{path}: not a store of medamad")


def check_length(env: lmdb.Environment, path: Path) -> None:
    """Raise Damaged when a file ends before its last page: to read beyond is SIGBUS."""
    used, size = _end_of_used(env), path.stat().st_size
    if size < used:
        raise Damaged(f"the file has been cut short: it has {size} bytes, and {used} are in use")


def open_lmdb(
    path: Path, map_size: int, *, readonly: bool = False, is_private: bool = False
) -> lmdb.Environment:
    """Open or make a file of LMDB; of a private one no other process has it open.

    Raises WrongFormat, DamagedStore, and StoreError when the disk is full.
    """
    if not is_private:
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
            lock=not is_private,
        )
    except lmdb.InvalidError as error:
        raise DamagedStore(f"{path}: its first pages are damaged") from error
    except lmdb.Error as error:
        raise WrongFormat(f"{path}: cannot be opened as a store: {error}") from error


def check_readable(path: Path) -> None:
    """Raise StoreError where the disk does not give all of a file.

    Whoever meets such a place in what is mapped, as LMDB's is, is ended by the system.
    """
    read_bytes, buffer = 0, bytearray(_READ_AT_ONCE)
    try:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                read_bytes += count
    except OSError as error:
        reason = f"cannot be read from byte {read_bytes} on: {error.strerror}"
        raise StoreError(f"{path}: {reason}") from error


@contextmanager
def failures_told(path: Path) -> Iterator[None]:
    """Raise StoreError for what LMDB fails to do with a file."""
    try:
        yield
    except DAMAGE as error:
        raise DamagedStore(f"{path}: {error}") from error
    except lmdb.Error as error:
        raise StoreError(f"{path}: {lack_behind(error, path.parent) or error}") from error


def lack_behind(error: Exception, folder: Path) -> str:
    """Return what a store in a folder had too little of, "" when that is not what went wrong."""
    if isinstance(error, lmdb.MapFullError):
        return "all that store.map_size allows is in use"
    # Whatever else is wrong, damage is no lack.
    if isinstance(error, lmdb.DiskError) or (not isinstance(error, DAMAGE) and _is_full(folder)):
        return "the disk is full"
    return "the quota of the disk is used up" if _OVER_QUOTA in str(error) else ""


def lock_of(path: Path) -> Path:
    """Return the lock file that LMDB keeps beside a file."""
    return Path(f"{path}-lock")


def keep_room(env: lmdb.Environment, path: Path) -> None:
    """Keep a file longer than what the next transaction takes of it; cheap."""
    # A page that a transaction takes at the end and frees again is never written. Without room
    # the file could end before its last page, as one does that was cut short.
    if path.stat().st_size < _end_of_used(env) + _ROOM_PAGES * env.stat()["psize"]:
        make_room(env, path)


def make_room(env: lmdb.Environment, path: Path) -> None:
    """Have the disk hold this room if it can: what makes room on a full disk takes some first.

    Hits are refused before the disk is full, and what fills the rest of it leaves this alone.
    """
    page_bytes = env.stat()["psize"]
    # Where the file system cannot, the C library writes, which nobody else may do meanwhile.
    with env.begin(write=True):
        used = _end_of_used(env)
        try:
            with path.open("r+b", buffering=0) as file:
                room = (_ROOM_PAGES + _MORE_PAGES) * page_bytes
                os.posix_fallocate(file.fileno(), used, room)
        except OSError:
            # It is tried again as soon as more of the file is used.
            needed = used + _ROOM_PAGES * page_bytes
            with suppress(OSError):
                os.truncate(path, max(needed, path.stat().st_size))


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
    """Return the bytes that are free on the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def _is_full(folder: Path) -> bool:
    # Where only a part of a write has room, it is a plain I/O error to LMDB.
    with suppress(OSError):
        return free_bytes(folder) < _FULL_DISK_BYTES
    return False


def _end_of_used(env: lmdb.Environment) -> int:
    """Return where the last page ends that was ever used."""
    end: int = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    return end


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


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
