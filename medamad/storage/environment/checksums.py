"""Values with a checksum over the value and the key it is stored under."""

import struct
from typing import Final
from zlib import crc32

from medamad.storage.errors import Damaged

_CRC: Final = struct.Struct("<I")


def sealed(key: bytes, value: bytes) -> bytes:
    """Give the stored form of a value."""
    return _CRC.pack(crc32(value, crc32(key))) + value


def unsealed(key: bytes, stored: bytes) -> bytes:
    """Give the value of a stored form. Raises Damaged."""
    value = stored[_CRC.size :]
    if _CRC.pack(crc32(value, crc32(key))) != stored[: _CRC.size]:
        raise Damaged("its checksum does not match")
    return value
