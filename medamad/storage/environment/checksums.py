"""Values with a checksum over the value and the key it is stored under."""

import struct
from typing import Final
from zlib import crc32

from medamad.storage.errors import Damaged

_CRC: Final = struct.Struct("<I")


def with_checksum(key: bytes, value: bytes) -> bytes:
    """Return the stored form of a value."""
    return _CRC.pack(crc32(value, crc32(key))) + value


def verified(key: bytes, stored: bytes) -> bytes:
    """Return the value of a stored form. Raises Damaged."""
    value = stored[_CRC.size :]
    if _CRC.pack(crc32(value, crc32(key))) != stored[: _CRC.size]:
        raise Damaged("its checksum does not match")
    return value
