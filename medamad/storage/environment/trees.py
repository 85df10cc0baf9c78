"""Whether one tree of a store's file hangs together: its pages level by level, many at a time.

The layout of the pages is that of LMDB's mdb.c, 64 bits: a header, the offsets of the nodes in the
order of their keys, and the nodes, which fill the page from its end.
"""

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.storage.errors import Damaged

METAS: Final = 2
"""The pages that a file begins with, which belong to no tree."""
TREE: Final = struct.Struct("<IHHQQQQQ")
"""Page size or 0, flags, depth, branches, leaves, overflow pages, entries, root."""

_HEADER: Final = 16
"""Number u64, two bytes of no use here, flags u16, end of the offsets u16, begin of the nodes u16.

On the first page of a large value the last two are one: how many pages it has.
"""
_NODE: Final = 8
"""Size of the value in two halves, flags, size of the key; in a branch the first three: a page."""
_ELSEWHERE, _IS_TREE = 1, 2
"""Flags of a node: its value has pages of its own, or names a tree."""
_BRANCH, _LEAF, _OVERFLOW = 1, 2, 4
_NOWHERE: Final = (1 << 64) - 1
_MAX_KEY: Final = 511
_BYTES, _INTEGERS = ">u8", "<u8"
"""How words of a key are read so that they compare as the keys do."""
_PAGES_AT_ONCE: Final = 128
"""So many that what is worked on stays in the cache of a processor."""
_WORD: Final = 8
_FIRST_BYTES: Final = np.array([(1 << 64) - (1 << 8 * (8 - n)) for n in range(9)], np.uint64)
"""Masks for the first bytes of a word, none to all."""

Integers: TypeAlias = NDArray[np.int64]


@frozen
class Tree:
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
    def read(cls, name: str, stored: bytes) -> "Tree":
        """Read what is stored in the place of its name."""
        return cls(name, *TREE.unpack(stored)[1:])


@frozen
class Entry:
    """A key of a tree with its value."""

    key: bytes
    value: bytes


@frozen(eq=False)
class _Nodes:
    """The nodes of some pages in their order; what has no other length has one entry for each."""

    numbers: Integers
    """The numbers of the pages, as long as there are pages."""
    upper: Integers
    """Where on its page the first node in the file is, as long as there are pages."""
    first: Integers
    """The node of the least key, as long as there are pages."""
    page: Integers
    """Which of the pages a node is on."""
    offset: Integers
    """Where on its page a node is."""
    at: Integers
    """Where in `content` a node is."""
    words: tuple[Integers, Integers, Integers]
    """What a node begins with, but for the size of its key."""
    key_size: Integers
    content: NDArray[np.uint8]
    """The bytes of all the pages, and one page of zeros after them."""

    def bytes_at(self, begin: int, size: int) -> bytes:
        return self.content[begin : begin + size].tobytes()

    def key(self, node: int) -> bytes:
        return self.bytes_at(int(self.at[node]) + _NODE, int(self.key_size[node]))


@define(eq=False)
class _Walk:
    """A tree that is gone through, and what was found of it."""

    tree: Tree
    order: str
    of_trees: bool
    keep: bool
    branches: int = 0
    leaves: int = 0
    overflow: int = 0
    entries: int = 0
    last: list[bytes] = field(factory=list)
    """The greatest key so far, once there is one."""
    kept: list[Entry] = field(factory=list)

    def require(self, is_sound: NDArray[np.bool_], numbers: Integers) -> None:
        """Refuse the first of these pages that is not sound."""
        if not is_sound.all():
            number = _first(numbers, ~is_sound)
            _refuse(self.tree.name, f"page {number} is not what it should be")


