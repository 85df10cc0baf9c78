"""A login: the token that a cookie carries, what is kept of it, and when it ends."""

import hashlib
import secrets
from typing import Final

from medamad.model.accounts import Login

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
    """Give the 32 bytes under which a login is kept: a stolen store opens no session."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def has_ended(login: Login, now: float) -> bool:
    """Tell whether a login is past its lifetime or was idle for too long."""
    # One of a time to come was made before the clock was set back; too far ahead, it has no end.
    return abs(now - login.since) > LIFETIME_S or abs(now - login.last_seen) > IDLE_S


def is_stale(login: Login, now: float) -> bool:
    """Tell whether `last_seen` is old enough to be worth a write."""
    return now - login.last_seen > _TOUCH_S
