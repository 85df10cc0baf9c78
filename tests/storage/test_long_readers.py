"""Pages pinned by an old reader count as used and are reported."""

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
import pytest_twisted
from attrs import define
from support.storage.hits import views
from support.storage.log_lines import logged_warnings

from medamad.domain.errors import Unavailable
from medamad.storage.environment.environment import Environment, open_environment
from medamad.storage.environment.free_space import FreeSpace, LongReaders
from medamad.storage.store import Store

MAP_SIZE = 8 << 20
NAME, VALUE = b"changed", 100_000
READER = """
import sys, lmdb
with lmdb.open(sys.argv[1], subdir=False, readonly=True, lib_version=0, max_dbs=16).begin():
    print("reading", flush=True)
    sys.stdin.read()
"""


@define
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def reading_process(environment: Environment) -> Popen[bytes]:
    """Start reading in another process, until it is killed or its stdin ends."""
    command = [sys.executable, "-c", READER, str(environment.path)]
    reader = Popen(command, stdin=PIPE, stdout=PIPE)
    assert reader.stdout is not None
    assert reader.stdout.readline() == b"reading\n"
    return reader


@pytest.fixture
def small(tmp_path: Path) -> Environment:
    return open_environment(tmp_path / "small", MAP_SIZE)


def change(environment: Environment, times: int = 1) -> None:
    """Replace one value, which frees its pages."""
    for _ in range(times):
        with environment.lmdb.begin(write=True) as txn:
            txn.put(NAME, bytes(VALUE), db=environment.databases.meta)


def used_bytes(room: FreeSpace, environment: Environment) -> int:
    with environment.lmdb.begin(write=True) as txn:
        return room.usage(txn).used


def test_pages_pinned_by_a_reader_count_as_used(small: Environment) -> None:
    clock = Clock()
    room = FreeSpace(small, 0, LongReaders(small, clock))
    change(small, 10)
    before = used_bytes(room, small)
    reader = small.lmdb.begin()
    change(small)
    assert used_bytes(room, small) - before < VALUE / 2
    clock.now += 10
    change(small, 20)
    assert used_bytes(room, small) > before + 15 * VALUE
    assert used_bytes(room, small) <= small.file_bytes()
    reader.abort()
    assert used_bytes(room, small) - before < VALUE / 2
    # And they are used again.
    size = small.file_bytes()
    change(small, 20)
    assert small.file_bytes() == size
    small.close()


def test_free_pages_stay_free_despite_an_old_reader(small: Environment) -> None:
    """A backup of a store with many free pages does not stop the counting."""
    clock = Clock()
    room = FreeSpace(small, 0, LongReaders(small, clock))
    reader = small.lmdb.begin()
    change(small, 70)
    reader.abort()
    change(small)
    before = used_bytes(room, small)
    assert small.file_bytes() > 0.8 * MAP_SIZE
    reader = small.lmdb.begin()
    change(small)
    room.unavailable_reason(reader)
    clock.now += 100
    change(small, 20)
    assert used_bytes(room, small) - before < VALUE / 2
    assert room.unavailable_reason(reader) == ""
    reader.abort()
    small.close()


def test_hits_are_rejected_before_pinned_pages_fill_the_map(small: Environment) -> None:
    clock = Clock()
    room = FreeSpace(small, 0, LongReaders(small, clock))
    reader = small.lmdb.begin()
    lacks = []
    while not lacks or not lacks[-1]:
        change(small)
        clock.now += 1
        with small.lmdb.begin(write=True) as txn:
            lacks.append(room.unavailable_reason(txn))
    assert lacks[-1].endswith("that store.map_size allows are in use")
    assert len(lacks) > 50
    with small.lmdb.begin(write=True) as txn, pytest.raises(Unavailable, match="no hits are taken"):
        room.check(txn)
    reader.abort()
    with small.lmdb.begin(write=True) as txn:
        room.check(txn)
    small.close()


def test_pinned_pages_are_not_free_space_on_a_full_disk(small: Environment) -> None:
    clock = Clock()
    room = FreeSpace(small, 1 << 60, LongReaders(small, clock))
    reader = small.lmdb.begin()
    change(small, 60)
    with small.lmdb.begin(write=True) as txn:
        assert room.unavailable_reason(txn) == ""
    clock.now += 10
    change(small, 2)
    with small.lmdb.begin(write=True) as txn:
        assert "store.min_free_disk asks for" in room.unavailable_reason(txn)
    reader.abort()
    with small.lmdb.begin(write=True) as txn:
        assert room.unavailable_reason(txn) == ""
    small.close()


def test_pages_pinned_by_a_killed_process_are_free(small: Environment) -> None:
    clock = Clock()
    room = FreeSpace(small, 0, LongReaders(small, clock))
    change(small, 10)
    before = used_bytes(room, small)
    with reading_process(small) as reader:
        change(small)
        used_bytes(room, small)
        clock.now += 10
        change(small, 20)
        assert used_bytes(room, small) > before + 15 * VALUE
        reader.kill()
    assert used_bytes(room, small) - before < VALUE / 2
    small.close()


def test_a_long_reader_is_logged_once(small: Environment) -> None:
    clock = Clock()
    long_readers = LongReaders(small, clock)
    reader = small.lmdb.begin()
    with logged_warnings() as lines:
        long_readers.log_long_ones()
        clock.now += 100
        # Nothing was written since it began: it keeps nothing.
        long_readers.log_long_ones()
        change(small)
        long_readers.log_long_ones()
        clock.now += 59
        long_readers.log_long_ones()
        assert lines == []
        for _ in range(3):
            clock.now += 2
            long_readers.log_long_ones()
        (line,) = lines
    assert "has been reading the store for 61 s" in line
    reader.abort()
    small.close()


@pytest_twisted.ensureDeferred
async def test_a_store_looks_for_old_readers_regularly(open_store: Callable[..., Store]) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    clock = Clock()
    store.free_space.long_readers = LongReaders(store.environment, clock)
    reader = store.environment.lmdb.begin()
    await store.append(views(1, 2))
    with logged_warnings() as lines:
        await store.maintain(0)
        clock.now += 61
        await store.maintain(0)
    assert len(lines) == 1
    reader.abort()
    await store.close()
