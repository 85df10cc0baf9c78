"""The files of a log that grows and is rotated: reads each line once, and knows how far it got.

A file is known by its inode and by a hash of its first bytes and of those before the place that was
read up to. So it is found again under another name (rotation by rename), and so is its copy after
it was emptied (copytruncate). A file that was renamed is read on for a while, as a web server goes
on writing to it until it opens the new one.
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple, Self

from attrs import define, field

from medamad.storage.followed_logs import FilePlace

_MARKED: Final = 1_024
"""Bytes at the beginning of a file, and before a place in it, that identify it."""
_MARK_BYTES: Final = 16
_LONGEST: Final = 1 << 20
"""A line that is longer is not read as one: its beginning is passed on, and then the rest."""
_LONGEST_NUMBER: Final = 4
"""Digits of a number that counts rotations; more are a date."""
_READ_ON_S: Final = 3_600.0
"""How long a renamed file is read on after it last grew."""


@define(eq=False)
class _OpenFile:
    """A file that is being read; `mark` identifies it at the offset."""

    descriptor: int
    inode: int
    grown_s: float
    """When it last grew."""
    offset: int = 0
    mark: bytes = b""

    def is_as_read(self) -> bool:
        """Return whether what was read is still there: it was neither emptied nor overwritten."""
        return not self.offset or _mark(self.descriptor, self.offset) == self.mark

    def read(self, most: int) -> bytes:
        """Return complete lines from the offset on, up to about `most` bytes, and pass them."""
        read = os.pread(self.descriptor, most, self.offset)
        if len(read) == most and b"\n" not in read:
            read = os.pread(self.descriptor, _LONGEST, self.offset)
        end = read.rfind(b"\n") + 1
        if not end and len(read) >= _LONGEST:
            end = len(read)
        if end:
            self.offset += end
            self.mark = _mark(self.descriptor, self.offset) or b""
        return read[:end]

    def skip(self) -> None:
        """Pass all complete lines that are there."""
        size = os.fstat(self.descriptor).st_size
        begin = max(0, size - _LONGEST)
        end = os.pread(self.descriptor, size - begin, begin).rfind(b"\n") + 1
        self.offset = begin + end if end or not begin else size
        self.mark = _mark(self.descriptor, self.offset) or b""


def _mark(descriptor: int, offset: int) -> bytes | None:
    """Return what identifies a file at an offset, None if it is shorter."""
    size = min(_MARKED, offset)
    first = os.pread(descriptor, size, 0)
    last = os.pread(descriptor, size, offset - size)
    if len(first) != size or len(last) != size:
        return None
    return blake2b(first + last, digest_size=_MARK_BYTES).digest()


class _Age(NamedTuple):
    """How new a rotated file is, by the number or date in its name; the greatest is the newest."""

    is_date: bool
    number: int = 0
    date: str = ""

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the age of a file: those with the smallest numbers are the newest."""
        if text.isdecimal() and len(text) <= _LONGEST_NUMBER:
            return cls(is_date=False, number=-int(text))
        return cls(is_date=True, date=text)


