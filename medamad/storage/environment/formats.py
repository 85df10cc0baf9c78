"""The formats that a store has had, and how one of an earlier version becomes ours.

A store is taken over in one transaction, after a backup of it: it is of the one format or of the
other, whenever the program is killed.
"""

import secrets
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import lmdb

from medamad.storage.environment.checksums import with_checksum
from medamad.storage.environment.files import Txn, lack_behind
from medamad.storage.errors import StoreError, WrongFormat

FORMAT: Final = 5
META: Final = b"meta"
STORE_ID: Final = b"store-id"
"""The name in meta of what tells this store from every other."""
FORMAT_KEY: Final = b"format"
TRUSTED_TIME: Final = b"trusted-time"
"""The name in meta of the time by which something is old enough to be deleted for good."""
NUMBERS: Final = (b"last-website", b"last-block", b"last-batch", b"sequence")
SEALED_IN_META: Final = (*NUMBERS, b"account", b"beacon-secret")

_WITHOUT_BLOCKS: Final = b"1"
"""The format before there were segments: made ours by adding their sub-databases."""
_WITHOUT_CHECKSUMS: Final = b"2"
"""The format before all values had checksums, as had 1: made ours by adding them."""
_WITHOUT_BATCHES: Final = b"3"
"""The format before there were batches, as had 1 and 2: made ours by adding their sub-database."""
_OLDER: Final[tuple[bytes, ...]] = ()
_NUMBER_BYTES: Final = 8
_STORE_ID_BYTES: Final = 8
_SEALED: Final = ("websites", "logins", "beacons")
_TOLD_EVERY: Final = 10_000

Tell: TypeAlias = Callable[[str, int, int], None]
"""Hears what is being done, and how much of it is done of how much."""


def tell_nobody(_what: str, _done: int, _total: int) -> None:
    """Tell nobody."""


def read_format(env: lmdb.Environment, txn: Txn) -> bytes | None:
    """Return the format that a store says it has. Raises lmdb.Error where it is no store of ours."""
    return txn.get(FORMAT_KEY, db=env.open_db(META, txn=txn, create=False))


def is_older(found: bytes | None) -> bool:
    """Return whether a store can be made ours."""
    return found in _OLDER


def is_known(found: bytes | None) -> bool:
    """Return whether a store is ours, or can be made so."""
    return found == _OURS or is_older(found)


def check_format(path: Path, found: bytes | None) -> None:
    """Raise WrongFormat unless it is ours."""
    if found == _OURS:
        return
    told = (found or b"none").decode("ascii", "replace")
    if is_older(found):
        raise WrongFormat(
            f"{path}: format {told}, of an earlier version: start the daemon of this version, "
            f"which takes it over into format {FORMAT}"
        )
    raise WrongFormat(f"{path}: format {told}, this program knows format {FORMAT} only")


def check_names(env: lmdb.Environment, path: Path, known: Collection[str]) -> None:
    """Raise WrongFormat when an older store has a part that no store of ours has.

    What an older format lacked is made; that must not hide what has another name by damage.
    """
    with env.begin() as txn, txn.cursor() as cursor:
        for name in cursor.iternext(values=False):
            if name.decode("ascii", "replace") not in known:
                raise WrongFormat(f"{path}: not a store of medamad: it has a part named {name!r}")


def make_ours(env: lmdb.Environment, txn: Txn, names: Collection[str]) -> None:
    """Make the sub-databases that are not there, and note the format."""
    for name in names:
        env.open_db(name.encode(), txn=txn)
    meta = env.open_db(META, txn=txn)
    txn.put(FORMAT_KEY, _OURS, db=meta)
    store_id = with_checksum(STORE_ID, secrets.token_bytes(_STORE_ID_BYTES))
    txn.put(STORE_ID, store_id, db=meta, overwrite=False)


def take_over(
    env: lmdb.Environment, path: Path, found: bytes | None, names: Collection[str], tell: Tell
) -> None:
    """Make an older store ours: all of it, or nothing when this is ended before it is done.

    Raises StoreError.
    """
    try:
        with env.begin(write=True) as txn:
            if found != _WITHOUT_BATCHES:
                _flush_all(env, txn, tell)
            make_ours(env, txn, names)
            tell("storing the new format", 0, 0)
    except lmdb.Error as error:
        told = lack_behind(error, path.parent) or error
        raise StoreError(f"{path}: not taken over into format {FORMAT}: {told}") from error


def _flush_all(env: lmdb.Environment, txn: Txn, tell: Tell) -> None:
    total = sum(txn.stat(env.open_db(name.encode(), txn=txn))["entries"] for name in _SEALED)
    for done in _flush(env, txn):
        if done % _TOLD_EVERY == 1:
            tell("adding checksums", done, total)


def _flush(env: lmdb.Environment, txn: Txn) -> Iterator[int]:
    """Return checksums to what had none; tells of how many values after each."""
    done = 0
    for name in _SEALED:
        database = env.open_db(name.encode(), txn=txn)
        with txn.cursor(db=database) as cursor:
            found = cursor.first()
            while found:
                key, value = cursor.item()
                cursor.put(key, with_checksum(key, value))
                done += 1
                yield done
                found = cursor.next()
    meta = env.open_db(META, txn=txn)
    for key in SEALED_IN_META:
        stored = txn.get(key, db=meta)
        if stored is not None:
            value = stored.rjust(_NUMBER_BYTES, b"\0") if key in NUMBERS else stored
            txn.put(key, with_checksum(key, value), db=meta)


_OURS: Final = str(FORMAT).encode()
