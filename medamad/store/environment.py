"""The LMDB environment: the file, its lock, its sub-databases and its format version."""

import errno
import fcntl
import os
import secrets
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final, TypeAlias

import lmdb
from attrs import astuple, fields, frozen

from medamad.store.errors import Damaged, NoStore, StoreError, StoreInUse, WrongFormat
from medamad.store.pages import check_pages, read_page_size
from medamad.store.sealed import sealed, unsealed

FORMAT: Final = 4
FILE_NAME: Final = "store.mdb"
LOCK_NAME: Final = "daemon.lock"
LMDB_VERSION: Final = 0
"""LMDB 0.9: the engine of 1.0 cannot read its files and commits several times slower."""

_FORMAT_KEY: Final = b"format"
_WITHOUT_BLOCKS: Final = b"1"
"""The format before there were blocks: made ours by adding their sub-databases."""
_WITHOUT_CHECKSUMS: Final = b"2"
"""The format before all values had checksums, as had 1: made ours by adding them."""
_WITHOUT_BATCHES: Final = b"3"
"""The format before there were batches, as had 1 and 2: made ours by adding their sub-database."""
_NUMBERS: Final = (b"last-website", b"last-block", b"last-batch", b"sequence")
_NUMBER_BYTES: Final = 8
_SEALED_IN_META: Final = (*_NUMBERS, b"account", b"beacon-secret")
STORE_ID: Final = b"store-id"
"""The name in meta of what tells this store from every other."""
_STORE_ID_BYTES: Final = 8
TOMBSTONE: Final = b"deleted-website:"
"""What the names of tombstones of websites in meta begin with."""
TOKEN: Final = b"token:"
"""What the names of tokens in meta begin with, before the SHA-256 of their texts."""
SHARE: Final = b"share:"
"""What the names of share links in meta begin with, before their ids."""
_MANY_IN_META: Final = (TOMBSTONE, TOKEN, SHARE)
_SEALED: Final = ("websites", "logins", "beacons")
_MAX_READERS: Final = 126
_LOCK_BYTES: Final = 8192
"""What LMDB's lock file takes for as many readers."""
_BLOCK: Final = 512
"""The unit of st_blocks."""
_ROOM_PAGES: Final = 1024
_TRIES: Final = 5

Database: TypeAlias = "lmdb._Database"  # noqa: SLF001 - its stubs name the type so
Txn: TypeAlias = "lmdb.Transaction[bytes]"


@frozen
class Databases:
    """The sub-databases. Integers in keys are big-endian, so that keys sort by number.

    What is stored of meta (but the format), logins, websites and beacons has a checksum in front.

    - meta: name → format version, account, counters, tokens, share links, tombstones of websites
    - logins: SHA-256 of the token → since u64, last seen u64
    - websites: website u32 → the website
    - names: website u32, dimension u8, code u32 → day u16, text
    - codes: website u32, dimension u8, 128-bit hash of the text → code u32
    - journal: website u32, time_ms u64, sequence u64 → a record
    - beacons: hour u32, keyed hash u64 → website u32, time_ms u64, sequence u64 of the view;
      or, of a visitor whom a server names, when the last view came and the views of the day
    - heads: website u32, block u32 → what a block or a group is; block 0: the watermark
    - blocks: website u32, first time_ms u64, block u32, column u8 → a column of a block
    - counters: website u32, first time_ms u64, block u32, kind u8 → counters of a block or group
    - corrections: website u32, kind u8, sequence u64 → what became known of a sealed hit
    - doomed: website u32, first time_ms u64, block u32 → nothing: a block that is to be removed
    - batches: website u32, batch u32 → what was imported at once
    """

    meta: Database
    logins: Database
    websites: Database
    names: Database
    codes: Database
    journal: Database
    beacons: Database
    heads: Database
    blocks: Database
    counters: Database
    corrections: Database
    doomed: Database
    batches: Database


_DATABASES: Final = tuple(attribute.name for attribute in fields(Databases))
_META: Final = b"meta"


