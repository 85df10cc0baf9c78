"""A new data directory, and one whose store is missing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.storage.log_lines import logged_warnings

from medamad.daemon.presence import Presence
from medamad.storage.environment.environment import (
    FILE_NAME,
    open_as_guest,
    open_environment,
    open_to_read,
)
from medamad.storage.environment.folder import BACKUP_SUFFIX, BACKUPS_NAME, RESTORED_NAME
from medamad.storage.errors import NoStore, StoreError, WrongFormat
from medamad.storage.offline import make_backup
from medamad.storage.restore import restore

MAP_SIZE = 16 << 20


def nobody(_what: str, _done: int, _total: int) -> None:
    """Ignore the call."""


def a_backup(folder: Path) -> None:
    (folder / BACKUPS_NAME).mkdir()
    make_backup(folder, folder / BACKUPS_NAME / f"medamad-1{BACKUP_SUFFIX}", nobody, 0)


def presence(folder: Path) -> None:
    Presence.begin(folder, 1).end(2)


def lock(folder: Path) -> None:
    assert (folder / f"{FILE_NAME}-lock").exists()


@pytest.mark.parametrize(
    ("leave", "name"),
    [(lock, f"{FILE_NAME}-lock"), (presence, "presence.json"), (a_backup, "backups")],
)
def test_a_missing_store_is_not_replaced_by_an_empty_one(
    tmp_path: Path, leave: Callable[[Path], None], name: str
) -> None:
    open_environment(tmp_path, MAP_SIZE).close()
    leave(tmp_path)
    away = (tmp_path / FILE_NAME).rename(tmp_path / "away")
    if leave is not lock:
        (tmp_path / f"{FILE_NAME}-lock").unlink()
    for _ in range(2):
        with pytest.raises(NoStore) as refused:
            open_environment(tmp_path, MAP_SIZE)
        assert str(refused.value) == (
            f"{tmp_path / FILE_NAME}: it is missing, and {name} shows that there was one. Put it"
            f" back, or restore a backup (medamad restore FILE --data {tmp_path}); to begin with an"
            " empty store, delete what is left"
        )
        assert not (tmp_path / FILE_NAME).exists()
    away.rename(tmp_path / FILE_NAME)
    open_environment(tmp_path, MAP_SIZE).close()


def test_a_backup_can_be_restored_where_the_store_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    open_environment(folder, MAP_SIZE).close()
    presence(folder)
    make_backup(folder, tmp_path / f"a{BACKUP_SUFFIX}", nobody, 0)
    (folder / FILE_NAME).unlink()
    with pytest.raises(NoStore):
        open_environment(folder, MAP_SIZE)
    assert restore(tmp_path / f"a{BACKUP_SUFFIX}", folder, nobody).replaced is None
    open_environment(folder, MAP_SIZE).close()


def test_a_killed_first_start_and_other_files_do_not_count_as_a_store(
    tmp_path: Path,
) -> None:
    for name in ("daemon.lock", "store.new", "store.new-lock", "notes.txt", "first-login.txt"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / BACKUPS_NAME).mkdir()
    (tmp_path / BACKUPS_NAME / f".medamad-1{BACKUP_SUFFIX}.part").write_bytes(b"")
    open_environment(tmp_path, MAP_SIZE).close()


def test_a_path_that_is_not_a_directory_is_described(tmp_path: Path) -> None:
    data, disk = tmp_path / "data", tmp_path / "disk"
    data.symlink_to(disk)
    (tmp_path / "file").write_bytes(b"")
    leads = f"{data}: it leads to {disk}, which is not there"
    for folder, message in (
        (data, leads),
        (data / "within", leads),
        (tmp_path / "file", f"{tmp_path / 'file'}: Not a directory"),
    ):
        with pytest.raises(StoreError) as refused:
            open_environment(folder, MAP_SIZE)
        assert str(refused.value) == message
    disk.mkdir()
    open_environment(data, MAP_SIZE).close()
    make_backup(data, tmp_path / f"a{BACKUP_SUFFIX}", nobody, 0)
    with pytest.raises(StoreError, match="file: Not a directory"):
        restore(tmp_path / f"a{BACKUP_SUFFIX}", tmp_path / "file", nobody)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_regular_file_is_a_store(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / FILE_NAME)
    with logged_warnings() as lines:
        for opening in (lambda each: open_environment(each, MAP_SIZE), open_as_guest, open_to_read):
            with pytest.raises(WrongFormat, match=r"store\.mdb: not a store of medamad"):
                opening(tmp_path)
    assert lines == []


def test_leftovers_of_a_killed_restoration_are_removed_at_start(tmp_path: Path) -> None:
    left = {RESTORED_NAME, f"{RESTORED_NAME}-lock"}
    for name in left:
        (tmp_path / name).touch()
    open_environment(tmp_path, MAP_SIZE).close()
    assert not left & {file.name for file in tmp_path.iterdir()}


def test_a_start_rolls_back_an_incomplete_restoration(
    tmp_path: Path,
) -> None:
    store = tmp_path / FILE_NAME
    open_environment(tmp_path, MAP_SIZE).close()
    further, earlier = (tmp_path / f"{FILE_NAME}.replaced-2026010{day}-000000Z" for day in (1, 2))
    further.hardlink_to(store)
    earlier.write_bytes(b"another")
    open_environment(tmp_path, MAP_SIZE).close()
    assert store.exists()
    assert not further.exists()
    assert earlier.exists()


def test_a_replaced_store_that_is_linked_back_stays(tmp_path: Path) -> None:
    store = tmp_path / FILE_NAME
    open_environment(tmp_path, MAP_SIZE).close()
    kept = store.rename(tmp_path / f"{FILE_NAME}.replaced-20260101-000000Z")
    store.symlink_to(kept.name)
    open_environment(tmp_path, MAP_SIZE).close()
    assert kept.exists()
