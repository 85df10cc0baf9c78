"""Whether the pages of a store's file hang together, looked at without LMDB.

LMDB 0.9 has no checksums and trusts what a page says: a page that is not what was written may end
the process, hide a part of what is stored, or be written over later. So the trees are gone
through before it reads them. The layout of the pages is that of LMDB's mdb.c, 64 bits.
"""

import mmap
import os
import struct
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NoReturn

import numpy as np
from attrs import define, field, frozen

from medamad.store.errors import Damaged

_PAGE_SIZES: Final = (4_096, 8_192, 16_384, 32_768)
"""A store's pages are as large as those of the machine that made it, up to LMDB's largest."""

_HEADER: Final = struct.Struct("<QHHHH")
"""Page number, padding, flags, end of the offsets, begin of the nodes."""
_OVERFLOW_PAGES: Final = struct.Struct("<I")
_OVERFLOW_PAGES_AT: Final = 12
_META: Final = struct.Struct("<IIQQ48s48sQQ")
"""Magic number, version, address, map size, tree of free pages, main tree, last page, number."""
_TREE: Final = struct.Struct("<IHHQQQQQ")
"""Page size or 0, flags, depth, branches, leaves, overflow pages, entries, root."""
_NODE: Final = struct.Struct("<HHHH")
"""Size of the value in two halves, flags, size of the key; in a branch the first three: a page."""
_NUMBER: Final = struct.Struct("<Q")

_MAGIC: Final = 0xBEEFC0DE
_VERSION: Final = 1
_NOWHERE: Final = (1 << 64) - 1
_BRANCH, _LEAF, _OVERFLOW, _META_PAGE = 1, 2, 4, 8
_ELSEWHERE, _IS_TREE = 1, 2
_INTEGER_KEYS: Final = 8
_METAS: Final = 2
_MAX_KEY: Final = 511


@frozen
class _Tree:
    """What is said of a tree where it is named."""

    name: str
    flags: int
    depth: int
    branches: int
    leaves: int
    overflow: int
    entries: int
    root: int

    @classmethod
    def read(cls, name: str, stored: bytes) -> "_Tree":
        return cls(name, *_TREE.unpack(stored)[1:])


@define(eq=False)
class _Walk:
    """One tree gone through, in the order of its keys."""

    tree: _Tree
    integers: bool = False
    branches: int = 0
    leaves: int = 0
    overflow: int = 0
    entries: int = 0
    last: bytes | None = None
    """The key before, or the least that the next may be."""
    may_equal: bool = True
    found: list[tuple[bytes, int, bytes]] = field(factory=list)
    """Keys, flags and values, where they are asked for."""


