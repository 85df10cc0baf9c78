"""Commands do not overwrite the daemon's own files."""

from collections.abc import Callable
from pathlib import Path

import pytest

from medamad.cli import main
from medamad.storage.environment.environment import FILE_NAME, LOCK_NAME, open_environment
from medamad.storage.environment.writer import Transaction
from medamad.storage.offline import open_reader
from medamad.storage.websites import Websites

Asked = Callable[[Path], list[str]]

OWN = (
    FILE_NAME,
    f"{FILE_NAME}-lock",
    f"{FILE_NAME}.replaced-20260101-000000Z",
    LOCK_NAME,
    "operator.sock",
    "presence.json",
    ".presence.json.new",
    "first-login.txt",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    environment = open_environment(tmp_path / "data", 16 << 20)
    with environment.lmdb.begin(write=True) as txn:
        Websites(environment.databases).add(Transaction(txn), "example.com", 1)
    environment.close()
    return tmp_path / "data"


def backup(file: Path) -> list[str]:
    return ["backup", str(file)]


def export(file: Path) -> list[str]:
    return ["export", "example.com", "-o", str(file)]


def is_refused(asked: Asked, file: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted((each.name, each.stat().st_ino) for each in data.iterdir())
    assert main([*asked(file), "--data", str(data)]) == 1
    assert capsys.readouterr().err == (
        f"medamad: {file}: this name belongs to one of the daemon's own files,"
        " which would be lost; choose another name\n"
    )
    assert sorted((each.name, each.stat().st_ino) for each in data.iterdir()) == before
    with open_reader(data) as reader:
        assert [website.hostname for website in reader.websites()] == ["example.com"]


@pytest.mark.parametrize("asked", [backup, export])
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("name", OWN)
def test_output_does_not_replace_the_daemons_files(
    data: Path, capsys: pytest.CaptureFixture[str], asked: Asked, name: str, *, is_there: bool
) -> None:
    if is_there:
        (data / name).touch()
    is_refused(asked, data / name, data, capsys)


@pytest.mark.parametrize("asked", [backup, export])
def test_output_through_another_path_does_not_replace_them(
    tmp_path: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    asked: Asked,
) -> None:
    (tmp_path / "folder").symlink_to(data)
    (tmp_path / "link").symlink_to(data / LOCK_NAME)
    is_refused(asked, tmp_path / "folder" / LOCK_NAME, data, capsys)
    is_refused(asked, tmp_path / "link", data, capsys)
    is_refused(asked, data / ".." / "data" / LOCK_NAME, data, capsys)
    monkeypatch.chdir(data)
    is_refused(asked, Path(FILE_NAME), data, capsys)


@pytest.mark.parametrize("asked", [backup, export])
def test_output_does_not_replace_a_store_elsewhere(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str], asked: Asked
) -> None:
    elsewhere = (data / FILE_NAME).rename(tmp_path / "large")
    (data / FILE_NAME).symlink_to(elsewhere)
    is_refused(asked, data / FILE_NAME, data, capsys)
    is_refused(asked, elsewhere, data, capsys)


@pytest.mark.parametrize("asked", [backup, export])
def test_other_files_are_written(tmp_path: Path, data: Path, asked: Asked) -> None:
    (tmp_path / "elsewhere").mkdir()
    for file in (data / "views.csv", tmp_path / "elsewhere" / FILE_NAME):
        assert main([*asked(file), "--data", str(data)]) == 0
        assert file.stat().st_size > 0