@define(eq=False)
class LogFiles:
    """The files of the log at a path. To be closed."""

    path: Path
    seconds: Callable[[], float]
    """Returns the seconds since a fixed moment."""
    _files: list[_OpenFile] = field(factory=list)
    """The newest last."""
    lost: int = 0
    """How many files were not found again, so that lines may be missing."""

    def close(self) -> None:
        """Close all files."""
        for file in self._files:
            os.close(file.descriptor)
        self._files = []

    def places(self) -> tuple[FilePlace, ...]:
        """Return how far each file has been read."""
        return tuple(FilePlace(file.inode, file.offset, file.mark) for file in self._files)

    def resume(self, places: Sequence[FilePlace]) -> None:
        """Go on at some places: find their files, and those that have come since."""
        self.close()
        for place in places:
            file = self._found(place)
            if file is None:
                self.lost += bool(place.offset)
            elif file.inode in {other.inode for other in self._files}:
                os.close(file.descriptor)
            else:
                self._files.append(file)
        self._add_newer()

    def read(self, most: int) -> bytes:
        """Return lines that were not returned before, about `most` bytes of them; b"" for none.

        Those of an older file come first. Raises OSError if the log cannot be read.
        """
        self._look()
        for file in self._files:
            try:
                lines = file.read(most)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self.path)) from None
            if lines:
                file.grown_s = self.seconds()
                return lines
        self._drop_old()
        return b""

    def skip(self) -> None:
        """Pass all lines that are there."""
        self._look()
        for file in self._files:
            file.skip()

    def _look(self) -> None:
        """Find out whether the log was rotated, emptied or made."""
        for file in list(self._files):
            if not file.is_as_read():
                self._restart(file)
        self._add_newer()
        current = self._open(self.path)
        if current is not None:
            self._add(current)

    def _restart(self, file: _OpenFile) -> None:
        """Read a file that was emptied from its beginning, once its copies have been read."""
        place = self._files.index(file)
        later = self._files[place:]
        del self._files[place:]
        copy = self._found(FilePlace(0, file.offset, file.mark))
        if copy is not None and self._add(copy, known=later):
            self._add_newer(known=later)
        file.offset, file.mark = 0, b""
        self._files += later

    def _add(self, file: _OpenFile, known: Sequence[_OpenFile] = ()) -> bool:
        """Add a file unless it is being read; return whether it was added."""
        if any(file.inode == other.inode for other in (*self._files, *known)):
            os.close(file.descriptor)
            return False
        self._files.append(file)
        return True

    def _found(self, place: FilePlace) -> _OpenFile | None:
        """Return the file of a place, or a copy of it."""
        for path in (self.path, *(path for path, _ in self._siblings())):
            file = self._open(path)
            if file is None:
                continue
            file.offset, file.mark = place.offset, place.mark
            is_it = file.inode == place.inode if not place.offset else file.is_as_read()
            if is_it:
                return file
            os.close(file.descriptor)
        return None

    def _add_newer(self, known: Sequence[_OpenFile] = ()) -> None:
        """Add the files that were rotated after the newest that is known was."""
        if not self._files or self._is_at(self.path, self._files[-1].inode):
            return
        inode = self._files[-1].inode
        siblings = sorted((_Age.of(number), path) for path, number in self._siblings())
        newest = next((age for age, path in siblings if self._is_at(path, inode)), None)
        if newest is None:
            return
        for age, path in siblings:
            if age > newest and age.is_date is newest.is_date:
                file = self._open(path)
                if file is not None:
                    self._add(file, known)

    @staticmethod
    def _is_at(path: Path, inode: int) -> bool:
        try:
            return path.stat().st_ino == inode
        except FileNotFoundError:
            return False

    def _siblings(self) -> Iterator[tuple[Path, str]]:
        """Return the rotated files of the log, and the number or date in the name of each."""
        stem, suffix = re.escape(self.path.stem), re.escape(self.path.suffix)
        number = r"[.-](\d[\d.-]*)"
        rotated = re.compile(f"{stem}(?:{suffix}{number}|{number}{suffix})")
        with suppress(FileNotFoundError):
            for path in sorted(self.path.parent.iterdir()):
                if match := rotated.fullmatch(path.name):
                    yield path, match[1] or match[2]

    def _open(self, path: Path) -> _OpenFile | None:
        """Open a file, None if it is not there."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        return _OpenFile(descriptor, os.fstat(descriptor).st_ino, self.seconds())

    def _drop_old(self) -> None:
        """Close the files that have not grown for long, but the newest."""
        now = self.seconds()
        for file in self._files[:-1]:
            if now - file.grown_s > _READ_ON_S:
                self._files.remove(file)
                os.close(file.descriptor)