@define(eq=False)
class _Pages:
    _bytes: mmap.mmap
    _count: int
    """How many pages there are up to the last one in use."""
    _size: int
    _used: bytearray

    def walk(self, tree: _Tree, *, integers: bool = False, keep: bool = False) -> _Walk:
        """Go through a tree. Raises Damaged."""
        walk = _Walk(tree, integers)
        if tree.root != _NOWHERE:
            self._page(walk, tree.root, 1, keep=keep)
        told = (tree.branches, tree.leaves, tree.overflow, tree.entries)
        if (walk.branches, walk.leaves, walk.overflow, walk.entries) != told:
            self._refuse(walk, f"{walk.entries} entries were found where {tree.entries} should be")
        return walk

    def free(self, number: int) -> None:
        """Note that a page is free. Raises Damaged."""
        self._use(None, number)

    def _page(self, walk: _Walk, number: int, depth: int, *, keep: bool) -> None:
        self._use(walk, number)
        at = number * self._size
        own, _, flags, lower, upper = _HEADER.unpack_from(self._bytes, at)
        kind = flags & (_BRANCH | _LEAF)
        is_leaf = depth == walk.tree.depth
        sound = own == number and flags == kind == (_LEAF if is_leaf else _BRANCH)
        if not sound or not _HEADER.size < lower <= upper <= self._size or lower % 2 or upper % 2:
            self._refuse(walk, f"page {number} is not what it should be")
        count = (lower - _HEADER.size) // 2
        offsets = struct.unpack_from(f"<{count}H", self._bytes, at + _HEADER.size)
        if (
            min(offsets) < upper
            or max(offsets) > self._size - _NODE.size
            or any(o % 2 for o in offsets)
        ):
            self._refuse(walk, f"page {number} is not what it should be")
        if is_leaf:
            walk.leaves += 1
            self._leaf(walk, number, offsets, keep=keep)
        else:
            walk.branches += 1
            self._branch(walk, number, offsets, depth, keep=keep)

    def _branch(
        self, walk: _Walk, number: int, offsets: Sequence[int], depth: int, *, keep: bool
    ) -> None:
        page = self._bytes[number * self._size : (number + 1) * self._size]
        for place, offset in enumerate(offsets):
            low, middle, high, key_size = _NODE.unpack_from(page, offset)
            begin = offset + _NODE.size
            if begin + key_size > self._size or key_size > _MAX_KEY:
                self._refuse(walk, f"page {number} is not what it should be")
            if place:
                self._next(walk, page[begin : begin + key_size], number)
                walk.may_equal = True
            self._page(walk, low | middle << 16 | high << 32, depth + 1, keep=keep)

    def _leaf(self, walk: _Walk, number: int, offsets: Sequence[int], *, keep: bool) -> None:
        page = self._bytes[number * self._size : (number + 1) * self._size]
        taken = 0
        for offset in offsets:
            low, high, flags, key_size = _NODE.unpack_from(page, offset)
            begin = offset + _NODE.size + key_size
            size = low | high << 16
            held = _NUMBER.size if flags & _ELSEWHERE else size
            if flags & ~(_ELSEWHERE | _IS_TREE) or begin + held > self._size or key_size > _MAX_KEY:
                self._refuse(walk, f"page {number} is not what it should be")
            taken += (_NODE.size + key_size + held + 1) & ~1
            self._next(walk, page[offset + _NODE.size : begin], number)
            walk.entries += 1
            value = page[begin : begin + held]
            if flags & _ELSEWHERE:
                value = self._value(walk, _NUMBER.unpack(value)[0], size, keep=keep)
            if keep:
                walk.found.append((page[offset + _NODE.size : begin], flags, value))
        if taken != self._size - _HEADER.unpack_from(page)[4]:
            self._refuse(walk, f"page {number} is not what it should be")

    def _value(self, walk: _Walk, number: int, size: int, *, keep: bool) -> bytes:
        count = (_HEADER.size - 1 + size) // self._size + 1
        for page in range(number, number + count):
            self._use(walk, page)
        at = number * self._size
        own, _, flags, *_ = _HEADER.unpack_from(self._bytes, at)
        (said,) = _OVERFLOW_PAGES.unpack_from(self._bytes, at + _OVERFLOW_PAGES_AT)
        if (own, flags, said) != (number, _OVERFLOW, count):
            self._refuse(walk, f"page {number} is not what it should be")
        walk.overflow += count
        return self._bytes[at + _HEADER.size : at + _HEADER.size + size] if keep else b""

    def _next(self, walk: _Walk, key: bytes, number: int) -> None:
        last = walk.last
        if last is not None:
            if walk.integers:
                ascends = _integer(key) > _integer(last) or (walk.may_equal and key == last)
            else:
                ascends = key > last or (walk.may_equal and key == last)
            if not ascends:
                self._refuse(walk, f"the keys of page {number} are out of order")
        walk.last, walk.may_equal = key, False

    def _use(self, walk: _Walk | None, number: int) -> None:
        if not _METAS <= number < self._count:
            self._refuse(walk, f"page {number} is named, and there is none")
        if self._used[number]:
            self._refuse(walk, f"page {number} is used twice")
        self._used[number] = 1

    def _refuse(self, walk: _Walk | None, told: str) -> NoReturn:
        raise Damaged(f"{walk.tree.name if walk else 'free pages'}: {told}")


