"""Zips that are opened as they are: what they claim to hold is looked at before it is read."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Final
from zipfile import BadZipFile, ZipFile, ZipInfo

from medamad.model.errors import BadRequest

_MOST_BYTES: Final = 4 << 30
_MOST_RATIO: Final = 400
"""Tables of figures become ten to fifty times smaller."""
_SMALL_BYTES: Final = 16 << 20
"""Up to here it does not matter how small it was."""
_MOST_MEMBERS: Final = 10_000
_ENCRYPTED: Final = 1


@contextmanager
def opened_zip(file: BinaryIO) -> Iterator[ZipFile]:
    """Open a zip, of which no member is larger than it says. Raises BadRequest, also later on."""
    try:
        with ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > _MOST_MEMBERS:
                raise BadRequest(f"expected a zip of at most {_MOST_MEMBERS} files")
            for member in members:
                _check(member)
            yield archive
    except (BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise BadRequest(f"not a sound zip: {error}") from None


def _check(member: ZipInfo) -> None:
    name, size = member.filename, member.file_size
    if member.flag_bits & _ENCRYPTED:
        raise BadRequest(f"{name}: expected a file without a password")
    if size > _MOST_BYTES:
        raise BadRequest(f"{name}: expected at most {_MOST_BYTES} bytes, it has {size}")
    if size > max(_SMALL_BYTES, _MOST_RATIO * member.compress_size):
        raise BadRequest(f"{name}: it is out of the ordinary how much larger it becomes")
