"""The names and values in `meta`: the store's format, and the last numbers that were assigned.

The daemon brings a store of an earlier format up to date; until then, it is read as it is. One of a
later format is refused. Here and elsewhere, single values are stored with a checksum over the value
and the key that it is stored under.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar
from zlib import crc32

import lmdb
import msgspec
from twisted.logger import Logger

from medamad.build import VERSION
from medamad.storage.environment.files import Database, Txn
from medamad.storage.errors import Damaged, WrongFormat

T = TypeVar("T")

FORMAT: Final = 14
"""Format numbers only count up. `medamad.storage.migrations` brings earlier ones up to date."""
FIRST_FORMAT: Final = 10
"""The earliest format that is brought up to date."""
META: Final = b"meta"
FORMAT_KEY: Final = b"format"
PROGRAM: Final = b"program"
"""The version of the build that made the store's format: earlier ones may not read it."""
STORE_ID: Final = b"store-id"
"""The random identifier of a store, by which exported views name it."""
INDEXED_BEACONS: Final = b"indexed-beacons"
"""The sequence number up to which the beacons of views are in the index on disk."""
MARKS: Final = b"cluster-marks"
"""How far a cluster has what is stored; see `medamad.storage.spool`."""
HIDDEN_BATCHES: Final = b"hidden-batches"
"""Batches that are hidden in a cluster; see `medamad.storage.spool`."""
ROLE: Final = b"cluster-role"
"""Which collector of a cluster this is; see `medamad.storage.shared_settings`."""
TRUSTED_TIME: Final = b"trusted-time"
"""The time by which retention deletes; see `trusted_clock`."""
KNOWN_NAMES: Final = frozenset(
    (
        *(FORMAT_KEY, PROGRAM, STORE_ID, TRUSTED_TIME, INDEXED_BEACONS, MARKS, ROLE),
        HIDDEN_BATCHES,
        b"account",
        *(b"beacon-secret", b"last-website", b"last-segment", b"last-batch", b"sequence"),
    )
)
"""The names in `meta`, besides those that begin with a prefix."""

_CRC: Final = struct.Struct("<I")
_NUMBER_BYTES: Final = 8
_log: Final = Logger()
_BRING_OVER: Final = (
    "Export every website with the build that made it (`medamad export HOSTNAME --data {folder}"
    " --format ndjson --output views.ndjson`, and again with `--what events`), then start this"
    " build on an empty folder and import the files (`medamad import --website HOSTNAME"
    " views.ndjson events.ndjson`). docs/install.md has the steps"
)


def check_format(env: lmdb.Environment, txn: Txn, path: Path) -> int:
    """Return a store's format, which this build reads.

    Raises WrongFormat otherwise, and lmdb.Error if it is not our store.
    """
    meta = env.open_db(META, txn=txn, create=False)
    found = (txn.get(FORMAT_KEY, db=meta) or b"none").decode("ascii", "replace")
    try:
        program = verified(PROGRAM, txn.get(PROGRAM, db=meta) or b"").decode("utf-8", "replace")
    except Damaged:
        program = ""
    if reason := refusal(found, program):
        raise WrongFormat(f"{path}: this store {reason.format(folder=path.parent)}")
    return int(found)


def refusal(found: str, program: str) -> str:
    """Return why a store in a format that `program` made cannot be read, "" if it can.

    The data directory is to be put in for `{folder}`.
    """
    number = int(found) if found.isdecimal() else 0
    if FIRST_FORMAT <= number <= FORMAT:
        return ""
    if number > FORMAT:
        needed = f"medamad {program}" if program else "the version that wrote it"
        if program == VERSION:
            needed = f"a later build of medamad {VERSION}"
        return (
            f"has format {found}, and this build of medamad {VERSION} reads formats up to {FORMAT}:"
            f" install {needed}, or a later version"
        )
    return f"has format {found}, and this build reads formats from {FIRST_FORMAT} on. {_BRING_OVER}"


def write_format(txn: Txn, meta: Database, number: int) -> None:
    """State that this build has brought a store to a format."""
    txn.put(FORMAT_KEY, str(number).encode(), db=meta)
    txn.put(PROGRAM, with_checksum(PROGRAM, VERSION.encode()), db=meta)


def with_checksum(key: bytes, value: bytes) -> bytes:
    """Return the stored form of a value."""
    return _CRC.pack(crc32(value, crc32(key))) + value


def entries(txn: Txn, database: Database, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """Return the keys that begin with a prefix, in order, and what is stored under each."""
    with txn.cursor(db=database) as cursor:
        if cursor.set_range(prefix) if prefix else cursor.first():
            for entry in cursor:
                if not entry[0].startswith(prefix):
                    return
                yield entry


def decoded(
    key: bytes,
    stored: bytes,
    kind: type[T],
    decode: Callable[..., T] = msgspec.json.decode,
) -> T:
    """Return the value of a stored form, which is JSON unless stated. Raises Damaged."""
    try:
        return decode(verified(key, stored), type=kind)
    except msgspec.DecodeError as error:
        raise Damaged(str(error)) from error


def verified(key: bytes, stored: bytes) -> bytes:
    """Return the value of a stored form. Raises Damaged."""
    if not is_verified(key, stored):
        raise Damaged("its checksum does not match")
    return without_checksum(stored)


def is_verified(key: bytes, stored: bytes) -> bool:
    """Return whether the checksum of a stored form matches."""
    return _CRC.pack(crc32(without_checksum(stored), crc32(key))) == stored[: _CRC.size]


def without_checksum(stored: bytes) -> bytes:
    """Return the value of a stored form that is known to be sound."""
    return stored[_CRC.size :]


IGNORED: Final = "a damaged part of the store is ignored: {place}"
"""What the log says where something else is taken in the place of a damaged value."""


def sound(place: str, read: Callable[[], T], instead: T) -> T:
    """Call `read` and return its result; if that is damaged, log its place and return another."""
    try:
        return read()
    except (Damaged, struct.error) as error:
        _log.error(IGNORED, place=f"{place}: {error}")
        return instead


def read_number(txn: Txn, meta: Database, name: bytes) -> int:
    """Return the last number assigned; 0 for none, and for a damaged one, which is logged.

    The caller then takes the greatest number in use.
    """
    stored = txn.get(name, db=meta)
    if stored is None:
        return 0
    return sound(name.decode(), lambda: int.from_bytes(verified(name, stored), "big"), 0)


def write_number(txn: Txn, meta: Database, name: bytes, number: int) -> None:
    """Store the last number assigned."""
    txn.put(name, with_checksum(name, number.to_bytes(_NUMBER_BYTES, "big")), db=meta)
