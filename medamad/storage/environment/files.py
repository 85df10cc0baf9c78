"""LMDB's files: open them, recognize them, and keep spare room in them."""

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
Database: TypeAlias = "lmdb._Database"  # noqa: SLF001 - its stubs name the type so

DAMAGE: Final = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError)
"""What LMDB raises for a file that is not what was written."""
_MAX_READERS: Final = 126
_LOCK_BYTES: Final = 8192
"""The size of LMDB's lock file for that many readers."""
_READ_AT_ONCE: Final = 1 << 20
_FULL_DISK_BYTES: Final = 1 << 20
_OVER_QUOTA: Final = os.strerror(errno.EDQUOT)
"""The only sign of it in LMDB's errors."""
_MAGIC: Final = b"\xde\xc0\xef\xbe"
_MAGIC_AT: Final = 16
"""Where LMDB's first two pages have it."""
_PAGE_SIZES: Final = (4_096, 8_192, 16_384, 32_768)
"""A store's pages are as large as those of the machine that made it, up to LMDB's largest."""
_BLOCK: Final = 512
_MIB: Final = 1 << 20
"""The unit of st_blocks."""
_LEAST_ROOM_PAGES: Final = 128
_MOST_ROOM_PAGES: Final = 1_024
"""Deleting much old data takes that much room behind the last page in use. Of a small store it
takes no more than there are pages in use."""
_MORE_ROOM: Final = 0.25
"""Extra room for each time the file is extended, so that this happens rarely."""


@frozen
class OpenedFiles:
    """The inodes that some paths had when they were opened."""

    _inodes: tuple[tuple[Path, tuple[int, int]], ...] = ()

    @classmethod
    def of(cls, *paths: Path) -> "OpenedFiles":
        """Record files that have just been opened. Raises OSError."""
        return cls(tuple((path, _inode(path)) for path in paths))

    def check(self) -> None:
        """Raise Lost when a path no longer names the same file, OSError if that is unknown.

        Cheap.
        """
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
    """Raise StoreError if the disk cannot read all of a file.

    To read such a place through a memory map, as LMDB does, is SIGBUS.
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
def store_errors(path: Path) -> Iterator[None]:
    """Raise StoreError, or DamagedStore, for LMDB's errors."""
    try:
        yield
    except DAMAGE as error:
        raise DamagedStore(f"{path}: {error}") from error
    except lmdb.Error as error:
        raise StoreError(f"{path}: {shortage_behind(error, path.parent) or error}") from error


def shortage_behind(error: Exception, folder: Path) -> str:
    """Return the shortage that caused an error of a store, "" if it has another cause."""
    if isinstance(error, lmdb.MapFullError):
        return "all that store.map_size allows is in use"
    # A full disk does not explain damage.
    if isinstance(error, lmdb.DiskError) or (not isinstance(error, DAMAGE) and _is_full(folder)):
        return "the disk is full"
    return "the quota of the disk is used up" if _OVER_QUOTA in str(error) else ""


def lock_of(path: Path) -> Path:
    """Return the lock file that LMDB keeps beside a file."""
    return Path(f"{path}-lock")


def keep_room(env: lmdb.Environment, path: Path) -> None:
    """Keep room behind the last page in use for the next transaction. Cheap."""
    # LMDB never writes a page that a transaction takes at the end and frees again. Without room
    # the file could end before its last page, as if it had been cut short.
    used = _end_of_used(env)
    if path.stat().st_size < used + _room_bytes(env, used):
        make_room(env, path)


def make_room(env: lmdb.Environment, path: Path) -> None:
    """Allocate room on disk if possible: deletion, which makes room on a full disk, needs some.

    Hits are refused before the disk is full, and nothing else can take this room.
    """
    # Where the file system cannot allocate, the C library writes, so keep other writers out.
    with env.begin(write=True):
        used = _end_of_used(env)
        room = _room_bytes(env, used)
        try:
            with path.open("r+b", buffering=0) as file:
                os.posix_fallocate(file.fileno(), used, room + int(room * _MORE_ROOM))
        except OSError:
            # The next call tries again, once more of the file is in use.
            with suppress(OSError):
                os.truncate(path, max(used + room, path.stat().st_size))


def sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def free_bytes(folder: Path) -> int:
    """Return the bytes that are free on the disk of a folder."""
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def check_room(folder: Path, needed: int, what: str) -> None:
    """Raise StoreError unless so many bytes are free; `what` says what takes them."""
    free = free_bytes(folder)
    if free < needed:
        raise StoreError(
            f"{folder}: {free // _MIB} MiB of the disk are free, {what} {-(-needed // _MIB)} MiB"
        )


def _is_full(folder: Path) -> bool:
    # LMDB reports a write that fits only in part as a plain I/O error.
    with suppress(OSError):
        return free_bytes(folder) < _FULL_DISK_BYTES
    return False


def _end_of_used(env: lmdb.Environment) -> int:
    """Return the end of the last page that was ever in use, in bytes."""
    end: int = (env.info()["last_pgno"] + 1) * env.stat()["psize"]
    return end


def _room_bytes(env: lmdb.Environment, used: int) -> int:
    """Return the least room that is kept behind the last page in use."""
    page_bytes: int = env.stat()["psize"]
    return min(max(used, _LEAST_ROOM_PAGES * page_bytes), _MOST_ROOM_PAGES * page_bytes)


def _inode(path: Path) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116 - Path.stat takes longer, and each commit calls this
    return found.st_dev, found.st_ino


def _allocate_lock(path: Path) -> None:
    """Allocate all of LMDB's lock file, which is written through a memory map.

    A full disk would otherwise be SIGBUS. Raises StoreError when the disk is full.
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
    except OSError as error:
        # LMDB reports any other error better, or does without.
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{lock}: {error.strerror}") from error
