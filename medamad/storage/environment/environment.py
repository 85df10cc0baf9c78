"""The LMDB environment: the store's file, its lock and its sub-databases."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from operator import attrgetter
from pathlib import Path
from secrets import token_bytes
from typing import Final, TypeAlias

import lmdb
from attrs import fields, frozen

from medamad.storage.environment import files
from medamad.storage.environment.files import (
    DAMAGE,
    LMDB_VERSION,
    OpenedFiles,
    check_is_store,
    check_length,
    keep_room,
    lock_of,
    make_room,
    open_lmdb,
    sync,
)
from medamad.storage.environment.folder import (
    StoreState,
    check_none_was_there,
    check_unlinked,
    make_folder,
    mark_closed,
    opening,
    read_state,
    remove_unfinished,
)
from medamad.storage.environment.meta import (
    FORMAT,
    KNOWN_NAMES,
    STORE_ID,
    check_format,
    verified,
    with_checksum,
    write_format,
)
from medamad.storage.errors import (
    Damaged,
    DamagedStore,
    Lost,
    NoStore,
    StoreError,
    StoreInUse,
    WrongFormat,
)

FILE_NAME: Final = "store.mdb"
LOCK_NAME: Final = "daemon.lock"
TOMBSTONE: Final = b"deleted-website:"
"""The prefix, in meta, of the tombstones of deleted websites."""
TOKEN: Final = b"token:"
"""The prefix, in meta, of tokens; the SHA-256 of the token follows."""
SHARE: Final = b"share:"
"""The prefix, in meta, of share links; the id follows."""
REPORT: Final = b"report:"
"""The prefix, in meta, of reports that are mailed; the id follows."""
GOALS: Final = b"goals:"
"""The prefix, in meta, of goals and funnels; the number of the website follows, as u32."""
ANNOTATIONS: Final = b"annotations:"
"""The prefix, in meta, of annotations; the number of the website follows, as u32."""
ALERTS: Final = b"alerts:"
"""The prefix, in meta, of alerts; the number of the website, or 0, follows as u32."""
FOLLOWED_LOG: Final = b"log:"
"""The prefix, in meta, of how far followed logs were read; a hash of the path follows."""
WAITING_HIT: Final = b"waiting-hit:"
"""The prefix, in meta, of hits that wait for another collector; see `passed_hits`."""
RECEIVED_HIT: Final = b"received-hit:"
"""The prefix, in meta, of the ids of hits that came from another collector."""
_PREFIXES_IN_META: Final = (
    WAITING_HIT,
    RECEIVED_HIT,
    TOMBSTONE,
    TOKEN,
    SHARE,
    REPORT,
    GOALS,
    ANNOTATIONS,
    ALERTS,
    FOLLOWED_LOG,
)
_STORE_ID_BYTES: Final = 8
_LOCK_TRIES: Final = 5
_LOCK_PAUSE_S: Final = 0.02

Database: TypeAlias = files.Database
Txn: TypeAlias = files.Txn


@frozen
class Databases:
    """The sub-databases. Integers in keys are big-endian, so that keys sort by number.

    The values of meta (except the format), logins, websites, beacons, visitors and robots begin
    with a checksum.

    - meta: name → format version, account, counters, tokens, share links, mailed reports,
      goals and funnels, annotations, alerts, positions in followed logs, tombstones of websites,
      the trusted time; of a collector its marks, its role, and hits that wait for others
    - logins: SHA-256 of the token → since u64, last seen u64
    - websites: website u32 → the website
    - dictionary: website u32, dimension u8, code u32 → day u16, text; website u32, 0 u8,
      dimension u8: a count mark, the new values of the latest day up to some code
    - codes: website u32, dimension u8, 128-bit hash of the text → code u32
    - wal: website u32, last sequence u64, first time_ms u64 → a record: rows of one commit
    - beacons: hour u32, keyed hash u64 → as varints the website, the milliseconds in the hour, the
      sequence number of the view, and its distance from the first of its visit plus 1, 0 for no
      visit
    - headers: website u32, segment u32 → the header of a segment or merged segment; segment 0:
      the watermark
    - segments: website u32, first time_ms u64, segment u32, column u8 → a column of a segment
    - counters: website u32, first time_ms u64, segment u32, kind u8 → counters of a segment or
      merged segment
    - corrections: website u32, kind u8, sequence u64 → a correction of a flushed hit
    - purge_queue: website u32, first time_ms u64, segment u32 → nothing: a segment to remove
    - import_batches: website u32, batch u32 → an import batch
    - visitors: day u32, 128-bit keyed hash → nothing: a visitor whom a server names was here, or on
      a page
    - robots: website u32, kind u8, day u32, source u32 → what robots read on a day, or
      page loads; see `request_totals`

    Stores of earlier builds get the last two when they are opened to write.
    """

    meta: Database
    logins: Database
    websites: Database
    dictionary: Database
    codes: Database
    wal: Database
    beacons: Database
    headers: Database
    segments: Database
    counters: Database
    corrections: Database
    purge_queue: Database
    import_batches: Database
    visitors: "Database | None" = None
    robots: "Database | None" = None
    """None in a store of an earlier build that is opened to read, as is `visitors`."""


_DATABASES: Final = tuple(attribute.name for attribute in fields(Databases))
_all_of: Final = attrgetter(*_DATABASES)
_ADDED: Final = ("visitors", "robots")
"""The last ones, which stores of earlier builds lack, or only the very last."""


@frozen
class Environment:
    """An open store file. `lock` is the descriptor of the lock file, None for a guest."""

    lmdb: lmdb.Environment
    databases: Databases
    path: Path
    lock: int | None
    opened: OpenedFiles
    """The files whose names must not change while the daemon writes."""
    format: int
    """The format that the store had when it was opened."""
    only: "Txn | None" = None
    """The one transaction of an environment that is only read; None for a writable one."""

    def reading(self) -> AbstractContextManager[Txn]:
        """Begin a read transaction. Keep it under a second: it pins every page freed since."""
        return self.lmdb.begin() if self.only is None else nullcontext(self.only)

    def used_bytes(self, txn: Txn) -> int:
        """Return the bytes of the pages in use, without freed pages."""
        databases = [each for each in _all_of(self.databases) if each is not None]
        stats = [txn.stat(), *map(txn.stat, databases)]
        return self.page_bytes * sum(
            stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] for stat in stats
        )

    def file_bytes(self) -> int:
        """Return the bytes of all pages that were ever in use, freed ones included."""
        pages: int = self.lmdb.info()["last_pgno"] + 1
        return pages * self.page_bytes

    def unknown_names(self, txn: Txn) -> list[bytes]:
        """Return the names in meta that are not ours, as damage has changed them."""
        with txn.cursor(db=self.databases.meta) as cursor:
            names = [bytes(name) for name in cursor.iternext(values=False)]
        return [
            name
            for name in names
            if name not in KNOWN_NAMES and not name.startswith(_PREFIXES_IN_META)
        ]

    def store_id(self, txn: Txn) -> str:
        """Return the store's identifier, in hexadecimal. Raises Damaged."""
        stored = txn.get(STORE_ID, db=self.databases.meta)
        if stored is None:
            raise Damaged("it is missing")
        return verified(STORE_ID, stored).hex()

    @property
    def page_bytes(self) -> int:
        """The size of a page. A larger value has pages of its own."""
        size: int = self.lmdb.stat()["psize"]
        return size

    def keep_room(self) -> None:
        """Keep room in the file for the next transaction. Cheap."""
        keep_room(self.lmdb, self.path)

    def check_is_ours(self, txn: Txn) -> None:
        """Raise Lost when the file was deleted, replaced or overwritten; OSError if unknown. Cheap.

        Nobody would find again what is written then. Call it first in a write transaction.
        """
        self.opened.check()
        # LMDB takes the number of the last transaction from its lock file.
        if self.lmdb.info()["last_txnid"] != txn.id() - 1:
            raise Lost(f"{self.path.name} is no longer what was stored: it was written over")

    def close(self, *, is_sound: bool = True) -> None:
        """Close the file and release the folder; a store that is not sound is not marked closed."""
        self.lmdb.close()
        if self.lock is not None:
            if is_sound:
                with suppress(OSError):
                    mark_closed(self.path.parent)
            os.close(self.lock)


