"""How names and codes are stored: each text in two places, which bear each other out."""

import struct
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final, TypeAlias

from medamad.domain.dimensions import Dimension
from medamad.storage.environment.environment import Database, Databases, Txn
from medamad.storage.errors import Damaged

NAME_KEY: Final = struct.Struct(">IBI")
"""Of a name: website, dimension, code."""
NAMES_OF: Final = struct.Struct(">IB")
"""What all keys of the names and codes of a dimension begin with."""
CODE: Final = struct.Struct(">I")
"""Of a code; a name's key ends with the same bytes."""
DAY: Final = struct.Struct(">H")
"""What a name begins with."""

Space: TypeAlias = tuple[int, Dimension]
"""A website and a dimension: what codes are numbered in."""


def name_place(key: bytes) -> str:
    """Tell in words where a name of a website stands."""
    if len(key) != NAME_KEY.size:
        return f"website {int.from_bytes(key[:4], 'big')}, name {key.hex()}"
    website, dimension, code = NAME_KEY.unpack(key)
    return f"website {website}, dimension {dimension}, code {code}"


def split_name(key: bytes, value: bytes) -> tuple[int, str]:
    """Return the code and the text of a stored name. Raises Damaged."""
    try:
        return NAME_KEY.unpack(key)[2], value[DAY.size :].decode()
    except (struct.error, UnicodeDecodeError) as error:
        raise Damaged("its text is not what was written") from error


def code_key(space: Space, text: str) -> bytes:
    """Return the key under which the code of a text stands."""
    return hash_key(space, text.encode())


def hash_key(space: Space, text: bytes) -> bytes:
    """Return the same of the bytes of a text."""
    return NAMES_OF.pack(*space) + blake2b(text, digest_size=16).digest()


def is_borne_out(txn: Txn, databases: Databases, space: Space, key: bytes, value: bytes) -> bool:
    """Return whether a name has the code that was given to its text."""
    given = txn.get(hash_key(space, value[DAY.size :]), db=databases.codes)
    return given is not None and NAMES_OF.pack(*space) + given == key


def last_given(txn: Txn, databases: Databases, space: Space, sound: int) -> int:
    """Return the last code that was given, by what is stored beyond the last name borne out.

    A damaged one may be any number, so one that is only in one place is believed if it is not
    further off than there are codes. `sound` is the code of that last name, -1 for none.
    """
    begin = NAME_KEY.pack(*space, sound + 1)
    named = {
        NAME_KEY.unpack(key)[2]
        for key, _ in _entries(txn, databases.dictionary, space, begin)
        if len(key) == NAME_KEY.size
    }
    given = {
        CODE.unpack(value)[0]
        for _, value in _entries(txn, databases.codes, space)
        if len(value) == CODE.size and value >= begin[-CODE.size :]
    }
    near = sound + txn.stat(databases.codes)["entries"]
    both = named & given
    return max((code for code in named | given if code <= near or code in both), default=sound)


def names_before(
    txn: Txn, databases: Databases, space: Space, key: bytes
) -> Iterator[tuple[bytes, bytes]]:
    """Return the names of a space as they are stored, those before a key, the last first."""
    prefix = NAMES_OF.pack(*space)
    with txn.cursor(db=databases.dictionary) as cursor:
        found = cursor.prev() if cursor.set_range(key) else cursor.last()
        while found and cursor.key().startswith(prefix):
            yield cursor.item()
            found = cursor.prev()


def _entries(
    txn: Txn, database: Database, space: Space, begin: bytes = b""
) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values of a space, from a key on."""
    prefix = NAMES_OF.pack(*space)
    with txn.cursor(db=database) as cursor:
        found = cursor.set_range(begin or prefix)
        while found and cursor.key().startswith(prefix):
            yield cursor.item()
            found = cursor.next()
