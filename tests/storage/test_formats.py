"""Stores of earlier versions of the program: opened, they become what this one makes."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import lmdb
import pytest
import pytest_twisted
from support.storage.contents import agrees, durations, held, orphans, segments_and_groups, settled
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, event, leaving, views
from support.storage.kill_at_each_step import killed

from medamad.domain.accounts import Account, Login
from medamad.storage.compaction.planner import Sizes
from medamad.storage.environment.checksums import verified
from medamad.storage.environment.environment import (
    FILE_NAME,
    open_as_guest,
    open_environment,
    open_to_copy,
)
from medamad.storage.environment.formats import FORMAT, tell_nobody
from medamad.storage.errors import StoreError, WrongFormat
from medamad.storage.restore import restore
from medamad.storage.store import Store
from medamad.storage.wal.journal import Outcome

OpenStore = Callable[..., Store]

OF_BLOCKS = ("headers", "segments", "counters", "corrections", "purge_queue")


FLUSHED = ("websites", "logins", "beacons")
SIZES = {b"sequence": 8, b"last-website": 4, b"last-block": 4}


def make_older(folder: Path, version: bytes) -> None:
    """Make the store what a version without segments, checksums or batches would have made."""
    guest = open_as_guest(folder)
    with guest.lmdb.begin(write=True) as txn:
        txn.drop(guest.databases.import_batches)
        txn.delete(b"store-id", db=guest.databases.meta)
        for name in OF_BLOCKS if version == b"1" else ():
            txn.drop(getattr(guest.databases, name))
        for name in FLUSHED if version != b"3" else ():
            database = getattr(guest.databases, name)
            for key, value in list(txn.cursor(db=database)):
                txn.put(key, verified(key, value), db=database)
        for key, value in list(txn.cursor(db=guest.databases.meta)):
            if key != b"format" and version != b"3":
                kept = verified(key, value)
                txn.put(key, kept[-SIZES.get(key, 1000) :], db=guest.databases.meta)
        txn.put(b"format", version, db=guest.databases.meta)
    guest.close()


@pytest.mark.parametrize("version", [b"1", b"2", b"3"])
@pytest_twisted.ensureDeferred
async def test_a_store_of_before_gets_what_is_new(
    open_store: OpenStore, tmp_path: Path, version: bytes
) -> None:
    store = open_store()
    await store.account.put(Account("ada", "hash", 1, 1))
    await store.account.add_login(b"digest", Login(1, 2))
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 30), event("b1"), leaving(2, 700)])
    before = held(store, website)
    await store.close()
    make_older(tmp_path / "data", version)
    with pytest.raises(WrongFormat, match=r"of an earlier version: start the daemon"):
        open_as_guest(tmp_path / "data")
    store = open_store(sizes=Sizes(chunk_views=4, group_members=2, counted_from=0))
    assert held(store, website) == before
    assert store.account.read() == Account("ada", "hash", 1, 1)
    assert store.account.login(b"digest") == Login(1, 2)
    assert (await store.add_website("other.example", 1)).number == website.number + 1
    assert await store.append(views(4, 4)) == [Outcome.REPEATED]
    with store._environment.reading() as txn:
        assert txn.get(b"format", db=store._environment.databases.meta) == b"%d" % FORMAT
        assert len(store._environment.store_id(txn)) == 16
    await store.append([leaving(3, 900)])
    await settled(store, NOW_MS + DAY_MS + HOUR_MS + 1)
    assert min(segments_and_groups(store._environment)) > 0
    assert durations(store, website)["/3"] == 900
    assert len(durations(store, website)) == 30
    store.ask(website, agrees)
    assert orphans(store._environment) == []
    await store.close()


@pytest.mark.parametrize("found", [b"0", b"5", b"", b"two", b"1.5"])
@pytest_twisted.ensureDeferred
async def test_any_other_is_refused_and_left_alone(
    open_store: OpenStore, tmp_path: Path, found: bytes
) -> None:
    store = open_store()
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        txn.put(b"format", found, db=guest.databases.meta)
    guest.close()
    before = (tmp_path / "data" / "store.mdb").read_bytes()
    for _ in range(2):
        with pytest.raises(WrongFormat, match="this program knows format"):
            open_store()
    assert (tmp_path / "data" / "store.mdb").read_bytes() == before


def everything(folder: Path) -> dict[bytes, list[tuple[bytes, bytes]]]:
    """Read all that is in a store of whatever format, but its logins."""
    env, txn, _ = open_to_copy(folder)
    found = {}
    for name in list(txn.cursor().iternext(values=False)):
        database = env.open_db(name, txn=txn, create=False)
        found[name] = [] if name == b"logins" else list(txn.cursor(db=database))
    txn.abort()
    env.close()
    return found


def fill_up(file: Path) -> int:
    """Store something until there is no more room; returns the map size by which that is so."""
    map_size = file.stat().st_size
    env = lmdb.open(str(file), subdir=False, max_dbs=16, lib_version=0, map_size=map_size)
    journal = env.open_db(b"wal")
    for size in (1_000_000, 3_000, 1):
        with suppress(lmdb.MapFullError):
            for number in count():
                with env.begin(write=True) as txn:
                    txn.put(b"\xff-%d-%d" % (size, number), bytes(size), db=journal)
    env.close()
    return map_size


@pytest.mark.parametrize("version", [b"1", b"2", b"3"])
@pytest_twisted.ensureDeferred
async def test_a_take_over_can_be_killed_at_any_step_and_be_undone(
    open_store: OpenStore, tmp_path: Path, version: bytes
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 30), event("b1"), leaving(2, 700)])
    before = held(store, website)
    await store.close()
    folder = tmp_path / "data"
    make_older(folder, version)
    older = everything(folder)
    steps = {"copying", "reading it again", "storing the new format"}
    assert killed("take-over", folder) == steps | (
        {"adding checksums"} if version < b"3" else set()
    )
    store = open_store()
    assert held(store, website) == before
    await store.close()
    (backup,) = (folder / "backups").glob("*")
    assert backup.name.startswith(f"before-format-{FORMAT}-")

    restored = restore(backup, folder, tell_nobody)
    assert restored.note.format == version.decode()
    assert everything(folder) == older
    store = open_store()
    assert held(store, website) == before
    await store.close()
    assert len(list((folder / "backups").glob("*"))) == 2, "another state has another backup"


@pytest_twisted.ensureDeferred
async def test_none_is_taken_over_without_a_backup(open_store: OpenStore, tmp_path: Path) -> None:
    await open_store().close()
    folder = tmp_path / "data"
    make_older(folder, b"3")
    older = everything(folder)
    (folder / "backups").write_text("in the way")
    with pytest.raises(StoreError, match=r"not taken over into format 4, since no backup could"):
        open_store()
    assert everything(folder) == older


@pytest_twisted.ensureDeferred
async def test_one_for_which_there_is_no_room_is_not_taken_over(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """It is told what there is too little of, not that it is no store."""
    store = open_store()
    await store.add_website("example.com", 1)
    await store.append(views(1, 2_000))
    await store.close()
    folder = tmp_path / "data"
    make_older(folder, b"2")
    map_size = fill_up(folder / FILE_NAME)
    older = everything(folder)
    told = "not taken over into format 4: all that store.map_size allows is in use$"
    with pytest.raises(StoreError, match=told) as refused:
        open_environment(folder, map_size)
    assert not isinstance(refused.value, WrongFormat)
    assert everything(folder) == older
    store = open_store()
    assert len(held(store, store.websites.all()[0])[0]) == 2_000
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_part_of_an_older_store_that_has_another_name_is_not_replaced(
    open_store: OpenStore, tmp_path: Path
) -> None:
    """It would look as if it had never been."""
    store = open_store()
    await store.add_website("example.com", 1)
    await store.close()
    make_older(tmp_path / "data", b"3")
    file = tmp_path / "data" / "store.mdb"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"websites", b"websiteq"))
    with pytest.raises(WrongFormat, match="it has a part named b'websiteq'"):
        open_store()
    file.write_bytes(content)
    store = open_store()
    assert [website.hostname for website in store.websites.all()] == ["example.com"]
    await store.close()
