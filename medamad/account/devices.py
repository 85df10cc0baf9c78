"""A known device: a browser in which the owner has logged in, told again by a cookie.

Nothing of it is kept. What the cookie carries is an id and a MAC of it, keyed by the hash of the
account's password, which has a random salt: so only a successful login gives one, and it ends with
that password.
"""

import hmac
import secrets
from typing import Final

from medamad.model.accounts import Account

LIFETIME_S: Final = 400 * 86_400
"""For how long a browser keeps a cookie at most."""
_ID_BYTES: Final = 32
_MAX_TEXT: Final = 128
_SEPARATOR: Final = "."


def new_device(account: Account) -> str:
    """Make up a device, as text that a cookie may carry."""
    name = secrets.token_urlsafe(_ID_BYTES)
    return f"{name}{_SEPARATOR}{_mac(name, account)}"


def device_of(text: str | None, account: Account | None) -> bytes | None:
    """Give the id of the device that a text is, None where it is none of the account's."""
    if account is None or not text or len(text) > _MAX_TEXT or not text.isascii():
        return None
    name, _, mac = text.partition(_SEPARATOR)
    return name.encode() if hmac.compare_digest(mac, _mac(name, account)) else None


def _mac(name: str, account: Account) -> str:
    message = f"medamad device {name}"
    return hmac.digest(account.password_hash.encode(), message.encode(), "sha256").hex()
