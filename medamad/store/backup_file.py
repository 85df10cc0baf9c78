"""The file of a backup: a note of what is in it, then a store's file, compressed.

Both are Zstandard frames (RFC 8878), the note in one that decompressors skip: `zstd -d` gives the
store's file. Each of the two has a SHA-256; that of the store's file stands in the note.
"""

import hashlib
import os
import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

import msgspec
import zstandard

from medamad.store.errors import NoBackup

SUFFIX: Final = ".mdb.zst"
"""What the names of backups end with."""

_FRAME: Final = struct.Struct("<II")
"""How a frame begins that is skipped: magic number, length."""
_SKIPPED: Final = 0x184D2A5D
_OURS: Final = b"medamad backup 1"
_DIGEST_BYTES: Final = 32
_NOTE_BYTES: Final = 1024
_LEVEL: Final = 3
"""As small as gzip's usual level, for a ninth of its time; beyond, little is gained."""
_PIECE_BYTES: Final = 1 << 20


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a backup."""

    program: str
    """The version of the program that made it."""
    format: str
    """That of the store."""
    store: str
    """What tells the store from every other, in hexadecimal; "" where it has no such name yet."""
    made: int
    """When, in Unix seconds."""
    state: str
    """What tells the file of the store that it was made of, and its last transaction."""
    bytes: int = 0
    """Of the store's file, as it is in here."""
    packed_bytes: int = 0
    """The same, compressed."""
    sha256: str = ""
    """Of the store's file, in hexadecimal."""


def write_backup(file: BinaryIO, note: Note, pieces: Iterable[bytes]) -> Note:
    """Write a backup of a store's file, given in pieces; returns the note as it was written."""
    file.seek(_FRAME.size + _NOTE_BYTES)
    digest = hashlib.sha256()
    count = packed_count = 0
    packing = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compressobj()
    for piece in pieces:
        digest.update(piece)
        count += len(piece)
        packed_count += file.write(packing.compress(piece))
    packed_count += file.write(packing.flush())
    note = msgspec.structs.replace(
        note, bytes=count, packed_bytes=packed_count, sha256=digest.hexdigest()
    )
    file.seek(0)
    file.write(_FRAME.pack(_SKIPPED, _NOTE_BYTES) + _written(note))
    return note


def read_note(file: BinaryIO) -> Note:
    """Read what is in a backup. Raises NoBackup, also when it has been cut short."""
    begin = file.read(_FRAME.size + _NOTE_BYTES)
    if _FRAME.pack(_SKIPPED, _NOTE_BYTES) + _OURS != begin[: _FRAME.size + len(_OURS)]:
        raise NoBackup("not a backup of medamad, or of a version that this program does not know")
    written = begin[_FRAME.size + len(_OURS) :]
    digest, told = written[:_DIGEST_BYTES], written[_DIGEST_BYTES:]
    if hashlib.sha256(told).digest() != digest:
        raise NoBackup("damaged: the checksum of its first part does not match")
    note = msgspec.json.decode(told, type=Note)
    size = os.fstat(file.fileno()).st_size
    expected = _FRAME.size + _NOTE_BYTES + note.packed_bytes
    if size != expected:
        how = "cut short" if size < expected else "something was added to it"
        raise NoBackup(f"damaged: {how} ({size} bytes, expected {expected})")
    return note


def unpacked(file: BinaryIO, note: Note) -> Iterator[bytes]:
    """Give the store's file in pieces, after its note has been read.

    Raises NoBackup, at the end at the latest, when it is not what was written.
    """
    digest = hashlib.sha256()
    left = note.bytes
    reader = zstandard.ZstdDecompressor().stream_reader(file)
    try:
        while piece := reader.read(_PIECE_BYTES):
            left -= len(piece)
            if left < 0:
                break
            digest.update(piece)
            yield piece
    except zstandard.ZstdError as error:
        raise NoBackup(f"damaged: {error}") from error
    if left or digest.hexdigest() != note.sha256:
        raise NoBackup("damaged: the checksum of what is in it does not match")


def _written(note: Note) -> bytes:
    told = msgspec.json.encode(note).ljust(_NOTE_BYTES - len(_OURS) - _DIGEST_BYTES)
    return _OURS + hashlib.sha256(told).digest() + told
