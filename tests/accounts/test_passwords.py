import re

import pytest
from argon2 import extract_parameters

from medamad.accounts.credentials import DUMMY_HASH, hash_password, random_password, verify


def test_a_password_opens_its_own_hash_alone() -> None:
    encoded = hash_password("correct horse")
    assert verify(encoded, "correct horse")
    assert not verify(encoded, "correct horsf")
    assert not verify(encoded, "")


def test_equal_passwords_have_different_hashes() -> None:
    assert hash_password("correct horse") != hash_password("correct horse")


def test_the_dummy_takes_the_same_work() -> None:
    dummy, real = extract_parameters(DUMMY_HASH), extract_parameters(hash_password("x"))
    for figure in ("type", "version", "time_cost", "memory_cost", "parallelism", "hash_len"):
        assert getattr(dummy, figure) == getattr(real, figure)


@pytest.mark.parametrize("encoded", ["", "x", "$argon2id$", DUMMY_HASH[:-4]])
def test_an_unreadable_hash_has_no_password(encoded: str) -> None:
    assert verify(encoded, "x") is False


def test_a_made_up_password_is_long_and_easily_copied() -> None:
    made = {random_password() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{20}", password) for password in made)
