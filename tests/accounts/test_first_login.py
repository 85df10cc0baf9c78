from pathlib import Path

import pytest

from medamad.accounts.first_login import (
    ConfiguredLogin,
    FirstLogin,
    FirstLoginError,
    configured_login,
    first_login,
    remove_file,
    write_file,
)

UNFIT = "expected text without NUL and without half a surrogate pair"


def test_by_default_nothing_is_given() -> None:
    assert configured_login({}) == ConfiguredLogin(None, None)
    assert configured_login({"CREDENTIALS_DIRECTORY": "/nonexistent"}) == ConfiguredLogin(
        None, None
    )


def test_the_environment_may_give_both() -> None:
    configured = configured_login({"MEDAMAD_USERNAME": "ada", "MEDAMAD_PASSWORD": "12345"})
    assert configured == ConfiguredLogin("ada", "12345")


def test_systemd_credentials_may_give_both(tmp_path: Path) -> None:
    (tmp_path / "medamad.username").write_bytes(b"ada\n")
    (tmp_path / "medamad.password").write_bytes(b" 12345\r\n")
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert configured_login(environ) == ConfiguredLogin("ada", " 12345")
    assert configured_login(environ | {"MEDAMAD_USERNAME": "eve"}) == ConfiguredLogin(
        "eve", " 12345"
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("MEDAMAD_USERNAME", "ab", "MEDAMAD_USERNAME: expected 3 to 48 characters, got 2"),
        ("MEDAMAD_USERNAME", "x" * 49, "MEDAMAD_USERNAME: expected 3 to 48 characters, got 49"),
        ("MEDAMAD_PASSWORD", "", "MEDAMAD_PASSWORD: expected 5 to 128 characters, got 0"),
        ("MEDAMAD_PASSWORD", "abcde\udcff", f"MEDAMAD_PASSWORD: {UNFIT}"),
    ],
)
def test_an_invalid_variable_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(FirstLoginError) as error:
        configured_login({name: value})
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1234", "credential medamad.password: expected 5 to 128 characters, got 4"),
        (b"1234567\xff", "credential medamad.password: expected UTF-8"),
        (b"x" * 10_000, "credential medamad.password: expected 5 to 128 characters, got 4096"),
    ],
)
def test_an_invalid_credential_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "medamad.password").write_bytes(content)
    with pytest.raises(FirstLoginError) as error:
        configured_login({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert str(error.value) == message


def test_an_unreadable_credential_is_named(tmp_path: Path) -> None:
    (tmp_path / "medamad.password").mkdir()
    with pytest.raises(FirstLoginError) as error:
        configured_login({"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert str(error.value) == "credential medamad.password: Is a directory"


def test_what_is_not_given_is_generated(tmp_path: Path) -> None:
    login = first_login(ConfiguredLogin(), tmp_path)
    assert (login.username, login.file) == ("admin", tmp_path / "first-login.txt")
    assert len(login.password) == 20
    assert first_login(ConfiguredLogin(username="ada"), tmp_path).username == "ada"
    assert first_login(ConfiguredLogin(username="ada"), tmp_path).file is not None


def test_a_given_password_is_not_written(tmp_path: Path) -> None:
    login = first_login(ConfiguredLogin(password="12345"), tmp_path)
    assert login == FirstLogin("admin", "12345", None)
    write_file(login)
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    file = tmp_path / "first-login.txt"
    file.write_text("from before")
    file.chmod(0o644)
    (tmp_path / ".first-login.txt.new").write_text("left by a crash")
    write_file(FirstLogin("ada", "12345 é", file))
    assert file.read_text("utf-8") == "username: ada\npassword: 12345 é\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_the_file_is_removed_once(tmp_path: Path) -> None:
    write_file(FirstLogin("ada", "12345", tmp_path / "first-login.txt"))
    remove_file(tmp_path)
    remove_file(tmp_path)
    assert list(tmp_path.iterdir()) == []
