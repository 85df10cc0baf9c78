"""Input files: opening them the same way in every pass, and checking zip archives."""

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from attrs import frozen

from medamad.domain.errors import BadRequest
from medamad.storage.environment.owner import as_invoker

_GZIP: Final = b"\x1f\x8b"
_HEAD_BYTES: Final = 4_096


@frozen
class FileFingerprint:
    """What shows, when a file is opened again, whether it is still the same."""

    size: int
    changed_ns: int
    head: bytes
    grows: bool
    """Whether the file may be appended to meanwhile."""

    @classmethod
    def of(cls, file: BinaryIO, *, grows: bool) -> "FileFingerprint":
        """Return the fingerprint of an open file; a compressed file never grows."""
        descriptor = file.fileno()
        status = os.fstat(descriptor)
        head = os.pread(descriptor, _HEAD_BYTES, 0)
        return cls(status.st_size, status.st_mtime_ns, head, grows and not head.startswith(_GZIP))

    def check(self, file: BinaryIO) -> None:
        """Raise BadRequest if a file is no longer the same."""
        now = FileFingerprint.of(file, grows=self.grows)
        if self.grows:
            is_same = now.size >= self.size and now.head.startswith(self.head)
        else:
            is_same = now == self
        if not is_same:
            raise BadRequest("the file changed while it was being read; import it again")


class _Prefix(io.RawIOBase):
    """The first bytes of a file that may be growing."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__()
        self._file, self._left = file, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        data = self._file.read(min(len(view), self._left))
        self._left -= len(data)
        view[: len(data)] = data
        return len(data)


@contextmanager
def open_input(path: Path, fingerprint: FileFingerprint | None = None) -> Iterator[BinaryIO]:
    """Open a file, decompressing it if it is compressed with gzip.

    With a `fingerprint`, a file that grows is read up to its size at that time. Raises BadRequest,
    on opening or after reading, if the file is no longer the same.
    """
    with as_invoker():
        opened = path.open("rb")
    with opened as file:
        if not file.seekable():
            raise BadRequest("expected a file, not a pipe: it is read more than once")
        if fingerprint is not None:
            fingerprint.check(file)
        head = file.read(len(_GZIP))
        file.seek(0)
        if head == _GZIP:
            with gzip.open(file) as decompressed:
                yield cast("BinaryIO", decompressed)
        elif fingerprint is not None and fingerprint.grows:
            yield cast("BinaryIO", io.BufferedReader(_Prefix(file, fingerprint.size)))
        else:
            yield file
        if fingerprint is not None:
            fingerprint.check(file)


_MAX_MEMBER_BYTES: Final = 4 << 30
_MAX_RATIO: Final = 400
"""Tables of figures shrink to between a tenth and a fiftieth."""
_SMALL_BYTES: Final = 16 << 20
"""Up to this size the ratio does not matter."""
_MAX_MEMBERS: Final = 10_000
_ENCRYPTED: Final = 1


@contextmanager
def open_zip(file: BinaryIO) -> Iterator[ZipFile]:
    """Open a zip archive and check its members' sizes against zip bombs.

    Raises BadRequest on opening, or while it is read, if the archive is damaged or too large.
    """
    try:
        with ZipFile(file) as archive:
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS:
                raise BadRequest(f"expected a zip archive of at most {_MAX_MEMBERS} files")
            for member in members:
                check_member(member)
            yield archive
    except (BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise BadRequest(f"not a valid zip archive: {error}") from None


def check_member(member: ZipInfo) -> None:
    """Raise BadRequest for a member that is encrypted, too large or suspiciously compressed."""
    name, size = member.filename, member.file_size
    if member.flag_bits & _ENCRYPTED:
        raise BadRequest(f"{name}: expected a file without a password")
    if size > _MAX_MEMBER_BYTES:
        raise BadRequest(f"{name}: expected at most {_MAX_MEMBER_BYTES} bytes, got {size}")
    if size > max(_SMALL_BYTES, _MAX_RATIO * member.compress_size):
        raise BadRequest(f"{name}: expected a compression ratio of at most {_MAX_RATIO}")
