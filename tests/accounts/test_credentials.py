from typing import Any

import pytest

from medamad.accounts.credentials import (
    changed_settings,
    check_login,
    check_password,
    check_username,
)
from medamad.domain.accounts import SCRIPT_TYPES, Settings
from medamad.domain.errors import BadRequest


@pytest.mark.parametrize("text", ["abc", "x" * 48, "Ada Lovelace", "日本語", "a\tb"])
def test_usernames(text: str) -> None:
    assert check_username(text) == text


@pytest.mark.parametrize("text", ["", "ab", "x" * 49, "a\x00b", "ab\ud800"])
def test_usernames_that_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^username: expected "):
        check_username(text)


@pytest.mark.parametrize("text", ["abcde", "x" * 128, " five ", "a\nbcd"])
def test_passwords(text: str) -> None:
    assert check_password(text) == text


@pytest.mark.parametrize("text", ["", "abcd", "x" * 129, "abcd\x00", "abcd\udfff"])
def test_passwords_that_are_refused_and_never_repeated(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^password: expected ") as error:
        check_password(text)
    assert not text or text not in str(error.value)


def test_a_login_is_looked_at_up_to_1024_characters() -> None:
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
def test_settings_that_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as error:
        changed_settings(Settings(), change)
    assert str(error.value).startswith(message)
