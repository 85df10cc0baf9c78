import fcntl
import os
import resource
import stat
from pathlib import Path

import lmdb
import pytest
from support.storage.page_sizes import copy_with_pages_of

from medamad.storage.environment.environment import (
    FILE_NAME,
    LOCK_NAME,
    open_as_guest,
    open_environment,
    take_lock,
)
from medamad.storage.errors import DamagedStore, NoStore, StoreError, StoreInUse, WrongFormat

MAP_SIZE = 16 << 20
MIB = 1 << 20


def test_a_new_store_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    directory = tmp_path / "made" / "here"
    open_environment(directory, MAP_SIZE).close()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for file in directory.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name


def test_written_data_survives_reopening(tmp_path: Path) -> None:
    first = open_environment(tmp_path, MAP_SIZE)
    with first.lmdb.begin(write=True) as txn:
        txn.put(b"key", b"value", db=first.databases.meta)
    first.close()
    second = open_environment(tmp_path, MAP_SIZE)
    with second.reading() as txn:
        assert txn.get(b"key", db=second.databases.meta) == b"value"
    second.close()


def test_a_second_daemon_is_refused_until_the_first_has_closed(tmp_path: Path) -> None:
    first = open_environment(tmp_path, MAP_SIZE)
    with pytest.raises(StoreInUse, match="another medamad uses this directory"):
        open_environment(tmp_path, MAP_SIZE)
    first.close()
    open_environment(tmp_path, MAP_SIZE).close()


def test_checking_for_a_daemon_does_not_lock_one_out(tmp_path: Path) -> None:
    open_environment(tmp_path, MAP_SIZE).close()
    asking = os.open(tmp_path / LOCK_NAME, os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            os.close(asking)

    os.close(take_lock(tmp_path, sleep))
    assert len(pauses) == 2
    assert sum(pauses) < 0.1


def test_opening_as_a_guest_requires_a_store(tmp_path: Path) -> None:
    with pytest.raises(NoStore):
        open_as_guest(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"not a database " * 1000])
def test_a_foreign_file_is_rejected_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / FILE_NAME
    file.write_bytes(content)
    with pytest.raises(WrongFormat):
        open_environment(tmp_path, MAP_SIZE)
    assert file.read_bytes() == content


def test_another_programs_lmdb_file_is_rejected(tmp_path: Path) -> None:
    env = lmdb.open(str(tmp_path / FILE_NAME), subdir=False, max_dbs=4, lib_version=0)
    env.open_db(b"theirs")
    env.close()
    with pytest.raises(WrongFormat, match="not a store of medamad"):
        open_environment(tmp_path, MAP_SIZE)


def test_a_truncated_file_is_rejected(tmp_path: Path) -> None:
    env = open_environment(tmp_path, MAP_SIZE)
    with env.lmdb.begin(write=True) as txn:
        for number in range(1000):
            txn.put(number.to_bytes(4), b"x" * 500, db=env.databases.meta)
    env.close()
    os.truncate(tmp_path / FILE_NAME, 5 * 4096)
    for _ in range(2):
        with pytest.raises(DamagedStore, match="cut short"):
            open_environment(tmp_path, MAP_SIZE)
    with pytest.raises(DamagedStore, match="cut short"):
        open_as_guest(tmp_path)


def test_a_store_whose_creation_was_interrupted_is_recreated(tmp_path: Path) -> None:
    (tmp_path / "store.new").write_bytes(b"begun")
    open_environment(tmp_path, MAP_SIZE).close()
    assert not (tmp_path / "store.new").exists()
    open_environment(tmp_path, MAP_SIZE).close()


def test_used_bytes_are_less_than_the_files_length(tmp_path: Path) -> None:
    env = open_environment(tmp_path, MAP_SIZE)
    for number in range(40):
        with env.lmdb.begin(write=True) as txn:
            for name in range(50):
                txn.put(f"{number}/{name}".encode(), b"x" * 3000, db=env.databases.meta)
        with env.lmdb.begin(write=True) as txn:
            for name in range(50):
                txn.put(f"+{number}/{name}".encode(), b"x" * 3000, db=env.databases.meta)
            for name in range(50):
                txn.delete(f"+{number}/{name}".encode(), db=env.databases.meta)
        assert (env.lmdb.info()["last_pgno"] + 1) * 4096 <= env.path.stat().st_size
        env.keep_room()
    env.close()
    open_environment(tmp_path, MAP_SIZE).close()


