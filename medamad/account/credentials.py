"""What a username, a password and the settings may be; the refusals name the field."""

import re
from collections.abc import Mapping
from typing import Final

from attrs import evolve

from medamad.model.accounts import LANGUAGES, SCRIPT_TYPES, Settings
from medamad.model.errors import BadRequest

USERNAME_LENGTH: Final = (3, 48)
PASSWORD_LENGTH: Final = (5, 128)
MAX_LOGIN_TEXT: Final = 1_024
"""What is longer is refused at the login unseen."""

_UNFIT: Final = re.compile(r"[\x00\ud800-\udfff]")
_FIT: Final = "expected text without NUL and without half a surrogate pair"


def check_username(text: str, field: str = "username") -> str:
    """Give the username back, or raise BadRequest: 3 to 48 characters."""
    return _checked(text, field, USERNAME_LENGTH)


def check_password(text: str, field: str = "password") -> str:
    """Give the password back, or raise BadRequest: 5 to 128 characters."""
    return _checked(text, field, PASSWORD_LENGTH)


def check_login(username: str, password: str) -> None:
    """Raise BadRequest for what cannot be looked at: too long, or not text."""
    for field, text in (("username", username), ("password", password)):
        if len(text) > MAX_LOGIN_TEXT:
            raise BadRequest(f"{field}: expected at most {MAX_LOGIN_TEXT} characters")
        if _UNFIT.search(text):
            raise BadRequest(f"{field}: {_FIT}")


def changed_settings(settings: Settings, change: Mapping[str, object]) -> Settings:
    """Give the settings with those members changed that `change` has; others are ignored.

    Raises BadRequest naming `settings.language` or `settings.script_type`.
    """
    if "language" in change:
        settings = evolve(settings, language=_language(change["language"]))
    if "script_type" in change:
        settings = evolve(settings, script_type=_script_type(change["script_type"]))
    return settings


def _checked(text: str, field: str, length: tuple[int, int]) -> str:
    least, most = length
    if not least <= len(text) <= most:
        raise BadRequest(f"{field}: expected {least} to {most} characters, got {len(text)}")
    if _UNFIT.search(text):
        raise BadRequest(f"{field}: {_FIT}")
    return text


def _language(value: object) -> str:
    if not isinstance(value, str) or value not in LANGUAGES:
        raise BadRequest(f"settings.language: expected one of {', '.join(LANGUAGES)}")
    return value


def _script_type(value: object) -> tuple[str, ...]:
    entries = tuple(value) if isinstance(value, list | tuple) else None
    if entries is None or not all(isinstance(e, str) and e in SCRIPT_TYPES for e in entries):
        raise BadRequest(
            f"settings.script_type: expected an array of entries out of {', '.join(SCRIPT_TYPES)}"
        )
    if len(set(entries)) != len(entries):
        raise BadRequest("settings.script_type: expected each entry once")
    return entries
