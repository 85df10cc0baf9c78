"""A restored store replaces the previous one, which is kept."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from support.storage.backups import SIZES, back_up_of, filled
from support.storage.contents import stored_rows
from support.storage.hits import views
from support.storage.kill_at_each_step import killed

from medamad.storage.backup import no_progress
from medamad.storage.environment.environment import FILE_NAME, open_as_guest
from medamad.storage.environment.folder import PRESENCE_NAME
from medamad.storage.environment.meta import read_number
from medamad.storage.errors import StoreInUse
from medamad.storage.import_batches import LAST_BATCH
from medamad.storage.restore import restore
from medamad.storage.store import Store
from medamad.storage.wal.records import RecordKind, sound_rows

OpenStore = Callable[..., Store]


@pytest_twisted.ensureDeferred
async def test_the_replaced_store_is_kept(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store, website = await filled(open_store)
    back_up_of(store, backup)
    await store.append(views(41, 50))
    later = stored_rows(store, website)
    with pytest.raises(StoreInUse, match="another medamad uses this directory"):
        restore(backup, tmp_path / "data", no_progress)
    await store.close()
    kept = restore(backup, tmp_path / "data", no_progress).replaced
    assert kept is not None
    store = open_store(sizes=SIZES)
    assert len(stored_rows(store, website)[0]) == 40
    await store.close()
    (tmp_path / "old").mkdir()
    kept.rename(tmp_path / "old" / FILE_NAME)
    old = open_store(sizes=SIZES, name="old")
    assert stored_rows(old, website) == later
    await old.close()


@pytest_twisted.ensureDeferred
async def test_no_hit_gets_the_number_of_one_that_the_replaced_store_counted(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    def numbers(name: str) -> set[int]:
        guest = open_as_guest(tmp_path / name)
        with guest.lmdb.begin() as txn, txn.cursor(db=guest.databases.wal) as cursor:
            rows, _ = sound_rows(cursor)
        guest.close()
        return set(rows[RecordKind.VIEW]["sequence"].tolist())

    store = open_store()
    await store.add_website("example.com", 1)
    await store.append(views(1, 3))
    back_up_of(store, backup)
    await store.append(views(4, 9))
    await store.close()
    restore(backup, tmp_path / "again", no_progress)
    again = open_store(name="again")
    await again.append(views(14, 19))
    await again.close()
    assert len(numbers("data")) == len(numbers("again")) == 9
    assert len(numbers("data") & numbers("again")) == 3


@pytest.mark.parametrize("spool_hours", [0, 72])
@pytest_twisted.ensureDeferred
async def test_no_website_or_import_gets_a_number_that_the_cluster_may_have_rows_of(
    open_store: OpenStore, tmp_path: Path, backup: Path, spool_hours: int
) -> None:
    store = open_store(spool_hours=spool_hours)
    await store.add_website("example.com", 1)
    # Has committed its marks by now.
    back_up_of(store, backup)
    began = int(time.time())
    await store.add_website("later.example", 1)
    await store.close()
    restore(backup, tmp_path / "data", no_progress)
    store = open_store(spool_hours=spool_hours)
    added = await store.add_website("other.example", 1)
    with store.environment.reading() as txn:
        last_import = read_number(txn, store.environment.databases.meta, LAST_BATCH)
    await store.close()
    if spool_hours:
        assert min(added.number, last_import + 1) > began
    else:
        assert (added.number, last_import) == (2, 0)


@pytest_twisted.ensureDeferred
async def test_a_restoration_can_be_killed_at_any_step(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store, website = await filled(open_store)
    before = stored_rows(store, website)
    back_up_of(store, backup)
    await store.append(views(41, 50))
    later = stored_rows(store, website)
    await store.close()
    assert killed("restore", tmp_path / "data", backup) == {"unpacking", "putting it in place"}
    stores = [
        file for file in (tmp_path / "data").iterdir() if file.suffix[:5] in (".mdb", ".repl")
    ]
    contents: list[Any] = []
    for number, file in enumerate(sorted(stores)):
        (tmp_path / str(number)).mkdir()
        os.link(file, tmp_path / str(number) / FILE_NAME)
        one = open_store(sizes=SIZES, name=str(number))
        contents.append(stored_rows(one, website))
        await one.close()
    assert contents[0] == before
    assert later in contents, "what was there before is gone"


@pytest_twisted.ensureDeferred
async def test_recent_activity_is_cleared_before_the_store_is_replaced(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    """Otherwise the gap of a killed restoration would be reported as silence."""
    store, _ = await filled(open_store)
    back_up_of(store, backup)
    await store.close()
    file, presence = tmp_path / "data" / FILE_NAME, tmp_path / "data" / PRESENCE_NAME
    before = file.stat().st_ino
    presence.mkdir()
    with pytest.raises(IsADirectoryError):
        restore(backup, tmp_path / "data", no_progress)
    assert file.stat().st_ino == before, "another, although it could not be forgotten"
    presence.rmdir()
    presence.write_text("{}", "ascii")
    restore(backup, tmp_path / "data", no_progress)
    assert file.stat().st_ino != before
    assert not presence.exists()
