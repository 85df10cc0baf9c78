"""A backup has the store's content; a damaged one is rejected."""

import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import pytest_twisted
from support.storage.backups import SIZES, back_up_of, filled
from support.storage.contents import agrees, orphans, settled, stored_rows
from support.storage.hits import DAY_MS, NOW_MS, unload, views
from support.storage.kill_at_each_step import killed

from medamad.domain.accounts import Account
from medamad.domain.annotations import Annotation
from medamad.storage.backup import no_progress, read_note, write_backup
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import FILE_NAME, open_to_read
from medamad.storage.errors import NoBackup, StoreError
from medamad.storage.offline import make_backup
from medamad.storage.restore import restore
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

OpenStore = Callable[..., Store]


def write(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def mode_of(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def content_of(file: Path) -> bytes:
    return file.read_bytes()


def findings(directory: Path) -> list[str]:
    environment, txn = open_to_read(directory)
    found = list(StoreCheck(environment, txn).findings())
    txn.abort()
    environment.close()
    return found


def files(directory: Path) -> set[str]:
    return {file.name for file in directory.iterdir()}


@pytest_twisted.ensureDeferred
async def test_a_backup_of_a_store_in_use_has_its_content(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store, website = await filled(open_store)
    launch = Annotation(id="id", time="2024-05-01", text="Launch")
    annotations = await store.annotations.change(
        website.number, lambda old: old.with_annotation(launch)
    )
    before = stored_rows(store, website)
    progress: list[tuple[str, int, int]] = []
    note = back_up_of(store, backup, lambda *step: progress.append(step))
    await store.append(views(41, 50))
    assert mode_of(backup) == 0o600
    assert files(tmp_path) == {"data", backup.name}
    assert note.packed_bytes < note.bytes
    assert {what for what, _, _ in progress} == {"copying", "reading it again"}
    assert all(0 < done <= total for _, done, total in progress)
    await store.close()

    restored = restore(backup, tmp_path / "again", no_progress)
    assert (restored.note, restored.replaced) == (note, None)
    assert findings(tmp_path / "again") == []
    assert files(tmp_path / "again") == {FILE_NAME, f"{FILE_NAME}-lock", "daemon.lock"}
    again = open_store(sizes=SIZES, name="again")
    assert again.websites.all() == [website]
    assert stored_rows(again, website) == before
    assert again.annotations.of(website.number) == annotations
    assert again.account.read() == Account("ada", "hash", 1, 1)
    assert again.account.login(b"digest") is None, "a login has come back"
    assert await again.append(views(35, 35)) == [Outcome.REPEATED]
    await again.append([*views(41, 60), unload(5, 800)])
    await settled(again, NOW_MS + 3 * DAY_MS)
    assert len(stored_rows(again, website)[0]) == 60
    again.read(website, agrees)
    assert orphans(again.environment) == []
    await again.close()
    assert findings(tmp_path / "again") == []


@pytest_twisted.ensureDeferred
async def test_verifying_a_backup_pins_no_pages_of_the_store(
    open_store: OpenStore, backup: Path
) -> None:
    store, _ = await filled(open_store)
    reading: dict[str, bool] = {}

    def tell(what: str, _done: int, _total: int) -> None:
        readers = store.environment.lmdb.readers().splitlines()[1:]
        reading[what] = any(line.split()[-1] != "-" for line in readers)

    back_up_of(store, backup, tell)
    await store.close()
    assert reading == {"copying": True, "reading it again": False}


@pytest_twisted.ensureDeferred
async def test_a_backup_leaves_out_free_pages(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store, _ = await filled(open_store)
    environment = store.environment
    with environment.lmdb.begin(write=True) as txn:
        txn.put(b"large", bytes(24 << 20), db=environment.databases.meta)
    with environment.lmdb.begin(write=True) as txn:
        txn.delete(b"large", db=environment.databases.meta)
    before = environment.path.stat().st_size
    assert before > 24 << 20
    assert back_up_of(store, backup).bytes < 1 << 20
    await store.close()
    restore(backup, tmp_path / "again", no_progress)
    assert (tmp_path / "again" / FILE_NAME).stat().st_size < before / 2


def flipped(content: bytes, place: int) -> bytes:
    changed = bytearray(content)
    changed[place] ^= 0x10
    return bytes(changed)


CHANGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "not a backup of medamad"),
    "something else": (lambda _: b"x" * 5_000, "not a backup of medamad"),
    "cut in its note": (lambda content: content[:900], "checksum of its first part"),
    "cut to its note": (lambda content: content[:1032], "cut short"),
    "cut by a byte": (lambda content: content[:-1], "cut short"),
    "longer": (lambda content: content + b"\0", "something was added"),
    "its magic number": (lambda content: flipped(content, 0), "not a backup of medamad"),
    "its checksum": (lambda content: flipped(content, 30), "checksum of its first part"),
    "its note": (lambda content: flipped(content, 80), "checksum of its first part"),
    "its first frame": (lambda content: flipped(content, 1_033), "damaged"),
    "its midst": (lambda content: flipped(content, len(content) // 2), "damaged"),
    "its end": (lambda content: flipped(content, len(content) - 1), "damaged"),
}


@pytest_twisted.ensureDeferred
async def test_restoring_a_damaged_backup_changes_nothing(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store, _ = await filled(open_store)
    back_up_of(store, backup)
    await store.close()
    content = content_of(backup)
    before = files(tmp_path / "data"), content_of(tmp_path / "data" / FILE_NAME)
    for change, progress in CHANGES.values():
        write(backup, change(content))
        with pytest.raises(NoBackup, match=progress) as caught:
            restore(backup, tmp_path / "data", no_progress)
        assert str(caught.value).startswith(f"{backup}: ")
        assert before == (files(tmp_path / "data"), content_of(tmp_path / "data" / FILE_NAME))


@pytest_twisted.ensureDeferred
async def test_a_backup_of_another_format_is_rejected(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    await open_store().close()
    make_backup(tmp_path / "data", backup, no_progress, 0)
    with backup.open("r+b") as file:
        note = msgspec.structs.replace(read_note(file), format="99")
        file.truncate(0)
        write_backup(file, note, [])
    with pytest.raises(
        NoBackup, match=r"this backup has format 99, and this build of medamad .* formats up to"
    ):
        restore(backup, tmp_path / "again", no_progress)
    assert not (tmp_path / "again").exists()


@pytest_twisted.ensureDeferred
async def test_no_backup_is_begun_without_enough_space(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store = open_store()
    with pytest.raises(StoreError, match=r"MiB of the disk are free, a backup .* needs up to"):
        back_up_of(store, backup, spare_bytes=1 << 60)
    await store.close()
    assert files(tmp_path) == {"data"}


@pytest_twisted.ensureDeferred
async def test_a_failed_backup_keeps_the_previous_one(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store, _ = await filled(open_store)
    back_up_of(store, backup)
    before = content_of(backup)

    def fails(_what: str, _done: int, _total: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        back_up_of(store, backup, fails)
    assert content_of(backup) == before
    assert files(tmp_path) == {"data", backup.name}
    await store.append(views(41, 42))
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_backup_can_be_killed_at_any_step(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    store, website = await filled(open_store)
    before = stored_rows(store, website)
    assert killed("backup", tmp_path / "data", backup) == {"copying", "reading it again"}
    assert files(tmp_path) == {"data", backup.name}
    await store.close()
    restore(backup, tmp_path / "again", no_progress)
    again = open_store(sizes=SIZES, name="again")
    assert stored_rows(again, website) == before
    await again.close()
