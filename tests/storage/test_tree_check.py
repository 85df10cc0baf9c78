"""A child process finds damage in a store's trees that would crash a reader."""

import errno
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from support.storage.page_damage import PAGE

from medamad.storage.environment.environment import (
    FILE_NAME,
    Environment,
    needs_check,
    open_as_guest,
    open_environment,
)
from medamad.storage.environment.folder import STATE_NAME, StoreState, read_state, write_state
from medamad.storage.environment.tree_check import TreeCheck, damage_of, main
from medamad.storage.errors import DamagedStore

MAP_SIZE = 64 << 20
ENTRIES = 4_000
NODE = struct.Struct("<HHHH")
"""What LMDB stores of an entry before its key: two halves of the size, flags, size of the key."""
ELSEWHERE = 1
"""The flag of a value that has pages of its own."""


def fill(environment: Environment) -> None:
    with environment.lmdb.begin(write=True) as txn:
        for number in range(ENTRIES):
            txn.put(b"%08d" % number, b"a value of some bytes", db=environment.databases.codes)
        txn.put(b"large", bytes(20 * PAGE), db=environment.databases.codes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    environment = open_environment(tmp_path, MAP_SIZE)
    fill(environment)
    environment.close()
    return tmp_path


def page_of(content: bytes, text: bytes) -> int:
    return content.index(text) // PAGE


def zero_a_leaf(content: bytearray) -> None:
    page = page_of(content, b"00002000")
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)


def swap_two_leaves(content: bytearray) -> None:
    first, second = (
        slice(p * PAGE, (p + 1) * PAGE)
        for p in (page_of(content, b"00001000"), page_of(content, b"00003000"))
    )
    content[first], content[second] = content[second], content[first]


def change_a_key(content: bytearray) -> None:
    content[content.index(b"00002000")] = 0xFF


def cut_short(content: bytearray) -> None:
    del content[5 * PAGE :]


def change_the_first_page(content: bytearray) -> None:
    content[:PAGE] = bytes(PAGE)


def test_a_sound_store_has_no_damage(folder: Path) -> None:
    before = (folder / FILE_NAME).read_bytes()
    assert damage_of(folder / FILE_NAME) == ""
    assert damage_of(folder / FILE_NAME, is_private=True) == ""
    assert (folder / FILE_NAME).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "damage"),
    [
        (zero_a_leaf, "codes: "),
        (swap_two_leaves, "codes: a key is not found"),
        (change_a_key, "codes: "),
        (cut_short, "the file has been cut short"),
        (change_the_first_page, "its first pages are damaged"),
    ],
)
def test_damage_is_found(folder: Path, change: Callable[[bytearray], None], damage: str) -> None:
    content = bytearray((folder / FILE_NAME).read_bytes())
    change(content)
    (folder / FILE_NAME).write_bytes(content)
    assert damage_of(folder / FILE_NAME).startswith(damage)


def test_damage_that_kills_the_child_is_found(folder: Path) -> None:
    """A value that seems to extend beyond the end of the file: reading it raises SIGBUS."""
    file = folder / FILE_NAME
    content = bytearray(file.read_bytes())
    size = 20 * PAGE
    node = content.index(NODE.pack(size & 0xFFFF, size >> 16, ELSEWHERE, 5) + b"large")
    NODE.pack_into(content, node, size & 0xFFFF, 0x0FFF, ELSEWHERE, 5)
    file.write_bytes(content)
    assert re.fullmatch("codes: to read it ends the process by SIG(BUS|SEGV)", damage_of(file))


def test_a_store_is_checked_while_it_is_written_to(folder: Path) -> None:
    environment = open_environment(folder, MAP_SIZE)
    check = TreeCheck.start(environment.path)
    turn = 0
    while not check.wait(0.01):  # or else the file may be full before the check has started
        with environment.lmdb.begin(write=True) as txn:
            txn.put(b"key-%d" % turn, bytes(500), db=environment.databases.codes)
        turn += 1
    assert check.damage() == ""
    environment.close()


def test_a_check_can_be_stopped(folder: Path) -> None:
    check = TreeCheck.start(folder / FILE_NAME)
    check.stop()
    assert check.wait(0)


# Which stores are checked


def test_a_cleanly_closed_store_needs_no_check(folder: Path) -> None:
    assert not needs_check(folder)
    environment = open_environment(folder, MAP_SIZE)
    assert read_state(folder) is StoreState.OPEN
    assert not needs_check(folder), "it is in use"
    environment.close()
    assert read_state(folder) is StoreState.CLEAN
    guest = open_as_guest(folder)
    guest.close()
    assert not needs_check(folder)


def test_a_folder_without_a_store_needs_no_check(tmp_path: Path) -> None:
    assert not needs_check(tmp_path)


def test_a_store_whose_process_was_killed_needs_a_check(folder: Path) -> None:
    child = os.fork()
    if child == 0:
        open_environment(folder, MAP_SIZE)
        os._exit(0)
    os.waitpid(child, 0)
    assert needs_check(folder)
    assert read_state(folder) is StoreState.OPEN
    open_environment(folder, MAP_SIZE).close()
    assert not needs_check(folder)


@pytest.mark.parametrize("content", [None, b"", b"something else\n"])
def test_a_store_without_a_known_state_needs_a_check(folder: Path, content: bytes | None) -> None:
    (folder / STATE_NAME).unlink()
    if content is not None:
        (folder / STATE_NAME).write_bytes(content)
    assert needs_check(folder)


def test_a_store_stays_marked_until_it_is_checked_completely(folder: Path) -> None:
    write_state(folder, StoreState.UNCHECKED)
    environment = open_environment(folder, MAP_SIZE)
    assert read_state(folder) is StoreState.UNCHECKED
    environment.close()
    assert read_state(folder) is StoreState.OPEN


def test_a_damaged_store_is_not_marked_as_closed(folder: Path) -> None:
    open_environment(folder, MAP_SIZE).close(is_sound=False)
    assert read_state(folder) is StoreState.OPEN


def test_a_rejected_store_keeps_its_state(folder: Path) -> None:
    os.truncate(folder / FILE_NAME, 5 * PAGE)
    with pytest.raises(DamagedStore, match="cut short"):
        open_environment(folder, MAP_SIZE)
    assert read_state(folder) is StoreState.CLEAN


def test_the_check_works_where_a_unit_forbids_it_to_set_limits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_arguments: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr("resource.setrlimit", forbidden)
    monkeypatch.setattr("os.nice", forbidden)
    assert main(folder / FILE_NAME, is_private=False) == 0
