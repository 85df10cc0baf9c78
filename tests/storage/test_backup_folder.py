from datetime import UTC, datetime
from pathlib import Path

import pytest

from medamad.storage.backup import Note, newest_backup, rotate
from medamad.storage.errors import StoreError

NOW = datetime(2026, 3, 4, 3, 30, tzinfo=UTC).timestamp()
DAY_S = 86_400
NOTE = Note(program="1", format="5", store="", made=int(NOW), state="")


def make(file: Path) -> Note:
    file.touch()
    return NOTE


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_backups_are_dated_and_the_oldest_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "backups"
    for day in range(4):
        rotated = rotate(folder, 2, NOW + day * DAY_S, make)
        assert (rotated.file.parent, rotated.note, rotated.not_removed) == (folder, NOTE, ())
    assert names(folder) == ["medamad-20260306-033000Z.mdb.zst", "medamad-20260307-033000Z.mdb.zst"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert newest_backup(folder, NOW + 9 * DAY_S) == NOW + 3 * DAY_S


def test_backups_of_the_same_second_have_different_names(tmp_path: Path) -> None:
    for _ in range(2):
        rotate(tmp_path, 5, NOW, make)
    assert names(tmp_path) == [
        "medamad-20260304-033000Z-2.mdb.zst",
        "medamad-20260304-033000Z.mdb.zst",
    ]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    others = ["before-format-5-20200101-000000Z.mdb.zst", "medamad-20269999-000000Z.mdb.zst", "x"]
    for name in others:
        (tmp_path / name).touch()
    rotate(tmp_path, 1, NOW, make)
    rotate(tmp_path, 1, NOW + DAY_S, make)
    assert names(tmp_path) == sorted([*others, "medamad-20260305-033000Z.mdb.zst"])


def test_a_failed_backup_deletes_no_old_one(tmp_path: Path) -> None:
    rotate(tmp_path, 1, NOW, make)

    def fail(_file: Path) -> Note:
        raise StoreError("no room")

    with pytest.raises(StoreError, match="no room"):
        rotate(tmp_path, 1, NOW + DAY_S, fail)
    assert names(tmp_path) == ["medamad-20260304-033000Z.mdb.zst"]


def test_backups_dated_in_the_future_are_ignored(tmp_path: Path) -> None:
    rotate(tmp_path, 1, NOW + 400 * DAY_S, make)
    rotate(tmp_path, 1, NOW, make)
    assert len(names(tmp_path)) == 2
    assert newest_backup(tmp_path, NOW) == NOW


def test_the_remains_of_a_killed_backup_are_removed(tmp_path: Path) -> None:
    for suffix in ("part", "check"):
        (tmp_path / f".medamad-20260101-000000Z.mdb.zst.{suffix}").touch()
    rotate(tmp_path, 1, NOW, make)
    assert names(tmp_path) == ["medamad-20260304-033000Z.mdb.zst"]


def test_an_old_backup_that_cannot_be_removed_is_reported(tmp_path: Path) -> None:
    old = tmp_path / "medamad-20260101-000000Z.mdb.zst"
    old.mkdir()
    (error,) = rotate(tmp_path, 1, NOW, make).not_removed
    assert error.filename == str(old)


def test_a_folder_that_does_not_exist_has_no_backup(tmp_path: Path) -> None:
    assert newest_backup(tmp_path / "no", NOW) is None
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        newest_backup(tmp_path / "file", NOW)


def test_of_two_backups_of_one_second_the_first_is_deleted(tmp_path: Path) -> None:
    for number in (1, 2):
        kept = rotate(tmp_path, 1, NOW, make).file
        assert names(tmp_path) == [kept.name], number
