"""A disk with a cache that a power cut empties, as a file in a file system of its own (FUSE).

Called with an image to begin with and a folder to appear in. `disk` there is the disk: a loop
device on it hands every write on at once, and a flush as fsync. Writing "FILE CHANCE SEED" to `cut`
leaves in FILE what the disk would hold had its power failed at that instant: all that was written
before the last flush, and of what was written since each sector of 512 bytes with that chance, no
matter in what order. The disk goes on as if nothing had happened.
"""

import errno
import random
import stat
import sys
from pathlib import Path
from typing import Any

from mfusepy import FUSE, FuseOSError, Operations

SECTOR = 512
SEGMENT = 4096


class VolatileDisk(Operations):  # type: ignore[misc]
    """All is in memory. One request is answered after the other, a cut between two of them."""

    use_ns = True

    def __init__(self, image: bytes) -> None:
        self._size = len(image)
        self._now = bytearray(image)
        self._flushed = bytearray(image)
        self._unflushed: list[tuple[int, bytes]] = []
        self._used = {at for at in range(0, len(image), SEGMENT) if any(image[at : at + SEGMENT])}

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        del fh
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
        sizes = {"/disk": self._size, "/cut": 0}
        if path not in sizes:
            raise FuseOSError(errno.ENOENT)
        return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": sizes[path]}

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        del path, fh
        return bytes(self._now[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        del fh
        if path == "/cut":
            file, chance, seed = data.decode().split()
            self._cut(Path(file), float(chance), random.Random(int(seed)))  # noqa: S311
            return len(data)
        if offset + len(data) > self._size:
            raise FuseOSError(errno.ENOSPC)
        self._now[offset : offset + len(data)] = data
        self._unflushed.append((offset, data))
        return len(data)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        del path, datasync, fh
        for offset, data in self._unflushed:
            self._flushed[offset : offset + len(data)] = data
            first = offset - offset % SEGMENT
            self._used.update(range(first, offset + len(data), SEGMENT))
        self._unflushed.clear()
        return 0

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:
        del path, length, fh
        return 0

    def _cut(self, file: Path, chance: float, rng: random.Random) -> None:
        with file.open("wb") as cut:
            cut.truncate(self._size)
            for at in sorted(self._used):
                cut.seek(at)
                cut.write(self._flushed[at : at + SEGMENT])
            for offset, data in self._unflushed:
                for start in range(0, len(data), SECTOR):
                    if rng.random() < chance:
                        cut.seek(offset + start)
                        cut.write(data[start : start + SECTOR])


if __name__ == "__main__":
    FUSE(
        VolatileDisk(Path(sys.argv[1]).read_bytes()),
        sys.argv[2],
        foreground=True,
        nothreads=True,
        fsname="volatile-disk",
    )