@frozen
class Environment:
    """An open store file. `lock` is the descriptor of the lock file, None for a guest."""

    lmdb: lmdb.Environment
    databases: Databases
    path: Path
    lock: int | None
    only: "Txn | None" = None
    """The one transaction that there is, of what is only read; None for as many as are begun."""

    def reading(self) -> AbstractContextManager[Txn]:
        """Begin a read transaction. Keep it under a second: it pins every page freed since."""
        return self.lmdb.begin() if self.only is None else nullcontext(self.only)

    def used_bytes(self, txn: Txn) -> int:
        """Give the bytes of the pages that hold something; freed pages are used again."""
        stats = [txn.stat(), *(txn.stat(database) for database in astuple(self.databases))]
        return self.page_bytes * sum(
            stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats
        )

    def file_bytes(self) -> int:
        """Give the bytes of all pages that were ever used, those that were freed since too."""
        pages: int = self.lmdb.info()["last_pgno"] + 1
        return pages * self.page_bytes

    def strange_names(self, txn: Txn) -> list[bytes]:
        """Give the names in meta that are none of ours: once they were."""
        known = {_FORMAT_KEY, STORE_ID, *_SEALED_IN_META}
        with txn.cursor(db=self.databases.meta) as cursor:
            names = [bytes(name) for name in cursor.iternext(values=False)]
        return [name for name in names if name not in known and not name.startswith(_MANY_IN_META)]

    def store_id(self, txn: Txn) -> str:
        """Give what tells this store from every other, in hexadecimal. Raises Damaged."""
        stored = txn.get(STORE_ID, db=self.databases.meta)
        if stored is None:
            raise Damaged("it is missing")
        return unsealed(STORE_ID, stored).hex()

    @property
    def page_bytes(self) -> int:
        """The size of a page. A value that is larger has pages of its own."""
        size: int = self.lmdb.stat()["psize"]
        return size

    def keep_room(self) -> None:
        """Keep the file longer than what the next transaction takes of it; cheap."""
        _keep_room(self.lmdb, self.path)

    def close(self) -> None:
        """Close the file, then let another daemon have it."""
        self.lmdb.close()
        if self.lock is not None:
            os.close(self.lock)


