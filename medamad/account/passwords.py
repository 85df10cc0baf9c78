"""Passwords: how they are hashed, checked and made up. Slow on purpose: never in the reactor."""

import secrets
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

_HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1)
"""Argon2id by OWASP's least figures: 19 MiB, two passes, one lane."""

DUMMY_HASH: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1"
    "$bWVkYW1hZC1uby1hY2NvdW50$gE3VlvJ4BI9iBm8ky3YhFbWOYIbPMyFmLWMqVGOFFlM"
)
"""What a password is checked against where no account has the name: as much work, never true."""

_RANDOM_BYTES: Final = 15


def hash_password(password: str) -> str:
    """Give Argon2's encoded form of a password, with a salt of its own."""
    return _HASHER.hash(password)


def verify(encoded: str, password: str) -> bool:
    """Tell whether a password is the one behind an encoded form. An unreadable form has none."""
    try:
        return _HASHER.verify(encoded, password)
    except (Argon2Error, InvalidHashError):
        return False


def random_password() -> str:
    """Make up a password of 20 letters, digits, hyphens and underscores: 120 random bits."""
    return secrets.token_urlsafe(_RANDOM_BYTES)
