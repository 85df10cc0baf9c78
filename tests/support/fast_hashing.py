"""Passwords that are hashed with the least work, for tests that are not about that work."""

from collections.abc import Iterator

import pytest
from argon2 import PasswordHasher

from medamad.accounts import accounts, credentials

HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture(scope="module", autouse=True)
def fast_hashing() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(credentials, "_HASHER", HASHER)
        patch.setattr(accounts, "DUMMY_HASH", HASHER.hash("nobody's"))
        yield
