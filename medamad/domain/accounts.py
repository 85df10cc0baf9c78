"""The one account with its settings and logins, API tokens and share links."""

from enum import StrEnum
from typing import Final

from attrs import frozen

LANGUAGES: Final = ("en", "de", "fr", "es", "ja", "zh")
"""The values of `settings.language`."""

SCRIPT_TYPES: Final = (
    "default",
    "click-events",
    "page-events",
    "outbound-links",
    "file-downloads",
    "not-found",
    "hash-routing",
    "page-control",
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


MAX_TOKENS: Final = 100
"""How many tokens there may be."""


class Scope(StrEnum):
    """What a token may be used for."""

    READ = "read"
    """To read figures."""
    SEND = "send"
    """To send hits from a server."""
    ANNOTATE = "annotate"
    """To add annotations, such as from a pipeline that deploys."""
    FULL = "full"
    """All of this, and to register, rename and delete websites."""


@frozen
class Token:
    """A token, known by the SHA-256 of its text. Times in Unix seconds, None for never.

    `id` names it and opens nothing; `websites` are their numbers, None for all of them.
    """

    id: str
    name: str
    scope: Scope
    websites: tuple[int, ...] | None
    created: int
    expires: int | None = None
    last_used: int | None = None
    """The beginning of the day (UTC) on which it was used last."""
    number: int = 0
    """Which one it was of those that were made in the same second."""


MAX_SHARES: Final = 1_000
"""How many share links there may be."""

ANY_ORIGIN: Final = "*"


@frozen
class Share:
    """A share link. `created` in Unix seconds.

    `id` is the part of its address that nobody can guess; `website` a number; `password_hash`
    Argon2's encoded form, "" where no password is asked for; `embed` the origins whose pages may
    show it in a frame, or ANY_ORIGIN alone.
    """

    id: str
    name: str
    website: int
    created: int
    password_hash: str = ""
    embed: tuple[str, ...] = ()
    number: int = 0
    """Which one it was of those that were made in the same second."""
