"""A compacted store has nothing of what was deleted, and all the rest."""

import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile

import pytest
import pytest_twisted
from support.daemon import PATIENCE_S, finished, until
from support.forked_process import fork
from support.storage.backups import SIZES
from support.storage.contents import settled, stored_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view
from support.storage.kill_at_each_step import killed

from medamad.domain.hits import View
from medamad.domain.websites import Website
from medamad.storage.backup import no_progress
from medamad.storage.compact import ask_to_compact, compact, compaction_asked
from medamad.storage.environment.environment import FILE_NAME, TOMBSTONE, open_environment
from medamad.storage.environment.folder import COMPACTED_NAME
from medamad.storage.errors import DamagedStore, NoStore, StoreInUse
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
PAGES = 200


def pages_of(website: Website, word: str) -> list[View]:
    return [
        a_view(website.number, path=f"/{word}/{n:04}", beacon=f"{word}{n}", time_ms=NOW_MS + n)
        for n in range(PAGES)
    ]


async def with_a_deleted_website(open_store: OpenStore) -> tuple[Store, Website]:
    """Open a store with a website, and the remains of another between its data."""
    store = open_store(sizes=SIZES)
    kept = await store.add_website("kept.example", 1)
    gone = await store.add_website("gone.example", 1)
    for batch in range(0, PAGES, 20):
        for website, word in ((kept, "kept"), (gone, "gone")):
            await store.append(pages_of(website, word)[batch : batch + 20])
    await settled(store, NOW_MS + DAY_MS + HOUR_MS + 1)
    await store.delete_website(gone)
    await settled(store, NOW_MS + DAY_MS + HOUR_MS + 2)
    return store, kept


def found(folder: Path, word: str) -> int:
    """Return how many paths of a website can be read in the files of a folder."""
    pattern = re.compile(rb"/%b/\d{4}" % word.encode())
    return len({path for file in folder.iterdir() for path in pattern.findall(file.read_bytes())})


@pytest_twisted.ensureDeferred
async def test_nothing_that_was_deleted_is_left(open_store: OpenStore, tmp_path: Path) -> None:
    store, kept = await with_a_deleted_website(open_store)
    before = stored_rows(store, kept)
    assert len(before[0]) == PAGES
    await store.close()
    data = tmp_path / "data"
    assert found(data, "gone") > 0
    ask_to_compact(data)
    done = compact(data, no_progress)
    assert not done.is_deleting
    assert done.after_bytes == (data / FILE_NAME).stat().st_size < done.before_bytes
    assert (found(data, "gone"), found(data, "kept")) == (0, PAGES)
    assert compaction_asked(data) is None
    assert finished("check", data).stdout.startswith(f"{data / FILE_NAME}: no problems found")
    store = open_store(sizes=SIZES)
    assert stored_rows(store, kept) == before
    await store.append([a_view(kept.number, path="/later")])
    assert len(stored_rows(store, kept)[0]) == PAGES + 1
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_copy_that_cannot_be_read_does_not_take_the_place_of_the_store(
    open_store: OpenStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = await with_a_deleted_website(open_store)
    await store.close()

    def damage(new: Path) -> None:
        pages = bytearray(new.read_bytes())
        pages[2 * 4_096 :] = b"\xff" * (len(pages) - 2 * 4_096)
        new.write_bytes(pages)

    monkeypatch.setattr("medamad.storage.compact.sync", damage)
    data = tmp_path / "data"
    before = (data / FILE_NAME).read_bytes()
    with pytest.raises(DamagedStore):
        compact(data, no_progress)
    assert (data / FILE_NAME).read_bytes() == before


@pytest_twisted.ensureDeferred
async def test_a_deletion_that_is_not_finished_is_reported(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store, kept = await with_a_deleted_website(open_store)
    await store.close()
    environment = open_environment(tmp_path / "data", 64 << 20)
    with environment.lmdb.begin(write=True) as txn:
        other = (kept.number + 7).to_bytes(4, "big")
        txn.put(TOMBSTONE + other, b"", db=environment.databases.meta)
    environment.close()
    assert compact(tmp_path / "data", no_progress).is_deleting


@pytest_twisted.ensureDeferred
async def test_a_compaction_can_be_killed_at_any_step(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store, kept = await with_a_deleted_website(open_store)
    before = stored_rows(store, kept)
    await store.close()
    data = tmp_path / "data"
    assert killed("compact", data) >= {"copying"}
    assert found(data, "gone") == 0
    assert not (data / COMPACTED_NAME).exists()
    store = open_store(sizes=SIZES)
    assert stored_rows(store, kept) == before
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_a_killed_compaction_leaves_is_removed_by_the_next_start(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store, _ = await with_a_deleted_website(open_store)
    await store.close()
    left = tmp_path / "data" / COMPACTED_NAME
    left.write_bytes(b"the beginning of it")
    await open_store(sizes=SIZES).close()
    assert not left.exists()


@pytest_twisted.ensureDeferred
async def test_a_write_that_fails_leaves_the_store_as_it_was(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """The disk has room at first, and none later."""
    store, _ = await with_a_deleted_website(open_store)
    await store.close()
    file = tmp_path / "data" / FILE_NAME
    before = file.read_bytes()
    done = finished(
        "compact",
        tmp_path / "data",
        before="import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        " resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, 65_536))",
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"medamad: {file}: ")
    assert file.read_bytes() == before
    assert not (tmp_path / "data" / COMPACTED_NAME).exists()


@pytest_twisted.ensureDeferred
async def test_a_command_that_writes_meanwhile_waits_and_fails(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """What it wrote into the old file would be lost, so it says that there is another one."""
    store, _ = await with_a_deleted_website(open_store)
    await store.close()
    data, writers = tmp_path / "data", []
    with TemporaryFile("w+") as nothing, TemporaryFile("w+") as output:

        def begin_to_write(what: str, _done: int, _total: int) -> None:
            if what == "copying" and not writers:
                command = ("token", "add", "new", "--data", str(data))
                writers.append(fork(command, (nothing, output, output)))
                until(lambda: has_open(writers[0].pid, data / FILE_NAME))

        compact(data, begin_to_write)
        assert writers[0].wait(PATIENCE_S) == 1
        output.seek(0)
        assert "is no longer the file that was opened" in output.read()


def has_open(pid: int, file: Path) -> bool:
    """Return whether a process has a file open."""
    return any(descriptor.resolve() == file for descriptor in Path(f"/proc/{pid}/fd").iterdir())


def test_where_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(NoStore):
        compact(tmp_path, no_progress)
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_use(tmp_path: Path) -> None:
    environment = open_environment(tmp_path, 16 << 20)
    with pytest.raises(StoreInUse):
        compact(tmp_path, no_progress)
    environment.close()


def test_a_damaged_store_is_not_replaced(tmp_path: Path) -> None:
    open_environment(tmp_path, 16 << 20).close()
    file = tmp_path / FILE_NAME
    damaged = file.read_bytes()[:8192] + b"\xff" * 8192 + file.read_bytes()[16384:]
    file.write_bytes(damaged)
    with pytest.raises(DamagedStore):
        compact(tmp_path, no_progress)
    assert file.read_bytes() == damaged
