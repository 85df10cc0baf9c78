import json
import os
from pathlib import Path
from socket import AF_UNIX, socket

import pytest

from medamad.cli import main
from medamad.daemon.presence import Presence
from medamad.storage.environment.environment import FILE_NAME, open_environment
from medamad.storage.environment.meta import FORMAT
from medamad.storage.environment.writer import Transaction
from medamad.storage.offline import open_reader
from medamad.storage.websites import Websites

FIRST_LOGIN = "first-login.txt"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    open_environment(tmp_path / "data", 16 << 20).close()
    return tmp_path / "data"


@pytest.fixture
def backup(tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    file = tmp_path / "backup.mdb.zst"
    assert main(["backup", str(file), "--data", str(data)]) == 0
    assert capsys.readouterr().out.startswith(f"{file}: ")
    return file


def test_json_describes_its_contents(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "backup"
    assert main(["backup", "--json", str(file), "--data", str(data)]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["file"], reported["format"]) == (str(file), str(FORMAT))
    assert len(reported["store"]) == 16
    assert reported["bytes"] > reported["packed_bytes"] > 0


def test_rotation_writes_dated_backups_where_the_configuration_says(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "medamad.toml"
    config.write_text('[backup]\nfolder = "kept"\nkeep = 1\n', "utf-8")
    written = []
    for _ in range(2):
        given = ["--data", str(data), "--config", str(config)]
        assert main(["backup", "--rotate", "--json", *given]) == 0
        written.append(Path(json.loads(capsys.readouterr().out)["file"]))
    assert list((tmp_path / "kept").iterdir()) == [written[1]]
    assert main(["restore", str(written[1]), "--data", str(tmp_path / "new")]) == 0


def test_without_a_configuration_rotation_writes_into_the_data_directory(data: Path) -> None:
    assert main(["backup", "--rotate", "--data", str(data)]) == 0
    (file,) = (data / "backups").iterdir()
    assert file.name.startswith("medamad-")


@pytest.mark.parametrize("arguments", [[], ["--rotate", "file"]])
def test_a_backup_goes_to_a_file_or_is_rotated(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["backup", *arguments])
    assert ended.value.code == 64


def test_a_missing_store_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backup", str(tmp_path / "b"), "--data", str(tmp_path / "no")]) == 1
    assert capsys.readouterr().err == f"medamad: {tmp_path}/no: there is no store here\n"


def test_a_missing_folder_is_named(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["backup", str(tmp_path / "no" / "b"), "--data", str(data)]) == 1
    assert f"{tmp_path}/no" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["pipe", "socket", "folder", "loop", "-"])
def test_only_a_regular_file_is_replaced(
    tmp_path: Path,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(there)
    with socket(AF_UNIX) as listening:
        match what:
            case "pipe":
                os.mkfifo(what)
            case "socket":
                listening.bind(what)
            case "folder":
                Path(what).mkdir()
            case "loop":
                Path(what).symlink_to(what)
        before = [(each.name, each.lstat().st_ino) for each in there.iterdir()]
        assert main(["backup", "--data", str(data), "--", what]) == 1
        assert [(each.name, each.lstat().st_ino) for each in there.iterdir()] == before
    assert capsys.readouterr().err.startswith("medamad: " + ("FILE: " if what == "-" else what))


@pytest.mark.parametrize("is_there", [True, False])
def test_a_symlink_is_followed(tmp_path: Path, data: Path, *, is_there: bool) -> None:
    (tmp_path / "disk").mkdir()
    file, link = tmp_path / "disk" / "b", tmp_path / "link"
    link.symlink_to(Path("disk") / "b")
    if is_there:
        file.touch()
    assert main(["backup", str(link), "--data", str(data)]) == 0
    assert link.is_symlink()
    assert main(["restore", str(file), "--data", str(tmp_path / "new")]) == 0


def test_min_free_disk_is_kept_free(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "medamad.toml"
    config.write_text('[store]\nmin_free_disk = "1000 TiB"\n', "utf-8")
    given = ["--data", str(data), "--config", str(config)]
    assert main(["backup", str(tmp_path / "b"), *given]) == 1
    assert "MiB of the disk are free, a backup of this store needs up to" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()
    assert main(["backup", str(tmp_path / "b"), *given, "--min-free-disk", "1 KiB"]) == 0
    with pytest.raises(SystemExit) as ended:
        main(["backup", str(tmp_path / "b"), "--min-free-disk", "much"])
    assert ended.value.code == 64
    assert "--min-free-disk: expected bytes as a whole number" in capsys.readouterr().err


def test_the_first_login_file_is_kept_with_its_store(
    data: Path, backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / FIRST_LOGIN).write_text("password: of the other store", "utf-8")
    assert main(["restore", str(backup), "--data", str(data)]) == 0
    out = capsys.readouterr().out
    (kept,) = data.glob(f"{FILE_NAME}.replaced-*")
    assert f"The old store is kept as {kept}" in out
    assert "All logins have ended." in out
    (login,) = data.glob(f"{FIRST_LOGIN}*")
    assert login.name == f"{FIRST_LOGIN}{kept.suffix}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_restores_belongs_to_the_daemons_user(data: Path, backup: Path) -> None:
    for file in (data, *data.iterdir()):
        os.chown(file, 12_345, 12_346)
    (data / "daemon.lock").unlink()
    assert main(["restore", str(backup), "--data", str(data)]) == 0
    assert main(["check", "--data", str(data)]) == 0
    owners = {file.name: (file.stat().st_uid, file.stat().st_gid) for file in data.iterdir()}
    assert set(owners.values()) == {(12_345, 12_346)}, owners
    assert {"daemon.lock", FILE_NAME, f"{FILE_NAME}-lock"} <= owners.keys()


def test_a_restore_does_not_look_like_silence(data: Path, backup: Path) -> None:
    """What came between the backup and now is not in it, though the daemon was there."""
    Presence.begin(data, 1).end(2)
    assert main(["restore", str(backup), "--data", str(data)]) == 0
    assert Presence.begin(data, 3).since_ms == 3


def test_the_replaced_store_can_be_renamed_back(data: Path, backup: Path) -> None:
    def websites() -> list[str]:
        with open_reader(data) as reader:
            return [website.hostname for website in reader.websites()]

    environment = open_environment(data, 16 << 20)
    with environment.lmdb.begin(write=True) as txn:
        Websites(environment.databases).add(Transaction(txn), "since.example", 1)
    environment.close()
    assert main(["restore", str(backup), "--data", str(data)]) == 0
    assert websites() == []
    (kept,) = data.glob(f"{FILE_NAME}.replaced-*")
    (data / FILE_NAME).rename(data / "restored.mdb")
    kept.rename(data / FILE_NAME)
    assert main(["check", "--data", str(data)]) == 0
    assert websites() == ["since.example"]
    open_environment(data, 16 << 20).close()


def test_what_was_revoked_since_a_backup_must_be_revoked_again(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        assert main([*arguments, "--data", str(data)]) == 0
        return capsys.readouterr().out

    token = json.loads(run("token", "add", "report", "--json"))["id"]
    run("backup", str(tmp_path / "backup"))
    run("token", "revoke", token)
    assert json.loads(run("token", "list", "--json")) == []
    run("restore", str(tmp_path / "backup"))
    assert [each["id"] for each in json.loads(run("token", "list", "--json"))] == [token]


def test_without_a_previous_store_nothing_is_kept(
    tmp_path: Path, backup: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["restore", str(backup), "--data", str(tmp_path / "new")]) == 0
    assert "The old store" not in capsys.readouterr().out
    assert main(["check", "--data", str(tmp_path / "new")]) == 0


def test_restoring_what_is_not_a_backup_fails(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = data / FILE_NAME
    assert main(["restore", str(store), "--data", str(data)]) == 1
    assert capsys.readouterr().err == (
        f"medamad: {store}: a store's file as it is, not a backup: to have it back, stop the"
        " daemon, move store.mdb away, give this one its name and the folder's owner"
        f" (chown --reference={data} {store})\n"
    )
    other = tmp_path / "other"
    other.write_bytes(b"no backup " * 1_000)
    assert main(["restore", str(other), "--data", str(data)]) == 1
    assert capsys.readouterr().err.startswith(f"medamad: {other}: not a backup of medamad")
    assert main(["restore", str(tmp_path / "no"), "--data", str(data)]) == 1
    assert f"{tmp_path}/no" in capsys.readouterr().err
