"""What LMDB has written is sound; a page that was changed is named."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from support.storage.page_damage import NUMBERS_AT, PAGE, hide_last
from support.storage.page_sizes import copy_with_pages_of

from medamad.storage.environment.environment import FILE_NAME, open_environment
from medamad.storage.environment.pages import (
    _META,
    _metas,
    check_pages,
    doubt_of_last,
    read_page_size,
    settled,
)
from medamad.storage.environment.trees import Pages, Tree
from medamad.storage.errors import Damaged

MAP_SIZE = 64 << 20
PAGE_SIZE_AT = 16 + 24
FREE_FLAGS_AT = PAGE_SIZE_AT + 4
MAIN_FLAGS_AT = FREE_FLAGS_AT + 48


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file with trees of three levels, large values and free pages."""
    env = open_environment(tmp_path, MAP_SIZE)
    names, segments = env.databases.dictionary, env.databases.segments
    for turn in range(5):
        with env.lmdb.begin(write=True) as txn:
            for number in range(0, 20_000, 1 + turn):
                txn.put(b"%011d" % number, b"x" * (number % 90), db=names)
            for number in range(40):
                txn.put(b"%d" % number, bytes(1_000 * number), db=segments)
    for begin in (0, 5_000):
        with env.lmdb.begin(write=True) as txn:
            for number in range(begin, begin + 3_000):
                assert txn.delete(b"%011d" % number, db=names)
            assert txn.stat(names)["depth"] == 3
    env.close()
    return tmp_path / FILE_NAME


def test_what_lmdb_has_written_is_sound(file: Path) -> None:
    assert check_pages(file) == 8


def test_a_new_store_is_sound(tmp_path: Path) -> None:
    open_environment(tmp_path, MAP_SIZE).close()
    assert check_pages(tmp_path / FILE_NAME) == 1
    assert doubt_of_last(tmp_path / FILE_NAME) == ""


def test_a_store_is_sound_after_each_transaction(tmp_path: Path) -> None:
    env = open_environment(tmp_path, MAP_SIZE)
    for turn in range(60):
        with env.lmdb.begin(write=True) as txn:
            for number in range(turn % 7, 400, 1 + turn % 5):
                key = b"%d" % (number * 7_919 % 400)
                if turn % 3:
                    txn.put(key, bytes(17 * number % 9_000), db=env.databases.dictionary)
                else:
                    txn.delete(key, db=env.databases.dictionary)
        assert check_pages(env.path) > turn
        assert doubt_of_last(env.path) == ""
    env.close()


def test_a_store_that_is_written_meanwhile_is_sound(tmp_path: Path) -> None:
    """As beside a daemon, whose file grows: what a transaction saw before stays."""
    env = open_environment(tmp_path, MAP_SIZE)

    def write() -> None:
        for number in range(1_500):
            with env.lmdb.begin(write=True) as txn:
                txn.put(b"%d" % number, bytes(20_000), db=env.databases.segments)

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        while not writing.done():
            with env.reading():
                check_pages(env.path)
                assert doubt_of_last(env.path) == ""
        writing.result()
    env.close()


@pytest.mark.parametrize(
    ("reads", "found"),
    [
        (("old", "old"), "old"),
        (("half", "new", "new"), "new"),
        (("old", "half", "new", "newer", "newer"), "newer"),
        (("old", "half", "old", "half", "half"), "half"),
    ],
)
def test_what_is_written_as_it_is_read_is_read_again(reads: tuple[str, ...], found: str) -> None:
    left = [each.encode() for each in reads]
    assert settled(lambda: left.pop(0)) == found.encode()
    assert left == []


def test_what_is_never_read_twice_alike_is_given_as_it_was_last() -> None:
    numbers = count()
    last = settled(lambda: b"%d" % next(numbers))
    assert int(last) == next(numbers) - 1