def test_reserved_space_is_allocated_on_disk(tmp_path: Path) -> None:
    """Also for a store that was copied sparsely."""
    path = tmp_path / FILE_NAME
    for values in (0, 50, 300, 1_200):
        env = open_environment(tmp_path, MAP_SIZE)
        with env.lmdb.begin(write=True) as txn:
            for name in range(values):
                txn.put(b"%d" % name, b"x" * 3_000, db=env.databases.meta)
        env.keep_room()
        used = (env.lmdb.info()["last_pgno"] + 1) * 4096
        env.close()
        room = min(max(used, MIB // 2), 4 * MIB)
        assert path.stat().st_blocks * 512 >= used + room
        assert path.stat().st_size <= used + room * 1.25
        size = path.stat().st_size
        os.truncate(path, used)
        os.truncate(path, size)


def test_an_empty_store_takes_less_than_a_megabyte(tmp_path: Path) -> None:
    open_environment(tmp_path, MAP_SIZE).close()
    assert sum(file.stat().st_blocks * 512 for file in tmp_path.iterdir()) < 10**6


def test_freed_pages_are_not_in_use(tmp_path: Path) -> None:
    env = open_environment(tmp_path, MAP_SIZE)

    def used() -> int:
        with env.reading() as txn:
            return env.used_bytes(txn)

    empty = used()
    with env.lmdb.begin(write=True) as txn:
        for number in range(1000):
            txn.put(number.to_bytes(4), b"x" * 500, db=env.databases.dictionary)
    assert used() > empty + 500_000
    with env.lmdb.begin(write=True) as txn:
        txn.drop(env.databases.dictionary, delete=False)
    assert used() < empty + 50_000
    env.close()


def test_a_directory_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="file/data"):
        open_environment(tmp_path / "file" / "data", MAP_SIZE)


def test_a_dangling_link_to_a_store_is_not_replaced(tmp_path: Path) -> None:
    directory, elsewhere = tmp_path / "data", tmp_path / "disk"
    open_environment(directory, MAP_SIZE).close()
    store = directory / FILE_NAME
    store.rename(elsewhere)
    store.symlink_to(elsewhere)
    open_environment(directory, MAP_SIZE).close()
    away = elsewhere.rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(StoreError, match=f"it leads to {elsewhere}, which is not there"):
            open_environment(directory, MAP_SIZE)
        assert store.is_symlink()
        assert not elsewhere.exists()
    away.rename(elsewhere)
    open_environment(directory, MAP_SIZE).close()


def test_a_store_from_a_machine_with_larger_pages_works(tmp_path: Path) -> None:
    env = open_environment(tmp_path, MAP_SIZE)
    with env.lmdb.begin(write=True) as txn:
        txn.put(b"key", b"value" * 5_000, db=env.databases.meta)
    env.close()
    (tmp_path / "moved").mkdir()
    copy_with_pages_of(16_384, env.path, tmp_path / "moved" / FILE_NAME)
    for turn in range(3):
        env = open_environment(tmp_path / "moved", MAP_SIZE)
        with env.lmdb.begin(write=True) as txn:
            assert txn.get(b"key", db=env.databases.meta) == b"value" * 5_000
            assert txn.get(b"%d" % (turn - 1), db=env.databases.meta) == (b"x" if turn else None)
            txn.put(b"%d" % turn, b"x", db=env.databases.meta)
        with env.reading() as txn:
            # Meta with its large value, a leaf of the main tree, and the list of free pages.
            assert env.used_bytes(txn) == 4 * 16_384
        env.keep_room()
        assert env.path.stat().st_size >= (env.lmdb.info()["last_pgno"] + 1 + 128) * 16_384
        env.close()


def test_space_is_reserved_without_opening_another_file(tmp_path: Path) -> None:
    """Hits that were stored must not be reported as lost either."""
    env = open_environment(tmp_path, MAP_SIZE)
    with env.lmdb.begin(write=True) as txn:
        for name in range(900):
            txn.put(b"%d" % name, b"x" * 3_000, db=env.databases.meta)
    bounds = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, bounds[1]))
    try:
        env.keep_room()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, bounds)
    used = (env.lmdb.info()["last_pgno"] + 1) * 4096
    assert env.path.stat().st_size >= used + 3 * MIB
    env.close()
