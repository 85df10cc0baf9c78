"""The first account's name and password: given by the operator, or made up and left in a file."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import frozen

from medamad.accounts.credentials import check_password, check_username, random_password
from medamad.domain.errors import BadRequest

FILE_NAME: Final = "first-login.txt"
DEFAULT_USERNAME: Final = "admin"
_MAX_CREDENTIAL: Final = 4_096


class GivenLoginError(Exception):
    """A name or password that the operator gave cannot be used; the text names its source."""


@frozen
class GivenLogin:
    """What the operator gave for the first account; None for what was not given."""

    username: str | None = None
    password: str | None = None


@frozen
class FirstLogin:
    """The first account's name and password. `file` holds both, unless the password was given."""

    username: str
    password: str
    file: Path | None


def given_login(environ: Mapping[str, str]) -> GivenLogin:
    """Read what the operator gave, by environment or systemd credential, the former first.

    `MEDAMAD_USERNAME` and `MEDAMAD_PASSWORD`, or the files `medamad.username` and
    `medamad.password` in `$CREDENTIALS_DIRECTORY` (one newline at the end is none of it).
    Raises GivenLoginError naming the variable or the credential.
    """
    texts: dict[str, str | None] = {}
    for name, check in (("username", check_username), ("password", check_password)):
        source, text = _given(environ, name)
        try:
            texts[name] = None if text is None else check(text, source)
        except BadRequest as refusal:
            raise GivenLoginError(str(refusal)) from None
    return GivenLogin(**texts)


def first_login(given: GivenLogin, data_dir: Path) -> FirstLogin:
    """Settle on the first account's name and password, made up where they were not given."""
    username = given.username or DEFAULT_USERNAME
    if given.password is not None:
        return FirstLogin(username, given.password, None)
    return FirstLogin(username, random_password(), data_dir / FILE_NAME)


def write_file(login: FirstLogin) -> None:
    """Leave the login in its file, if it has one: whole or not at all, readable by us alone."""
    if login.file is not None:
        content = f"username: {login.username}\npassword: {login.password}\n"
        _write(login.file, content.encode())


def read_file(data_dir: Path) -> bytes | None:
    """Return what the file holds, to put it back; None where there is no file."""
    with suppress(FileNotFoundError):
        return (data_dir / FILE_NAME).read_bytes()
    return None


def put_back(content: bytes | None, data_dir: Path) -> None:
    """Leave the file as it was read: the account that it is about is still the same."""
    if content is None:
        remove_file(data_dir)
    else:
        _write(data_dir / FILE_NAME, content)


def remove_file(data_dir: Path) -> None:
    """Remove the file, if there is one: its password is no longer the account's."""
    with suppress(FileNotFoundError):
        (data_dir / FILE_NAME).unlink()
        _sync_folder(data_dir)


def _given(environ: Mapping[str, str], name: str) -> tuple[str, str | None]:
    """Return the source to name in a refusal, and the text, if any."""
    variable = f"MEDAMAD_{name.upper()}"
    if variable in environ:
        return variable, environ[variable]
    credential = f"medamad.{name}"
    source = f"credential {credential}"
    folder = environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return source, None
    try:
        with (Path(folder) / credential).open("rb") as file:
            content = file.read(_MAX_CREDENTIAL)
        return source, content.decode().removesuffix("\n").removesuffix("\r")
    except FileNotFoundError:
        return source, None
    except OSError as error:
        raise GivenLoginError(f"{source}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise GivenLoginError(f"{source}: expected UTF-8") from None


def _write(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{FILE_NAME}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
