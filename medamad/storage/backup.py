"""Backups of a store: made while it is in use, and verified before they get their name.

A backup has two Zstandard frames (RFC 8878): a note in a frame that decompressors skip, and the
store's file, which `zstd -d` extracts. Each has a SHA-256; that of the store's file is in the note.

A folder of dated backups keeps the newest of them.
"""

import fcntl
import hashlib
import os
import re
import struct
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    ExitStack,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from datetime import datetime
from itertools import count
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Final, TypeAlias

import lmdb
import msgspec
import zstandard
from attrs import frozen

from medamad.build import VERSION
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.files import free_bytes, sync
from medamad.storage.environment.folder import BACKUP_SUFFIX
from medamad.storage.environment.tree_check import DamagedValue, read_store
from medamad.storage.errors import Damaged, NoBackup, StoreError
from medamad.storage.segments.damage import WAYS_OUT

BackupProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with a phase of the work, how much of it is done, and how much there is in all."""

_FRAME: Final = struct.Struct("<II")
"""The header of a skippable frame: magic number, length."""
_SKIPPED: Final = 0x184D2A5D
_OURS: Final = b"medamad backup 1"
_DIGEST_BYTES: Final = 32
_NOTE_BYTES: Final = 1024
_LEVEL: Final = 3
"""As small as gzip at its usual level, in a ninth of the time. Higher levels gain little."""
_PIECE_BYTES: Final = 1 << 20


def no_progress(_phase: str, _done: int, _total: int) -> None:
    """Report nothing."""


class DamagedData(StoreError):
    """A store has damaged values."""

    def __init__(self, message: str, values: Sequence[DamagedValue]) -> None:
        super().__init__(message)
        self.values = values


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup contains."""

    program: str
    """The version of medamad that made it."""
    format: str
    """The format of the store."""
    store: str
    """The identifier of the store, in hexadecimal; "" if that is damaged."""
    made: int
    """When it was made, in Unix seconds."""
    state: str
    """The inode of the store's file, and its last transaction."""
    bytes: int = 0
    """The size of the store's file in it."""
    packed_bytes: int = 0
    """The compressed size of that."""
    sha256: str = ""
    """The SHA-256 of the store's file, in hexadecimal."""


def write_backup(file: BinaryIO, note: Note, pieces: Iterable[bytes]) -> Note:
    """Write a backup of a store's file, given in pieces; return the note as written."""
    file.seek(_FRAME.size + _NOTE_BYTES)
    digest = hashlib.sha256()
    count = packed_count = 0
    packing = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
    for piece in pieces:
        digest.update(piece)
        count += len(piece)
        packed_count += file.write(packing.compress(piece))
    packed_count += file.write(packing.flush())
    note = msgspec.structs.replace(
        note, bytes=count, packed_bytes=packed_count, sha256=digest.hexdigest()
    )
    file.seek(0)
    file.write(_FRAME.pack(_SKIPPED, _NOTE_BYTES) + _written(note))
    return note


def read_note(file: BinaryIO) -> Note:
    """Read the note of a backup. Raises NoBackup, also if the file was cut short."""
    begin = file.read(_FRAME.size + _NOTE_BYTES)
    if _FRAME.pack(_SKIPPED, _NOTE_BYTES) + _OURS != begin[: _FRAME.size + len(_OURS)]:
        raise NoBackup("not a backup of medamad, or of a version that this program does not know")
    written = begin[_FRAME.size + len(_OURS) :]
    digest, content = written[:_DIGEST_BYTES], written[_DIGEST_BYTES:]
    if hashlib.sha256(content).digest() != digest:
        raise NoBackup("damaged: the checksum of its first part does not match")
    note = msgspec.json.decode(content, type=Note)
    size = os.fstat(file.fileno()).st_size
    expected = _FRAME.size + _NOTE_BYTES + note.packed_bytes
    if size != expected:
        how = "cut short" if size < expected else "something was added to it"
        raise NoBackup(f"damaged: {how} ({size} bytes, expected {expected})")
    return note