def test_a_number_that_cannot_be_is_a_doubt_of_the_last_transaction(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[NUMBERS_AT[0]] ^= 16
    file.write_bytes(content)
    told = "the number of its last transaction is not what was written"
    with pytest.raises(Damaged, match=told):
        check_pages(file)
    assert doubt_of_last(file) == told


@pytest.mark.parametrize(
    "offset",
    [
        0,  # the number of the page
        10,  # its kind
        12,  # the end of the offsets
        14,  # the begin of the nodes
        16,  # where the first node is
    ],
)
def test_a_header_that_was_changed_is_noticed(file: Path, offset: int) -> None:
    content = file.read_bytes()
    names = [page for page in leaves_in_use(content) if page % 9 == 0]
    assert len(names) > 5
    for page in names:
        changed = bytearray(content)
        changed[page * PAGE + offset] ^= 16
        file.write_bytes(changed)
        with pytest.raises(Damaged, match=r"page \d+ |entries were found|free pages"):
            check_pages(file)


def test_each_bit_of_what_is_said_of_a_tree_matters(tmp_path: Path) -> None:
    """Its kind too: LMDB would look for the keys in another order, and miss some."""
    env = open_environment(tmp_path, MAP_SIZE)
    with env.lmdb.begin(write=True) as txn:
        txn.put(b"key", bytes(9_000), db=env.databases.dictionary)
    with env.reading() as txn:
        (said,) = [value for key, value in txn.cursor() if key == b"dictionary"]
    env.close()
    content = env.path.read_bytes()
    at = content.rindex(said)
    for bit in range(8 * len(said)):
        changed = bytearray(content)
        changed[at + bit // 8] ^= 1 << bit % 8
        env.path.write_bytes(changed)
        with pytest.raises(Damaged, match=r"main|names"):
            check_pages(env.path)


def test_an_entry_that_is_said_to_be_a_tree_is_noticed(tmp_path: Path) -> None:
    """It could be read, and neither be written nor be deleted."""
    env = open_environment(tmp_path, MAP_SIZE)
    with env.lmdb.begin(write=True) as txn:
        txn.put(b"sequence", b"1", db=env.databases.meta)
    env.close()
    content = bytearray(env.path.read_bytes())
    content[content.rindex(b"sequence") - 4] ^= 2
    env.path.write_bytes(content)
    with pytest.raises(Damaged, match=r"meta: page \d+ is not what it should be"):
        check_pages(env.path)


def test_an_entry_of_the_main_tree_that_is_said_to_be_none_is_noticed(tmp_path: Path) -> None:
    open_environment(tmp_path, MAP_SIZE).close()
    file = tmp_path / FILE_NAME
    content = bytearray(file.read_bytes())
    content[content.rindex(b"wal") - 4] ^= 2
    file.write_bytes(content)
    with pytest.raises(Damaged, match=r"main: page \d+ is not what it should be"):
        check_pages(file)


@pytest.mark.parametrize("at", [FREE_FLAGS_AT, MAIN_FLAGS_AT])
def test_each_bit_of_the_kind_of_the_two_trees_without_a_name_matters(
    tmp_path: Path, at: int
) -> None:
    """But one, by which LMDB notes that it was not given a folder."""
    open_environment(tmp_path, MAP_SIZE).close()
    file = tmp_path / FILE_NAME
    content = file.read_bytes()
    for bit in set(range(16)) - ({14} if at == FREE_FLAGS_AT else set()):
        changed = bytearray(content)
        for place in (0, PAGE):
            changed[place + at + bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        with pytest.raises(Damaged, match="the kind of its trees is not what was written"):
            check_pages(file)


def test_a_list_of_free_pages_that_does_not_descend_is_noticed(file: Path) -> None:
    """LMDB would take pages for free that are between two that it thinks are in a row."""
    content = bytearray(file.read_bytes())
    _, newest = _metas(bytes(content), PAGE)
    pages = Pages.of(np.frombuffer(content, np.uint8)[: (newest.last + 1) * PAGE], PAGE)
    lists = [entry.value for entry in pages.walk(newest.free, integers=True, keep=True)]
    found = max(lists, key=len)
    assert len(found) > 8 * 3
    swapped = found[:8] + found[16:24] + found[8:16] + found[24:]
    assert content.count(found) == 1
    file.write_bytes(bytes(content).replace(found, swapped))
    with pytest.raises(Damaged, match="free pages: an entry is not what it should be"):
        check_pages(file)


def leaves_in_use(content: bytes, size: int = PAGE) -> list[int]:
    """Return the leaves whose first byte matters to someone: those that are in use."""
    whole = np.frombuffer(content, np.uint8)
    _, newest = _metas(bytes(content), size)
    pages = Pages.of(whole[: (newest.last + 1) * size], size)
    for entry in pages.walk(newest.main, of_trees=True, keep=True):
        pages.walk(Tree.read(entry.key.decode(), entry.value))
    leaf = (2).to_bytes(2, "little")
    return [
        page
        for page, is_used in enumerate(pages.used.tolist())
        if is_used and content[page * size + 10 : page * size + 12] == leaf
    ]


@pytest.mark.parametrize("transactions", range(1, 9))
def test_each_bit_of_the_number_of_a_transaction_matters(tmp_path: Path, transactions: int) -> None:
    """A lower number of the last one, or a greater of the one before, hides what was stored."""
    env = open_environment(tmp_path, MAP_SIZE)
    for turn in range(1, transactions):
        with env.lmdb.begin(write=True) as txn:
            txn.put(b"%d" % turn, b"", db=env.databases.dictionary)
    env.close()
    assert (check_pages(env.path), doubt_of_last(env.path)) == (transactions, "")
    content = env.path.read_bytes()
    for place, bit in product(NUMBERS_AT, range(64)):
        changed = bytearray(content)
        changed[place + bit // 8] ^= 1 << bit % 8
        env.path.write_bytes(changed)
        try:
            check_pages(env.path)
        except Damaged as error:
            told = str(error)
        else:
            told = doubt_of_last(env.path)
        assert "last transaction" in told


@pytest.mark.parametrize("is_used_again", [False, True])
def test_a_store_whose_last_transaction_could_not_be_written_is_sound(
    file: Path, is_used_again: bool
) -> None:
    """LMDB then leaves the new trees beside the earlier number, and uses their pages again."""
    failed = _META.unpack_from(file.read_bytes())
    assert (check_pages(file), failed[-1]) == (8, 8)
    hide_last(file)
    content = bytearray(file.read_bytes())
    if is_used_again:
        root = Tree.read("free pages", failed[-4]).root
        content[root * PAGE : (root + 1) * PAGE] = bytes(PAGE)
    file.write_bytes(content)
    assert check_pages(file) == 7
    assert "may be missing" in doubt_of_last(file)
    env = open_environment(file.parent, MAP_SIZE)
    with env.lmdb.begin(write=True) as txn:
        txn.put(b"key", b"", db=env.databases.dictionary)
    assert (check_pages(file), doubt_of_last(file)) == (8, "")
    env.close()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "too short"),
        (b"x" * 9_000, "page 0 does not begin one"),
        (bytes(9_000), "page 0 does not begin one"),
    ],
)
def test_what_is_no_store_is_refused(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(Damaged, match=told):
        check_pages(tmp_path / "file")


def test_a_file_cut_short_is_refused(file: Path) -> None:
    content = file.read_bytes().rstrip(b"\0")
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(Damaged, match="cut short"):
        check_pages(file)


@pytest.mark.parametrize("size", [8_192, 16_384, 32_768])
def test_pages_of_another_size_are_gone_through(file: Path, size: int) -> None:
    other = file.with_name("other.mdb")
    copy_with_pages_of(size, file, other)
    assert read_page_size(other) == size
    assert check_pages(other) == 1
    content = bytearray(other.read_bytes())
    leaf = leaves_in_use(content, size)[-1]
    content[leaf * size + 12] ^= 16
    other.write_bytes(content)
    with pytest.raises(Damaged, match=rf"page {leaf} is not what it should be"):
        check_pages(other)


@pytest.mark.parametrize("told", [0, 1, 512, 4_097, 65_536])
def test_pages_of_a_size_that_cannot_be_are_refused(file: Path, told: int) -> None:
    content = bytearray(file.read_bytes())
    content[PAGE_SIZE_AT : PAGE_SIZE_AT + 4] = told.to_bytes(4, "little")
    file.write_bytes(content)
    with pytest.raises(Damaged, match=f"page 0 tells of pages of {told} bytes, expected one of"):
        check_pages(file)
