"""Session tokens and the cookie by which a known device is recognised.

Nothing of it is kept. What the cookie carries is an id and a MAC of it, keyed by the hash of the
account's password, which has a random salt: so only a successful login gives one, and it ends with
that password.
"""

import hashlib
import hmac
import secrets
from typing import Final

from medamad.domain.accounts import Account, Login

LIFETIME_S: Final = 30 * 86_400
"""A login ends this long after it began (contract, section 2)."""
IDLE_S: Final = 7 * 86_400
"""A login ends this long after it was last used (contract, section 2)."""
_TOUCH_S: Final = 60
_TOKEN_BYTES: Final = 32
MAX_TOKEN: Final = 128
"""No token of ours is as long; a longer one is not even hashed."""


def new_token() -> str:
    """Make up a token of 32 random bytes, as text that a cookie may carry."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def digest(token: str) -> bytes:
    """Return the 32 bytes under which a login is kept: a stolen store opens no session."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def has_ended(login: Login, now: float) -> bool:
    """Return whether a login is past its lifetime or was idle for too long."""
    # One of a time to come was made before the clock was set back; too far ahead, it has no end.
    return abs(now - login.since) > LIFETIME_S or abs(now - login.last_seen) > IDLE_S


def is_stale(login: Login, now: float) -> bool:
    """Return whether `last_seen` is old enough to be worth a write."""
    return now - login.last_seen > _TOUCH_S


DEVICE_LIFETIME_S: Final = 400 * 86_400
"""For how long a browser keeps a cookie at most."""
_ID_BYTES: Final = 32
_MAX_TEXT: Final = 128
_SEPARATOR: Final = "."


def new_device(account: Account) -> str:
    """Make up a device, as text that a cookie may carry."""
    name = secrets.token_urlsafe(_ID_BYTES)
    return f"{name}{_SEPARATOR}{_mac(name, account)}"


def device_of(text: str | None, account: Account | None) -> bytes | None:
    """Return the id of the device that a text is, None where it is none of the account's."""
    if account is None or not text or len(text) > _MAX_TEXT or not text.isascii():
        return None
    name, _, mac = text.partition(_SEPARATOR)
    return name.encode() if hmac.compare_digest(mac, _mac(name, account)) else None


def _mac(name: str, account: Account) -> str:
    message = f"medamad device {name}"
    return hmac.digest(account.password_hash.encode(), message.encode(), "sha256").hex()