@define(eq=False)
class Pages:
    """All pages of a file up to the last one in use, and which of them something uses."""

    _rows: NDArray[np.uint8]
    """The bytes of each page."""
    used: NDArray[np.bool_]

    @classmethod
    def of(cls, content: NDArray[np.uint8], page_size: int) -> "Pages":
        """Take these bytes for pages of that size, none of which is used as yet."""
        rows = content.reshape(-1, page_size)
        return cls(rows, np.zeros(len(rows), np.bool_))

    @property
    def _size(self) -> int:
        size: int = self._rows.shape[1]
        return size

    def walk(
        self, tree: Tree, *, integers: bool = False, of_trees: bool = False, keep: bool = False
    ) -> list[Entry]:
        """Go through a tree; returns its entries if they are to be kept. Raises Damaged.

        `integers`: its keys are numbers of 64 bits, little-endian. `of_trees`: what it holds are
        trees, and nothing else; in any other there is none.
        """
        walk = _Walk(tree, _INTEGERS if integers else _BYTES, of_trees, keep)
        if (tree.root == _NOWHERE) != (tree.depth == 0):
            _refuse(tree.name, f"its depth of {tree.depth} is not what was written")
        if tree.root != _NOWHERE:
            numbers, least = np.array([tree.root], np.uint64).view(np.int64), [b""]
            for _ in range(1, tree.depth):
                numbers, least = self._below(walk, numbers, least)
            for piece in _pieces(len(numbers)):
                self._leaves(walk, numbers[piece], least[piece])
        told = (tree.branches, tree.leaves, tree.overflow, tree.entries)
        if (walk.branches, walk.leaves, walk.overflow, walk.entries) != told:
            found = f"{walk.entries} entries were found where {tree.entries} should be"
            _refuse(tree.name, found)
        return walk.kept

    def use(self, name: str, numbers: Integers) -> None:
        """Note that something uses pages. Raises Damaged where there are none, or used ones."""
        is_there = (numbers >= METAS) & (numbers < len(self._rows))
        if not is_there.all():
            _refuse(name, f"page {_first(numbers, ~is_there)} is named, and there is none")
        ordered = np.sort(numbers)
        is_again = self.used[ordered]
        is_again[1:] |= ordered[1:] == ordered[:-1]
        if is_again.any():
            _refuse(name, f"page {_first(ordered, is_again)} is used twice")
        self.used[numbers] = True

    def _below(
        self, walk: _Walk, numbers: Integers, least: Sequence[bytes]
    ) -> tuple[Integers, list[bytes]]:
        """Go through a level of branches; returns the pages below and the least key of each."""
        pages, keys = [], []
        for piece in _pieces(len(numbers)):
            nodes = self._nodes(walk, numbers[piece], _BRANCH)
            self._check_full(walk, nodes, _NODE + nodes.key_size)
            low, middle, high = nodes.words
            pages.append(low | middle << 16 | high << 32)
            # The key of the first node says nothing.
            found = [nodes.key(node) for node in range(len(nodes.at))]
            for node, key in zip(nodes.first.tolist(), least[piece], strict=True):
                found[node] = key
            keys.append(found)
        walk.branches += len(numbers)
        return np.concatenate(pages), list(chain.from_iterable(keys))

    def _leaves(self, walk: _Walk, numbers: Integers, least: Sequence[bytes]) -> None:
        nodes = self._nodes(walk, numbers, _LEAF)
        low, high, flags = nodes.words
        size = low | high << 16
        is_elsewhere = flags == _ELSEWHERE
        held = np.where(is_elsewhere, _WORD, size)
        taken = _NODE + nodes.key_size + held
        # LMDB takes the flags for granted, and refuses to write where there is one of a tree.
        is_sound = flags == _IS_TREE if walk.of_trees else is_elsewhere | (flags == 0)
        walk.require(is_sound & (nodes.offset + taken <= self._size), numbers[nodes.page])
        if walk.order == _INTEGERS:
            walk.require(nodes.key_size == _WORD, numbers[nodes.page])
        self._check_full(walk, nodes, taken)
        self._check_order(walk, nodes, least)
        walk.leaves += len(numbers)
        walk.entries += len(nodes.at)
        begin = nodes.at + _NODE + nodes.key_size
        large = _items(nodes.content, begin[is_elsewhere], _WORD).view("<i8")
        self._check_large(walk, large, size[is_elsewhere])
        if walk.keep:
            places = np.where(is_elsewhere, 0, begin)
            places[is_elsewhere] = large * self._size + _HEADER
            for node, place in enumerate(places.tolist()):
                source = self._rows.ravel() if is_elsewhere[node] else nodes.content
                value = source[place : place + int(size[node])].tobytes()
                walk.kept.append(Entry(nodes.key(node), value))

    def _nodes(self, walk: _Walk, numbers: Integers, kind: int) -> _Nodes:
        """Read the nodes of pages that are all to be of one kind."""
        self.use(walk.tree.name, numbers)
        content = np.zeros((len(numbers) + 1, self._size), np.uint8)
        self._rows.take(numbers, axis=0, out=content[:-1], mode="clip")
        halves = content.view("<u2")
        flags, lower, upper = halves[:-1, 5:8].astype(np.int64).T
        is_sound = (content.view("<i8")[:-1, 0] == numbers) & (flags == kind)
        is_sound &= (lower > _HEADER) & (lower <= upper) & (upper <= self._size)
        walk.require(is_sound & ((lower | upper) % 2 == 0), numbers)
        counts = (lower - _HEADER) // 2
        first = np.cumsum(counts) - counts
        page = np.repeat(np.arange(len(numbers)), counts)
        every = halves.ravel()
        begin = page * (self._size // 2)
        offset = every[begin + _HEADER // 2 + np.arange(len(page)) - first[page]].astype(np.int64)
        is_sound = (offset >= upper[page]) & (offset <= self._size - _NODE) & (offset % 2 == 0)
        walk.require(is_sound, numbers[page])
        begin += offset // 2
        one, two, three, key_size = (every[begin + n].astype(np.int64) for n in range(4))
        is_sound = (key_size <= _MAX_KEY) & (offset + _NODE + key_size <= self._size)
        walk.require(is_sound, numbers[page])
        return _Nodes(
            numbers=numbers,
            upper=upper,
            first=first,
            page=page,
            offset=offset,
            at=2 * begin,
            words=(one, two, three),
            key_size=key_size,
            content=content.ravel(),
        )

    def _check_full(self, walk: _Walk, nodes: _Nodes, taken: Integers) -> None:
        """Refuse pages that have something between their nodes, each of which takes so much."""
        sums = np.add.reduceat((taken + 1) & ~1, nodes.first)
        walk.require(sums == self._size - nodes.upper, nodes.numbers)

    def _check_order(self, walk: _Walk, nodes: _Nodes, least: Sequence[bytes]) -> None:
        """Refuse keys that do not ascend, or are less than the least of their page."""
        between = [*walk.last, *least]
        places = np.concatenate((np.zeros(len(walk.last), np.int64), nodes.first))
        sizes = np.insert(nodes.key_size, places, [len(key) for key in between])
        width = max(_WORD, -(-int(sizes.max()) // _WORD) * _WORD)
        own = _items(nodes.content, nodes.at + _NODE, width)
        others = np.frombuffer(b"".join(key.ljust(width, b"\0") for key in between), own.dtype)
        rows = np.insert(own, places, others).view(walk.order).reshape(len(sizes), -1)
        left = sizes[:, np.newaxis] - _WORD * np.arange(width // _WORD)
        words = rows.astype(np.uint64) & _FIRST_BYTES[np.clip(left, 0, _WORD)]
        may_equal = np.zeros(len(sizes), np.bool_)
        may_equal[nodes.first + np.arange(1, len(least) + 1) + len(walk.last)] = True
        ascends = _ascend(words, sizes, may_equal)
        if not ascends.all():
            page = nodes.numbers[np.insert(nodes.page, places, nodes.page[places])]
            number = _first(page[1:], ~ascends)
            _refuse(walk.tree.name, f"the keys of page {number} are out of order")
        walk.last = [nodes.key(len(nodes.at) - 1)]

    def _check_large(self, walk: _Walk, numbers: Integers, sizes: Integers) -> None:
        """Go through values that have pages of their own."""
        self.use(walk.tree.name, numbers)
        first = self._rows[numbers, :_HEADER]
        counts = first.view("<u4")[:, 3].astype(np.int64)
        is_sound = (first.view("<i8")[:, 0] == numbers) & (first.view("<u2")[:, 5] == _OVERFLOW)
        # What a transaction makes shorter that it wrote itself keeps its pages.
        is_sound &= (sizes + _HEADER <= counts * self._size) & (counts <= len(self._rows))
        walk.require(is_sound, numbers)
        total = int(counts.sum())
        if total > len(self._rows):
            _refuse(walk.tree.name, "its large values are more than the file holds")
        later = np.repeat(numbers, counts - 1) + np.arange(1, total - len(counts) + 1)
        later -= np.repeat(np.cumsum(counts - 1) - (counts - 1), counts - 1)
        self.use(walk.tree.name, later)
        walk.overflow += total


def _pieces(length: int) -> list[slice]:
    return [slice(at, at + _PAGES_AT_ONCE) for at in range(0, length, _PAGES_AT_ONCE)]


def _items(content: NDArray[np.uint8], begins: Integers, size: int) -> NDArray[Any]:
    """Return so many bytes from each of these places, as items of dtype V."""
    shape = (len(content) - size + 1,)
    windows: NDArray[Any] = np.ndarray(shape, np.dtype(f"V{size}"), content, strides=(1,))
    return windows[begins]


def _ascend(
    words: NDArray[np.uint64], sizes: Integers, may_equal: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Tell of each key but the first whether it is greater than the one before, or may be equal."""
    is_greater = np.zeros(len(words) - 1, np.bool_)
    is_equal = np.ones(len(words) - 1, np.bool_)
    for column in (*words.T, sizes):
        is_greater |= is_equal & (column[1:] > column[:-1])
        is_equal &= column[1:] == column[:-1]
    return is_greater | (is_equal & may_equal[1:])


def _first(numbers: Integers, is_meant: NDArray[np.bool_]) -> int:
    return int(numbers[np.argmax(is_meant)])


def _refuse(name: str, told: str) -> NoReturn:
    raise Damaged(f"{name}: {told}")
