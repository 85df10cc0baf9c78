"""Input files: opened, read more than once, and zip archives checked before they are read."""

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

_GZIP: Final = b"\x1f\x8b"
_HEAD_BYTES: Final = 4_096


@frozen
class Mark:
    """What a file is known by again."""

    size: int
    changed_ns: int
    head: bytes
    grows: bool
    """Whether more may be written to it meanwhile."""

    @classmethod
    def of(cls, file: BinaryIO, *, grows: bool) -> "Mark":
        """Take it of an open file; what gzip has made smaller does not grow."""
        descriptor = file.fileno()
        found = os.fstat(descriptor)
        head = os.pread(descriptor, _HEAD_BYTES, 0)
        return cls(found.st_size, found.st_mtime_ns, head, grows and not head.startswith(_GZIP))

    def check(self, file: BinaryIO) -> None:
        """Raise BadRequest for a file that is another by now."""
        now = Mark.of(file, grows=self.grows)
        if self.grows:
            is_same = now.size >= self.size and now.head.startswith(self.head)
        else:
            is_same = now == self
        if not is_same:
            raise BadRequest("it was replaced or changed while it was read; import it again")


class _AsFar(io.RawIOBase):
    """A file as far as it went, whatever is written to it meanwhile."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        super().__init__()
        self._file, self._left = file, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        some = self._file.read(min(len(view), self._left))
        self._left -= len(some)
        view[: len(some)] = some
        return len(some)


@contextmanager
def opened(path: Path, mark: Mark | None = None) -> Iterator[BinaryIO]:
    """Open a file; what gzip has made smaller is read as it was before.

    With a `mark`, a file that grows is read as far as it went then, from its begin to its end; one
    that is another when it is opened, or when all was read, raises BadRequest.
    """
    with path.open("rb") as file:
        if not file.seekable():
            raise BadRequest("expected a file, not a pipe: it is read more than once")
        if mark is not None:
            mark.check(file)
        begins = file.read(len(_GZIP))
        file.seek(0)
        if begins == _GZIP:
            with gzip.open(file) as whole:
                yield cast("BinaryIO", whole)
        elif mark is not None and mark.grows:
            yield cast("BinaryIO", io.BufferedReader(_AsFar(file, mark.size)))
        else:
            yield file
        if mark is not None:
            mark.check(file)


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