def check_pages(path: Path) -> int:
    """Go through all trees of a store's file; returns the number of its last transaction.

    No transaction may be under way, or a read transaction be open since before: then what it sees
    stays. Raises Damaged, and OSError when the file cannot be read.
    """
    page_size = read_page_size(path)
    with (
        path.open("rb") as file,
        closing(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)) as whole,
    ):
        return _check(whole, page_size)


def read_page_size(path: Path) -> int:
    """Read how large the pages of a store's file are; it stays so for as long as the file is there.

    Raises Damaged when it does not begin as a store, and OSError when it cannot be read.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < _METAS * min(_PAGE_SIZES):
            raise Damaged(f"too short to be a store ({size} bytes)")
        first = _page_size_in(file.read(min(_PAGE_SIZES)), 0)
        if size < _METAS * first:
            raise Damaged(f"too short to be a store ({size} bytes)")
        file.seek(first)
        if _page_size_in(file.read(min(_PAGE_SIZES)), 1) != first:
            raise Damaged("cannot be opened as a store: its first two pages tell of other sizes")
    return first


def _page_size_in(page: bytes, place: int) -> int:
    own, _, flags, *_ = _HEADER.unpack_from(page)
    magic, version, _, _, free, *_ = _META.unpack_from(page, _HEADER.size)
    if (own, flags, magic, version) != (place, _META_PAGE, _MAGIC, _VERSION):
        raise Damaged(f"cannot be opened as a store: page {place} does not begin one")
    size: int = _TREE.unpack(free)[0]
    if size not in _PAGE_SIZES:
        known = ", ".join(map(str, _PAGE_SIZES))
        told = f"page {place} tells of pages of {size} bytes, expected one of {known}"
        raise Damaged(f"cannot be opened as a store: {told}")
    return size


def _check(whole: mmap.mmap, page_size: int) -> int:
    free, main, last, number = _newest(whole, page_size)
    if (last + 1) * page_size > len(whole):
        raise Damaged("the file has been cut short")
    pages = _Pages(whole, last + 1, page_size, bytearray(last + 1))
    named = pages.walk(main, keep=True)
    for name, flags, stored in named.found:
        if flags != _IS_TREE or len(stored) != _TREE.size:
            raise Damaged(f"main: {name!r} is no tree")
        pages.walk(_Tree.read(name.decode("ascii", "replace"), stored))
    for key, _, stored in pages.walk(free, integers=True, keep=True).found:
        if len(stored) % 8 or len(key) != _NUMBER.size or not 0 < _integer(key) <= number:
            raise Damaged("free pages: an entry is not what it should be")
        numbers = np.frombuffer(stored, "<u8").tolist()
        if numbers[:1] != [len(numbers) - 1]:
            raise Damaged("free pages: an entry is not what it should be")
        for page in numbers[1:]:
            pages.free(page)
    return number


def _newest(whole: mmap.mmap, page_size: int) -> tuple[_Tree, _Tree, int, int]:
    """Read the two meta pages; give what the newer says: trees, last page, transaction."""
    metas = []
    for place in range(_METAS):
        *_, free, main, last, number = _META.unpack_from(whole, place * page_size + _HEADER.size)
        metas.append((number, last, free, main))
    (older, *_), (number, last, free, main) = sorted(metas, key=lambda meta: meta[0])
    # Transactions write to the two in turn; else the last one would be left out.
    if number and (older != number - 1 or metas[number % _METAS][0] != number):
        raise Damaged("the number of its last transaction is not what was written")
    free_tree, main_tree = _Tree.read("free pages", free), _Tree.read("main", main)
    if (free_tree.flags & ~0xFFF0, main_tree.flags) != (_INTEGER_KEYS, 0):
        raise Damaged("the kind of its trees is not what was written")
    return free_tree, main_tree, last, number


def _integer(key: bytes) -> int:
    return int.from_bytes(key, "little")
