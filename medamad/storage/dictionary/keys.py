"""Keys and values of dictionary entries.

An entry is stored twice: its text by its code in `dictionary`, and its code by the hash of its text
in `codes`. So damage to either is found by the other.
"""

import struct
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, TypeAlias

from medamad.domain.dimensions import Dimension
from medamad.storage.environment.environment import Database, Databases, Txn
from medamad.storage.errors import Damaged

ENTRY_KEY: Final = struct.Struct(">IBI")
"""The key of an entry: website, dimension, code."""
SPACE_PREFIX: Final = struct.Struct(">IB")
"""The beginning of every key of a code space."""
CODE: Final = struct.Struct(">I")
"""A code, as in `codes` and at the end of an entry's key."""
DAY: Final = struct.Struct(">H")
"""The day of an entry, at the beginning of its value."""

CodeSpace: TypeAlias = tuple[int, Dimension]
"""A website and a dimension, within which codes are assigned."""


def describe_entry(key: bytes) -> str:
    """Return where an entry stands, in words."""
    if len(key) != ENTRY_KEY.size:
        return f"website {int.from_bytes(key[:4], 'big')}, entry {key.hex()}"
    website, dimension, code = ENTRY_KEY.unpack(key)
    return f"website {website}, dimension {dimension}, code {code}"


def decode_entry(key: bytes, value: bytes) -> tuple[int, str]:
    """Return the code and the text of an entry. Raises Damaged."""
    try:
        return ENTRY_KEY.unpack(key)[2], value[DAY.size :].decode()
    except (struct.error, UnicodeDecodeError) as error:
        raise Damaged("its text is not what was written") from error


def code_key(space: CodeSpace, text: str) -> bytes:
    """Return the key of a text's code."""
    return hash_key(space, text.encode())


def hash_key(space: CodeSpace, text: bytes) -> bytes:
    """Return the key of the code of a text in UTF-8."""
    return SPACE_PREFIX.pack(*space) + blake2b(text, digest_size=16).digest()


def is_consistent(
    txn: Txn, databases: Databases, space: CodeSpace, key: bytes, value: bytes
) -> bool:
    """Return whether an entry's text has the entry's code in `codes`."""
    given = txn.get(hash_key(space, value[DAY.size :]), db=databases.codes)
    return given is not None and SPACE_PREFIX.pack(*space) + given == key


def last_assigned(txn: Txn, databases: Databases, space: CodeSpace, sound: int) -> int:
    """Return the last code that was assigned, beyond the last consistent entry.

    A damaged code may be any number, so one that stands in one place only counts if it is no
    further
    away than there are codes. `sound` is the code of the last consistent entry, -1 for none.
    """
    begin = ENTRY_KEY.pack(*space, sound + 1)
    named = {
        ENTRY_KEY.unpack(key)[2]
        for key, _ in _entries(txn, databases.dictionary, space, begin)
        if len(key) == ENTRY_KEY.size
    }
    given = {
        CODE.unpack(value)[0]
        for _, value in _entries(txn, databases.codes, space)
        if len(value) == CODE.size and value >= begin[-CODE.size :]
    }
    near = sound + txn.stat(databases.codes)["entries"]
    both = named & given
    return max((code for code in named | given if code <= near or code in both), default=sound)


def entries_before(
    txn: Txn, databases: Databases, space: CodeSpace, key: bytes
) -> Iterator[tuple[bytes, bytes]]:
    """Return the stored entries of a code space before a key, the last first."""
    prefix = SPACE_PREFIX.pack(*space)
    with txn.cursor(db=databases.dictionary) as cursor:
        found = cursor.prev() if cursor.set_range(key) else cursor.last()
        while found and cursor.key().startswith(prefix):
            yield cursor.item()
            found = cursor.prev()


def _entries(
    txn: Txn, database: Database, space: CodeSpace, begin: bytes = b""
) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values of a code space, from a key on."""
    prefix = SPACE_PREFIX.pack(*space)
    with txn.cursor(db=database) as cursor:
        found = cursor.set_range(begin or prefix)
        while found and cursor.key().startswith(prefix):
            yield cursor.item()
            found = cursor.next()
