"""Session tokens, and the devices by which browsers are recognised at their next login.

Devices are not stored. A device's cookie holds an id and its MAC, keyed by the hash of the
account's password with its random salt: only a successful login yields one, and it is
valid until the password changes.
"""

import hashlib
import hmac
import secrets
from typing import Final

from medamad.domain.accounts import Account, Login

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


def device_of(text: str | None, account: Account | None) -> bytes | None:
    """Return the id of a device, None if the text is not a device of the account."""
    if account is None or not text or len(text) > _MAX_TEXT or not text.isascii():
        return None
    name, _, mac = text.partition(_SEPARATOR)
    return name.encode() if hmac.compare_digest(mac, _mac(name, account)) else None


def _mac(name: str, account: Account) -> str:
    message = f"medamad device {name}"
    return hmac.digest(account.password_hash.encode(), message.encode(), "sha256").hex()
