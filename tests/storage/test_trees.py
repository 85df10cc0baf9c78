"""A tree whose pages do not hang together is refused, wherever in the file they are."""

import struct
from collections.abc import Iterator
from pathlib import Path

import lmdb
import numpy as np
import pytest
from attrs import evolve

from medamad.storage.environment.pages import _metas
from medamad.storage.environment.trees import Entry, Pages, Tree
from medamad.storage.errors import Damaged

PAGE = 4_096
ENTRIES = 20_000
LEAF, BRANCH, OVERFLOW = 2, 1, 4
HEADER = struct.Struct("<QHHHH")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with one tree of three levels, whose last entries have pages of their own."""
    path = tmp_path_factory.mktemp("trees") / "file"
    env = lmdb.open(str(path), subdir=False, lib_version=0, map_size=64 << 20)
    with env.begin(write=True) as txn:
        for key, value in held():
            txn.put(key, value)
        assert txn.stat()["depth"] == 3
    env.close()
    return path.read_bytes()


def held() -> Iterator[tuple[bytes, bytes]]:
    for number in range(ENTRIES):
        key = b"%06d" % number + b"\0" * (number % 5) + b"x" * (number % 30)
        yield key, bytes([number % 256]) * (10_000 if number >= ENTRIES - 9 else number % 70)


def walked(content: bytes) -> list[Entry]:
    whole = np.frombuffer(content, np.uint8)
    _, newest = _metas(content, PAGE)
    return Pages.of(whole[: (newest.last + 1) * PAGE], PAGE).walk(newest.main, keep=True)


def pages_of(content: bytes, kind: int) -> list[int]:
    headers = [HEADER.unpack_from(content, at) for at in range(0, len(content), PAGE)]
    return [
        page for page, (own, _, flags, *_) in enumerate(headers) if flags == kind and own == page
    ]


def node(content: bytes, page: int, place: int) -> int:
    """Where in the file a node of a page begins."""
    (offset,) = struct.unpack_from("<H", content, page * PAGE + HEADER.size + 2 * place)
    return page * PAGE + int(offset)


def refused(content: bytes | bytearray) -> str:
    with pytest.raises(Damaged) as found:
        walked(bytes(content))
    return str(found.value)


def test_all_entries_are_given_in_order(sound: bytes) -> None:
    assert walked(sound) == [Entry(key, value) for key, value in sorted(held())]


def test_a_key_of_a_leaf_that_is_out_of_order_is_refused(sound: bytes) -> None:
    for page in pages_of(sound, LEAF)[::20]:
        for told in (b"9", b"/"):
            changed = bytearray(sound)
            at = node(sound, page, 2) + 8
            changed[at : at + 1] = told
            assert refused(changed) == f"main: the keys of page {page} are out of order"


def test_a_key_of_a_branch_that_parts_at_the_wrong_place_is_refused(sound: bytes) -> None:
    for page in pages_of(sound, BRANCH):
        for later in (-1, 1):
            changed = bytearray(sound)
            changed[node(sound, page, 1) + 8 + 5] += later
            assert "are out of order" in refused(changed)


def test_a_page_that_two_name_is_refused(sound: bytes) -> None:
    page = pages_of(sound, BRANCH)[0]
    first, second = node(sound, page, 0), node(sound, page, 1)
    changed = bytearray(sound)
    changed[second : second + 6] = sound[first : first + 6]
    (named,) = struct.unpack_from("<I", sound, first)
    assert refused(changed) == f"main: page {named} is used twice"


def test_a_page_that_is_not_there_is_refused(sound: bytes) -> None:
    changed = bytearray(sound)
    changed[node(sound, pages_of(sound, BRANCH)[0], 0) + 3] = 1
    assert "is named, and there is none" in refused(changed)


@pytest.mark.parametrize(("at", "told"), [(0, 9), (10, 2), (12, 2), (12, 0), (15, 255)])
def test_a_large_value_whose_page_says_otherwise_is_refused(
    sound: bytes, at: int, told: int
) -> None:
    page = pages_of(sound, OVERFLOW)[3]
    changed = bytearray(sound)
    changed[page * PAGE + at] = told
    assert refused(changed) == f"main: page {page} is not what it should be"


@pytest.mark.parametrize("number", [0, 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], ids=hex)
def test_a_large_value_that_is_nowhere_is_refused(sound: bytes, number: int) -> None:
    page = pages_of(sound, OVERFLOW)[3]
    changed = sound.replace(struct.pack("<Q", page), struct.pack("<Q", number))
    # The page names itself too, which then nobody reads.
    assert "is named, and there is none" in refused(changed)


def test_a_value_that_is_not_as_long_as_its_node_says_is_refused(sound: bytes) -> None:
    for page in pages_of(sound, LEAF)[::20]:
        changed = bytearray(sound)
        changed[node(sound, page, 1)] ^= 4
        assert refused(changed) == f"main: page {page} is not what it should be"


@pytest.mark.parametrize("said", ["depth", "branches", "leaves", "overflow", "entries"])
def test_a_tree_that_is_not_what_is_said_of_it_is_refused(sound: bytes, said: str) -> None:
    whole = np.frombuffer(sound, np.uint8)
    _, newest = _metas(sound, PAGE)
    for more in (-1, 1):
        pages = Pages.of(whole[: (newest.last + 1) * PAGE], PAGE)
        with pytest.raises(Damaged, match=r"main: (page \d+ is not|\d+ entries were found where)"):
            pages.walk(evolve(newest.main, **{said: getattr(newest.main, said) + more}))


def test_a_page_in_a_tree_of_no_depth_is_refused(sound: bytes) -> None:
    whole = np.frombuffer(sound, np.uint8)
    _, newest = _metas(sound, PAGE)
    leaf = pages_of(sound, LEAF)[0]
    pages = Pages.of(whole[: (newest.last + 1) * PAGE], PAGE)
    with pytest.raises(Damaged, match=r"main: its depth of 0 is not what was written"):
        pages.walk(evolve(newest.main, depth=0, root=leaf))


def test_a_depth_of_a_tree_without_a_page_is_refused(sound: bytes) -> None:
    """LMDB would go on from it, and what it then stores could not be read."""
    pages = Pages.of(np.frombuffer(sound, np.uint8), PAGE)
    nowhere = (1 << 64) - 1
    empty = Tree("main", 0, 0, branches=0, leaves=0, overflow=0, entries=0, root=nowhere)
    assert pages.walk(empty, keep=True) == []
    with pytest.raises(Damaged, match=r"main: its depth of 1 is not what was written"):
        pages.walk(evolve(empty, depth=1))


@pytest.mark.parametrize("bit", range(1, 16))
def test_flags_of_an_entry_that_are_not_what_was_written_are_refused(
    sound: bytes, bit: int
) -> None:
    """Where there is one of a tree, LMDB would read the entry and refuse to write it."""
    for page in pages_of(sound, LEAF)[::20]:
        changed = bytearray(sound)
        changed[node(sound, page, 1) + 4 + bit // 8] ^= 1 << bit % 8
        assert refused(changed) == f"main: page {page} is not what it should be"


@pytest.mark.parametrize("kind", [LEAF, BRANCH])
def test_a_page_with_something_between_its_nodes_is_refused(sound: bytes, kind: int) -> None:
    for page in pages_of(sound, kind)[::20]:
        changed = bytearray(sound)
        (upper,) = struct.unpack_from("<H", sound, page * PAGE + 14)
        struct.pack_into("<H", changed, page * PAGE + 14, upper - 2)
        assert refused(changed) == f"main: page {page} is not what it should be"


def test_pages_that_a_large_value_does_not_have_are_refused(sound: bytes) -> None:
    first, *_, last = pages_of(sound, OVERFLOW)
    for page, told in ((first, f"page {first + 3} is used twice"), (last, "there is none")):
        changed = bytearray(sound)
        changed[page * PAGE + 12] = 4
        assert told in refused(changed)


@pytest.mark.parametrize("size", [8_000, 3_000, 1], ids=str)
def test_a_large_value_that_its_transaction_made_shorter_is_sound(
    tmp_path: Path, size: int
) -> None:
    """LMDB leaves it all of its pages."""
    env = lmdb.open(str(tmp_path / "file"), subdir=False, lib_version=0, map_size=1 << 20)
    with env.begin(write=True) as txn:
        txn.put(b"key", bytes(20_000))
        txn.put(b"key", b"x" * size)
        assert txn.stat()["overflow_pages"] == 5
    env.close()
    assert walked((tmp_path / "file").read_bytes()) == [Entry(b"key", b"x" * size)]
