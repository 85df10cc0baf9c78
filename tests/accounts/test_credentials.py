import re
from typing import Any

import pytest
from argon2 import extract_parameters

from medamad.accounts.credentials import (
    DUMMY_HASH,
    changed_settings,
    check_login,
    check_name,
    check_password,
    check_username,
    hash_password,
    random_password,
    verify,
)
from medamad.domain.accounts import SCRIPT_TYPES, Settings
from medamad.domain.errors import BadRequest


@pytest.fixture(scope="module", autouse=True)
def fast_hashing() -> None:
    """Hash here as the daemon does."""


@pytest.mark.parametrize("text", ["abc", "x" * 48, "Ada Lovelace", "日本語", "a\tb"])
def test_usernames(text: str) -> None:
    assert check_username(text) == text


@pytest.mark.parametrize("text", ["", "ab", "x" * 49, "a\x00b", "ab\ud800"])
def test_invalid_usernames_are_rejected(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^username: expected "):
        check_username(text)


@pytest.mark.parametrize("text", ["abcde", "x" * 128, " five ", "a\nbcd"])
def test_passwords(text: str) -> None:
    assert check_password(text) == text


@pytest.mark.parametrize("text", ["", "abcd", "x" * 129, "abcd\x00", "abcd\udfff"])
def test_invalid_passwords_are_rejected_and_not_repeated(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^password: expected ") as error:
        check_password(text)
    assert not text or text not in str(error.value)


def test_a_login_may_have_up_to_1024_characters() -> None:
    check_login("x" * 1_024, "")
    check_login("", "\n")
    with pytest.raises(BadRequest, match=r"^username: expected at most 1024 characters$"):
        check_login("x" * 1_025, "")
    with pytest.raises(BadRequest, match=r"^password: expected at most 1024 characters$"):
        check_login("", "x" * 1_025)
    with pytest.raises(BadRequest, match=r"^password: expected text without NUL"):
        check_login("admin", "a\x00")


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({}, Settings()),
        ({"language": "de"}, Settings("de")),
        ({"script_type": ["click-events"]}, Settings("en", ("click-events",))),
        ({"script_type": SCRIPT_TYPES}, Settings("en", SCRIPT_TYPES)),
        ({"script_type": []}, Settings("en", ())),
        ({"language": "zh", "script_type": ["default"], "x": 1}, Settings("zh")),
    ],
)
def test_settings(change: dict[str, Any], settings: Settings) -> None:
    assert changed_settings(Settings(), change) == settings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"language": "xx"}, "settings.language: expected one of en, de, fr, es, ja, zh"),
        ({"language": None}, "settings.language: expected one of en, de, fr, es, ja, zh"),
        ({"language": ["en"]}, "settings.language: expected one of en, de, fr, es, ja, zh"),
        ({"script_type": "default"}, "settings.script_type: expected an array of entries out of"),
        ({"script_type": ["x"]}, "settings.script_type: expected an array of entries out of"),
        ({"script_type": [[]]}, "settings.script_type: expected an array of entries out of"),
        (
            {"script_type": ["default", "default"]},
            "settings.script_type: expected each entry once",
        ),
    ],
)
def test_invalid_settings_are_rejected(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as error:
        changed_settings(Settings(), change)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["a", "weekly report", "日本", "x" * 64])
def test_names_are_stripped(name: str) -> None:
    assert check_name(name) == name
    assert check_name(f"  {name}\t") == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "name: expected 1 to 64 characters, got 0"),
        (" \n ", "name: expected 1 to 64 characters, got 0"),
        ("x" * 65, "name: expected 1 to 64 characters, got 65"),
        ("a\nb", "name: expected text of one line, without control characters"),
        ("a\x1b[31mb", "name: expected text of one line, without control characters"),
        ("a\ud800b", "name: expected text of one line, without control characters"),
    ],
)
def test_invalid_names_are_refused(name: str, reason: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_name(name)
    assert str(refused.value) == reason


def test_a_password_matches_only_its_own_hash() -> None:
    encoded = hash_password("correct horse")
    assert verify(encoded, "correct horse")
    assert not verify(encoded, "correct horsf")
    assert not verify(encoded, "")


def test_equal_passwords_have_different_hashes() -> None:
    assert hash_password("correct horse") != hash_password("correct horse")


def test_the_dummy_hash_takes_the_same_work() -> None:
    dummy, real = extract_parameters(DUMMY_HASH), extract_parameters(hash_password("x"))
    for figure in ("type", "version", "time_cost", "memory_cost", "parallelism", "hash_len"):
        assert getattr(dummy, figure) == getattr(real, figure)


@pytest.mark.parametrize("encoded", ["", "x", "$argon2id$", DUMMY_HASH[:-4]])
def test_an_invalid_hash_matches_no_password(encoded: str) -> None:
    assert verify(encoded, "x") is False


def test_a_random_password_is_long_and_easy_to_copy() -> None:
    made = {random_password() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{20}", password) for password in made)
