import pytest

from medamad.accounts.sessions import MAX_TOKEN, digest, has_ended, is_stale, new_token
from medamad.domain.accounts import Login

DAY = 86_400
NOW = 1_750_000_000.5


def test_tokens_differ_and_fit_into_a_cookie() -> None:
    tokens = {new_token() for _ in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        assert len(token) == 43 <= MAX_TOKEN
        assert token.replace("-", "a").replace("_", "a").isalnum()


def test_a_digest_is_the_tokens_sha_256() -> None:
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
def test_a_login_ends_after_30_days_or_7_idle_ones(since: float, seen: float, ended: bool) -> None:
    assert has_ended(Login(int(since), int(seen)), int(NOW)) is ended


@pytest.mark.parametrize(("idle", "stale"), [(0, False), (60, False), (61, True)])
def test_a_use_is_noted_once_a_minute(idle: int, stale: bool) -> None:
    assert is_stale(Login(0, 1_000), 1_000 + idle) is stale
