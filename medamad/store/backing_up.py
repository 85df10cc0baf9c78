"""Backups of a store: made beside whoever uses it, and read again before they get their name."""

import fcntl
import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Thread
from typing import BinaryIO, Final

import lmdb

from medamad.build import VERSION
from medamad.store.backup_file import SUFFIX, Note, read_note, unpacked, write_backup
from medamad.store.errors import Damaged, NoBackup, StoreError
from medamad.store.files import Txn, free_bytes, sync_folder
from medamad.store.formats import META, STORE_ID, Tell, read_format, tell_nobody
from medamad.store.pages import check_pages
from medamad.store.sealed import unsealed

FOLDER_NAME: Final = "backups"
"""The folder in that of the data in which backups are where nobody says otherwise."""

_PIECE_BYTES: Final = 1 << 20
_MODE: Final = 0o600
_PACKED_SHARE: Final = 0.6
"""The most that a store has been seen to take when compressed, and some more."""
_MIB: Final = 1 << 20


def back_up(
    env: lmdb.Environment,
    txn: Txn,
    path: Path,
    target: Path,
    *,
    tell: Tell = tell_nobody,
    spare_bytes: int = 0,
) -> Note:
    """Write a backup of a store's file at `path` as a transaction sees it, and read it again.

    The transaction ends as soon as all of it is written: what it keeps from being used again grows.
    The pages of the store must be sound. What bears the name of `target` is whole at any time, and
    `spare_bytes` of its disk stay free. Raises StoreError and OSError; then there is no new file.
    """
    used = _used_bytes(env, txn)
    _check_room(target.parent, used, spare_bytes)
    note = Note(
        program=VERSION,
        format=(read_format(env, txn) or b"").decode("ascii", "replace"),
        store=_store_id(env, txn),
        made=int(time.time()),
        state=_state(env, path),
    )
    part = target.with_name(f".{target.name}.part")
    with _only(part) as file, ExitStack() as undone:
        undone.callback(part.unlink, missing_ok=True)
        with closing(_copied(env, txn)) as pieces:
            note = write_backup(file, note, _telling(pieces, used, tell))
        txn.abort()
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        _verify(file, target, tell)
        part.replace(target)
        undone.pop_all()
    sync_folder(target.parent)
    return note


def back_up_before(env: lmdb.Environment, path: Path, new_format: int, tell: Tell) -> None:
    """Back up a store that is about to get another format, unless that has been done.

    Raises StoreError.
    """
    folder = path.parent / FOLDER_NAME
    name = f"before-format-{new_format}-"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        for made in folder.glob(f"{name}*{SUFFIX}"):
            with suppress(NoBackup), made.open("rb") as file:
                if read_note(file).state == _state(env, path):
                    return
        clear_unfinished(folder, name)
        with env.begin() as txn:
            names = dated_names(name, SUFFIX, time.time())
            target = next(target for each in names if not (target := folder / each).exists())
            back_up(env, txn, path, target, tell=tell)
    except (OSError, StoreError) as error:
        told = error.strerror if isinstance(error, OSError) else error
        raise StoreError(
            f"{path}: not taken over into format {new_format}, since no backup could be made "
            f"of it as it is: {told}"
        ) from error


def clear_unfinished(folder: Path, beginning: str) -> None:
    """Remove what was left of backups whose names begin so, by programs that were killed."""
    for part in folder.glob(f".{beginning}*{SUFFIX}.part"):
        with suppress(StoreError, FileNotFoundError), _only(part):
            part.with_suffix(".check").unlink(missing_ok=True)
            part.unlink()


def dated_names(beginning: str, ending: str, unix_s: float) -> Iterator[str]:
    """Give names for a file of a moment, in UTC, each for where those before it are taken."""
    stamp = time.strftime("%Y%m%d-%H%M%SZ", time.gmtime(unix_s))
    yield f"{beginning}{stamp}{ending}"
    for number in count(2):
        yield f"{beginning}{stamp}-{number}{ending}"


def unpack(file: BinaryIO, note: Note, target: Path, what: str, tell: Tell) -> None:
    """Write the store's file of a backup and go through its pages. Raises NoBackup, OSError.

    To remove `target` after that is the caller's.
    """
    done = 0
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "wb") as store:  # noqa: PTH123 - it is for nobody else to read
        for piece in unpacked(file, note):
            store.write(piece)
            done += len(piece)
            tell(what, done, note.bytes)
    try:
        check_pages(target)
    except Damaged as error:
        raise NoBackup(f"not a sound store: {error}") from error


def _verify(file: BinaryIO, target: Path, tell: Tell) -> None:
    read_again = target.with_name(f".{target.name}.check")
    try:
        unpack(file, read_note(file), read_again, "reading it again", tell)
    finally:
        read_again.unlink(missing_ok=True)


@contextmanager
def _only(part: Path) -> Iterator[BinaryIO]:
    """Open the file that is to become the backup. Raises StoreError when another writes it."""
    with open(os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _MODE), "r+b") as file:  # noqa: PTH123 - it is for nobody else to read
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(f"{part}: another backup is being written there") from None
        file.truncate()
        yield file


def _copied(env: lmdb.Environment, txn: Txn) -> Generator[bytes]:
    """Give the file of a store as a transaction sees it, without the pages that are free."""
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


def _telling(pieces: Iterable[bytes], total: int, tell: Tell) -> Iterator[bytes]:
    done = 0
    for piece in pieces:
        yield piece
        done += len(piece)
        tell("copying", done, max(total, done))


def _check_room(folder: Path, used: int, spare_bytes: int) -> None:
    needed = int(used * (1 + _PACKED_SHARE)) + spare_bytes
    free = free_bytes(folder)
    if free < needed:
        raise StoreError(
            f"{folder}: {free // _MIB} MiB of the disk are free, a backup of this store needs "
            f"up to {-(-needed // _MIB)} MiB while it is made and read again"
        )


def _used_bytes(env: lmdb.Environment, txn: Txn) -> int:
    with txn.cursor() as cursor:
        names = [bytes(name) for name in cursor.iternext(values=False)]
    stats = [
        txn.stat(),
        *(txn.stat(env.open_db(name, txn=txn, create=False)) for name in names),
    ]
    pages = sum(
        stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats
    )
    return int(pages * env.stat()["psize"])


def _store_id(env: lmdb.Environment, txn: Txn) -> str:
    stored = txn.get(STORE_ID, db=env.open_db(META, txn=txn, create=False))
    try:
        return "" if stored is None else unsealed(STORE_ID, stored).hex()
    except Damaged:
        return ""


def _state(env: lmdb.Environment, path: Path) -> str:
    return f"{path.stat().st_ino}-{env.info()['last_txnid']}"
