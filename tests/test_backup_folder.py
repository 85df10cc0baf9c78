"""The program that works in the folder of backups."""

import stat
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from medamad.daemon.backup_folder import do_task, main
from medamad.domain.backups import Done, Task
from medamad.storage.environment.environment import open_environment

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
NAME = "medamad-20260310-120000Z.mdb.zst"


def task_in(folder: Path, due: float = NOON) -> Task:
    return Task(folder=str(folder), now=NOON, due=due, trusted=NOON, keep=2)


def test_one_is_made_in_a_folder_that_is_made_for_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "mount" / "backups"
    done = do_task(task_in(folder), Path.touch)
    assert done == Done(newest=int(NOON), made=str(folder / NAME))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / NAME).exists()


def test_one_that_is_not_due_is_not_made_and_none_goes(tmp_path: Path) -> None:
    for day in (7, 8, 9):
        (tmp_path / f"medamad-2026030{day}-120000Z.mdb.zst").touch()
    before = sorted(tmp_path.iterdir())
    yesterday = NOON - 86_400
    assert do_task(task_in(tmp_path, yesterday), Path.touch) == Done(newest=int(yesterday))
    assert sorted(tmp_path.iterdir()) == before
    assert do_task(task_in(tmp_path, yesterday + 1), Path.touch).made == str(tmp_path / NAME)
    assert sorted(tmp_path.iterdir()) == [*before[2:], tmp_path / NAME]


def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(tmp_path: Path) -> None:
    for day in (6, 7):
        (tmp_path / f"medamad-2026030{day}-120000Z.mdb.zst").mkdir()
    for day in (8, 9):
        (tmp_path / f"medamad-2026030{day}-120000Z.mdb.zst").touch()
    done = do_task(task_in(tmp_path), Path.touch)
    assert (done.made, "20260307" in done.stays) == (str(tmp_path / NAME), True)
    assert not (tmp_path / "medamad-20260308-120000Z.mdb.zst").exists()


def test_one_that_is_told_to_end_says_so_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.nice", lambda _by: 0)
    monkeypatch.setattr("medamad.backup_folder.make_backup", end)
    task = msgspec.json.encode(task_in(tmp_path)).decode()
    assert main([str(tmp_path), "1", task]) == 1
    assert capsys.readouterr().err == "it was told to end by a signal"


def test_one_of_the_same_second_has_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / NAME).touch()
    done = do_task(task_in(tmp_path, NOON + 1), Path.touch)
    assert done.made == str(tmp_path / "medamad-20260310-120000Z-2.mdb.zst")


def test_it_says_what_it_did_or_why_it_could_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A test is not to slow down those after it.
    monkeypatch.setattr("os.nice", lambda _by: 0)
    open_environment(tmp_path / "data", 16 << 20).close()

    def run(data: str, folder: Path) -> int:
        task = msgspec.json.encode(task_in(folder)).decode()
        return main([str(tmp_path / data), "1", task])

    assert run("data", tmp_path / "backups") == 0
    said = msgspec.json.decode(capsys.readouterr().out, type=Done)
    assert said == Done(newest=int(NOON), made=str(tmp_path / "backups" / NAME))
    assert run("none", tmp_path / "others") == 1
    assert capsys.readouterr().err == f"{tmp_path}/none: there is no store here"
    file = tmp_path / "backups" / NAME
    assert run("data", file / "folder") == 1
    assert capsys.readouterr().err == f"{file}/folder: Not a directory"
