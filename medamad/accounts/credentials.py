"""Usernames, passwords, settings, session tokens and devices: what is valid, how they are hashed.

Devices, by which browsers are recognised at their next login, are not stored. A device's cookie
holds an id and its MAC, keyed by the hash of the account's password with its random salt: only a
successful login yields one, and it is valid until the password changes.
"""

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from attrs import evolve

from medamad.domain.accounts import LANGUAGES, SCRIPT_TYPES, Account, Login, Settings
from medamad.domain.errors import BadRequest
from medamad.domain.texts import UNFIT, UNFIT_NAME

T = TypeVar("T")


class Hashing(Protocol):
    """Runs slow work in the password pool. May raise Unavailable if too much is waiting."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Return the result of `work`, which runs in another thread."""


USERNAME_LENGTH: Final = (3, 48)
PASSWORD_LENGTH: Final = (5, 128)
MAX_LOGIN_TEXT: Final = 1_024
"""A longer username or password is refused at the login without a look at it."""

_FIT: Final = "expected text without NUL and without half a surrogate pair"


def check_username(text: str, field: str = "username") -> str:
    """Return the username, or raise BadRequest: 3 to 48 characters."""
    return _checked(text, field, USERNAME_LENGTH)


def check_password(text: str, field: str = "password") -> str:
    """Return the password, or raise BadRequest: 5 to 128 characters."""
    return _checked(text, field, PASSWORD_LENGTH)


def check_login(username: str, password: str) -> None:
    """Raise BadRequest for a username or password that is too long or not text."""
    for field, text in (("username", username), ("password", password)):
        if len(text) > MAX_LOGIN_TEXT:
            raise BadRequest(f"{field}: expected at most {MAX_LOGIN_TEXT} characters")
        if UNFIT.search(text):
            raise BadRequest(f"{field}: {_FIT}")


def changed_settings(settings: Settings, change: Mapping[str, object]) -> Settings:
    """Return the settings with the members of `change`; unknown members are ignored.

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
    if UNFIT.search(text):
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


_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
"""Argon2id with OWASP's minimum: 19 MiB, two passes, one lane."""

DUMMY_HASH: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1"
    "$bWVkYW1hZC1uby1hY2NvdW50$gE3VlvJ4BI9iBm8ky3YhFbWOYIbPMyFmLWMqVGOFFlM"
)
"""What a password is checked against if the username is wrong: the same work, never a match."""

_RANDOM_BYTES: Final = 15


def hash_password(password: str) -> str:
    """Return Argon2's encoded form of a password, with a random salt."""
    return _HASHER.hash(password)


def verify(encoded: str, password: str) -> bool:
    """Return whether a password matches an encoded form. Nothing matches an unreadable one."""
    try:
        return _HASHER.verify(encoded, password)
    except (Argon2Error, InvalidHashError):
        return False


def random_password() -> str:
    """Return a random password of 20 letters, digits, hyphens and underscores: 120 random bits."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


MAX_NAME: Final = 64


def check_name(text: str) -> str:
    """Return a name without the white space around it. Raises BadRequest: 1 to 64 characters."""
    name = text.strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise BadRequest(f"name: expected 1 to {MAX_NAME} characters, got {len(name)}")
    if UNFIT_NAME.search(name):
        raise BadRequest("name: expected text of one line, without control characters")
    return name


LIFETIME_S: Final = 30 * 86_400
"""A login ends this long after it began."""
IDLE_S: Final = 7 * 86_400
"""A login ends this long after it was last used."""
_TOUCH_S: Final = 60
_TOKEN_BYTES: Final = 32
MAX_TOKEN: Final = 128
"""Characters of a token; a longer text is not even hashed."""


def new_token() -> str:
    """Return a new token: 32 random bytes, as text for a cookie."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def digest(token: str) -> bytes:
    """Return the SHA-256 under which a login is stored, so that a stolen store opens no session."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def has_ended(login: Login, now: float) -> bool:
    """Return whether a login is past its lifetime or has been idle too long."""
    # After the clock was set back, a login may lie in the future. Far ahead, it would never end.
    return abs(now - login.since) > LIFETIME_S or abs(now - login.last_seen) > IDLE_S


def is_stale(login: Login, now: float) -> bool:
    """Return whether `last_seen` is old enough to be worth a write."""
    return now - login.last_seen > _TOUCH_S


DEVICE_LIFETIME_S: Final = 400 * 86_400
"""The longest time that browsers keep a cookie."""
_ID_BYTES: Final = 32
_MAX_TEXT: Final = 128
_SEPARATOR: Final = "."


def new_device(account: Account) -> str:
    """Return a new device, as text for a cookie."""
    name = secrets.token_urlsafe(_ID_BYTES)
    return f"{name}{_SEPARATOR}{_mac(name, account)}"


def device_id_of(text: str | None, account: Account | None) -> bytes | None:
    """Return the id of a device, None if the text is not a device of the account."""
    if account is None or not text or len(text) > _MAX_TEXT or not text.isascii():
        return None
    name, _, mac = text.partition(_SEPARATOR)
    return name.encode() if hmac.compare_digest(mac, _mac(name, account)) else None


def _mac(name: str, account: Account) -> str:
    message = f"medamad device {name}"
    return hmac.digest(account.password_hash.encode(), message.encode(), "sha256").hex()
