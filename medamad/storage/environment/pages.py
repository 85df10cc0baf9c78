"""Whether the pages of a store's file hang together, looked at without LMDB.

LMDB 0.9 has no checksums and trusts what a page says: a page that is not what was written may end
the process, hide a part of what is stored, or be written over later. So the trees are gone
through before it reads them. What the first two pages say is laid out as in LMDB's mdb.c, 64 bits.
"""

import os
import stat
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.storage.environment.trees import METAS, TREE, Entry, Pages, Tree
from medamad.storage.errors import Damaged

_PAGE_SIZES: Final = (4_096, 8_192, 16_384, 32_768)
"""A store's pages are as large as those of the machine that made it, up to LMDB's largest."""

_META: Final = struct.Struct("<QHHHHIIQQ48s48sQQ")
"""What each of the first two pages says.

Page number, two bytes of no use here, flags, four more, magic number, version, address, map size,
tree of free pages, main tree, last page, number of the transaction.
"""
_META_PAGE: Final = 8
_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_INTEGER_KEYS: Final = 8
_NO_FOLDER: Final = 0x4000
"""How the file was opened when it was made, noted beside the kind of the tree of free pages."""
_PLAIN: Final = bytes(6)
"""What a named tree begins with where its keys are in the order of their bytes, as ours all are."""
_NUMBER_BYTES: Final = 8
_READS: Final = 100
_OTHER_NUMBER: Final = "the number of its last transaction is not what was written"


def check_pages(path: Path) -> int:
    """Go through all trees of a store's file; returns the number of its last transaction.

    No transaction may be under way, or a read transaction be open since before: then what it sees
    stays. Raises Damaged, and OSError when the file cannot be read.
    """
    page_size = read_page_size(path)
    _, newest = _metas(_begin(path, page_size), page_size)
    content = _content(path)
    end = (newest.last + 1) * page_size
    if end > len(content):
        raise Damaged("the file has been cut short")
    pages = Pages.of(content[:end], page_size)
    for entry in pages.walk(newest.main, of_trees=True, keep=True):
        if len(entry.value) != TREE.size:
            raise Damaged(f"main: {entry.key!r} is no tree")
        if not entry.value.startswith(_PLAIN):
            raise Damaged(f"main: the kind of {entry.key!r} is not what was written")
        pages.walk(Tree.read(entry.key.decode("ascii", "replace"), entry.value))
    freed = pages.walk(newest.free, integers=True, keep=True)
    if not newest.has_left(freed):
        raise Damaged(_OTHER_NUMBER)
    for entry in freed:
        if len(entry.value) % _NUMBER_BYTES or not any(entry.key):
            raise Damaged("free pages: an entry is not what it should be")
        numbers = np.frombuffer(entry.value, "<i8")
        # LMDB looks for pages in a row by how far on the number is that should be their last.
        descends = (numbers[2:] < numbers[1:-1]).all()
        if numbers[:1].tolist() != [len(numbers) - 1] or not descends:
            raise Damaged("free pages: an entry is not what it should be")
        pages.use("free pages", numbers[1:])
    return newest.number


def doubt_of_last(path: Path) -> str:
    """Return why there may be a transaction after the last that is seen, "" if there is none for sure.

    Beside the last one the file names the one before. Where the trees there are of another, either
    the number of the last was changed, or its writing failed and LMDB put the earlier number back.
    Within a transaction, and of a file whose pages are sound. Raises OSError.
    """
    try:
        page_size = read_page_size(path)
        before, _ = _metas(_begin(path, page_size), page_size)
    except Damaged as error:
        return str(error)
    content = _content(path)
    pages = Pages.of(content[: len(content) // page_size * page_size], page_size)
    try:
        if before.has_left(pages.walk(before.free, integers=True, keep=True)):
            return ""
    except Damaged:
        # The pages of what failed are used again by what is begun next.
        pass
    return "its last transaction may be missing: its number was changed, or its writing failed"


def read_page_size(path: Path) -> int:
    """Read how large the pages of a store's file are; it stays so for as long as the file is there.

    Raises Damaged when it does not begin as a store, and OSError when it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise Damaged("not a file")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < METAS * min(_PAGE_SIZES):
            raise Damaged(f"too short to be a store ({size} bytes)")
        first = _page_size_in(file.read(min(_PAGE_SIZES)), 0)
        if size < METAS * first:
            raise Damaged(f"too short to be a store ({size} bytes)")
        file.seek(first)
        if _page_size_in(file.read(min(_PAGE_SIZES)), 1) != first:
            raise Damaged("cannot be opened as a store: its first two pages tell of other sizes")
    return first


def _page_size_in(page: bytes, place: int) -> int:
    own, _, flags, _, _, magic, version, _, _, free, *_ = _META.unpack_from(page)
    if (own, flags, magic, version) != (place, _META_PAGE, _MAGIC, _VERSION):
        raise Damaged(f"cannot be opened as a store: page {place} does not begin one")
    size: int = TREE.unpack(free)[0]
    if size not in _PAGE_SIZES:
        known = ", ".join(map(str, _PAGE_SIZES))
        told = f"page {place} tells of pages of {size} bytes, expected one of {known}"
        raise Damaged(f"cannot be opened as a store: {told}")
    return size


@frozen
class _Meta:
    """What one of the first two pages says: of a transaction, the trees and the last page."""

    number: int
    last: int
    free: Tree
    main: Tree

    @classmethod
    def read(cls, begin: bytes, offset: int) -> "_Meta":
        """Read it from the begin of a file."""
        *_, free, main, last, number = _META.unpack_from(begin, offset)
        return cls(number, last, Tree.read("free pages", free), Tree.read("main", main))

    def has_left(self, freed: Sequence[Entry]) -> bool:
        """Return whether these are the entries that this transaction left in the tree of free pages.

        Each notes under its own number what it freed: the root of the main tree at the least,
        but for the first, before which there was none.
        """
        greatest = int.from_bytes(freed[-1].key, "little") if freed else 0
        return greatest == self.number or (greatest, self.number) == (0, 1)


def _begin(path: Path, page_size: int) -> bytes:
    """Read the first two pages as they are at one moment: a daemon may write to them."""
    with path.open("rb", buffering=0) as file:
        return settled(lambda: os.pread(file.fileno(), METAS * page_size, 0))


def settled(read: Callable[[], bytes]) -> bytes:
    """Return what two reads in a row agree on, as one alone may fall into a writing or between two.

    The last, where none do.
    """
    found = read()
    for _ in range(_READS):
        before, found = found, read()
        if found == before:
            break
    return found


def _content(path: Path) -> NDArray[np.uint8]:
    """Return what is in the file, once it is known what of it is in use: it may grow meanwhile."""
    return np.memmap(path, np.uint8, mode="r").view(np.ndarray)


def _metas(begin: bytes, page_size: int) -> tuple[_Meta, _Meta]:
    """Return what the first two pages say: of the last transaction but one, and of the last."""
    metas = [_Meta.read(begin, place * page_size) for place in range(METAS)]
    before, newest = sorted(metas, key=lambda meta: meta.number)
    # Transactions write to the two in turn; else the last one would be left out.
    if before.number != newest.number - 1 or metas[newest.number % METAS] is not newest:
        raise Damaged(_OTHER_NUMBER)
    if (newest.free.flags & ~_NO_FOLDER, newest.main.flags) != (_INTEGER_KEYS, 0):
        raise Damaged("the kind of its trees is not what was written")
    return before, newest