def open_environment(directory: Path, map_size: int) -> Environment:
    """Open the store in `directory` for the daemon; create either if it is missing.

    It may be in an earlier format. Raises StoreInUse if another daemon has it, WrongFormat for a
    file that is not ours or has a later format, DamagedStore, NoStore if the store is missing, and
    StoreError if the directory or the file cannot be used.
    """
    try:
        make_folder(directory)
        lock = take_lock(directory)
    except OSError as error:
        raise StoreError(f"{directory}: {error.strerror}") from error
    path = directory / FILE_NAME
    try:
        remove_unfinished(path)
        if not path.exists():
            check_unlinked(path)
            check_none_was_there(path)
            _create(path, map_size)
        check_is_store(path)
        with opening(directory):
            environment = _open(path, map_size, lock)
            make_room(environment.lmdb, path)
    except OSError as error:
        os.close(lock)
        raise StoreError(f"{path}: {error.strerror}") from error
    except lmdb.Error as error:
        os.close(lock)
        raise StoreError(f"{path}: {error}") from error
    except BaseException:
        os.close(lock)
        raise
    return environment


def open_as_guest(directory: Path) -> Environment:
    """Open an existing store beside a daemon that may be running, for one short transaction.

    LMDB's own lock keeps the two writers apart. Raises NoStore when there is none.
    """
    path = directory / FILE_NAME
    check_there(directory)
    check_is_store(path)
    return _open(path, 0, None)