def open_environment(directory: Path, map_size: int) -> Environment:
    """Open the store in `directory` for the daemon, making both where they are not.

    Raises StoreInUse when another daemon has it, WrongFormat for a file that is not ours, and
    StoreError when the directory or the file cannot be used.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _take_lock(directory / LOCK_NAME)
    except StoreInUse:
        raise
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}") from error
    path = directory / FILE_NAME
    try:
        if not path.exists():
            _create(path, map_size)
        _check_begin(path)
        return _open(path, map_size, lock)
    except OSError as error:
        os.close(lock)
        raise StoreError(f"{path}: {error.strerror}") from error
    except lmdb.Error as error:
        os.close(lock)
        raise StoreError(f"{path}: {error}") from error
    except BaseException:
        os.close(lock)
        raise


def open_as_guest(directory: Path) -> Environment:
    """Open an existing store beside a daemon that may be running, for one short transaction.

    LMDB's own lock keeps the two writers apart. Raises NoStore when there is none.
    """
    path = directory / FILE_NAME
    _check_there(directory)
    _check_begin(path)
    return _open(path, 0, None)


def open_to_read(directory: Path) -> tuple[Environment, Txn]:
    """Open an existing store to read it alone, beside a daemon that may be running.

    Gives the one transaction to read by; to end it is the caller's. Raises as `open_as_guest`.
    """
    path = directory / FILE_NAME
    _check_there(directory)
    _check_begin(path)
    env = _lmdb(path, 0, readonly=True)
    try:
        txn = env.begin()
        _check_pages(path, tries=_TRIES)
        found = txn.get(_FORMAT_KEY, db=env.open_db(_META, txn=txn, create=False))
        _check_format(path, found)
        opened = [env.open_db(name.encode(), txn=txn, create=False) for name in _DATABASES]
    except lmdb.Error as error:
        env.close()
        raise WrongFormat(f"{path}: not a store of medamad: {error}") from error
    except BaseException:
        env.close()
        raise
    opened_env = Environment(lmdb=env, databases=Databases(*opened), path=path, lock=None, only=txn)
    return opened_env, txn


def is_in_use(directory: Path) -> bool:
    """Tell whether a daemon has the store open. Raises StoreError where that cannot be told."""
    path = directory / LOCK_NAME
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _check_there(directory: Path) -> None:
    if not (directory / FILE_NAME).exists():
        raise NoStore(f"{directory}: there is no store here")


def _take_lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise StoreInUse(f"{path.parent}: another medamad uses this directory") from error
    return descriptor


def _check_begin(path: Path) -> None:
    try:
        read_page_size(path)
    except Damaged as error:
        raise WrongFormat(f"{path}: {error}") from error


def _create(path: Path, map_size: int) -> None:
    """Make an empty store under another name first: what bears the name is always whole."""
    making = path.with_suffix(".new")
    making.unlink(missing_ok=True)
    env = _lmdb(making, map_size)
    try:
        with env.begin(write=True) as txn:
            _make_ours(env, txn)
        _keep_room(env, making)
    finally:
        env.close()
        Path(f"{making}-lock").unlink(missing_ok=True)
    making.rename(path)
    for folder in (path.parent, path.parent.parent):
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _make_ours(env: lmdb.Environment, txn: Txn) -> bytes:
    """Make the sub-databases that are not there, and note the format; returns it."""
    for name in _DATABASES:
        env.open_db(name.encode(), txn=txn)
    ours = str(FORMAT).encode()
    meta = env.open_db(_META, txn=txn)
    txn.put(_FORMAT_KEY, ours, db=meta)
    store_id = sealed(STORE_ID, secrets.token_bytes(_STORE_ID_BYTES))
    txn.put(STORE_ID, store_id, db=meta, overwrite=False)
    return ours


def _seal(env: lmdb.Environment, txn: Txn) -> None:
    """Give checksums to what had none."""
    for name in _SEALED:
        database = env.open_db(name.encode(), txn=txn)
        with txn.cursor(db=database) as cursor:
            found = cursor.first()
            while found:
                key, value = cursor.item()
                cursor.put(key, sealed(key, value))
                found = cursor.next()
    meta = env.open_db(_META, txn=txn)
    for key in _SEALED_IN_META:
        stored = txn.get(key, db=meta)
        if stored is not None:
            value = stored.rjust(_NUMBER_BYTES, b"\0") if key in _NUMBERS else stored
            txn.put(key, sealed(key, value), db=meta)


def _keep_room(env: lmdb.Environment, path: Path) -> None:
    # A page that a transaction takes at the end and frees again is never written. Without room
    # the file could end before its last page, as one does that was cut short.
    room = _ROOM_PAGES * env.stat()["psize"]
    needed = (env.info()["last_pgno"] + 1) * env.stat()["psize"] + room
    if path.stat().st_size < needed:
        os.truncate(path, needed + room)


def _open(path: Path, map_size: int, lock: int | None) -> Environment:
    env = _lmdb(path, map_size)
    try:
        if env.lib_version()[0] != LMDB_VERSION:
            raise WrongFormat(f"{path}: written by another version of LMDB")
        with env.begin():
            _check_pages(path)
        meta = env.open_db(_META, create=False)
        with env.begin() as txn:
            found = txn.get(_FORMAT_KEY, db=meta)
        if found in (_WITHOUT_BLOCKS, _WITHOUT_CHECKSUMS, _WITHOUT_BATCHES):
            _check_names(env, path)
            with env.begin(write=True) as txn:
                if found != _WITHOUT_BATCHES:
                    _seal(env, txn)
                found = _make_ours(env, txn)
        _check_format(path, found)
        opened = [env.open_db(name.encode(), create=False) for name in _DATABASES]
        env.reader_check()
    except lmdb.Error as error:
        env.close()
        raise WrongFormat(f"{path}: not a store of medamad: {error}") from error
    except BaseException:
        env.close()
        raise
    return Environment(lmdb=env, databases=Databases(*opened), path=path, lock=lock)


def _check_names(env: lmdb.Environment, path: Path) -> None:
    # What an older format lacked is made; that must not hide what has another name by damage.
    with env.begin() as txn, txn.cursor() as cursor:
        for name in cursor.iternext(values=False):
            if name.decode("ascii", "replace") not in _DATABASES:
                raise WrongFormat(f"{path}: not a store of medamad: it has a part named {name!r}")


def _check_format(path: Path, found: bytes | None) -> None:
    if found != str(FORMAT).encode():
        told = (found or b"none").decode("ascii", "replace")
        raise WrongFormat(f"{path}: format {told}, this program knows format {FORMAT} only")


def _check_pages(path: Path, tries: int = 1) -> None:
    """Raise WrongFormat when LMDB would go astray in the file. Within a transaction.

    Beside a daemon the first page may be written just when it is read: then another try tells.
    """
    try:
        check_pages(path)
    except Damaged as error:
        if tries == 1:
            raise WrongFormat(f"{path}: not a sound store: {error}") from error
        _check_pages(path, tries - 1)


def _allocate_lock(path: Path) -> None:
    """Have the disk hold all of LMDB's lock file, which is written to as memory.

    Else a full disk would end the process by SIGBUS. Raises StoreError when the disk is full.
    """
    lock = Path(f"{path}-lock")
    try:
        if lock.exists() and lock.stat().st_blocks * _BLOCK >= _LOCK_BYTES:
            return
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, _LOCK_BYTES)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Whatever else is wrong, LMDB tells better, or can do without.
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{lock}: {error.strerror}") from error


def _lmdb(path: Path, map_size: int, *, readonly: bool = False) -> lmdb.Environment:
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
