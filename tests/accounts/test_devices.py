"""A known device: told by what a login gave, as long as the password is the same."""

import pytest
from attrs import evolve

from medamad.accounts.sessions import device_of, new_device
from medamad.domain.accounts import Account

ADA = Account("ada", "$argon2id$of a password", created=1, updated=1)


def test_a_device_is_told_again_and_from_others() -> None:
    one, other = new_device(ADA), new_device(ADA)
    assert device_of(one, ADA) == device_of(one, evolve(ADA, username="eve"))
    assert None is not device_of(one, ADA) != device_of(other, ADA) is not None


def test_another_password_knows_it_no_more() -> None:
    assert device_of(new_device(ADA), evolve(ADA, password_hash="$argon2id$of another")) is None


def test_one_id_with_the_mac_of_another_is_none() -> None:
    (one, _), (_, mac) = (new_device(ADA).split(".") for _ in range(2))
    assert device_of(f"{one}.{mac}", ADA) is None


@pytest.mark.parametrize("text", [None, "", ".", "a", "a.", ".a", "ü.a", "a.ü", "a" * 5_000])
def test_what_is_none(text: str | None) -> None:
    assert device_of(text, ADA) is None
    assert device_of(text, None) is None


def test_there_is_none_without_an_account() -> None:
    assert device_of(new_device(ADA), None) is None