def open_to_read(directory: Path) -> tuple[Environment, Txn]:
    """Open an existing store read-only, beside a daemon that may be running.

    Returns the one transaction to read by, which the caller ends. Raises as `open_as_guest`.
    """
    path = directory / FILE_NAME
    check_there(directory)
    check_is_store(path)
    env = open_lmdb(path, 0, readonly=True)
    with _closed_on_failure(env, path):
        check_length(env, path)
        txn = env.begin()
        number = check_format(env, txn, path)
        names = [name for name in _DATABASES if name not in _ADDED]
        opened = [env.open_db(name.encode(), txn=txn, create=False) for name in names]
        with suppress(lmdb.NotFoundError):
            opened.extend(env.open_db(name.encode(), txn=txn, create=False) for name in _ADDED)
    databases, files_opened = Databases(*opened), OpenedFiles()
    return Environment(env, databases, path, None, files_opened, number, only=txn), txn


def is_in_use(directory: Path) -> bool:
    """Return whether a daemon has the store open. Raises StoreError if that is unknown."""
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


def needs_check(directory: Path) -> bool:
    """Return whether a store is there that was not closed, and that no daemon has open.

    Raises StoreError.
    """
    path = directory / FILE_NAME
    return (
        path.exists() and read_state(directory) is not StoreState.CLEAN and not is_in_use(directory)
    )


def check_there(directory: Path) -> None:
    """Raise NoStore when there is no store in the directory."""
    if not (directory / FILE_NAME).exists():
        raise NoStore(f"{directory}: there is no store here")


def take_lock(directory: Path, sleep: Callable[[float], object] = time.sleep) -> int:
    """Lock a directory until the descriptor is closed. Raises StoreInUse, OSError."""
    path = directory / LOCK_NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with ExitStack() as undone:
        undone.callback(os.close, descriptor)
        for attempt in range(_LOCK_TRIES):
            # `is_in_use` holds the lock for a moment.
            sleep(_LOCK_PAUSE_S if attempt else 0)
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                undone.pop_all()
                return descriptor
    raise StoreInUse(f"{directory}: another medamad uses this directory")


def _create(path: Path, map_size: int) -> None:
    """Create an empty store under another name first, so that the final name is always whole."""
    making = path.with_suffix(".new")
    making.unlink(missing_ok=True)
    env = open_lmdb(making, map_size)
    try:
        with env.begin(write=True) as txn:
            for name in _DATABASES:
                env.open_db(name.encode(), txn=txn)
            meta = env.open_db(b"meta", txn=txn)
            write_format(txn, meta, FORMAT)
            txn.put(STORE_ID, with_checksum(STORE_ID, token_bytes(_STORE_ID_BYTES)), db=meta)
        keep_room(env, making)
    finally:
        env.close()
        lock_of(making).unlink(missing_ok=True)
    making.rename(path)
    for folder in (path.parent, path.parent.parent):
        sync(folder)


def _open(path: Path, map_size: int, lock: int | None) -> Environment:
    env = open_lmdb(path, map_size)
    with _closed_on_failure(env, path):
        ours = () if lock is None else (path.with_name(LOCK_NAME),)
        files_opened = OpenedFiles.of(path, lock_of(path), *ours)
        if env.lib_version()[0] != LMDB_VERSION:
            raise WrongFormat(f"{path}: written by another version of LMDB")
        check_length(env, path)
        with env.begin() as txn:
            number = check_format(env, txn, path)
        opened = [env.open_db(name.encode(), create=name in _ADDED) for name in _DATABASES]
        env.reader_check()
    return Environment(env, Databases(*opened), path, lock, files_opened, number)


@contextmanager
def _closed_on_failure(env: lmdb.Environment, path: Path) -> Iterator[None]:
    """Close a file that is no store, or a damaged one. Raises WrongFormat or DamagedStore."""
    try:
        yield
    except (Damaged, *DAMAGE) as error:
        env.close()
        raise DamagedStore(f"{path}: {error}") from error
    except lmdb.Error as error:
        env.close()
        raise WrongFormat(f"{path}: not a store of medamad: {error}") from error
    except BaseException:
        env.close()
        raise
