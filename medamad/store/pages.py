"""Whether the pages of a store's file hang together, looked at without LMDB.

LMDB 0.9 has no checksums and trusts what a page says: a page that is not what was written may end
the process, hide a part of what is stored, or be written over later. So the trees are gone
through before it reads them. What the first two pages say is laid out as in LMDB's mdb.c, 64 bits.
"""

import os
import stat
import struct
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from medamad.store.errors import Damaged
from medamad.store.trees import IS_TREE, METAS, TREE, Pages, Tree

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
_PLAIN: Final = bytes(6)
"""What a named tree begins with where its keys are in the order of their bytes, as ours all are."""
_NUMBER_BYTES: Final = 8


def check_pages(path: Path) -> int:
    """Go through all trees of a store's file; returns the number of its last transaction.

    No transaction may be under way, or a read transaction be open since before: then what it sees
    stays. Raises Damaged, and OSError when the file cannot be read.
    """
    page_size = read_page_size(path)
    content = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    free, main, last, number = _newest(content, page_size)
    end = (last + 1) * page_size
    if end > len(content):
        raise Damaged("the file has been cut short")
    pages = Pages.of(content[:end], page_size)
    for entry in pages.walk(main, keep=True):
        if entry.flags != IS_TREE or len(entry.value) != TREE.size:
            raise Damaged(f"main: {entry.key!r} is no tree")
        if not entry.value.startswith(_PLAIN):
            raise Damaged(f"main: the kind of {entry.key!r} is not what was written")
        pages.walk(Tree.read(entry.key.decode("ascii", "replace"), entry.value))
    for entry in pages.walk(free, integers=True, keep=True):
        if (
            len(entry.value) % _NUMBER_BYTES
            or not 0 < int.from_bytes(entry.key, "little") <= number
        ):
            raise Damaged("free pages: an entry is not what it should be")
        numbers = np.frombuffer(entry.value, "<i8")
        if numbers[:1].tolist() != [len(numbers) - 1]:
            raise Damaged("free pages: an entry is not what it should be")
        pages.use("free pages", numbers[1:])
    return number


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


def _newest(content: NDArray[np.uint8], page_size: int) -> tuple[Tree, Tree, int, int]:
    """Read the two first pages; give what the newer says: trees, last page, transaction."""
    metas = []
    for place in range(METAS):
        *_, free, main, last, number = _META.unpack_from(content[place * page_size :].data)
        metas.append((number, last, free, main))
    (older, *_), (number, last, free, main) = sorted(metas, key=lambda meta: meta[0])
    # Transactions write to the two in turn; else the last one would be left out.
    if number and (older != number - 1 or metas[number % METAS][0] != number):
        raise Damaged("the number of its last transaction is not what was written")
    free_tree, main_tree = Tree.read("free pages", free), Tree.read("main", main)
    if (free_tree.flags & ~0xFFF0, main_tree.flags) != (_INTEGER_KEYS, 0):
        raise Damaged("the kind of its trees is not what was written")
    return free_tree, main_tree, last, number