def unpacked(file: BinaryIO, note: Note) -> Iterator[bytes]:
    """Return the store's file in pieces, once the note has been read.

    Raises NoBackup, at the end at the latest, if it is not what was written.
    """
    digest = hashlib.sha256()
    left = note.bytes
    reader = zstandard.ZstdDecompressor().stream_reader(file)
    try:
        while piece := reader.read(_PIECE_BYTES):
            left -= len(piece)
            if left < 0:
                break
            digest.update(piece)
            yield piece
    except zstandard.ZstdError as error:
        raise NoBackup(f"damaged: {error}") from error
    if left or digest.hexdigest() != note.sha256:
        raise NoBackup("damaged: the checksum of what is in it does not match")


def _written(note: Note) -> bytes:
    content = msgspec.json.encode(note).ljust(_NOTE_BYTES - len(_OURS) - _DIGEST_BYTES)
    return _OURS + hashlib.sha256(content).digest() + content


_MODE: Final = 0o600
_PACKED_SHARE: Final = 0.6
"""More than any store was seen to take when compressed."""
_MIB: Final = 1 << 20


def back_up(
    environment: Environment,
    txn: Txn,
    target: Path,
    *,
    progress: BackupProgress = no_progress,
    spare_bytes: int = 0,
) -> Note:
    """Write a backup of a store as of a transaction, and verify it.

    Ends the transaction as soon as all is written, since it keeps freed space from reuse. The file
    `target` is complete at any time, and `spare_bytes` of its disk stay free. Raises DamagedData,
    other StoreErrors, OSError; then `target` is as before.
    """
    used = environment.used_bytes(txn)
    _check_room(target.parent, used, spare_bytes)
    note = Note(
        program=VERSION,
        format=str(environment.format),
        store=_store_id(environment, txn),
        made=int(time.time()),
        state=_state(environment),
    )
    part = target.with_name(f".{target.name}.part")
    with _only(part) as file, ExitStack() as undone:
        undone.callback(part.unlink, missing_ok=True)
        with closing(_copied(environment.lmdb, txn)) as pieces:
            note = write_backup(file, note, _reporting(pieces, used, progress))
        txn.abort()
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        _verify(file, target, progress)
        part.replace(target)
        undone.pop_all()
    sync(target.parent)
    return note


def clear_unfinished(folder: Path, beginning: str) -> None:
    """Remove what killed processes left of backups whose names begin so."""
    for part in folder.glob(f".{beginning}*{BACKUP_SUFFIX}.part"):
        with suppress(StoreError, FileNotFoundError), _only(part):
            part.with_suffix(".check").unlink(missing_ok=True)
            part.unlink()


def dated_names(beginning: str, ending: str, unix_s: float) -> Iterator[str]:
    """Return names for a file of a moment, in UTC, to try until one is free."""
    stamp = time.strftime("%Y%m%d-%H%M%SZ", time.gmtime(unix_s))
    yield f"{beginning}{stamp}{ending}"
    for number in count(2):
        yield f"{beginning}{stamp}-{number}{ending}"


def unpack(
    file: BinaryIO, note: Note, target: Path, what: str, progress: BackupProgress
) -> list[DamagedValue]:
    """Write the store's file of a backup to `target` and read all of it. Raises NoBackup, OSError.

    Return what is damaged in it, apart from the store's trees, which are no backup if damaged.
    The caller removes `target` afterwards, also after a failure.
    """
    done = 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(target, flags, _MODE), "wb") as store:  # noqa: PTH123 - with a mode
        for piece in unpacked(file, note):
            store.write(piece)
            done += len(piece)
            progress(what, done, note.bytes)
    check = read_store(target, is_private=True)
    if damage := check.damage():
        raise NoBackup(f"the store in it is damaged: {damage}")
    return check.damaged_values()


def _verify(file: BinaryIO, target: Path, progress: BackupProgress) -> None:
    read_again = target.with_name(f".{target.name}.check")
    try:
        damaged = unpack(file, read_note(file), read_again, "reading it again", progress)
    finally:
        read_again.unlink(missing_ok=True)
    if damaged:
        raise DamagedData(
            f"no backup was made, as the store is damaged: {damaged_values(damaged)}; {WAYS_OUT}",
            damaged,
        )


def damaged_values(values: Sequence[DamagedValue]) -> str:
    """Return a phrase that names damaged values."""
    more = f" and {len(values) - 1} more" if len(values) > 1 else ""
    return f"{values[0].place}{more}"


