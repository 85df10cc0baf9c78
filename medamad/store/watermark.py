"""Up to where a website's hits are sealed: what the journal holds of earlier ones is to be removed.

It is the sequence number of a hit, and stands among the heads of the blocks, before all of them.
"""

import struct
from typing import Final
from zlib import crc32

from medamad.store.blocks import head_key
from medamad.store.environment import Environment, Txn
from medamad.store.errors import Damaged

_STORED: Final = struct.Struct(">QI")
"""The sequence number and a checksum."""
_NUMBER: Final = 0
"""The number in its key, which no block has."""


def write_watermark(txn: Txn, environment: Environment, website: int, watermark: int) -> None:
    """Store the sequence number up to which a website's journal counts no more."""
    key = head_key(website, _NUMBER)
    value = _STORED.pack(watermark, _checksum(key, watermark))
    txn.put(key, value, db=environment.databases.heads)


def read_watermark(txn: Txn, environment: Environment, website: int) -> int:
    """Give the sequence number up to which a website's journal counts no more. Raises Damaged."""
    key = head_key(website, _NUMBER)
    stored = txn.get(key, db=environment.databases.heads)
    if stored is None:
        return 0
    try:
        watermark, crc = _STORED.unpack(stored)
    except struct.error as error:
        raise Damaged("cut short") from error
    if crc != _checksum(key, watermark):
        raise Damaged("its checksum does not match")
    return int(watermark)


def _checksum(key: bytes, watermark: int) -> int:
    return crc32(watermark.to_bytes(8, "big"), crc32(key))
