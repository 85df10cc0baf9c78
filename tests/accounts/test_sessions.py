import pytest
from attrs import evolve

from medamad.accounts.credentials import (
    MAX_TOKEN,
    device_id_of,
    digest,
    has_ended,
    is_stale,
    new_device,
    new_token,
)
from medamad.domain.accounts import Account, Login

DAY = 86_400
NOW = 1_750_000_000.5


def test_tokens_differ_and_fit_into_a_cookie() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        assert len(token) == 43 <= MAX_TOKEN
        assert token.replace("-", "a").replace("_", "a").isalnum()


def test_a_digest_is_the_sha_256_of_the_token() -> None:
    assert digest("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert len(digest("\ud800")) == 32


@pytest.mark.parametrize(
    ("since", "seen", "ended"),
    [
        (NOW, NOW, False),
        (NOW - 30 * DAY, NOW, False),
        (NOW - 30 * DAY - 1, NOW, True),
        (NOW - 29 * DAY, NOW - 7 * DAY, False),
        (NOW - 29 * DAY, NOW - 7 * DAY - 1, True),
        (NOW + DAY, NOW + DAY, False),
        (NOW, NOW + 7 * DAY, False),
        (NOW + 365 * DAY, NOW, True),
        (NOW, NOW + 365 * DAY, True),
    ],
)
def test_a_session_ends_after_30_days_or_7_idle_ones(
    since: float, seen: float, ended: bool
) -> None:
    assert has_ended(Login(int(since), int(seen)), int(NOW)) is ended


@pytest.mark.parametrize(("idle", "stale"), [(0, False), (60, False), (61, True)])
def test_a_use_is_stored_at_most_once_a_minute(idle: int, stale: bool) -> None:
    assert is_stale(Login(0, 1_000), 1_000 + idle) is stale


ADA = Account("ada", "$argon2id$of a password", created=1, updated=1)


def test_a_device_is_recognised_and_distinct_from_others() -> None:
    one, other = new_device(ADA), new_device(ADA)
    assert device_id_of(one, ADA) == device_id_of(one, evolve(ADA, username="eve"))
    assert None is not device_id_of(one, ADA) != device_id_of(other, ADA) is not None


def test_a_new_password_forgets_the_device() -> None:
    assert device_id_of(new_device(ADA), evolve(ADA, password_hash="$argon2id$of another")) is None


def test_an_id_with_the_mac_of_another_is_invalid() -> None:
    (one, _), (_, mac) = (new_device(ADA).split(".") for _ in range(2))
    assert device_id_of(f"{one}.{mac}", ADA) is None


@pytest.mark.parametrize("text", [None, "", ".", "a", "a.", ".a", "ü.a", "a.ü", "a" * 5_000])
def test_invalid_devices(text: str | None) -> None:
    assert device_id_of(text, ADA) is None
    assert device_id_of(text, None) is None


def test_no_device_is_recognised_without_an_account() -> None:
    assert device_id_of(new_device(ADA), None) is None