@contextmanager
def _only(part: Path) -> Iterator[BinaryIO]:
    """Open the file that is to become the backup.

    Raises StoreError if another process writes it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(part, flags, _MODE), "r+b") as file:  # noqa: PTH123 - with a mode
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{part}: another backup is being written there") from None
        file.truncate()
        yield file


def _copied(env: lmdb.Environment, txn: Txn) -> Generator[bytes]:
    """Return the file of a store as of a transaction, in pieces, without free pages."""
    reading, writing = os.pipe2(os.O_CLOEXEC)
    failed: list[lmdb.Error] = []

    def copy() -> None:
        try:
            env.copyfd(writing, compact=True, txn=txn)
        except lmdb.Error as error:
            failed.append(error)
        finally:
            os.close(writing)

    copying = Thread(target=copy, name="backup")
    copying.start()
    try:
        with open(reading, "rb", buffering=0) as pipe:  # noqa: PTH123 - it is a descriptor
            while piece := pipe.read(_PIECE_BYTES):
                yield piece
    finally:
        copying.join()
    if failed:
        raise StoreError(f"the store could not be copied: {failed[0]}")


def _reporting(pieces: Iterable[bytes], total: int, progress: BackupProgress) -> Iterator[bytes]:
    done = 0
    for piece in pieces:
        yield piece
        done += len(piece)
        progress("copying", done, max(total, done))


def _check_room(folder: Path, used: int, spare_bytes: int) -> None:
    needed = int(used * (1 + _PACKED_SHARE)) + spare_bytes
    free = free_bytes(folder)
    if free < needed:
        raise StoreError(
            f"{folder}: {free // _MIB} MiB of the disk are free, a backup of this store needs "
            f"up to {-(-needed // _MIB)} MiB while it is made and read again"
        )


def _store_id(environment: Environment, txn: Txn) -> str:
    try:
        return environment.store_id(txn)
    except Damaged:
        return ""


def _state(environment: Environment) -> str:
    return f"{environment.path.stat().st_ino}-{environment.lmdb.info()['last_txnid']}"


_PREFIX: Final = "medamad-"
_NAME: Final = re.compile(
    rf"{_PREFIX}(?P<made>[0-9]{{8}}-[0-9]{{6}}Z)(-(?P<number>[0-9]+))?{re.escape(BACKUP_SUFFIX)}\Z"
)


@frozen
class Rotated:
    """The result of a rotation."""

    file: Path
    note: Note
    not_removed: tuple[OSError, ...]
    """Why old backups could not be removed."""


def rotate(
    folder: Path,
    keep: int,
    now: float,
    make: Callable[[Path], Note],
    rights: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Rotated:
    """Write a dated backup into a folder, then remove all but the newest `keep`.

    `make` writes and verifies a backup, so an old one goes only when a new one is complete. Backups
    dated after `now`, as by a clock that was wrong, neither count nor go. The folder is used with
    `rights`. Raises what `make` does, and OSError.
    """
    with rights():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        clear_unfinished(folder, _PREFIX)
        names = dated_names(_PREFIX, BACKUP_SUFFIX, now)
        target = next(file for name in names if not (file := folder / name).exists())
    note = make(target)
    not_removed = []
    with rights():
        backups = sorted(backup for backup in _backups(folder) if backup[0] <= now)
        for _, _, file in backups[:-keep]:
            try:
                file.unlink()
            except OSError as error:
                not_removed.append(error)
    return Rotated(target, note, tuple(not_removed))


def newest_backup(folder: Path, now: float) -> int | None:
    """Return when the newest backup was made, in Unix seconds; None if there is none.

    Raises OSError where the folder exists and cannot be read.
    """
    return max((made for made, _, _ in _backups(folder) if made <= now), default=None)


def _backups(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Return when each backup was made, its number among those of that second, and its file."""
    try:
        files = list(folder.iterdir())
    except FileNotFoundError:
        return
    for file in files:
        if match := _NAME.match(file.name):
            try:
                made = datetime.fromisoformat(match["made"].replace("-", "T"))
            except ValueError:  # no such day
                continue
            yield int(made.timestamp()), int(match["number"] or 1), file
