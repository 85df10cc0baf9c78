"""The first account's login: set by the operator, or random and left in a file."""

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


class FirstLoginError(Exception):
    """A username or password set by the operator is invalid; the message names its source."""


@frozen
class ConfiguredLogin:
    """What the operator set for the first account; None for what is not set."""

    username: str | None = None
    password: str | None = None


@frozen
class FirstLogin:
    """The first account's login. `file` holds it, unless the operator set the password."""

    username: str
    password: str
    file: Path | None


def configured_login(environ: Mapping[str, str]) -> ConfiguredLogin:
    """Return what the operator set in the environment, or else as systemd credentials.

    `MEDAMAD_USERNAME` and `MEDAMAD_PASSWORD`, or the files `medamad.username` and
    `medamad.password` in `$CREDENTIALS_DIRECTORY` (without a newline at the end).
    Raises FirstLoginError naming the variable or the credential.
    """
    texts: dict[str, str | None] = {}
    for name, check in (("username", check_username), ("password", check_password)):
        source, text = _configured(environ, name)
        try:
            texts[name] = None if text is None else check(text, source)
        except BadRequest as error:
            raise FirstLoginError(str(error)) from None
    return ConfiguredLogin(**texts)


def first_login(configured: ConfiguredLogin, data_dir: Path) -> FirstLogin:
    """Return the first account's login, with defaults for what is not set."""
    username = configured.username or DEFAULT_USERNAME
    if configured.password is not None:
        return FirstLogin(username, configured.password, None)
    return FirstLogin(username, random_password(), data_dir / FILE_NAME)


def write_file(login: FirstLogin) -> None:
    """Write the login to its file, if it has one: atomically, and readable by the owner only."""
    if login.file is not None:
        content = f"username: {login.username}\npassword: {login.password}\n"
        _write(login.file, content.encode())


def read_file(data_dir: Path) -> bytes | None:
    """Return the content of the file, None if there is none."""
    with suppress(FileNotFoundError):
        return (data_dir / FILE_NAME).read_bytes()
    return None


def put_back(content: bytes | None, data_dir: Path) -> None:
    """Restore the file: its account is still there."""
    if content is None:
        remove_file(data_dir)
    else:
        _write(data_dir / FILE_NAME, content)


def remove_file(data_dir: Path) -> None:
    """Delete the file, if there is one: its password is no longer valid."""
    with suppress(FileNotFoundError):
        (data_dir / FILE_NAME).unlink()
        _sync_folder(data_dir)


def _configured(environ: Mapping[str, str], name: str) -> tuple[str, str | None]:
    """Return the source to name in an error, and the text, None if it is not set."""
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
        raise FirstLoginError(f"{source}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FirstLoginError(f"{source}: expected UTF-8") from None


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
