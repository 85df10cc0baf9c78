"""The one account, its settings and its logins."""

from typing import Final

from attrs import frozen

LANGUAGES: Final = ("en", "de", "fr", "es", "ja", "zh")
"""What `settings.language` may be."""

SCRIPT_TYPES: Final = (
    "default",
    "click-events",
    "page-events",
    "outbound-links",
    "file-downloads",
    "not-found",
    "hash-routing",
)
"""What `settings.script_type` may list: the features of the tracker."""


@frozen
class Settings:
    """The account's settings."""

    language: str = "en"
    script_type: tuple[str, ...] = ("default",)


@frozen
class Account:
    """The account. `password_hash` is Argon2's encoded form; times in Unix seconds."""

    username: str
    password_hash: str
    created: int
    updated: int
    settings: Settings = Settings()


@frozen
class Login:
    """A login, known by the SHA-256 of its token. Times in Unix seconds."""

    since: int
    last_seen: int
